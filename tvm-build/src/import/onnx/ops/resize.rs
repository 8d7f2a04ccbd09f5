//! Resize and Upsample: along one axis after the other, as sums of elements times constant weights.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, PrimExpr};

use super::Row;
use super::resize_given::{self, Ratio, Request, Target};
use super::sampling::{Coordinates, Kernel, Nearest, Sampling};
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::{Fail, constant_of};
use crate::import::onnx::value::{Value, int_constant, numbers_of};

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("Resize", 10, resize_10),
    ("Resize", 11, resize),
    ("Upsample", 7, upsample_attributes),
    ("Upsample", 9, resize_10),
];

/// Longest extent that is computed here.
const MAX_EXTENT: i64 = 1 << 20;

/// Most times a kernel is widened.
pub(super) const MAX_WIDENED: f64 = 64.0;

/// How each axis is resized.
enum Factor {
    /// By a number.
    Scale(f64),
    /// To an extent.
    Size(PrimExpr),
    /// By a number that is not quite that of the extents, to an extent.
    Kept(f64, i64),
}

/// How all axes are resized.
struct Plan {
    sampling: Sampling,
    /// Axis and factor.
    factors: Vec<(usize, Factor)>,
    /// Start and end of each of these axes in parts of its extent, where `Coordinates` ask for it.
    region: Option<Vec<(f64, f64)>>,
    /// What is taken for elements outside of the input, where `Coordinates` ask for it.
    outside: f64,
}

fn kernel(cx: &OpCx<'_>) -> Result<Kernel, Fail> {
    let a = f64::from(cx.node.float_or("cubic_coeff_a", -0.75)?);
    match cx.node.string_or("mode", "nearest")? {
        "nearest" => Ok(Kernel::Nearest(Nearest::PreferFloor)),
        "linear" | "bilinear" => Ok(Kernel::Linear),
        "cubic" => Ok(Kernel::Cubic(a)),
        other => Err(format!("attribute 'mode' cannot be '{other}'").into()),
    }
}

/// Before version 11 output places are divided by the scale, and the nearest element is that before or behind.
fn old_sampling(cx: &OpCx<'_>) -> Result<Sampling, Fail> {
    let kernel = match kernel(cx)? {
        Kernel::Nearest(_) => Kernel::Nearest(Nearest::Simple),
        Kernel::Cubic(_) => return Err("attribute 'mode' of 'cubic' came with version 11".into()),
        Kernel::Linear => Kernel::Linear,
    };
    Ok(Sampling { kernel, coordinates: Coordinates::Asymmetric, antialias: false, exclude_outside: false })
}

fn old_plan(sampling: Sampling, scales: Vec<f64>) -> Plan {
    let factors = scales.into_iter().map(Factor::Scale).enumerate().collect();
    Plan { sampling, factors, region: None, outside: 0.0 }
}

fn upsample_attributes(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let scales = cx.node.floats("scales")?.ok_or("attribute 'scales' is missing")?;
    let scales = scales.iter().map(|&s| f64::from(s)).collect();
    let plan = old_plan(old_sampling(cx)?, scales);
    resized(cx, x, plan)
}

fn resize_10(cx: &mut OpCx<'_>) -> Outputs {
    let (x, scales) = (cx.input(0, "X")?, cx.input(1, "scales")?);
    let sampling = old_sampling(cx)?;
    let rank = cx.rank(&x, "X")?;
    match scales.as_const().and_then(numbers_of) {
        Some(numbers) if numbers.len() == rank && computable(&sampling, &cx.dims(&x, "X")?, &numbers) => {
            resized(cx, x, old_plan(sampling, numbers))
        }
        _ => {
            let axes = (0..rank).collect();
            let request = Request { sampling, axes, target: Target::Scales(scales), region: None, outside: 0.0 };
            resize_given::resized(cx, x, &request)
        }
    }
}

