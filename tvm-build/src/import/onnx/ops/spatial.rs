//! Operators on images and the like: grids, crops, columns.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::PrimExpr;

use super::Row;
use super::slice::{along, padded_by};
use super::spatial_given::{self, Windows};
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::{Fail, constant_of};
use crate::import::onnx::value::{Value, int_constant};

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("AffineGrid", 20, affine_grid),
    ("CenterCropPad", 18, center_crop_pad),
    ("Col2Im", 18, col2im),
    ("GridSample", 16, grid_sample),
];

/// Most elements of a constant that is computed here.
const MAX_ELEMENTS: i64 = 1 << 24;

/// The places of a grid from -1 to 1, the last axis first, and 1, for each element: one matrix times theta.
fn affine_grid(cx: &mut OpCx<'_>) -> Outputs {
    let (theta, size) = (cx.input(0, "theta")?, cx.input(1, "size")?);
    let align = cx.node.flag_or("align_corners", false)?;
    let axes = cx.length(&size, "the size")?.saturating_sub(2);
    let extent = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let theta = cx.emitter.of_extents(&theta, &[(1, extent(axes)), (2, extent(axes + 1))])?;
    let Some(size) = size.fixed_ints() else { return spatial_given::affine_grid(cx, &theta, &size, align) };
    let (dims, spatial) = (cx.dims(&theta, "theta")?, size.get(2..).unwrap_or(&[]));
    let axes = spatial.len();
    let count = spatial.iter().try_fold(1i64, |a, &b| if b > 0 { a.checked_mul(b) } else { None });
    let count = count
        .filter(|n| *n <= MAX_ELEMENTS)
        .ok_or_else(|| Fail::limit(format!("a grid of size {size:?} is not supported")))?;
    let fits = |d: &PrimExpr, n: usize| d.as_int() == i64::try_from(n).ok();
    if !(2..=3).contains(&axes) || dims.len() != 3 || !fits(&dims[1], axes) || !fits(&dims[2], axes + 1) {
        return Err(format!("theta of shape {dims:?} does not fit a grid of size {size:?}").into());
    }
    let place = |i: i64, n: i64| match (align, n) {
        (true, 1) => -1.0,
        (true, _) => -1.0 + 2.0 * i as f64 / (n - 1) as f64,
        (false, _) => -1.0 + (2 * i + 1) as f64 / n as f64,
    };
    let mut rows = Vec::new();
    for axis in (0..axes).rev() {
        let inner: i64 = spatial[axis + 1..].iter().product();
        rows.extend((0..count).map(|at| place(at / inner % spatial[axis], spatial[axis])));
    }
    rows.extend((0..count).map(|_| 1.0));
    let dtype = cx.dtype(&theta, "theta")?;
    let grid = constant_of(&rows, vec![axes as u64 + 1, count.unsigned_abs()], dtype);
    let grid = grid.ok_or_else(|| Fail::limit(format!("grids of {dtype} are not supported")))?;
    let out = cx.apply("matmul", &[&theta, &grid.into()])?;
    let out = cx.call("permute_dims", vec![out], vec![("axes", vec![0, 2, 1].into())])?;
    let mut shape = vec![dims[0].clone()];
    shape.extend(spatial.iter().map(|&n| PrimExpr::i64(n)));
    shape.push(dims[1].clone());
    Ok(vec![cx.reshape(&out, shape)?])
}

