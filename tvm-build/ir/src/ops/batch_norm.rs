//! Batch normalization.

use super::row::{attr, op, required, tensor};
use super::show::show_tensor;
use super::topi::{Value, binary, reshape, unary};
use crate::diag::Diag;
use crate::prim::{BinOp, Buffer, Intrinsic, PrimExpr};
use crate::relax::{AttrDefault, AttrKind, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Reducer, Te};
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
    Pattern::Opaque,
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
    let batch = if training { Some(batch_statistics(&mut te, x, axis)) } else { None };
    let (mean, var) = batch.as_ref().map_or((moving_mean, moving_var), |(m, v)| (m, v));

    let mean_wide = reshape(&mut te, mean, &spread);
    let centered = binary(&mut te, BinOp::Sub, x, &Value::Of(x), &Value::Of(&mean_wide));
    let var_wide = reshape(&mut te, var, &spread);
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
    for (moving, batch) in [(moving_mean, batch.as_ref().map(|b| &b.0)), (moving_var, batch.as_ref().map(|b| &b.1))] {
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

/// Mean and biased variance over all axes but one.
fn batch_statistics(te: &mut Te, x: &Buffer, axis: usize) -> (Buffer, Buffer) {
    const NAMES: [&str; 8] = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"];
    let over: Vec<usize> = (0..x.shape.len()).filter(|a| *a != axis).collect();
    let reduced: Vec<(&'static str, PrimExpr)> =
        over.iter().enumerate().map(|(n, a)| (NAMES.get(n).copied().unwrap_or("k"), x.shape[*a].clone())).collect();
    let channels = [x.shape[axis].clone()];
    let count = over.iter().fold(PrimExpr::i64(1), |n, a| n * &x.shape[*a]).cast(x.dtype);
    let index = |i: &[PrimExpr], r: &[PrimExpr]| {
        let mut at = vec![i[0].clone(); x.shape.len()];
        over.iter().zip(r).for_each(|(a, v)| at[*a] = v.clone());
        at
    };
    let sum = te.reduce(&format!("{}_red", x.name), Axes::Ax, &channels, &reduced, Reducer::Sum, x.dtype, |i, r| {
        PrimExpr::load(x, index(i, r))
    });
    let mean = binary(te, BinOp::Div, &sum, &Value::Of(&sum), &Value::Scalar(count.clone()));
    let squares = te.reduce("squares", Axes::Ax, &channels, &reduced, Reducer::Sum, x.dtype, |i, r| {
        let d = PrimExpr::load(x, index(i, r)) - PrimExpr::load(&mean, i.to_vec());
        d.clone() * d
    });
    let var = binary(te, BinOp::Div, &squares, &Value::Of(&squares), &Value::Scalar(count));
    (mean, var)
}
