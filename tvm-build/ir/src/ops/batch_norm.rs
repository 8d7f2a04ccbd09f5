//! Batch normalization.

use super::reduce::Plan;
use super::row::{attr, op, required, tensor};
use super::show::show_tensor;
use super::topi::{Value, binary, reshape, unary};
use crate::diag::Diag;
use crate::prim::{BinOp, Buffer, Intrinsic, PrimExpr};
use crate::relax::{AttrDefault, AttrKind, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Reducer, Te};
use crate::tir::PrimFunc;

pub(super) static OPS: &[OpDef] = &[op(
    "nn.batch_norm",
    "(data - mean) / sqrt(var + epsilon) * gamma + beta along an axis, and the new moving mean and variance; with \
     `training` the mean and variance of the batch are used, else the moving ones",
    &[tensor("data"), tensor("gamma"), tensor("beta"), tensor("moving_mean"), tensor("moving_var")],
    &[
        required("axis", AttrKind::Int),
        attr("epsilon", AttrKind::Float, AttrDefault::Float(1e-5)),
        attr("center", AttrKind::Bool, AttrDefault::Bool(true)),
        attr("scale", AttrKind::Bool, AttrDefault::Bool(true)),
        attr("momentum", AttrKind::Float, AttrDefault::Float(0.1)),
        attr("training", AttrKind::Bool, AttrDefault::Bool(true)),
    ],
    infer,
    Lower::Tir("batch_norm", lower),
    Pattern::OutEWiseFusable,
)];

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    cx.expect_dtype(0, "floating point", crate::dtype::DType::is_float)?;
    let axis = match x.dims.rank() {
        Some(rank) => Some(cx.axis("axis", cx.int("axis")?, rank)?),
        None => None,
    };
    for i in 1..5 {
        let t = cx.tensor(i)?;
        cx.expect_rank(i, &t, 1)?;
        cx.common_dtype(0, i)?;
        let (Some(axis), Some(xd), Some([own])) = (axis, x.dims.known(), t.dims.known()) else { continue };
        if cx.differ(&xd[axis], own) {
            let message = format!(
                "`{}` {} does not fit axis {axis} of `data` {}",
                cx.arg_name(i),
                show_tensor(&t),
                show_tensor(&x)
            );
            return Err(cx.fail(message).help("check `axis`: it is the axis of the channels"));
        }
    }
    let stat = |i: usize| Ok::<_, Diag>(StructInfo::Tensor(cx.tensor(i)?));
    Ok(StructInfo::Tuple(vec![StructInfo::Tensor(x), stat(3)?, stat(4)?]))
}

fn lower(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, gamma, beta) = (cx.buffer(0)?, cx.buffer(1)?, cx.buffer(2)?);
    let (moving_mean, moving_var) = (cx.buffer(3)?, cx.buffer(4)?);
    let axis = cx.with_infer(|c| c.axis("axis", c.int("axis")?, x.shape.len()))?;
    let number =
        |name: &str| cx.call.attr(name).as_float().ok_or_else(|| cx.fail(format!("`{name}` must be a number")));
    let flag = |name: &str| cx.call.attr(name).as_bool() == Some(true);
    let (epsilon, momentum, training) = (number("epsilon")?, number("momentum")?, flag("training"));
    let scalar = |v: f64| Value::Scalar(PrimExpr::float(x.dtype, v));
    let mut spread = vec![PrimExpr::i64(1); x.shape.len()];
    spread[axis] = x.shape[axis].clone();

    let mut te = Te::new();
    let batch = if training { Some(batch_statistics(&mut te, x, axis, &spread)) } else { None };
    let centered = match &batch {
        Some(b) => b.centered.clone(),
        None => {
            let mean_wide = reshape(&mut te, moving_mean, &spread);
            binary(&mut te, BinOp::Sub, x, &Value::Of(x), &Value::Of(&mean_wide))
        }
    };
    let var_wide = reshape(&mut te, batch.as_ref().map_or(moving_var, |b| &b.var), &spread);
    let shifted = binary(&mut te, BinOp::Add, &var_wide, &Value::Of(&var_wide), &scalar(epsilon));
    let deviation = unary(&mut te, Intrinsic::Sqrt, &shifted);
    let mut out = binary(&mut te, BinOp::Div, x, &Value::Of(&centered), &Value::Of(&deviation));
    if flag("scale") {
        let wide = reshape(&mut te, gamma, &spread);
        out = binary(&mut te, BinOp::Mul, x, &Value::Of(&out), &Value::Of(&wide));
    }
    if flag("center") {
        let wide = reshape(&mut te, beta, &spread);
        out = binary(&mut te, BinOp::Add, x, &Value::Of(&out), &Value::Of(&wide));
    }
    let mut statistics = Vec::with_capacity(2);
    for (moving, batch) in
        [(moving_mean, batch.as_ref().map(|b| &b.mean)), (moving_var, batch.as_ref().map(|b| &b.var))]
    {
        statistics.push(match batch {
            Some(own) => {
                let old = binary(&mut te, BinOp::Mul, moving, &scalar(1.0 - momentum), &Value::Of(moving));
                let new = binary(&mut te, BinOp::Mul, moving, &scalar(momentum), &Value::Of(own));
                binary(&mut te, BinOp::Add, moving, &Value::Of(&old), &Value::Of(&new))
            }
            None => binary(&mut te, BinOp::Mul, moving, &Value::Of(moving), &scalar(1.0)),
        });
    }
    statistics.insert(0, out);
    Ok(te.finish(cx.inputs, &statistics, cx.call.span))
}

/// Stages of the statistics of the batch over all axes but one.
struct Batch {
    mean: Buffer,
    centered: Buffer,
    var: Buffer,
}

fn batch_statistics(te: &mut Te, x: &Buffer, axis: usize, spread: &[PrimExpr]) -> Batch {
    let axes = (0..x.shape.len()).filter(|a| *a != axis).collect();
    let plan = Plan { axes, keep: false };
    let count = Value::Scalar(plan.count(x, x.dtype));
    let sum = plan.stage(te, x, false, Reducer::Sum);
    let mean = binary(te, BinOp::Div, &sum, &Value::Of(&sum), &count);
    let mean_wide = reshape(te, &mean, spread);
    let mut distance = || binary(te, BinOp::Sub, x, &Value::Of(x), &Value::Of(&mean_wide));
    let (centered, left, right) = (distance(), distance(), distance());
    let square = binary(te, BinOp::Mul, x, &Value::Of(&left), &Value::Of(&right));
    let squares = plan.stage(te, &square, false, Reducer::Sum);
    let var = binary(te, BinOp::Div, &squares, &Value::Of(&squares), &count);
    Batch { mean, centered, var }
}
