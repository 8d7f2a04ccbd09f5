//! Grids and images whose sizes are given at run time.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, PrimExpr};
use tvm_ir::relax::Leaf;

use super::ints::product;
use super::slice::tuple;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

fn int(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn count(cx: &mut OpCx<'_>, extent: PrimExpr) -> Result<Value, Fail> {
    cx.call("arange", vec![Leaf::Prim(extent).into()], vec![("dtype", AttrValue::DType(DType::I64))])
}

/// The sum over theta's columns times the places along the axes, the last axis first, and 1.
pub(super) fn affine_grid(cx: &mut OpCx<'_>, theta: &Value, size: &Value, align: bool) -> Outputs {
    let (dims, dtype) = (cx.dims(theta, "theta")?, cx.dtype(theta, "theta")?);
    let axes = cx.length(size, "the size")?.saturating_sub(2);
    let fits = |d: &PrimExpr, n: usize| d.is_int(int(n));
    if !(2..=3).contains(&axes) || dims.len() != 3 || !fits(&dims[1], axes) || !fits(&dims[2], axes + 1) {
        return Err(format!("theta of shape {dims:?} does not fit a grid of {axes} axes").into());
    }
    let mut known = vec![None; axes + 2];
    known[0] = Some(dims[0].clone());
    let extents = cx.run_time_dims_beside(size, &known)?;
    let spread = |at: usize, extent: PrimExpr| {
        let mut shape = vec![PrimExpr::i64(1); axes + 2];
        shape[at] = extent;
        shape
    };
    let column = |cx: &mut OpCx<'_>, at: usize| -> Result<Value, Fail> {
        let index = Value::int(PrimExpr::i64(int(at)));
        let column = cx.call("take", vec![theta.clone(), index], vec![("axis", 2.into())])?;
        let mut shape = spread(0, dims[0].clone());
        shape[axes + 1] = dims[1].clone();
        cx.reshape(&column, shape)
    };
    let mut sum: Option<Value> = None;
    for at in (0..axes).rev() {
        let extent = extents[at + 2].clone();
        let index = count(cx, extent.clone())?;
        let cast = |cx: &mut OpCx<'_>, v, to| cx.call("astype", vec![v], vec![("dtype", AttrValue::DType(to))]);
        let wide = DType::F64;
        let index = cast(cx, index, wide)?;
        let (one, two, first) = (cx.scalar(1.0, wide)?, cx.scalar(2.0, wide)?, cx.scalar(-1.0, wide)?);
        let twice = cx.apply("multiply", &[&two, &index])?;
        let (part, whole) = if align {
            // One element alone is at -1.
            let gaps = PrimExpr::binary(BinOp::Sub, extent.clone(), PrimExpr::i64(1)).max(PrimExpr::i64(1));
            (twice, Value::int(gaps))
        } else {
            (cx.apply("add", &[&twice, &one])?, Value::int(extent.clone()))
        };
        let whole = cast(cx, whole, wide)?;
        let place = cx.apply("divide", &[&part, &whole])?;
        let place = cx.apply("add", &[&first, &place])?;
        let place = if dtype == wide { place } else { cast(cx, place, dtype)? };
        let place = cx.reshape(&place, spread(at + 1, extent))?;
        let factor = column(cx, axes - 1 - at)?;
        let term = cx.apply("multiply", &[&factor, &place])?;
        sum = Some(match sum {
            None => term,
            Some(sum) => cx.apply("add", &[&sum, &term])?,
        });
    }
    let last = column(cx, axes)?;
    let sum = sum.ok_or("the grid has no axes")?;
    Ok(vec![cx.apply("add", &[&sum, &last])?])
}

/// What Col2Im is told by attributes.
pub(super) struct Windows {
    pub(super) dilations: Vec<i64>,
    pub(super) strides: Vec<i64>,
    /// Before each axis, then after each.
    pub(super) pads: Vec<i64>,
}

