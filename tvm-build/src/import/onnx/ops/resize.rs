//! Resize and Upsample: along one axis after the other, as sums of elements times constant weights.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, PrimExpr};

use super::Row;
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
const MAX_WIDENED: f64 = 64.0;

/// How each axis is resized.
enum Factor {
    /// By a number.
    Scale(f64),
    /// To an extent.
    Size(PrimExpr),
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

fn numbers(value: &Value, role: &str) -> Result<Vec<f64>, Fail> {
    let numbers = value.as_const().and_then(numbers_of);
    numbers.ok_or_else(|| format!("{role} must be constant; they are computed by the model").into())
}

/// Before version 11 output places are divided by the scale, and the element before is the nearest.
fn old_plan(cx: &OpCx<'_>, scales: Vec<f64>) -> Result<Plan, Fail> {
    let kernel = match kernel(cx)? {
        Kernel::Nearest(_) => Kernel::Nearest(Nearest::Floor),
        Kernel::Cubic(_) => return Err("attribute 'mode' of 'cubic' came with version 11".into()),
        Kernel::Linear => Kernel::Linear,
    };
    let sampling = Sampling { kernel, coordinates: Coordinates::Asymmetric, antialias: false, exclude_outside: false };
    let factors = scales.into_iter().map(Factor::Scale).enumerate().collect();
    Ok(Plan { sampling, factors, region: None, outside: 0.0 })
}

fn upsample_attributes(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let scales = cx.node.floats("scales")?.ok_or("attribute 'scales' is missing")?;
    let plan = old_plan(cx, scales.iter().map(|&s| f64::from(s)).collect())?;
    resized(cx, x, plan)
}

fn resize_10(cx: &mut OpCx<'_>) -> Outputs {
    let (x, scales) = (cx.input(0, "X")?, cx.input(1, "scales")?);
    let plan = old_plan(cx, numbers(&scales, "the scales")?)?;
    resized(cx, x, plan)
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
    let factors: Vec<Factor> = match (scales, sizes) {
        (Some(scales), None) => numbers(&scales, "the scales")?.into_iter().map(Factor::Scale).collect(),
        (None, Some(sizes)) => {
            let sizes = cx.known_ints(&sizes, "the sizes")?;
            kept_ratio(policy, sizes, &axes, &dims)?.into_iter().map(Factor::Size).collect()
        }
        _ => return Err("one of scales and sizes must be given, and not both".into()),
    };
    if factors.len() != axes.len() {
        return Err(format!("{} scales or sizes are given for {} axes", factors.len(), axes.len()).into());
    }
    let region = match coordinates {
        Coordinates::TfCropAndResize => {
            let roi = numbers(&roi.ok_or("roi is missing")?, "the roi")?;
            if roi.len() != 2 * axes.len() {
                return Err(format!("roi has {} numbers for {} axes", roi.len(), axes.len()).into());
            }
            let (starts, ends) = roi.split_at(axes.len());
            Some(starts.iter().copied().zip(ends.iter().copied()).collect())
        }
        _ => None,
    };
    resized(cx, x, Plan { sampling, factors: axes.into_iter().zip(factors).collect(), region, outside })
}

/// The sizes that keep the ratio of the extents: within those given, or around them.
fn kept_ratio(policy: &str, sizes: Vec<PrimExpr>, axes: &[usize], dims: &[PrimExpr]) -> Result<Vec<PrimExpr>, Fail> {
    let choose = match policy {
        "stretch" => return Ok(sizes),
        "not_larger" => f64::min,
        "not_smaller" => f64::max,
        other => return Err(format!("attribute 'keep_aspect_ratio_policy' cannot be '{other}'").into()),
    };
    let mut extents = Vec::with_capacity(axes.len());
    let mut scale: Option<f64> = None;
    for (&axis, size) in axes.iter().zip(&sizes) {
        let (Some(size), Some(extent)) = (size.as_int(), dims[axis].as_int().filter(|&n| n > 0)) else {
            return Err(format!("'keep_aspect_ratio_policy' of '{policy}' needs fixed extents and sizes").into());
        };
        let ratio = size as f64 / extent as f64;
        scale = Some(scale.map_or(ratio, |s| choose(s, ratio)));
        extents.push(extent);
    }
    let scale = scale.unwrap_or(1.0);
    Ok(extents.into_iter().map(|n| PrimExpr::i64((scale * n as f64 + 0.5).floor() as i64)).collect())
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
        Factor::Scale(scale) => (*scale, PrimExpr::i64((input as f64 * scale).floor() as i64)),
        Factor::Size(size) => (size.as_int().unwrap_or(0) as f64 / (input as f64).max(1.0), size.clone()),
    };
    let output = fixed(&output).ok_or_else(|| format!("axis {axis} cannot be resized to {output:?}"))?;
    if scale.is_nan() || scale < 0.0 || input == 0 && output != 0 {
        return Err(format!("axis {axis} of {input} elements cannot be resized by {scale}").into());
    }
    if sampling.antialias && scale < 1.0 / MAX_WIDENED {
        return Err(
            format!("'antialias' by a scale of {scale} is not supported, only down to 1 / {MAX_WIDENED}").into()
        );
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
        Coordinates::Asymmetric => sampling.kernel == Kernel::Nearest(Nearest::Floor),
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
        Factor::Scale(_) => return None,
    };
    plain.then_some(times)
}
