//! Indices that come from data.

use super::extents::assert;
use super::row::{arg, op};
use super::scatter::nest;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, PrimExpr};
use crate::relax::{ArgKind, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::{PrimFunc, Stmt};

pub(super) static OPS: &[OpDef] = &[op(
    "checked_index",
    "indices below an extent, or below one extent a place of their last axis, counted from the start: those below zero \
     are counted from the end. An index out of range is an error at run time, so that what reads by them is in bounds",
    &[arg("indices", ArgKind::Operand), arg("extents", ArgKind::Operand)],
    &[],
    infer,
    Lower::Tir("checked_index", lower),
    Pattern::Opaque,
)];

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, "an integer type", DType::is_integer)?;
    cx.expect_dtype(1, "an integer type", DType::is_integer)?;
    let (at, extents) = (cx.tensor(0)?, cx.tensor(1)?);
    match (at.dims.known(), extents.dims.known()) {
        (_, Some([])) => {}
        (Some([.., last]), Some([n])) if !cx.differ(last, n) => {}
        (Some(_), Some(_)) => {
            return Err(cx.fail("`extents` must be one number, or as many as the last axis of `indices` has places"));
        }
        _ => {}
    }
    cx.result(at.dims, at.dtype)
}

fn lower(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (indices, extents) = (cx.operand(0)?, cx.operand(1)?);
    let dims = cx.out_dims()?;
    let out = Buffer::new("checked_index", dims.to_vec(), cx.out_dtype()?);
    let mut te = Te::new();
    te.block("checked_index", Axes::Ax, &[], &[], std::slice::from_ref(&out), |_, _| {
        let body = nest(dims, "i", |i| {
            let at = indices.at(dims, i).cast(DType::I64);
            let n = extents.at(dims, i).cast(DType::I64);
            let inside = (PrimExpr::i64(0) - n.clone()).le(at.clone()).and(at.clone().lt(n.clone()));
            let counted = PrimExpr::select(at.clone().lt(0), at.clone() + n, at);
            let store = Stmt::store(&out, i.to_vec(), counted.cast(out.dtype));
            Stmt::seq([assert(inside, "an index is out of range"), store])
        });
        (None, body)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