/// Columns added up at their places in the padded image. That the blocks fit is checked at run time.
pub(super) fn col2im(cx: &mut OpCx<'_>, x: &Value, image: &Value, block: &Value, windows: &Windows) -> Outputs {
    let (dims, dtype) = (cx.dims(x, "input")?, cx.dtype(x, "input")?);
    let axes = windows.strides.len();
    let [batch, columns, places] = &dims[..] else {
        return Err(format!("the columns must have 3 axes, not {}", dims.len()).into());
    };
    let pads: Vec<i64> = (0..axes).map(|a| windows.pads[a].saturating_add(windows.pads[a + axes])).collect();
    let list = |values: &[i64]| Value::ints(values.iter().map(|&v| PrimExpr::i64(v)).collect());
    let ones = list(&vec![1; axes]);
    let wide = |cx: &mut OpCx<'_>, v: &Value| -> Result<Value, Fail> {
        let to = vec![("dtype", AttrValue::DType(DType::I64))];
        if cx.dtype(v, "a shape")? == DType::I64 { Ok(v.clone()) } else { cx.call("astype", vec![v.clone()], to) }
    };
    let (image, block) = (wide(cx, image)?, wide(cx, block)?);
    // How many windows there are along each axis: those that fit between the first and the last place.
    let padded = cx.apply("add", &[&image, &list(&pads)])?;
    let gaps = cx.apply("subtract", &[&block, &ones])?;
    let gaps = cx.apply("multiply", &[&gaps, &list(&windows.dilations)])?;
    let room = cx.apply("subtract", &[&padded, &gaps])?;
    let room = cx.apply("subtract", &[&room, &ones])?;
    let along = cx.apply("floor_divide", &[&room, &list(&windows.strides)])?;
    let along = cx.apply("add", &[&along, &ones])?;
    let keep = || vec![("axis", vec![0].into()), ("keepdims", true.into())];
    let taps = cx.call("prod", vec![block.clone()], keep())?;
    let found = cx.call("prod", vec![along.clone()], keep())?;
    let safe = cx.apply("maximum", &[&taps, &list(&[1])])?;
    let channels = cx.apply("floor_divide", &[&Value::ints(vec![columns.clone()]), &safe])?;
    let whole = cx.apply("multiply", &[&channels, &taps])?;
    let parts = vec![channels, whole, found, block, image, along];
    let extents = cx.call("concat", vec![Value::Tuple(parts)], vec![("axis", 0.into())])?;
    let mut known = vec![None, Some(columns.clone()), Some(places.clone())];
    known.resize(3 + 3 * axes, None);
    let extents = cx.run_time_dims_beside(&extents, &known)?;
    let (channels, rest) = (extents[0].clone(), &extents[3..]);
    let (block, image, along) = (&rest[..axes], &rest[axes..2 * axes], &rest[2 * axes..]);
    let padded: Vec<PrimExpr> = image.iter().zip(&pads).map(|(n, p)| n.clone() + PrimExpr::i64(*p)).collect();
    let taps = product(block);
    let taps_at = index(cx, block, &windows.dilations, &padded)?;
    let windows_at = index(cx, along, &windows.strides, &padded)?;
    let one = PrimExpr::i64(1);
    let rows = cx.reshape(&taps_at, vec![taps.clone(), one.clone()])?;
    let row = cx.reshape(&windows_at, vec![one, product(along)])?;
    let at = cx.apply("add", &[&rows, &row])?;
    // As many as there are places, as is checked.
    let length = taps * places.clone();
    let at = cx.call("broadcast_to", vec![at, Value::shape(vec![product(block), places.clone()])], vec![])?;
    let at = cx.reshape(&at, vec![length.clone()])?;
    let flat = vec![batch.clone(), channels.clone(), length];
    let at = cx.call("broadcast_to", vec![at, Value::shape(flat.clone())], vec![])?;
    let updates = cx.reshape(x, flat)?;
    let zero = cx.scalar(0.0, dtype)?;
    let empty = Value::shape(vec![batch.clone(), channels.clone(), product(&padded)]);
    let empty = cx.call("broadcast_to", vec![zero, empty], vec![])?;
    let attrs = vec![("axis", AttrValue::Int(2)), ("reduction", "add".into())];
    let sums = cx.call("scatter_elements", vec![empty, at, updates], attrs)?;
    let mut out = cx.reshape(&sums, [&[batch.clone(), channels][..], &padded].concat())?;
    for (a, extent) in image.iter().enumerate().filter(|(a, _)| pads[*a] != 0) {
        let (first, last) = (PrimExpr::i64(windows.pads[a]), extent.clone() + PrimExpr::i64(windows.pads[a]));
        let axis = PrimExpr::i64(int(a + 2));
        out = cx.call("strided_slice", vec![out, tuple(vec![axis]), tuple(vec![first]), tuple(vec![last])], vec![])?;
    }
    Ok(vec![out])
}

/// The place in the padded image of each of `extents` elements, in steps along each axis.
fn index(cx: &mut OpCx<'_>, extents: &[PrimExpr], steps: &[i64], padded: &[PrimExpr]) -> Result<Value, Fail> {
    let all = count(cx, product(extents))?;
    let mut sum: Option<Value> = None;
    for (a, extent) in extents.iter().enumerate() {
        let inner = Value::int(product(&extents[a + 1..]));
        let along = cx.apply("floor_divide", &[&all, &inner])?;
        let along = cx.apply("floor_mod", &[&along, &Value::int(extent.clone())])?;
        let step = Value::int(product(&padded[a + 1..]) * PrimExpr::i64(steps[a]));
        let along = cx.apply("multiply", &[&along, &step])?;
        sum = Some(match sum {
            None => along,
            Some(sum) => cx.apply("add", &[&sum, &along])?,
        });
    }
    sum.ok_or_else(|| "the image has no axes".into())
}
