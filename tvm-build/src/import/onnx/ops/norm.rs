//! Normalizations and softmax.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, PrimExpr};
use tvm_ir::relax::Leaf;

use super::microsoft::simplified_layer_norm;
use super::{Row, ints};
use crate::import::onnx::cx::{OpCx, Outputs, axes_attr};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("BatchNormalization", 7, batch_norm),
    ("GroupNormalization", 18, group_norm_18),
    ("GroupNormalization", 21, group_norm),
    ("Hardmax", 1, |cx| flattened(cx, hardmax_along)),
    ("Hardmax", 13, hardmax),
    ("InstanceNormalization", 6, instance_norm),
    ("LRN", 1, local_response_norm),
    ("LayerNormalization", 17, layer_norm),
    ("LogSoftmax", 1, |cx| softmax_flat(cx, "nn.log_softmax")),
    ("LogSoftmax", 13, |cx| softmax(cx, "nn.log_softmax")),
    ("LpNormalization", 1, lp_norm),
    ("MeanVarianceNormalization", 9, mean_variance_norm),
    ("RMSNormalization", 23, rms_norm),
    ("SimplifiedLayerNormalization", 1, simplified_layer_norm),
    ("Softmax", 1, |cx| softmax_flat(cx, "nn.softmax")),
    ("Softmax", 13, |cx| softmax(cx, "nn.softmax")),
];

fn softmax(cx: &mut OpCx<'_>, op: &str) -> Outputs {
    let x = cx.input(0, "input")?;
    let axis = cx.node.int_or("axis", -1)?;
    let rank = cx.rank(&x, "input")?;
    cx.axis(axis, rank)?;
    Ok(vec![cx.call(op, vec![x], vec![("axis", axis.into())])?])
}

fn hardmax(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "input")?;
    let axis = cx.node.int_or("axis", -1)?;
    Ok(vec![hardmax_along(cx, &x, axis)?])
}

/// 1 at the first of the greatest elements along an axis, 0 elsewhere.
fn hardmax_along(cx: &mut OpCx<'_>, x: &Value, axis: i64) -> Result<Value, Fail> {
    let dims = cx.dims(x, "input")?;
    let axis = cx.axis(axis, dims.len())?;
    let extent = dims[axis].clone();
    if dims.iter().any(|d| d.is_int(0)) {
        return Ok(x.clone());
    }
    let dtype = cx.dtype(x, "input")?;
    let attrs = vec![("axis", i64::try_from(axis).unwrap_or(i64::MAX).into()), ("keepdims", true.into())];
    let index = cx.call("argmax", vec![x.clone()], attrs)?;
    let places = cx.call("arange", vec![Leaf::Prim(extent.clone()).into()], vec![])?;
    let mut column = vec![PrimExpr::i64(1); dims.len() - axis];
    column[0] = extent;
    let places = cx.reshape(&places, column)?;
    let greatest = cx.apply("equal", &[&index, &places])?;
    cx.astype(&greatest, dtype)
}

/// Before version 13 the axes from `axis` on are one, along which `f` works.
fn flattened(cx: &mut OpCx<'_>, f: impl Fn(&mut OpCx<'_>, &Value, i64) -> Result<Value, Fail>) -> Outputs {
    let x = cx.input(0, "input")?;
    let axis = cx.node.int_or("axis", 1)?;
    let dims = cx.dims(&x, "input")?;
    // An axis behind the last one makes rows of one element.
    let at = if axis < 0 { cx.axis(axis, dims.len())? } else { cx.axis(axis, dims.len() + 1)? };
    let (outer, inner) = dims.split_at(at);
    let flat = cx.reshape(&x, vec![ints::product(outer), ints::product(inner)])?;
    let out = f(cx, &flat, -1)?;
    Ok(vec![cx.reshape(&out, dims.clone())?])
}

fn softmax_flat(cx: &mut OpCx<'_>, op: &str) -> Outputs {
    flattened(cx, |cx, x, axis| cx.call(op, vec![x.clone()], vec![("axis", axis.into())]))
}

/// The type a normalization computes in: `stash_type`, float32 unless it says otherwise; wider data stays as it is.
fn compute_type(cx: &mut OpCx<'_>, data: DType) -> Result<DType, Fail> {
    match cx.node.int_or("stash_type", 1)? {
        1 if data == DType::F64 => Ok(DType::F64),
        1 => Ok(DType::F32),
        other => Err(Fail::limit(format!("attribute 'stash_type' of {other} is not supported, only 1 (float32)"))),
    }
}

