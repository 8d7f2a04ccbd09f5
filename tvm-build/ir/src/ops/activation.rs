//! Activations with parameters or several stages, softmax, dropout.

use super::row::{attr, op, tensor};
use super::show::{show_expr, show_tensor};
use super::topi::{Value, binary, unary};
use super::unary::float;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{BinOp, Buffer, Intrinsic, PrimExpr};
use crate::relax::{AttrDef, AttrDefault, AttrKind, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Reducer, Te};
use crate::tir::PrimFunc;

const AXIS: AttrDef = attr("axis", AttrKind::Int, AttrDefault::Int(-1));

pub(super) static OPS: &[OpDef] = &[
    op(
        "nn.dropout",
        "at inference x itself, and a mask of ones",
        &[tensor("data")],
        &[attr("rate", AttrKind::Float, AttrDefault::Float(0.5))],
        |cx| float(cx).map(|x| StructInfo::Tuple(vec![x.clone(), x])),
        Lower::Tir("dropout", lower_dropout),
        Pattern::ElemWise,
    ),
    op(
        "nn.gelu",
        "x * (0.5 + 0.5 * erf(x / sqrt(2)))",
        &[tensor("data")],
        &[],
        float,
        Lower::Tir("gelu", lower_gelu),
        Pattern::ElemWise,
    ),
    op(
        "nn.gelu_tanh",
        "gelu by tanh: 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))",
        &[tensor("data")],
        &[],
        float,
        Lower::Tir("gelu_tanh", lower_gelu_tanh),
        Pattern::ElemWise,
    ),
    op(
        "nn.leakyrelu",
        "x where positive, else alpha * x",
        &[tensor("data")],
        &[attr("alpha", AttrKind::Float, AttrDefault::Float(0.01))],
        float,
        Lower::Tir("leaky_relu", lower_leakyrelu),
        Pattern::ElemWise,
    ),
    op(
        "nn.log_softmax",
        "x - max - log(sum(exp(x - max))) along an axis",
        &[tensor("data")],
        &[AXIS],
        infer_softmax,
        Lower::Tir("log_softmax", lower_log_softmax),
        Pattern::OutEWiseFusable,
    ),
    op(
        "nn.prelu",
        "x where positive, else alpha of its channel * x",
        &[tensor("data"), tensor("alpha")],
        &[attr("axis", AttrKind::Int, AttrDefault::Int(1))],
        infer_prelu,
        Lower::Tir("prelu", lower_prelu),
        Pattern::Broadcast,
    ),
    op(
        "nn.selu",
        "1.0507 * (max(x, 0) + min(0, 1.67326 * (exp(x) - 1)))",
        &[tensor("data")],
        &[],
        float,
        Lower::Tir("selu", lower_selu),
        Pattern::ElemWise,
    ),
    op("nn.silu", "x * sigmoid(x)", &[tensor("data")], &[], float, Lower::Tir("silu", lower_silu), Pattern::ElemWise),
    op(
        "nn.softmax",
        "exp(x - max) / sum(exp(x - max)) along an axis",
        &[tensor("data")],
        &[AXIS],
        infer_softmax,
        Lower::Tir("softmax", lower_softmax),
        Pattern::OutEWiseFusable,
    ),
    op(
        "nn.softplus",
        "log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold",
        &[tensor("data")],
        &[
            attr("beta", AttrKind::Float, AttrDefault::Float(1.0)),
            attr("threshold", AttrKind::Float, AttrDefault::Float(20.0)),
        ],
        float,
        Lower::Tir("softplus", lower_softplus),
        Pattern::ElemWise,
    ),
];

fn number(cx: &LowerCx<'_>, name: &str, dtype: DType) -> Result<PrimExpr, Diag> {
    let v = cx.call.attr(name).as_float().ok_or_else(|| cx.fail(format!("`{name}` must be a number")))?;
    Ok(PrimExpr::float(dtype, v))
}

fn scalar<'a>(x: &Buffer, v: f64) -> Value<'a> {
    Value::Scalar(PrimExpr::float(x.dtype, v))
}

fn lower_dropout(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let mut te = Te::new();
    let copy = te.compute("compute", Axes::I, &x.shape, x.dtype, |i| PrimExpr::load(x, i.to_vec()));
    let ones = te.compute("T_full_like", Axes::Ax, &x.shape, x.dtype, |_| PrimExpr::float(x.dtype, 1.0));
    Ok(te.finish(cx.inputs, &[copy, ones], cx.call.span))
}