fn center_crop_pad(cx: &mut OpCx<'_>) -> Outputs {
    let (mut x, shape) = (cx.input(0, "input_data")?, cx.input(1, "shape")?);
    let dims = cx.dims(&x, "input_data")?;
    let axes = match cx.node.ints("axes")? {
        Some(axes) => cx.axes(axes, dims.len())?,
        None => (0..dims.len()).collect(),
    };
    let shape = match (shape.fixed_ints(), axes.iter().map(|a| dims[*a].as_int()).collect::<Option<Vec<_>>>()) {
        (Some(shape), Some(_)) => shape.into_iter().map(PrimExpr::i64).collect::<Vec<_>>(),
        _ => return center_at_run_time(cx, x, &shape, &axes),
    };
    if shape.len() != axes.len() {
        return Err(format!("the shape has {} extents for {} axes", shape.len(), axes.len()).into());
    }
    let mut widths = vec![0; 2 * dims.len()];
    for (&axis, want) in axes.iter().zip(&shape) {
        if *want == dims[axis] {
            continue;
        }
        let (Some(have), Some(want)) = (dims[axis].as_int(), want.as_int().filter(|n| *n >= 0)) else {
            return Err(format!("an extent of {:?} cannot be made {want:?}: both must be fixed", dims[axis]).into());
        };
        if want < have {
            let first = (have - want) / 2;
            x = along(cx, &x, i64::try_from(axis).unwrap_or(i64::MAX), first, first + want)?;
        }
        let missing = (want - have).max(0);
        (widths[2 * axis], widths[2 * axis + 1]) = (missing / 2, missing - missing / 2);
    }
    if widths.iter().any(|&w| w != 0) {
        x = cx.call("nn.pad", vec![x], vec![("pad_width", widths.into())])?;
    }
    Ok(vec![x])
}

/// What is missing is added, half of it before; what is too much is below zero, and cut off.
fn center_at_run_time(cx: &mut OpCx<'_>, x: Value, shape: &Value, axes: &[usize]) -> Outputs {
    let (dims, dtype) = (cx.dims(&x, "input_data")?, cx.dtype(&x, "input_data")?);
    if cx.length(shape, "the shape")? != axes.len() {
        return Err(format!("the shape must have {} extents", axes.len()).into());
    }
    let shape = cx.call("astype", vec![shape.clone()], vec![("dtype", AttrValue::DType(DType::I64))])?;
    let have: Vec<PrimExpr> = axes.iter().map(|a| dims[*a].clone()).collect();
    let (have, two) = (cx.emitter.materialize(&have, false)?, cx.scalar(2.0, DType::I64)?);
    let missing = cx.apply("subtract", &[&shape, &have])?;
    // Rounds toward zero.
    let before = cx.apply("divide", &[&missing, &two])?;
    let after = cx.apply("subtract", &[&missing, &before])?;
    let axes: Vec<i64> = axes.iter().map(|a| i64::try_from(*a).unwrap_or(i64::MAX)).collect();
    let axes = int_constant(&axes, false).ok_or("attribute 'axes' is too long")?;
    let zero = cx.scalar(0.0, dtype)?;
    padded_by(cx, x, (before, after), Some(axes.into()), zero, "constant")
}

