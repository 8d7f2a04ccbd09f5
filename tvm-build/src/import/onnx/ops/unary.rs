//! Element-wise operators of one input.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::Leaf;

use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("Abs", 1, |cx| one(cx, "abs")),
    ("Acos", 7, |cx| one(cx, "acos")),
    ("Acosh", 9, |cx| one(cx, "acosh")),
    ("Asin", 7, |cx| one(cx, "asin")),
    ("Asinh", 9, |cx| one(cx, "asinh")),
    ("Atan", 7, |cx| one(cx, "atan")),
    ("Atanh", 9, |cx| one(cx, "atanh")),
    ("BitwiseNot", 18, |cx| one(cx, "bitwise_not")),
    ("Ceil", 1, |cx| one(cx, "ceil")),
    ("Celu", 12, celu),
    ("Clip", 6, clip_attributes),
    ("Clip", 11, clip),
    ("Cos", 7, |cx| one(cx, "cos")),
    ("Cosh", 9, |cx| one(cx, "cosh")),
    ("Elu", 1, elu),
    ("Erf", 9, |cx| one(cx, "erf")),
    ("Exp", 1, |cx| one(cx, "exp")),
    ("Floor", 1, |cx| one(cx, "floor")),
    ("Gelu", 20, gelu),
    ("HardSigmoid", 1, hard_sigmoid),
    ("HardSwish", 14, hard_swish),
    ("Identity", 1, |cx| Ok(vec![cx.input(0, "input")?])),
    ("IsInf", 10, is_inf),
    ("IsNaN", 9, |cx| one(cx, "isnan")),
    ("LeakyRelu", 1, leaky_relu),
    ("Log", 1, |cx| one(cx, "log")),
    ("Mish", 18, mish),
    ("Neg", 1, |cx| one(cx, "negative")),
    ("Not", 1, |cx| one(cx, "logical_not")),
    ("PRelu", 7, prelu),
    ("Reciprocal", 1, reciprocal),
    ("Relu", 1, |cx| one(cx, "nn.relu")),
    ("Round", 11, |cx| one(cx, "round")),
    ("Selu", 1, selu),
    ("Shrink", 9, shrink),
    ("Sigmoid", 1, |cx| one(cx, "sigmoid")),
    ("Sign", 9, |cx| one(cx, "sign")),
    ("Sin", 7, |cx| one(cx, "sin")),
    ("Sinh", 9, |cx| one(cx, "sinh")),
    ("Softplus", 1, softplus),
    ("Softsign", 1, softsign),
    ("Sqrt", 1, |cx| one(cx, "sqrt")),
    ("Swish", 24, swish),
    ("Tan", 7, |cx| one(cx, "tan")),
    ("Tanh", 1, |cx| one(cx, "tanh")),
    ("ThresholdedRelu", 10, thresholded_relu),
];

fn one(cx: &mut OpCx<'_>, op: &str) -> Outputs {
    let x = cx.input(0, "X")?;
    Ok(vec![cx.apply(op, &[&x])?])
}

/// The input and its element type.
fn input(cx: &mut OpCx<'_>) -> Result<(Value, DType), Fail> {
    let x = cx.input(0, "X")?;
    let dtype = cx.dtype(&x, "X")?;
    Ok((x, dtype))
}

fn constant(cx: &OpCx<'_>, dtype: DType, value: f32) -> Result<Value, Fail> {
    cx.scalar(f64::from(value), dtype)
}

/// A formula of several steps over the input: of a narrow float in `float32`, rounded once in the end. That is nearer to
/// the function than rounding every step, as the reference's own formula does, and nothing in between overflows.
fn formula(cx: &mut OpCx<'_>, f: impl FnOnce(&mut OpCx<'_>, Value, DType) -> Result<Value, Fail>) -> Outputs {
    let (x, dtype) = input(cx)?;
    if dtype.bits >= 32 {
        return Ok(vec![f(cx, x, dtype)?]);
    }
    let to = |d: DType| vec![("dtype", AttrValue::DType(d))];
    let x = cx.call("astype", vec![x], to(DType::F32))?;
    let y = f(cx, x, DType::F32)?;
    Ok(vec![cx.call("astype", vec![y], to(dtype))?])
}