/// Whether places and weights can be computed now: along axes of fixed extents, and where elements are only repeated.
fn computable(sampling: &Sampling, dims: &[PrimExpr], scales: &[f64]) -> bool {
    dims.iter().zip(scales).all(|(extent, scale)| {
        *scale == 1.0 || extent.as_int().is_some() || repeats(sampling, &Factor::Scale(*scale), extent).is_some()
    })
}

/// An input that is there and has elements.
fn filled(cx: &OpCx<'_>, index: usize) -> Option<Value> {
    let value = cx.optional(index)?;
    let empty = value.tensor_info()?.dims.known()?.first().is_some_and(|n| n.is_int(0));
    (!empty).then_some(value)
}

fn resize(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let (roi, scales, sizes) = (cx.optional(1), filled(cx, 2), filled(cx, 3));
    let dims = cx.dims(&x, "X")?;
    let rank = dims.len();
    let axes = match cx.node.ints("axes")? {
        Some(axes) => cx.axes(axes, rank)?,
        None => (0..rank).collect(),
    };
    let nearest = cx.node.string_or("nearest_mode", "round_prefer_floor")?;
    let nearest = Nearest::parse(nearest).ok_or_else(|| format!("attribute 'nearest_mode' cannot be '{nearest}'"))?;
    let kernel = match kernel(cx)? {
        Kernel::Nearest(_) => Kernel::Nearest(nearest),
        other => other,
    };
    let mode = cx.node.string_or("coordinate_transformation_mode", "half_pixel")?;
    let coordinates = Coordinates::parse(mode)
        .ok_or_else(|| format!("attribute 'coordinate_transformation_mode' cannot be '{mode}'"))?;
    let sampling = Sampling {
        kernel,
        coordinates,
        antialias: cx.node.flag_or("antialias", false)?,
        exclude_outside: cx.node.flag_or("exclude_outside", false)?,
    };
    let outside = f64::from(cx.node.float_or("extrapolation_value", 0.0)?);
    let policy = cx.node.string_or("keep_aspect_ratio_policy", "stretch")?;
    let ratio = match policy {
        "stretch" => None,
        "not_larger" => Some(Ratio::Least),
        "not_smaller" => Some(Ratio::Greatest),
        other => return Err(format!("attribute 'keep_aspect_ratio_policy' cannot be '{other}'").into()),
    };
    let roi = match coordinates {
        Coordinates::TfCropAndResize => Some(roi.ok_or("roi is missing")?),
        _ => None,
    };
    if let Some(roi) = &roi {
        let count = cx.length(roi, "the roi")?;
        if count != 2 * axes.len() {
            return Err(format!("roi has {count} numbers for {} axes", axes.len()).into());
        }
    }
    let numbers = |v: &Value| v.as_const().and_then(numbers_of);
    let own: Vec<PrimExpr> = axes.iter().map(|&a| dims[a].clone()).collect();
    let (factors, target) = match (scales, sizes) {
        (Some(scales), None) => {
            let fixed = numbers(&scales).filter(|s| s.len() != own.len() || computable(&sampling, &own, s));
            (fixed.map(|s| s.into_iter().map(Factor::Scale).collect()), Target::Scales(scales))
        }
        (None, Some(sizes)) => {
            let factors = sizes.known_ints().and_then(|known| sized(&sampling, ratio, known, &own));
            (factors, Target::Sizes { sizes, kept: ratio })
        }
        _ => return Err("one of scales and sizes must be given, and not both".into()),
    };
    let region = roi.as_ref().map(numbers);
    let (Some(factors), Some(region)) = (factors, region.map_or(Some(None), |roi| roi.map(Some))) else {
        let request = Request { sampling, axes, target, region: roi, outside };
        return resize_given::resized(cx, x, &request);
    };
    let factors: Vec<Factor> = factors;
    if factors.len() != axes.len() {
        return Err(format!("{} scales or sizes are given for {} axes", factors.len(), axes.len()).into());
    }
    let region = region.map(|roi| {
        let (starts, ends) = roi.split_at(axes.len());
        starts.iter().copied().zip(ends.iter().copied()).collect()
    });
    resized(cx, x, Plan { sampling, factors: axes.into_iter().zip(factors).collect(), region, outside })
}