fn epsilon(cx: &mut OpCx<'_>) -> Result<f64, Fail> {
    Ok(cx.node.float("epsilon")?.map_or(1e-5, f64::from))
}

fn batch_norm(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let parameters = [(1, "scale"), (2, "B"), (3, "input_mean"), (4, "input_var")];
    let parameters = parameters.map(|(i, role)| cx.input(i, role));
    let epsilon = epsilon(cx)?;
    let momentum = cx.node.float("momentum")?.map_or(0.9, f64::from);
    let training = cx.node.flag_or("training_mode", false)?;
    if !cx.node.flag_or("spatial", true)? {
        return Err(Fail::limit("attribute 'spatial' of 0 is not supported"));
    }
    if !training {
        cx.refuse_output(1, "only the normalized data is given at inference")?;
    }
    let data_type = cx.dtype(&x, "X")?;
    let mut args = vec![x];
    for parameter in parameters {
        args.push(parameter?);
    }
    // Mixed types are computed in the widest of them.
    let mut compute = data_type;
    for arg in &args {
        let dtype = cx.dtype(arg, "a parameter")?;
        compute = if dtype.bits > compute.bits { dtype } else { compute };
    }
    let kept = [cx.dtype(&args[3], "input_mean")?, cx.dtype(&args[4], "input_var")?];
    let args = args.iter().map(|a| cx.astype(a, compute)).collect::<Result<Vec<_>, _>>()?;
    if training {
        return batch_norm_training(cx, &args, epsilon, momentum, (data_type, kept));
    }
    let attrs = vec![
        ("axis", AttrValue::Int(1)),
        ("epsilon", epsilon.into()),
        ("momentum", momentum.into()),
        ("training", false.into()),
    ];
    let all = cx.call("nn.batch_norm", args, attrs)?;
    let out = cx.emitter.fields(&all)?;
    let out = out.first().ok_or("R.nn.batch_norm gave no result")?;
    Ok(vec![cx.astype(out, data_type)?])
}

/// With the mean and variance of the batch, which move those given.
fn batch_norm_training(
    cx: &mut OpCx<'_>,
    args: &[Value],
    epsilon: f64,
    momentum: f64,
    (data_type, kept): (DType, [DType; 2]),
) -> Outputs {
    let [x, scale, bias, moving @ ..] = args else { return Err("an input is missing".into()) };
    let rank = cx.rank(x, "X")?;
    let axes: Vec<usize> = (0..rank).filter(|a| *a != 1).collect();
    let [out, mean, _] = standardized(cx, x, &axes, epsilon)?;
    let attrs = vec![("axis", axes_attr(&axes)), ("keepdims", true.into())];
    let variance = cx.call("variance", vec![x.clone()], attrs)?;
    let out = affine(cx, out, scale, bias, rank)?;
    let mut outputs = vec![cx.astype(&out, data_type)?];
    let dtype = cx.dtype(x, "X")?;
    let (old_part, new_part) = (cx.scalar(momentum, dtype)?, cx.scalar(1.0 - momentum, dtype)?);
    for ((old, new), to) in moving.iter().zip([mean, variance]).zip(kept) {
        let new = cx.call("squeeze", vec![new], vec![("axis", axes_attr(&axes))])?;
        let (old, new) = (cx.apply("multiply", &[old, &old_part])?, cx.apply("multiply", &[&new, &new_part])?);
        let moved = cx.apply("add", &[&old, &new])?;
        outputs.push(cx.astype(&moved, to)?);
    }
    Ok(outputs)
}

/// `(x - mean) / sqrt(var + epsilon)` along `axes`, and the mean and `1 / sqrt(var + epsilon)`.
fn standardized(cx: &mut OpCx<'_>, x: &Value, axes: &[usize], epsilon: f64) -> Result<[Value; 3], Fail> {
    let dtype = cx.dtype(x, "the data")?;
    let attrs = || vec![("axis", axes_attr(axes)), ("keepdims", true.into())];
    let mean = cx.call("mean", vec![x.clone()], attrs())?;
    let variance = cx.call("variance", vec![x.clone()], attrs())?;
    let epsilon = cx.scalar(epsilon, dtype)?;
    let sum = cx.apply("add", &[&variance, &epsilon])?;
    let deviation = cx.apply("sqrt", &[&sum])?;
    let centered = cx.apply("subtract", &[x, &mean])?;
    let out = cx.apply("divide", &[&centered, &deviation])?;
    Ok([out, mean, deviation])
}