/// `alpha * relu(1 - exp(x)) + relu(x)` with the sign of `alpha` turned: the negative side saturates at `-alpha`.
fn exponential(
    cx: &mut OpCx<'_>,
    x: &Value,
    negative_alpha: &Value,
    one: &Value,
    inside: &Value,
) -> Result<Value, Fail> {
    let exp = cx.apply("exp", &[inside])?;
    let rest = cx.apply("subtract", &[one, &exp])?;
    let rest = cx.apply("nn.relu", &[&rest])?;
    let negative = cx.apply("multiply", &[negative_alpha, &rest])?;
    let positive = cx.apply("nn.relu", &[x])?;
    cx.apply("add", &[&negative, &positive])
}

fn elu(cx: &mut OpCx<'_>) -> Outputs {
    let alpha = cx.node.float_or("alpha", 1.0)?;
    formula(cx, |cx, x, dtype| {
        let (alpha, one) = (constant(cx, dtype, -alpha)?, constant(cx, dtype, 1.0)?);
        exponential(cx, &x, &alpha, &one, &x)
    })
}

fn celu(cx: &mut OpCx<'_>) -> Outputs {
    let alpha = cx.node.float_or("alpha", 1.0)?;
    formula(cx, |cx, x, dtype| {
        let (divisor, one) = (constant(cx, dtype, alpha)?, constant(cx, dtype, 1.0)?);
        let inside = cx.apply("divide", &[&x, &divisor])?;
        let alpha = constant(cx, dtype, -alpha)?;
        exponential(cx, &x, &alpha, &one, &inside)
    })
}

fn selu(cx: &mut OpCx<'_>) -> Outputs {
    let alpha = cx.node.float_or("alpha", 1.673_263_2)?;
    let gamma = cx.node.float_or("gamma", 1.050_701)?;
    formula(cx, |cx, x, dtype| {
        let (alpha, gamma, one) =
            (constant(cx, dtype, -alpha)?, constant(cx, dtype, gamma)?, constant(cx, dtype, 1.0)?);
        let elu = exponential(cx, &x, &alpha, &one, &x)?;
        cx.apply("multiply", &[&gamma, &elu])
    })
}

/// Bounds that are not given are the least and the greatest finite number: infinities are none.
fn clip_attributes(cx: &mut OpCx<'_>) -> Outputs {
    let (x, dtype) = input(cx)?;
    let (low, high) = (cx.node.float_or("min", f32::MIN)?, cx.node.float_or("max", f32::MAX)?);
    let (low, high) = (constant(cx, dtype, low)?, constant(cx, dtype, high)?);
    clamp(cx, x, Some(low), Some(high))
}

fn clip(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "input")?;
    let (low, high) = (cx.optional(1), cx.optional(2));
    clamp(cx, x, low, high)
}

/// The upper bound wins where it is below the lower one.
fn clamp(cx: &mut OpCx<'_>, mut x: Value, low: Option<Value>, high: Option<Value>) -> Outputs {
    if let Some(low) = low {
        x = cx.apply("maximum", &[&x, &low])?;
    }
    if let Some(high) = high {
        x = cx.apply("minimum", &[&x, &high])?;
    }
    Ok(vec![x])
}

fn gelu(cx: &mut OpCx<'_>) -> Outputs {
    match cx.node.string_or("approximate", "none")? {
        "none" => one(cx, "nn.gelu"),
        "tanh" => one(cx, "nn.gelu_tanh"),
        other => Err(format!("attribute 'approximate' is 'none' or 'tanh', not '{other}'").into()),
    }
}

/// `R.clip` between two numbers.
fn clip_to(cx: &mut OpCx<'_>, x: &Value, low: f64, high: f64) -> Result<Value, Fail> {
    let dtype = cx.dtype(x, "X")?;
    let bound = |v| Value::Leaf(Leaf::Prim(PrimExpr::number(dtype, v)));
    cx.call("clip", vec![x.clone(), bound(low), bound(high)], vec![])
}