/// Columns added up at their places in the padded image.
fn col2im(cx: &mut OpCx<'_>) -> Outputs {
    let (x, image, block) = (cx.input(0, "input")?, cx.input(1, "image_shape")?, cx.input(2, "block_shape")?);
    let axes = cx.length(&image, "image_shape")?;
    let list = |name: &str, count: usize, default: i64, least: i64| -> Result<Vec<i64>, Fail> {
        let values = cx.node.ints(name)?.map_or_else(|| vec![default; count], <[i64]>::to_vec);
        if values.len() != count || values.iter().any(|v| *v < least || *v > i64::from(i32::MAX)) {
            return Err(format!("attribute '{name}' cannot be {values:?}").into());
        }
        Ok(values)
    };
    let (dilations, strides) = (list("dilations", axes, 1, 1)?, list("strides", axes, 1, 1)?);
    let pads = list("pads", 2 * axes, 0, 0)?;
    if cx.length(&block, "block_shape")? != axes {
        return Err(format!("block_shape must have {axes} elements, as image_shape").into());
    }
    let (Some(image), Some(block)) = (image.fixed_ints(), block.fixed_ints()) else {
        return spatial_given::col2im(cx, &x, &image, &block, &Windows { dilations, strides, pads });
    };
    let in_range = |v: &[i64]| v.iter().all(|n| (1..=i64::from(i32::MAX)).contains(n));
    if axes == 0 || block.len() != axes || !in_range(&image) || !in_range(&block) {
        return Err(format!("blocks of {block:?} do not fit an image of {image:?}").into());
    }
    let padded: Vec<i64> = (0..axes).map(|a| image[a] + pads[a] + pads[a + axes]).collect();
    let windows: Vec<i64> =
        (0..axes).map(|a| (padded[a] - (block[a] - 1) * dilations[a] - 1).div_euclid(strides[a]) + 1).collect();
    let product = |v: &[i64]| v.iter().try_fold(1i64, |a, &b| a.checked_mul(b)).filter(|n| *n <= MAX_ELEMENTS);
    let (Some(size), Some(taps), Some(count)) = (product(&padded), product(&block), product(&windows)) else {
        return Err(format!("an image of {image:?} is too large").into());
    };
    if windows.iter().any(|w| *w < 1) || taps.checked_mul(count).is_none_or(|n| n > MAX_ELEMENTS) {
        return Err(format!("blocks of {block:?} do not fit an image of {image:?}").into());
    }
    let dims @ [batch, rows, columns] = &cx.dims_of::<3>(&x, "input")?;
    let channels = rows.as_int().filter(|c| c % taps == 0).map(|c| c / taps);
    let (Some(channels), true) = (channels, columns.is_int(count)) else {
        return Err(format!("columns of shape {dims:?} are not {count} blocks of {taps} elements").into());
    };
    // The place of each element of each block.
    let mut places = Vec::new();
    for tap in 0..taps {
        for window in 0..count {
            let (mut place, mut tap, mut window, mut step) = (0, tap, window, 1);
            for a in (0..axes).rev() {
                let at = window % windows[a] * strides[a] + tap % block[a] * dilations[a];
                place += at * step;
                (tap, window, step) = (tap / block[a], window / windows[a], step * padded[a]);
            }
            places.push(place);
        }
    }
    let index = int_constant(&places, false).ok_or("there is no constant index")?;
    let i = PrimExpr::i64;
    let flat = vec![batch.clone(), i(channels), i(taps * count)];
    let index = cx.call("broadcast_to", vec![index.into(), Value::shape(flat.clone())], vec![])?;
    let updates = cx.reshape(&x, flat)?;
    let dtype = cx.dtype(&x, "input")?;
    let zero = cx.scalar(0.0, dtype)?;
    let empty = Value::shape(vec![batch.clone(), i(channels), i(size)]);
    let empty = cx.call("broadcast_to", vec![zero, empty], vec![])?;
    let attrs = vec![("axis", AttrValue::Int(2)), ("reduction", "add".into())];
    let sums = cx.call("scatter_elements", vec![empty, index, updates], attrs)?;
    let mut shape = vec![batch.clone(), i(channels)];
    shape.extend(padded.iter().map(|&n| i(n)));
    let mut out = cx.reshape(&sums, shape)?;
    for a in 0..axes {
        if pads[a] != 0 || pads[a + axes] != 0 {
            out = along(cx, &out, i64::try_from(a + 2).unwrap_or(i64::MAX), pads[a], pads[a] + image[a])?;
        }
    }
    Ok(vec![out])
}

fn grid_sample(cx: &mut OpCx<'_>) -> Outputs {
    let (x, grid) = (cx.input(0, "X")?, cx.input(1, "grid")?);
    let method = match cx.node.string_or("mode", "linear")? {
        "linear" | "bilinear" => "bilinear",
        "cubic" | "bicubic" => "bicubic",
        "nearest" => "nearest",
        other => return Err(format!("attribute 'mode' cannot be '{other}'").into()),
    };
    let padding = cx.node.string_or("padding_mode", "zeros")?;
    if !matches!(padding, "zeros" | "border" | "reflection") {
        return Err(format!("attribute 'padding_mode' cannot be '{padding}'").into());
    }
    let align = cx.node.flag_or("align_corners", false)?;
    let rank = cx.rank(&grid, "grid")?;
    let coordinates = i64::try_from(rank).unwrap_or(i64::MAX) - 2;
    let grid = cx.emitter.of_extents(&grid, &[(rank.saturating_sub(1), coordinates)])?;
    let (axes, layout) = match rank {
        4 => (vec![0, 3, 1, 2], "NCHW"),
        5 => (vec![0, 4, 1, 2, 3], "NCDHW"),
        rank => return Err(format!("grids have 4 or 5 axes, and the rank is {rank}").into()),
    };
    let grid = cx.call("permute_dims", vec![grid], vec![("axes", axes.into())])?;
    let attrs = vec![
        ("method", method.into()),
        ("layout", layout.into()),
        ("padding_mode", padding.into()),
        ("align_corners", align.into()),
    ];
    Ok(vec![cx.call("image.grid_sample", vec![x, grid], attrs)?])
}