/// Scales and shifts along the channels, which are axis 1 of `rank`.
fn affine(cx: &mut OpCx<'_>, mut out: Value, scale: &Value, bias: &Value, rank: usize) -> Result<Value, Fail> {
    for (op, value) in [("multiply", scale), ("add", bias)] {
        let channels = match &cx.dims(value, "the scale or bias")?[..] {
            [channels] => channels.clone(),
            dims => return Err(format!("the scale and bias must have one axis, not shape {dims:?}").into()),
        };
        let mut shape = vec![channels];
        shape.resize(rank - 1, PrimExpr::i64(1));
        let value = cx.reshape(value, shape)?;
        out = cx.apply(op, &[&out, &value])?;
    }
    Ok(out)
}

fn instance_norm(cx: &mut OpCx<'_>) -> Outputs {
    let (x, scale, bias) = (cx.input(0, "input")?, cx.input(1, "scale")?, cx.input(2, "B")?);
    let epsilon = epsilon(cx)?;
    let rank = cx.rank(&x, "input")?;
    if rank < 3 {
        return Err(format!("the input must have spatial axes, and its rank is {rank}").into());
    }
    let [out, ..] = standardized(cx, &x, &(2..rank).collect::<Vec<_>>(), epsilon)?;
    Ok(vec![affine(cx, out, &scale, &bias, rank)?])
}

/// A parameter in the shape of what it is for. Its extents but those of 1 are those there, which is checked at run time.
fn broadcast(cx: &mut OpCx<'_>, value: &Value, to: &[PrimExpr]) -> Result<Value, Fail> {
    let mut dims = cx.dims(value, "a parameter")?;
    for (own, wanted) in dims.iter_mut().rev().zip(to.iter().rev()) {
        if own.as_int().is_none() {
            *own = wanted.clone();
        }
    }
    let value = cx.emitter.of_shape(value, dims.clone())?;
    if dims == to {
        return Ok(value);
    }
    cx.call("broadcast_to", vec![value, Value::shape(to.to_vec())], vec![])
}

/// The axes from `axis` on are normalized together.
fn layer_norm(cx: &mut OpCx<'_>) -> Outputs {
    let (x, scale, bias) = (cx.input(0, "X")?, cx.input(1, "Scale")?, cx.optional(2));
    let epsilon = epsilon(cx)?;
    let axis = cx.node.int_or("axis", -1)?;
    let dims = cx.dims(&x, "X")?;
    let axis = cx.axis(axis, dims.len())?;
    let data_type = cx.dtype(&x, "X")?;
    let compute = compute_type(cx, data_type)?;
    let x = cx.astype(&x, compute)?;
    let parameter = |cx: &mut OpCx<'_>, value: Value| -> Result<Value, Fail> {
        let value = cx.astype(&value, compute)?;
        broadcast(cx, &value, &dims[axis..])
    };
    let gamma = parameter(cx, scale)?;
    let zero = cx.scalar(0.0, compute)?;
    let beta = parameter(cx, bias.unwrap_or(zero))?;
    let axes: Vec<usize> = (axis..dims.len()).collect();
    let attrs = vec![("axes", axes_attr(&axes)), ("epsilon", epsilon.into())];
    let out = cx.call("nn.layer_norm", vec![x.clone(), gamma, beta], attrs)?;
    let mut outputs = vec![cx.astype(&out, data_type)?];
    if cx.output_count() > 1 {
        let [_, mean, deviation] = standardized(cx, &x, &axes, epsilon)?;
        let one = cx.scalar(1.0, compute)?;
        let inverse = cx.apply("divide", &[&one, &deviation])?;
        // Of the stashed type, whatever they were computed in.
        outputs.extend([cx.astype(&mean, DType::F32)?, cx.astype(&inverse, DType::F32)?]);
    }
    Ok(outputs)
}

/// What a normalization of groups works on.
struct Grouped {
    x: Value,
    scale: Value,
    bias: Value,
    channels: i64,
    groups: i64,
}