fn lower_gelu(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let mut te = Te::new();
    let scaled = binary(&mut te, BinOp::Mul, x, &Value::Of(x), &scalar(x, std::f64::consts::FRAC_1_SQRT_2));
    let erf = if x.dtype.bits < 32 {
        let wide = cast(&mut te, &scaled, DType::F32);
        let erf = unary(&mut te, Intrinsic::Erf, &wide);
        cast(&mut te, &erf, x.dtype)
    } else {
        unary(&mut te, Intrinsic::Erf, &scaled)
    };
    let half = binary(&mut te, BinOp::Mul, x, &Value::Of(&erf), &scalar(x, 0.5));
    let factor = binary(&mut te, BinOp::Add, x, &scalar(x, 0.5), &Value::Of(&half));
    let out = binary(&mut te, BinOp::Mul, x, &Value::Of(x), &Value::Of(&factor));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn cast(te: &mut Te, x: &Buffer, dtype: DType) -> Buffer {
    te.compute("compute", Axes::I, &x.shape, dtype, |i| PrimExpr::load(x, i.to_vec()).cast(dtype))
}

fn lower_gelu_tanh(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let mut te = Te::new();
    let mut mul = |a: Value<'_>, b: Value<'_>| binary(&mut te, BinOp::Mul, x, &a, &b);
    let half = mul(scalar(x, 0.5), Value::Of(x));
    let inner = mul(scalar(x, (2.0 / std::f64::consts::PI).sqrt()), Value::Of(x));
    let cubic = mul(scalar(x, 0.044715), Value::Of(x));
    let square = mul(Value::Of(&cubic), Value::Of(x));
    let bend = binary(&mut te, BinOp::Add, x, &scalar(x, 1.0), &Value::Of(&square));
    let arg = binary(&mut te, BinOp::Mul, x, &Value::Of(&inner), &Value::Of(&bend));
    let tanh = unary(&mut te, Intrinsic::Tanh, &arg);
    let factor = binary(&mut te, BinOp::Add, x, &scalar(x, 1.0), &Value::Of(&tanh));
    let out = binary(&mut te, BinOp::Mul, x, &Value::Of(&half), &Value::Of(&factor));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn lower_silu(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let mut te = Te::new();
    let gate = unary(&mut te, Intrinsic::Sigmoid, x);
    let out = binary(&mut te, BinOp::Mul, x, &Value::Of(x), &Value::Of(&gate));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn lower_selu(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    const ALPHA: f64 = 1.673_263_242_354_377_2;
    const SCALE: f64 = 1.050_700_987_355_480_5;
    let x = cx.buffer(0)?;
    let mut te = Te::new();
    let above = binary(&mut te, BinOp::Max, x, &Value::Of(x), &scalar(x, 0.0));
    let exp = unary(&mut te, Intrinsic::Exp, x);
    let less_one = binary(&mut te, BinOp::Sub, x, &Value::Of(&exp), &scalar(x, 1.0));
    let scaled = binary(&mut te, BinOp::Mul, x, &scalar(x, ALPHA), &Value::Of(&less_one));
    let below = binary(&mut te, BinOp::Min, x, &scalar(x, 0.0), &Value::Of(&scaled));
    let both = binary(&mut te, BinOp::Add, x, &Value::Of(&above), &Value::Of(&below));
    let out = binary(&mut te, BinOp::Mul, x, &scalar(x, SCALE), &Value::Of(&both));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn lower_leakyrelu(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let alpha = number(cx, "alpha", x.dtype)?;
    let mut te = Te::new();
    let out = te.compute("compute", Axes::I, &x.shape, x.dtype, |i| {
        let v = PrimExpr::load(x, i.to_vec());
        PrimExpr::select(PrimExpr::zero(x.dtype).lt(v.clone()), v.clone(), v * alpha)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn lower_softplus(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let (beta, threshold) = (number(cx, "beta", x.dtype)?, number(cx, "threshold", x.dtype)?);
    let mut te = Te::new();
    let out = te.compute("compute", Axes::I, &x.shape, x.dtype, |i| {
        let v = PrimExpr::load(x, i.to_vec());
        let scaled = v.clone() * beta.clone();
        let grown = PrimExpr::float(x.dtype, 1.0) + PrimExpr::call(Intrinsic::Exp, vec![scaled.clone()]);
        PrimExpr::select(threshold.lt(scaled), v, PrimExpr::call(Intrinsic::Log, vec![grown]) / beta)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn infer_prelu(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, "floating point", DType::is_float)?;
    let (x, alpha) = (cx.tensor(0)?, cx.tensor(1)?);
    let dtype = cx.common_dtype(0, 1)?;
    cx.expect_rank(1, &alpha, 1)?;
    if let Some(rank) = x.dims.rank() {
        let axis = cx.axis("axis", cx.int("axis")?, rank)?;
        if let (Some(d), Some([own])) = (x.dims.known(), alpha.dims.known()) {
            if !own.is_int(1) && cx.differ(&d[axis], own) {
                let message = format!(
                    "`alpha` has {} elements, axis {axis} of `data` {} has {}",
                    show_expr(own),
                    show_tensor(&x),
                    show_expr(&d[axis])
                );
                return Err(cx.fail(message));
            }
        }
    }
    cx.result(x.dims, dtype.or(x.dtype))
}

fn lower_prelu(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, alpha) = (cx.buffer(0)?, cx.buffer(1)?);
    let axis = cx.with_infer(|c| c.axis("axis", c.int("axis")?, x.shape.len()))?;
    let one = alpha.shape.first().is_some_and(|d| d.is_int(1));
    let mut te = Te::new();
    let out = te.compute("compute", Axes::I, &x.shape, x.dtype, |i| {
        let v = PrimExpr::load(x, i.to_vec());
        let at = if one { PrimExpr::i64(0) } else { i[axis].clone() };
        let slope = PrimExpr::load(alpha, vec![at]);
        PrimExpr::select(PrimExpr::zero(x.dtype).lt(v.clone()), v.clone(), v * slope)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn infer_softmax(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    if let Some(rank) = cx.tensor(0)?.dims.rank() {
        cx.axis("axis", cx.int("axis")?, rank)?;
    }
    float(cx)
}

/// The softmax axis, x's shape without it, and its extent.
fn along(cx: &LowerCx<'_>) -> Result<(usize, Vec<PrimExpr>, PrimExpr), Diag> {
    let x = cx.buffer(0)?;
    let axis = cx.with_infer(|c| c.axis("axis", c.int("axis")?, x.shape.len()))?;
    let mut rest = x.shape.clone();
    let extent = rest.remove(axis);
    Ok((axis, rest, extent))
}

fn with(index: &[PrimExpr], axis: usize, k: &PrimExpr) -> Vec<PrimExpr> {
    let mut at = index.to_vec();
    at.insert(axis, k.clone());
    at
}

fn without(index: &[PrimExpr], axis: usize) -> Vec<PrimExpr> {
    let mut at = index.to_vec();
    at.remove(axis);
    at
}

fn annotation(axis: usize) -> i64 {
    i64::try_from(axis).unwrap_or(i64::MAX)
}

fn lower_softmax(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let (axis, rest, extent) = along(cx)?;
    let k = [("k", extent)];
    let mut te = Te::new();
    let top = te.reduce("T_softmax_maxelem", Axes::I, &rest, &k, Reducer::MaxFinite, x.dtype, |i, r| {
        PrimExpr::load(x, with(i, axis, &r[0]))
    });
    let exp = te.compute("T_softmax_exp", Axes::I, &x.shape, x.dtype, |i| {
        let shifted = PrimExpr::load(x, i.to_vec()) - PrimExpr::load(&top, without(i, axis));
        PrimExpr::call(Intrinsic::Exp, vec![shifted])
    });
    let sum = te.reduce("T_softmax_expsum", Axes::I, &rest, &k, Reducer::Sum, x.dtype, |i, r| {
        PrimExpr::load(&exp, with(i, axis, &r[0]))
    });
    te.annotate("axis", annotation(axis));
    let out = te.compute("T_softmax_norm", Axes::I, &x.shape, x.dtype, |i| {
        PrimExpr::load(&exp, i.to_vec()) / PrimExpr::load(&sum, without(i, axis))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn lower_log_softmax(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let (axis, rest, extent) = along(cx)?;
    let k = [("k", extent)];
    let mut te = Te::new();
    let top = te.reduce("T_softmax_maxelem", Axes::I, &rest, &k, Reducer::MaxFinite, x.dtype, |i, r| {
        PrimExpr::load(x, with(i, axis, &r[0]))
    });
    let sum = te.reduce("compute", Axes::I, &rest, &k, Reducer::Sum, x.dtype, |i, r| {
        let shifted = PrimExpr::load(x, with(i, axis, &r[0])) - PrimExpr::load(&top, i.to_vec());
        PrimExpr::call(Intrinsic::Exp, vec![shifted])
    });
    te.annotate("axis", annotation(axis));
    let out = te.compute("compute", Axes::I, &x.shape, x.dtype, |i| {
        let at = without(i, axis);
        let log = PrimExpr::call(Intrinsic::Log, vec![PrimExpr::load(&sum, at.clone())]);
        PrimExpr::load(x, i.to_vec()) - PrimExpr::load(&top, at) - log
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