fn hard_sigmoid(cx: &mut OpCx<'_>) -> Outputs {
    let (x, dtype) = input(cx)?;
    let alpha = cx.node.float_or("alpha", 0.2)?;
    let beta = cx.node.float_or("beta", 0.5)?;
    let (alpha, beta) = (constant(cx, dtype, alpha)?, constant(cx, dtype, beta)?);
    let scaled = cx.apply("multiply", &[&alpha, &x])?;
    let shifted = cx.apply("add", &[&scaled, &beta])?;
    Ok(vec![clip_to(cx, &shifted, 0.0, 1.0)?])
}

fn hard_swish(cx: &mut OpCx<'_>) -> Outputs {
    let (x, dtype) = input(cx)?;
    let (three, six) = (constant(cx, dtype, 3.0)?, constant(cx, dtype, 6.0)?);
    let shifted = cx.apply("add", &[&x, &three])?;
    let clipped = clip_to(cx, &shifted, 0.0, 6.0)?;
    let gate = cx.apply("divide", &[&clipped, &six])?;
    Ok(vec![cx.apply("multiply", &[&x, &gate])?])
}

fn is_inf(cx: &mut OpCx<'_>) -> Outputs {
    let (x, dtype) = input(cx)?;
    let negative = cx.node.flag_or("detect_negative", true)?;
    let positive = cx.node.flag_or("detect_positive", true)?;
    let infinite = cx.apply("isinf", &[&x])?;
    let zero = constant(cx, dtype, 0.0)?;
    let side = match (negative, positive) {
        (true, true) => return Ok(vec![infinite]),
        (true, false) => cx.apply("less", &[&x, &zero])?,
        (false, true) => cx.apply("greater", &[&x, &zero])?,
        // Nothing is asked for: no element is both above and below zero.
        (false, false) => {
            let above = cx.apply("greater", &[&x, &zero])?;
            let below = cx.apply("less", &[&x, &zero])?;
            cx.apply("logical_and", &[&above, &below])?
        }
    };
    Ok(vec![cx.apply("logical_and", &[&infinite, &side])?])
}

fn leaky_relu(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let alpha = cx.node.float_or("alpha", 0.01)?;
    Ok(vec![cx.call("nn.leakyrelu", vec![x], vec![("alpha", f64::from(alpha).into())])?])
}

/// `x * n / (n + 2)` with `n = w * (w + 2)` and `w = exp(x)`, which is `x * tanh(softplus(x))` without the
/// difference of near numbers. Above 20 the factor is 1 to the last bit.
fn mish(cx: &mut OpCx<'_>) -> Outputs {
    formula(cx, |cx, x, dtype| {
        let (two, top) = (constant(cx, dtype, 2.0)?, constant(cx, dtype, 20.0)?);
        let low = cx.apply("minimum", &[&x, &top])?;
        let w = cx.apply("exp", &[&low])?;
        let more = cx.apply("add", &[&w, &two])?;
        let n = cx.apply("multiply", &[&w, &more])?;
        let divisor = cx.apply("add", &[&n, &two])?;
        let gate = cx.apply("divide", &[&n, &divisor])?;
        cx.apply("multiply", &[&x, &gate])
    })
}

/// `max(x, 0) + log(1 + exp(-|x|))`, which does not overflow.
fn softplus_of(cx: &mut OpCx<'_>, x: &Value, dtype: DType) -> Result<Value, Fail> {
    let (zero, one) = (constant(cx, dtype, 0.0)?, constant(cx, dtype, 1.0)?);
    let positive = cx.apply("maximum", &[x, &zero])?;
    let size = cx.apply("abs", &[x])?;
    let size = cx.apply("negative", &[&size])?;
    let exp = cx.apply("exp", &[&size])?;
    let sum = cx.apply("add", &[&one, &exp])?;
    let log = cx.apply("log", &[&sum])?;
    cx.apply("add", &[&positive, &log])
}

fn softplus(cx: &mut OpCx<'_>) -> Outputs {
    formula(cx, |cx, x, dtype| softplus_of(cx, &x, dtype))
}