/// The inputs of a normalization of groups. The number of channels is what the data says, or the scale or the bias if
/// these have a number for each channel: that the data has as many is checked at run time then.
fn grouped(cx: &mut OpCx<'_>, by_channel: bool) -> Result<Grouped, Fail> {
    let (x, scale, bias) = (cx.input(0, "X")?, cx.input(1, "scale")?, cx.input(2, "bias")?);
    let groups = cx.node.int("num_groups")?.filter(|&g| g > 0).ok_or("attribute 'num_groups' must be positive")?;
    let mut dims = cx.dims(&x, "X")?;
    if dims.len() < 2 {
        return Err(format!("the input must have channels, and its shape is {dims:?}").into());
    }
    let mut channels = dims[1].as_int();
    for parameter in [&scale, &bias].into_iter().filter(|_| by_channel) {
        channels = channels.or(cx.dims(parameter, "a parameter")?.first().and_then(PrimExpr::as_int));
    }
    let channels = channels.ok_or_else(|| Fail::limit("the number of channels must be fixed"))?;
    if channels % groups != 0 {
        return Err(format!("{channels} channels do not fall into {groups} groups").into());
    }
    dims[1] = PrimExpr::i64(channels);
    let x = cx.emitter.of_shape(&x, dims)?;
    Ok(Grouped { x, scale, bias, channels, groups })
}

/// Before version 21 scale and bias are by group.
fn group_norm_18(cx: &mut OpCx<'_>) -> Outputs {
    let Grouped { x, scale, bias, channels, groups } = grouped(cx, false)?;
    let each = |cx: &mut OpCx<'_>, value: &Value| -> Result<Value, Fail> {
        let dim = PrimExpr::i64;
        let column = cx.reshape(value, vec![dim(groups), dim(1)])?;
        let shape = Value::shape(vec![dim(groups), dim(channels / groups)]);
        let spread = cx.call("broadcast_to", vec![column, shape], vec![])?;
        cx.reshape(&spread, vec![dim(channels)])
    };
    let (scale, bias) = (each(cx, &scale)?, each(cx, &bias)?);
    normalize_groups(cx, Grouped { x, scale, bias, channels, groups })
}

fn group_norm(cx: &mut OpCx<'_>) -> Outputs {
    let Grouped { x, scale, bias, channels, groups } = grouped(cx, true)?;
    let each = |cx: &mut OpCx<'_>, value: &Value| cx.emitter.of_shape(value, vec![PrimExpr::i64(channels)]);
    let (scale, bias) = (each(cx, &scale)?, each(cx, &bias)?);
    normalize_groups(cx, Grouped { x, scale, bias, channels, groups })
}

fn normalize_groups(cx: &mut OpCx<'_>, of: Grouped) -> Outputs {
    let Grouped { x, scale, bias, groups, .. } = of;
    let rank = cx.rank(&x, "X")?;
    let epsilon = epsilon(cx)?;
    let data_type = cx.dtype(&x, "X")?;
    let compute = compute_type(cx, data_type)?;
    let (x, scale, bias) = (cx.astype(&x, compute)?, cx.astype(&scale, compute)?, cx.astype(&bias, compute)?);
    let axes: Vec<usize> = (2..rank).collect();
    let attrs = vec![
        ("num_groups", AttrValue::Int(groups)),
        ("channel_axis", AttrValue::Int(1)),
        ("axes", axes_attr(&axes)),
        ("epsilon", epsilon.into()),
    ];
    let out = cx.call("nn.group_norm", vec![x, scale, bias], attrs)?;
    Ok(vec![cx.astype(&out, data_type)?])
}

fn rms_norm(cx: &mut OpCx<'_>) -> Outputs {
    let (x, scale) = (cx.input(0, "X")?, cx.input(1, "scale")?);
    let epsilon = epsilon(cx)?;
    let axis = cx.node.int_or("axis", -1)?;
    let dims = cx.dims(&x, "X")?;
    let axis = cx.axis(axis, dims.len())?;
    let data_type = cx.dtype(&x, "X")?;
    let compute = compute_type(cx, data_type)?;
    let (x, scale) = (cx.astype(&x, compute)?, cx.astype(&scale, compute)?);
    let scale = broadcast(cx, &scale, &dims[axis..])?;
    let axes: Vec<usize> = (axis..dims.len()).collect();
    let attrs = vec![("axes", axes_attr(&axes)), ("epsilon", epsilon.into())];
    let out = cx.call("nn.rms_norm", vec![x, scale], attrs)?;
    Ok(vec![cx.astype(&out, data_type)?])
}

