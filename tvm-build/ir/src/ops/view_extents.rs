//! Extents of views and broadcasts whose parameters are tensors: what a reshape, a new axis or a broadcast that is given
//! at run time needs to know before its result can have a shape. The tensors are as short as a shape is.

use super::extents::{assert, checked_axes, element};
use super::row::{attr, op, tensor};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{BinOp, Buffer, PrimExpr, Var};
use crate::relax::{AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Reducer, Te};
use crate::tir::{LetStmt, PrimFunc, Stmt};

pub(super) static OPS: &[OpDef] = &[
    op(
        "expanded_extents",
        "the extents of a tensor and a shape broadcast to each other. Extents of which neither is 1 and that differ are \
         an error at run time",
        &[tensor("extents"), tensor("shape")],
        &[],
        |cx| lengths(cx, |extents, shape| extents.max(shape)),
        Lower::Tir("expanded_extents", lower_expanded),
        Pattern::Opaque,
    ),
    op(
        "reshaped_extents",
        "the extents of a tensor in a shape, in which one -1 stands for what is left and 0 for the extent at its place, or \
         with `allow_zero` for itself. A shape that the tensor does not fill is an error at run time",
        &[tensor("extents"), tensor("shape")],
        &[attr("allow_zero", AttrKind::Bool, AttrDefault::Bool(false))],
        |cx| lengths(cx, |_, shape| shape),
        Lower::Tir("reshaped_extents", lower_reshaped),
        Pattern::Opaque,
    ),
    op(
        "unsqueezed_extents",
        "the extents of a tensor with new axes of extent 1 at places of the result. Axes out of range or given twice are \
         an error at run time",
        &[tensor("extents"), tensor("axes")],
        &[],
        |cx| lengths(cx, |extents, axes| extents + axes),
        Lower::Tir("unsqueezed_extents", lower_unsqueezed),
        Pattern::Opaque,
    ),
];

/// The fixed length of a vector of integers.
fn length(cx: &InferCx<'_>, i: usize) -> Result<Option<i64>, Diag> {
    let t = cx.tensor(i)?;
    cx.expect_rank(i, &t, 1)?;
    cx.expect_dtype(i, "an integer type", DType::is_integer)?;
    match t.dims.known().and_then(<[_]>::first) {
        None => Ok(None),
        Some(n) => match n.as_int() {
            Some(n) => Ok(Some(n)),
            None => Err(cx.fail(format!("`{}` must have a fixed number of elements, not {n:?}", cx.arg_name(i)))),
        },
    }
}

fn lengths(cx: &InferCx<'_>, of: fn(i64, i64) -> i64) -> Result<StructInfo, Diag> {
    let dims = match (length(cx, 0)?, length(cx, 1)?) {
        (Some(a), Some(b)) => Dims::Known(vec![PrimExpr::i64(of(a, b))]),
        _ => Dims::Rank(1),
    };
    cx.result(dims, Some(DType::I64))
}

/// The elements of a vector whose length is fixed.
fn elements(b: &Buffer) -> Vec<PrimExpr> {
    let count = b.shape.first().and_then(PrimExpr::as_int).unwrap_or(0);
    (0..count).map(|i| element(b, &PrimExpr::i64(i))).collect()
}

fn store(out: &Buffer, i: usize, value: PrimExpr) -> Stmt {
    Stmt::store(out, vec![PrimExpr::i64(i64::try_from(i).unwrap_or(i64::MAX))], value)
}

/// A variable for a value in what follows.
fn let_in(name: &str, value: PrimExpr, body: impl FnOnce(PrimExpr) -> Stmt) -> Stmt {
    let var = Var::new(name, DType::I64);
    let body = body(var.expr());
    Stmt::Let(Box::new(LetStmt { var, value, body }))
}