/// The factors for these sizes, with one ratio for all axes where there is one to keep. `None` if extents vary in a way
/// that only the program can follow.
fn sized(sampling: &Sampling, ratio: Option<Ratio>, sizes: Vec<PrimExpr>, extents: &[PrimExpr]) -> Option<Vec<Factor>> {
    let Some(ratio) = ratio else {
        let computable = |(size, extent): (&PrimExpr, &PrimExpr)| {
            let fixed = size.as_int().is_some() && extent.as_int().is_some();
            fixed || size == extent || repeats(sampling, &Factor::Size(size.clone()), extent).is_some()
        };
        let fits = sizes.len() != extents.len() || sizes.iter().zip(extents).all(computable);
        return fits.then(|| sizes.into_iter().map(Factor::Size).collect());
    };
    let pairs = sizes.iter().zip(extents).map(|(size, n)| Some((size.as_int()?, n.as_int().filter(|n| *n > 0)?)));
    let pairs = pairs.collect::<Option<Vec<_>>>()?;
    let choose = if ratio == Ratio::Least { f64::min } else { f64::max };
    let scale = pairs.iter().map(|(size, n)| *size as f64 / *n as f64).reduce(choose)?;
    Some(pairs.into_iter().map(|(_, n)| Factor::Kept(scale, (scale * n as f64 + 0.5).floor() as i64)).collect())
}

fn resized(cx: &mut OpCx<'_>, x: Value, plan: Plan) -> Outputs {
    let dims = cx.dims(&x, "X")?;
    if plan.factors.len() > dims.len() || plan.factors.iter().any(|f| f.0 >= dims.len()) {
        return Err(format!("{} scales are given for {} axes", plan.factors.len(), dims.len()).into());
    }
    let dtype = cx.dtype(&x, "X")?;
    let taken = matches!(plan.sampling.kernel, Kernel::Nearest(_));
    // Sums are in single precision at least.
    let wide = if taken || dtype == DType::F32 || dtype == DType::F64 { dtype } else { DType::F32 };
    let mut out = x;
    if wide != dtype {
        out = cx.call("astype", vec![out], vec![("dtype", AttrValue::DType(wide))])?;
    }
    let mut outside = Vec::new();
    for (at, (axis, factor)) in plan.factors.iter().enumerate() {
        let region = plan.region.as_ref().map(|r| r[at]);
        out = along_axis(cx, &plan, out, *axis, factor, (&dims[*axis], region), &mut outside)?;
    }
    if !outside.is_empty() {
        let value = cx.scalar(plan.outside, wide)?;
        for mask in outside {
            out = cx.apply("where", &[&mask, &value, &out])?;
        }
    }
    if wide != dtype {
        out = cx.call("astype", vec![out], vec![("dtype", AttrValue::DType(dtype))])?;
    }
    Ok(vec![out])
}

