//! Where elements are not zero.

use super::row::{arg, op, tensor};
use super::run_time::{bind_extents, count};
use super::scatter::nest;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, PrimExpr};
use crate::relax::{ArgKind, Dims, InferCx, Leaf, Lower, LowerCx, OpDef, Pattern, RewriteCx, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::{IfStmt, PrimFunc, Stmt};

pub(super) static OPS: &[OpDef] = &[
    op(
        "nonzero",
        "the indices of the elements that are not zero, in row-major order: a row an axis, a column an element",
        &[tensor("x")],
        &[],
        |cx| {
            cx.tensor(0)?;
            cx.result(Dims::Rank(2), Some(DType::I64))
        },
        Lower::Ops(rewrite),
        Pattern::Opaque,
    ),
    op(
        "nonzero_count",
        "the number of elements that are not zero, a vector of one",
        &[tensor("x")],
        &[],
        |cx| {
            cx.tensor(0)?;
            cx.result(Dims::Known(vec![PrimExpr::i64(1)]), Some(DType::I64))
        },
        Lower::Tir("nonzero_count", lower_count),
        Pattern::Opaque,
    ),
    op(
        "nonzero_indices",
        "the indices that R.nonzero gives, of which there must be as many as the shape has columns",
        &[tensor("x"), arg("shape", ArgKind::Shape)],
        &[],
        infer_indices,
        Lower::Tir("nonzero_indices", lower_indices),
        Pattern::Opaque,
    ),
];

fn infer_indices(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let (x, shape) = (cx.tensor(0)?, cx.info(1)?);
    let StructInfo::Shape(dims) = shape else { return Err(cx.fail("`shape` must be a shape")) };
    if let (Some(rank), Some(dims)) = (x.dims.rank(), dims.known()) {
        if dims.len() != 2 || dims[0].as_int() != i64::try_from(rank).ok() {
            return Err(cx.fail(format!("`shape` must have {rank} rows, one an axis of `x`, and columns")));
        }
    }
    cx.result(dims, Some(DType::I64))
}

fn rewrite(cx: &mut RewriteCx<'_>) -> Result<Leaf, Diag> {
    let x = cx.call.args.first().cloned().unwrap_or(Leaf::Absent);
    let Some(StructInfo::Tensor(info)) = x.info() else {
        return Err(Diag::error(cx.call.span, "R.nonzero: `x` must be a tensor"));
    };
    let Some(dims) = info.dims.known() else {
        return Err(Diag::error(cx.call.span, "R.nonzero: the shape of `x` is not known")
            .help("state it before with R.match_cast"));
    };
    let number = cx.builder.call("nonzero_count", vec![x.clone()], &[])?;
    let columns = bind_extents(cx.builder, number, vec![count(dims)], &["nonzero"])?;
    let rows = PrimExpr::i64(i64::try_from(dims.len()).unwrap_or(i64::MAX));
    let shape = Leaf::Shape(std::iter::once(rows).chain(columns).collect());
    cx.builder.call("nonzero_indices", vec![x, shape], &[])
}

/// Calls `f` where an element is not zero.
fn where_not_zero(x: &Buffer, f: impl FnOnce(&[PrimExpr]) -> Stmt) -> Stmt {
    nest(&x.shape, "i", |i| {
        let cond = PrimExpr::load(x, i.to_vec()).eq(PrimExpr::zero(x.dtype)).logical_not();
        Stmt::If(Box::new(IfStmt { cond, then: f(i), otherwise: None }))
    })
}

fn lower_count(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let out = Buffer::new("count", vec![PrimExpr::i64(1)], DType::I64);
    let mut te = Te::new();
    te.block("nonzero_count", Axes::Ax, &[], &[], std::slice::from_ref(&out), |_, _| {
        let at = || vec![PrimExpr::i64(0)];
        let more = where_not_zero(x, |_| Stmt::store(&out, at(), PrimExpr::load(&out, at()) + 1));
        (None, Stmt::seq([Stmt::store(&out, at(), PrimExpr::i64(0)), more]))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn lower_indices(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, dims) = (cx.buffer(0)?, cx.out_dims()?.to_vec());
    let [_, columns] = &dims[..] else { return Err(cx.fail("the result must be a matrix")) };
    let out = Buffer::new("indices", dims.clone(), DType::I64);
    let found = Buffer::new("found", vec![PrimExpr::i64(1)], DType::I64);
    let mut te = Te::new();
    te.block("nonzero_indices", Axes::Ax, &[], &[], &[out.clone(), found.clone()], |_, _| {
        let at = || vec![PrimExpr::i64(0)];
        let column = PrimExpr::load(&found, at());
        let write = where_not_zero(x, |i| {
            let rows = (0i64..).zip(i).map(|(a, i)| {
                let store = Stmt::store(&out, vec![PrimExpr::i64(a), column.clone()], i.clone());
                Stmt::If(Box::new(IfStmt { cond: column.clone().lt(columns.clone()), then: store, otherwise: None }))
            });
            let next = Stmt::store(&found, at(), column.clone() + 1);
            Stmt::seq(rows.chain([next]))
        });
        (None, Stmt::seq([Stmt::store(&found, at(), PrimExpr::i64(0)), write]))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