/// One block that writes the extents.
fn block(cx: &LowerCx<'_>, mut te: Te, body: impl FnOnce(&Buffer) -> Stmt) -> Result<PrimFunc, Diag> {
    let out = Buffer::new("extent", cx.out_dims()?.to_vec(), DType::I64);
    te.block(cx.call.op.name(), Axes::Ax, &[], &[], std::slice::from_ref(&out), |_, _| (None, body(&out)));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn lower_expanded(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (extents, shape) = (elements(cx.buffer(0)?), elements(cx.buffer(1)?));
    let rank = extents.len().max(shape.len());
    let at = |v: &[PrimExpr], i: usize| (i + v.len()).checked_sub(rank).map_or(PrimExpr::i64(1), |j| v[j].clone());
    block(cx, Te::new(), |out| {
        Stmt::seq((0..rank).flat_map(|i| {
            let (a, b) = (at(&extents, i), at(&shape, i));
            let fits = a.clone().eq(1).or(b.clone().eq(1)).or(a.clone().eq(&b));
            let extent = PrimExpr::select(a.clone().eq(1), b, a);
            [assert(fits, "extents do not broadcast"), store(out, i, extent)]
        }))
    })
}

fn product(factors: impl Iterator<Item = PrimExpr>) -> PrimExpr {
    factors.fold(PrimExpr::i64(1), |a, b| a * b)
}

fn lower_reshaped(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (extents, shape) = (elements(cx.buffer(0)?), elements(cx.buffer(1)?));
    let allow_zero = cx.call.attr("allow_zero").as_bool() == Some(true);
    let any = |of: &dyn Fn(&PrimExpr) -> PrimExpr| shape.iter().fold(PrimExpr::bool(false), |any, e| any.or(of(e)));
    let mut checks = Vec::new();
    let mut kept = Vec::new();
    for (i, extent) in shape.iter().enumerate() {
        checks.push(assert(PrimExpr::i64(-1).le(extent), "an extent is negative"));
        let zero = extent.clone().eq(0);
        kept.push(match extents.get(i) {
            _ if allow_zero => extent.clone(),
            Some(own) => PrimExpr::select(zero, own.clone(), extent.clone()),
            None => {
                checks.push(assert(zero.logical_not(), "a 0 has no extent to keep"));
                extent.clone()
            }
        });
    }
    let open = |e: &PrimExpr| e.clone().eq(-1);
    let marked = shape.iter().fold(PrimExpr::i64(0), |n, e| n + open(e).cast(DType::I64));
    checks.push(assert(marked.le(1), "more than one extent is -1"));
    if allow_zero {
        let both = any(&open).and(any(&|e| e.clone().eq(0)));
        checks.push(assert(both.logical_not(), "extents of 0 and -1 do not go together"));
    }
    let one = |e: &PrimExpr| PrimExpr::select(open(e), PrimExpr::i64(1), e.clone());
    block(cx, Te::new(), |out| {
        let body = let_in("whole", product(extents.iter().cloned()), |whole| {
            let_in("given", product(kept.iter().map(one)), |given| {
                // With an extent of 0 kept, any extent fits; 0 it is.
                let left = PrimExpr::binary(BinOp::FloorDiv, whole.clone(), given.clone().max(1));
                let_in("left", left, |left| {
                    let filled = PrimExpr::select(any(&open), given.clone() * left.clone(), given);
                    let fits = assert(filled.eq(whole), "the tensor does not fill the shape");
                    let stores = kept
                        .iter()
                        .enumerate()
                        .map(|(i, e)| store(out, i, PrimExpr::select(open(e), left.clone(), e.clone())));
                    Stmt::seq(std::iter::once(fits).chain(stores))
                })
            })
        });
        Stmt::seq(checks.into_iter().chain([body]))
    })
}

fn lower_unsqueezed(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (extents, axes, dims) = (cx.buffer(0)?, cx.buffer(1)?, cx.out_dims()?);
    let (own, rank) = (extents.shape[0].clone(), dims[0].clone());
    let mut te = Te::new();
    let at = checked_axes(&mut te, axes, &rank);
    let int = DType::I64;
    let added = te.reduce("added", Axes::Ax, dims, &[("k", axes.shape[0].clone())], Reducer::Sum, int, |i, k| {
        element(&at, &k[0]).eq(&i[0]).cast(int)
    });
    // How many of the tensor's own axes come before each axis of the result.
    let place = te.reduce("place", Axes::Ax, dims, &[("k", rank)], Reducer::Sum, int, |i, k| {
        k[0].clone().lt(i[0].clone()).and(element(&added, &k[0]).eq(0)).cast(int)
    });
    let kept = te.reduce("kept", Axes::Ax, dims, &[("k", own)], Reducer::Sum, int, |i, k| {
        PrimExpr::select(element(&place, &i[0]).eq(&k[0]), element(extents, &k[0]), PrimExpr::i64(0))
    });
    let out = te.compute("extent", Axes::Ax, dims, int, |i| {
        PrimExpr::select(element(&added, &i[0]).eq(0), element(&kept, &i[0]), PrimExpr::i64(1))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