/// One axis of `x`. What lies outside of the input is added to `outside` as a mask.
fn along_axis(
    cx: &mut OpCx<'_>,
    plan: &Plan,
    x: Value,
    axis: usize,
    factor: &Factor,
    (extent, region): (&PrimExpr, Option<(f64, f64)>),
    outside: &mut Vec<Value>,
) -> Result<Value, Fail> {
    let sampling = &plan.sampling;
    let at = i64::try_from(axis).unwrap_or(i64::MAX);
    match factor {
        _ if region.is_some_and(|r| r != (0.0, 1.0)) => {}
        Factor::Scale(1.0) => return Ok(x),
        Factor::Size(size) if size == extent => return Ok(x),
        _ => {}
    }
    if let Some(times) = repeats(sampling, factor, extent) {
        return cx.call("repeat", vec![x], vec![("repeats", times.into()), ("axis", at.into())]);
    }
    let fixed = |e: &PrimExpr| e.as_int().filter(|n| (0..=MAX_EXTENT).contains(n));
    let input = fixed(extent).ok_or_else(|| {
        format!("axis {axis} has the extent {extent:?}; only fixed extents, and nearest elements by whole scales, can be resized")
    })?;
    let (scale, output) = match factor {
        Factor::Scale(scale) => (*scale, PrimExpr::i64((input as f32 * *scale as f32).floor() as i64)),
        Factor::Kept(scale, size) => (*scale, PrimExpr::i64(*size)),
        Factor::Size(size) => (size.as_int().unwrap_or(0) as f64 / (input as f64).max(1.0), size.clone()),
    };
    let output = fixed(&output).ok_or_else(|| format!("axis {axis} cannot be resized to {output:?}"))?;
    if scale.is_nan() || scale < 0.0 || input == 0 && output != 0 {
        return Err(format!("axis {axis} of {input} elements cannot be resized by {scale}").into());
    }
    if sampling.antialias && scale < 1.0 / MAX_WIDENED {
        return Err(Fail::limit(format!(
            "'antialias' by a scale of {scale} is not supported, only down to 1 / {MAX_WIDENED}"
        )));
    }
    let samples = sampling.samples(input, output, scale, region);
    let rank = cx.rank(&x, "X")?;
    let spread = |length: i64| -> Vec<u64> {
        let mut shape = vec![1u64; rank];
        shape[axis] = length.unsigned_abs();
        shape
    };
    if samples.outside.iter().any(|&o| o) {
        let flags: Vec<f64> = samples.outside.iter().map(|&o| f64::from(u8::from(o))).collect();
        let mask = constant_of(&flags, spread(output), DType::BOOL).ok_or("there is no constant mask")?;
        outside.push(mask.into());
    }
    let dtype = cx.dtype(&x, "X")?;
    let mut sum: Option<Value> = None;
    for tap in &samples.taps {
        let index = int_constant(&tap.index, false).ok_or("there is no constant index")?;
        let mut part = cx.call("take", vec![x.clone(), index.into()], vec![("axis", at.into())])?;
        if let Some(weights) = &tap.weights {
            let weights = constant_of(weights, spread(output), dtype).ok_or("there are no constant weights")?;
            part = cx.apply("multiply", &[&part, &weights.into()])?;
        }
        sum = Some(match sum {
            None => part,
            Some(sum) => cx.apply("add", &[&sum, &part])?,
        });
    }
    Ok(sum.ok_or("no element is sampled")?)
}

/// How often each element is repeated, where that is all there is to it.
fn repeats(sampling: &Sampling, factor: &Factor, extent: &PrimExpr) -> Option<i64> {
    let nearer = matches!(sampling.kernel, Kernel::Nearest(Nearest::PreferFloor | Nearest::PreferCeil));
    let plain = match sampling.coordinates {
        Coordinates::Asymmetric => matches!(sampling.kernel, Kernel::Nearest(Nearest::Floor | Nearest::Simple)),
        Coordinates::HalfPixel | Coordinates::HalfPixelSymmetric => nearer,
        _ => false,
    };
    let times = match factor {
        Factor::Scale(s) if s.fract() == 0.0 && (1.0..=4096.0).contains(s) => *s as i64,
        Factor::Size(size) => match (size.as_int(), extent.as_int()) {
            (Some(size), Some(n)) if n > 0 && size > 0 && size % n == 0 => size / n,
            (None, None) => (2..=16).find(|k| {
                let grown = PrimExpr::binary(BinOp::Mul, extent.clone(), PrimExpr::i64(*k));
                grown == *size || PrimExpr::binary(BinOp::Mul, PrimExpr::i64(*k), extent.clone()) == *size
            })?,
            _ => return None,
        },
        Factor::Scale(_) | Factor::Kept(..) => return None,
    };
    plain.then_some(times)
}
