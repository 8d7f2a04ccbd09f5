//! Reordering of axes and of elements along axes.

use super::row::{attr, op, tensor};
use crate::diag::Diag;
use crate::prim::PrimExpr;
use crate::relax::{AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::PrimFunc;

pub(super) static OPS: &[OpDef] = &[op(
    "permute_dims",
    "x with its axes in another order; all reversed when `axes` is None",
    &[tensor("x")],
    &[attr("axes", AttrKind::OptInts, AttrDefault::None)],
    infer_permute,
    Lower::Tir("transpose", lower_permute),
    Pattern::Injective,
)];

/// The order, one entry a dimension.
fn order(cx: &InferCx<'_>, rank: usize) -> Result<Vec<usize>, Diag> {
    let Some(axes) = cx.opt_ints("axes") else { return Ok((0..rank).rev().collect()) };
    if axes.len() != rank {
        return Err(cx.fail(format!("`axes` {axes:?} names {} axes, `x` has rank {rank}", axes.len())));
    }
    cx.axes("axis", &axes, rank)
}

fn infer_permute(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let Some(rank) = x.dims.rank() else {
        let dims = cx.opt_ints("axes").map_or(Dims::Unknown, |a| Dims::Rank(a.len()));
        return cx.result(dims, x.dtype);
    };
    let order = order(cx, rank)?;
    let dims = match &x.dims {
        Dims::Known(d) => Dims::Known(order.iter().filter_map(|a| d.get(*a).cloned()).collect()),
        other => other.clone(),
    };
    cx.result(dims, x.dtype)
}

fn lower_permute(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let order = cx.with_infer(|c| order(c, x.shape.len()))?;
    let mut te = Te::new();
    let out = te.compute("T_transpose", Axes::Ax, cx.out_dims()?, x.dtype, |i| {
        let mut index = i.to_vec();
        for (to, from) in order.iter().enumerate() {
            index[*from] = i[to].clone();
        }
        PrimExpr::load(x, index)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