fn softsign(cx: &mut OpCx<'_>) -> Outputs {
    let (x, dtype) = input(cx)?;
    let one = constant(cx, dtype, 1.0)?;
    let size = cx.apply("abs", &[&x])?;
    let divisor = cx.apply("add", &[&size, &one])?;
    Ok(vec![cx.apply("divide", &[&x, &divisor])?])
}

/// A slope along one axis, or `where(x < 0, x * slope, x)` with the slope broadcast to the input.
fn prelu(cx: &mut OpCx<'_>) -> Outputs {
    let (x, dtype) = input(cx)?;
    let slope = cx.input(1, "slope")?;
    let (rank, dims) = (cx.rank(&x, "X")?, cx.dims(&slope, "the slope")?);
    if dims.len() > rank {
        return Err(format!("a slope of shape {dims:?} does not broadcast to an input of rank {rank}").into());
    }
    let long: Vec<usize> = (0..dims.len()).filter(|&a| !dims[a].is_int(1)).collect();
    let along = match long[..] {
        [] => rank.checked_sub(1).map(|axis| (axis, PrimExpr::i64(1))),
        [only] => Some((rank - dims.len() + only, dims[only].clone())),
        _ => None,
    };
    if let Some((axis, extent)) = along.filter(|_| dtype.is_float()) {
        let x = match extent.as_int() {
            Some(n) if n != 1 => cx.emitter.of_extents(&x, &[(axis, n)])?,
            _ => x,
        };
        let slope = cx.reshape(&slope, vec![extent])?;
        let axis = i64::try_from(axis).unwrap_or(i64::MAX);
        return Ok(vec![cx.call("nn.prelu", vec![x, slope], vec![("axis", axis.into())])?]);
    }
    let zero = constant(cx, dtype, 0.0)?;
    let negative = cx.apply("less", &[&x, &zero])?;
    let scaled = cx.apply("multiply", &[&x, &slope])?;
    Ok(vec![cx.apply("where", &[&negative, &scaled, &x])?])
}

fn reciprocal(cx: &mut OpCx<'_>) -> Outputs {
    let (x, dtype) = input(cx)?;
    let one = constant(cx, dtype, 1.0)?;
    Ok(vec![cx.apply("divide", &[&one, &x])?])
}

fn shrink(cx: &mut OpCx<'_>) -> Outputs {
    let (x, dtype) = input(cx)?;
    let lambd = cx.node.float_or("lambd", 0.5)?;
    let bias = cx.node.float_or("bias", 0.0)?;
    let (low, high) = (constant(cx, dtype, -lambd)?, constant(cx, dtype, lambd)?);
    let (bias, zero) = (constant(cx, dtype, bias)?, constant(cx, dtype, 0.0)?);
    let above = cx.apply("greater", &[&x, &high])?;
    let lowered = cx.apply("subtract", &[&x, &bias])?;
    let below = cx.apply("less", &[&x, &low])?;
    let raised = cx.apply("add", &[&x, &bias])?;
    let rest = cx.apply("where", &[&below, &raised, &zero])?;
    Ok(vec![cx.apply("where", &[&above, &lowered, &rest])?])
}

fn swish(cx: &mut OpCx<'_>) -> Outputs {
    let (x, dtype) = input(cx)?;
    let alpha = cx.node.float_or("alpha", 1.0)?;
    if alpha == 1.0 {
        return Ok(vec![cx.apply("nn.silu", &[&x])?]);
    }
    let alpha = constant(cx, dtype, alpha)?;
    let scaled = cx.apply("multiply", &[&alpha, &x])?;
    let gate = cx.apply("sigmoid", &[&scaled])?;
    Ok(vec![cx.apply("multiply", &[&x, &gate])?])
}

/// `x` above `alpha` and 0 elsewhere, also where `x` is infinite.
fn thresholded_relu(cx: &mut OpCx<'_>) -> Outputs {
    let (x, dtype) = input(cx)?;
    let alpha = cx.node.float_or("alpha", 1.0)?;
    let (alpha, zero) = (constant(cx, dtype, alpha)?, constant(cx, dtype, 0.0)?);
    let above = cx.apply("greater", &[&x, &alpha])?;
    Ok(vec![cx.apply("where", &[&above, &x, &zero])?])
}
