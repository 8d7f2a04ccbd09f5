//! Shapes as values.

use super::row::{arg, op, tensor};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::PrimExpr;
use crate::relax::{ArgKind, Dims, InferCx, Lower, OpDef, Pattern, StructInfo};

pub(super) static OPS: &[OpDef] = &[
    op(
        "at_most",
        "a shape, whose extents are at most those of another one: compared at run time, a bound for memory",
        &[arg("input", ArgKind::Shape), arg("most", ArgKind::Shape)],
        &[],
        infer_at_most,
        Lower::Builtin("vm.builtin.at_most"),
        Pattern::Opaque,
    ),
    op(
        "shape_of",
        "the shape of a tensor",
        &[tensor("input")],
        &[],
        |cx| Ok(StructInfo::Shape(cx.tensor(0)?.dims)),
        Lower::Builtin("vm.builtin.shape_of"),
        Pattern::Opaque,
    ),
    op(
        "shape_to_tensor",
        "a shape as a vector of int64",
        &[arg("input", ArgKind::Shape)],
        &[],
        infer_to_tensor,
        Lower::Builtin("relax.run.shape_to_tensor"),
        Pattern::Opaque,
    ),
    op(
        "tensor_to_shape",
        "a vector of int64 as a shape",
        &[tensor("input")],
        &[],
        infer_to_shape,
        Lower::Builtin("vm.builtin.tensor_to_shape"),
        Pattern::Opaque,
    ),
];

fn infer_at_most(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    match (cx.info(0)?, cx.info(1)?) {
        (StructInfo::Shape(dims), StructInfo::Shape(Dims::Known(most))) => match dims.rank() {
            Some(rank) if rank != most.len() => {
                Err(cx.fail(format!("the shape has {rank} extents, the bound has {}", most.len())))
            }
            Some(_) => Ok(StructInfo::Shape(dims)),
            None => Ok(StructInfo::Shape(Dims::Rank(most.len()))),
        },
        _ => Err(cx.fail("`most` must be a shape whose extents are known, as R.shape([n])")),
    }
}

fn infer_to_tensor(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let rank = match cx.info(0)? {
        StructInfo::Shape(d) => d.rank(),
        _ => None,
    };
    let dims = match rank.and_then(|r| i64::try_from(r).ok()) {
        Some(r) => Dims::Known(vec![PrimExpr::i64(r)]),
        None => Dims::Rank(1),
    };
    cx.result(dims, Some(DType::I64))
}

fn infer_to_shape(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let t = cx.tensor(0)?;
    cx.expect_rank(0, &t, 1)?;
    cx.expect_dtype(0, "int64", |d| d == DType::I64)?;
    let rank = t.dims.known().and_then(|d| d.first()?.as_int()).and_then(|n| usize::try_from(n).ok());
    Ok(StructInfo::Shape(rank.map_or(Dims::Unknown, Dims::Rank)))
}