/// A row of zeros stays zero.
fn lp_norm(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "input")?;
    let axis = cx.node.int_or("axis", -1)?;
    let p = cx.node.int_or("p", 2)?;
    let rank = cx.rank(&x, "input")?;
    let axis = cx.axis(axis, rank)?;
    let dtype = cx.dtype(&x, "input")?;
    let parts = match p {
        1 => cx.apply("abs", &[&x])?,
        2 => cx.apply("multiply", &[&x, &x])?,
        other => return Err(format!("attribute 'p' must be 1 or 2, not {other}").into()),
    };
    let mut norm = cx.call("sum", vec![parts], vec![("axis", axes_attr(&[axis])), ("keepdims", true.into())])?;
    if p == 2 {
        norm = cx.apply("sqrt", &[&norm])?;
    }
    let (zero, one) = (cx.scalar(0.0, dtype)?, cx.scalar(1.0, dtype)?);
    let empty = cx.apply("equal", &[&norm, &zero])?;
    let norm = cx.apply("where", &[&empty, &one, &norm])?;
    Ok(vec![cx.apply("divide", &[&x, &norm])?])
}

fn mean_variance_norm(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let rank = cx.rank(&x, "X")?;
    let axes = cx.axes(cx.node.ints("axes")?.unwrap_or(&[0, 2, 3]), rank)?;
    // The definition adds this to the deviation and not to the variance.
    let dtype = cx.dtype(&x, "X")?;
    let attrs = || vec![("axis", axes_attr(&axes)), ("keepdims", true.into())];
    let mean = cx.call("mean", vec![x.clone()], attrs())?;
    let variance = cx.call("variance", vec![x.clone()], attrs())?;
    let deviation = cx.apply("sqrt", &[&variance])?;
    let epsilon = cx.scalar(1e-9, dtype)?;
    let divisor = cx.apply("add", &[&deviation, &epsilon])?;
    let centered = cx.apply("subtract", &[&x, &mean])?;
    Ok(vec![cx.apply("divide", &[&centered, &divisor])?])
}

/// `x / (bias + alpha / size * sum of squares)^beta`, summed over the channels around each.
fn local_response_norm(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let size = cx.node.int("size")?.filter(|s| (1..=64).contains(s)).ok_or("attribute 'size' must be 1 to 64")?;
    let alpha = f64::from(cx.node.float_or("alpha", 0.0001)?);
    let beta = f64::from(cx.node.float_or("beta", 0.75)?);
    let bias = f64::from(cx.node.float_or("bias", 1.0)?);
    let dims = cx.dims(&x, "X")?;
    if dims.len() < 3 {
        return Err(format!("the input must have channels and spatial axes, and its shape is {dims:?}").into());
    }
    let dtype = cx.dtype(&x, "X")?;
    let square = cx.apply("multiply", &[&x, &x])?;
    let mut widths = vec![0; 2 * dims.len()];
    (widths[2], widths[3]) = ((size - 1) / 2, size / 2);
    let padded = cx.call("nn.pad", vec![square], vec![("pad_width", widths.into())])?;
    let one = |v: PrimExpr| Value::Leaf(Leaf::Tuple(vec![Leaf::Prim(v)]));
    let mut sum = None;
    for first in 0..size {
        let last = PrimExpr::binary(BinOp::Add, dims[1].clone(), PrimExpr::i64(first));
        let args = vec![padded.clone(), one(PrimExpr::i64(1)), one(PrimExpr::i64(first)), one(last)];
        let part = cx.call("strided_slice", args, vec![])?;
        sum = Some(match sum {
            None => part,
            Some(sum) => cx.apply("add", &[&sum, &part])?,
        });
    }
    let sum = sum.ok_or("attribute 'size' must be positive")?;
    let (factor, bias, beta) =
        (cx.scalar(alpha / size as f64, dtype)?, cx.scalar(bias, dtype)?, cx.scalar(beta, dtype)?);
    let scaled = cx.apply("multiply", &[&sum, &factor])?;
    let base = cx.apply("add", &[&scaled, &bias])?;
    let divisor = cx.apply("power", &[&base, &beta])?;
    Ok(vec![cx.apply("divide", &[&x, &divisor])?])
}
