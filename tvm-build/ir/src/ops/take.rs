//! Elements chosen by index.

use super::row::{arg, attr, op, required, tensor};
use super::show::{show_expr, show_tensor};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{BinOp, Buffer, PrimExpr};
use crate::relax::{ArgKind, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::PrimFunc;

pub(super) static OPS: &[OpDef] = &[
    op(
        "gather_elements",
        "data at the index given for each place of the result, along an axis; negative indices count from the end",
        &[tensor("data"), tensor("indices")],
        &[attr("axis", AttrKind::Int, AttrDefault::Int(0))],
        infer_elements,
        Lower::Tir("gather", lower_elements),
        Pattern::Opaque,
    ),
    op(
        "gather_nd",
        "slices of data at index tuples, the last axis of `indices`; negative indices count from the end",
        &[tensor("data"), tensor("indices")],
        &[attr("batch_dims", AttrKind::Int, AttrDefault::Int(0))],
        infer_nd,
        Lower::Tir("te_gather_nd", lower_nd),
        Pattern::Opaque,
    ),
    op(
        "one_hot",
        "on_value at the index along a new axis, off_value elsewhere",
        &[tensor("indices"), arg("on_value", ArgKind::Prim), arg("off_value", ArgKind::Prim)],
        &[required("depth", AttrKind::Int), attr("axis", AttrKind::Int, AttrDefault::Int(-1))],
        infer_one_hot,
        Lower::Tir("one_hot", lower_one_hot),
        Pattern::Injective,
    ),
    op(
        "take",
        "slices of x along an axis by index; indices out of range: \"fast\" does not look (what is compiled is checked before, \
         an index out of range is an error and one below zero counts from the end), \"clip\" takes the nearest, \"wrap\" takes \
         the remainder",
        &[tensor("x"), arg("indices", ArgKind::Operand)],
        &[attr("axis", AttrKind::OptInt, AttrDefault::None), attr("mode", AttrKind::Str, AttrDefault::Str("fast"))],
        infer_take,
        Lower::Tir("take", lower_take),
        Pattern::Opaque,
    ),
];

fn integral(d: DType) -> bool {
    d.is_integer()
}

fn take_axis(cx: &InferCx<'_>, rank: usize) -> Result<usize, Diag> {
    match cx.call.attr("axis").as_int() {
        Some(a) => cx.axis("axis", a, rank),
        None if rank == 1 => Ok(0),
        None => {
            Err(cx.fail(format!("`axis` must be given for rank {rank}")).help("flatten it first: R.reshape(x, [-1])"))
        }
    }
}

fn infer_take(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(1, "an integer type", integral)?;
    let mode = cx.str("mode")?;
    if !matches!(mode, "fast" | "clip" | "wrap") {
        return Err(cx.fail(format!("attribute `mode` is \"{mode}\"")).help("it is \"fast\", \"clip\" or \"wrap\""));
    }
    let (x, at) = (cx.tensor(0)?, cx.tensor(1)?);
    let Some(rank) = x.dims.rank() else { return cx.result(Dims::Unknown, x.dtype) };
    let axis = take_axis(cx, rank)?;
    let (Some(d), Some(own)) = (x.dims.known(), at.dims.known()) else {
        return cx.result(at.dims.rank().map_or(Dims::Unknown, |n| Dims::Rank(rank + n - 1)), x.dtype);
    };
    let dims = d[..axis].iter().chain(own).chain(&d[axis + 1..]).cloned().collect();
    cx.result(Dims::Known(dims), x.dtype)
}

fn lower_take(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let axis = cx.with_infer(|c| take_axis(c, x.shape.len()))?;
    let mode = cx.with_infer(|c| Ok(c.str("mode")?.to_string()))?;
    let indices = cx.inputs.get(1).and_then(|b| b.first());
    let literal = if indices.is_none() { Some(cx.scalar(1)?) } else { None };
    let own = indices.map_or(0, |b| b.shape.len());
    let mut te = Te::new();
    let out = te.compute("T_take", Axes::Ax, cx.out_dims()?, x.dtype, |i| {
        let chosen = match (indices, literal) {
            (Some(b), _) => PrimExpr::load(b, i[axis..axis + own].to_vec()),
            (None, Some(e)) => e,
            (None, None) => PrimExpr::i64(0),
        };
        let extent = x.shape[axis].clone();
        let chosen = match mode.as_str() {
            "clip" => PrimExpr::i64(0).max(chosen.cast(DType::I64)).min(extent - 1),
            "wrap" => {
                let rest = |a: PrimExpr| PrimExpr::binary(BinOp::Mod, a, extent.clone());
                rest(rest(chosen.cast(DType::I64)) + extent.clone())
            }
            _ => chosen,
        };
        let at = i[..axis].iter().cloned().chain(std::iter::once(chosen)).chain(i[axis + own..].iter().cloned());
        PrimExpr::load(x, at.collect())
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// An index where negative values count from the end.
pub(super) fn from_end(index: PrimExpr, extent: &PrimExpr) -> PrimExpr {
    if index.dtype().is_uint() {
        return index.cast(DType::I64);
    }
    let index = index.cast(DType::I64);
    PrimExpr::select(index.clone().lt(PrimExpr::i64(0)), index.clone() + extent, index)
}

fn infer_elements(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(1, "an integer type", integral)?;
    let (x, at) = (cx.tensor(0)?, cx.tensor(1)?);
    if let (Some(a), Some(b)) = (x.dims.rank(), at.dims.rank()) {
        let axis = cx.axis("axis", cx.int("axis")?, a)?;
        if a != b {
            let message = format!("`data` {} and `indices` {} differ in rank", show_tensor(&x), show_tensor(&at));
            return Err(cx.fail(message));
        }
        if let (Some(d), Some(own)) = (x.dims.known(), at.dims.known()) {
            let larger = |a: &usize| matches!((own[*a].as_int(), d[*a].as_int()), (Some(i), Some(n)) if i > n);
            if let Some(bad) = (0..a).filter(|a| *a != axis).find(larger) {
                let (p, q) = (show_tensor(&at), show_tensor(&x));
                return Err(cx.fail(format!("`indices` {p} is larger than `data` {q} in axis {bad}")));
            }
        }
    }
    cx.result(at.dims, x.dtype)
}

fn lower_elements(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, indices) = (cx.buffer(0)?, cx.buffer(1)?);
    let axis = cx.with_infer(|c| c.axis("axis", c.int("axis")?, x.shape.len()))?;
    let mut te = Te::new();
    let out = te.compute("T_gather", Axes::Ax, cx.out_dims()?, x.dtype, |i| {
        let mut at = i.to_vec();
        at[axis] = from_end(PrimExpr::load(indices, i.to_vec()), &x.shape[axis]);
        PrimExpr::load(x, at)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// Batch axes and length of an index tuple.
fn nd_parts(cx: &InferCx<'_>, rank: usize, indices: &[PrimExpr]) -> Result<(usize, usize), Diag> {
    let batch = cx.int("batch_dims")?;
    let batch = usize::try_from(batch).ok().filter(|b| *b < indices.len() && *b <= rank);
    let batch = batch.ok_or_else(|| cx.fail("`batch_dims` is out of range for the ranks of `data` and `indices`"))?;
    let tuple = indices.last().and_then(PrimExpr::as_int).and_then(|n| usize::try_from(n).ok());
    match tuple {
        Some(n) if batch + n <= rank => Ok((batch, n)),
        Some(n) => {
            Err(cx.fail(format!("`indices` holds tuples of {n}, `data` has rank {rank} after {batch} batch axes")))
        }
        None => Err(cx.fail("the last axis of `indices` must have a fixed extent")),
    }
}

fn infer_nd(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(1, "an integer type", integral)?;
    let (x, at) = (cx.tensor(0)?, cx.tensor(1)?);
    if at.dims.rank() == Some(0) {
        return Err(cx.fail("`indices` must have at least one axis"));
    }
    let (Some(d), Some(own)) = (x.dims.known(), at.dims.known()) else { return cx.result(Dims::Unknown, x.dtype) };
    let (batch, n) = nd_parts(cx, d.len(), own)?;
    if let Some(a) = (0..batch).find(|a| cx.differ(&d[*a], &own[*a])) {
        let (p, q) = (show_expr(&d[a]), show_expr(&own[a]));
        return Err(cx.fail(format!("batch axis {a} is {p} in `data` and {q} in `indices`")));
    }
    let dims = own[..own.len() - 1].iter().chain(&d[batch + n..]).cloned().collect();
    cx.result(Dims::Known(dims), x.dtype)
}

fn lower_nd(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, indices) = (cx.buffer(0)?, cx.buffer(1)?);
    let (batch, n) = cx.with_infer(|c| nd_parts(c, x.shape.len(), &indices.shape))?;
    let lead = indices.shape.len() - 1;
    let mut te = Te::new();
    let out = te.compute("T_gather_nd", Axes::Ax, cx.out_dims()?, x.dtype, |i| {
        let tuple = (0i64..).zip(&x.shape[batch..batch + n]).map(|(k, extent)| {
            let mut at = i[..lead].to_vec();
            at.push(PrimExpr::i64(k));
            from_end(PrimExpr::load(indices, at), extent)
        });
        let at = i[..batch].iter().cloned().chain(tuple).chain(i[lead..].iter().cloned());
        PrimExpr::load(x, at.collect())
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn infer_one_hot(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, "an integer type", integral)?;
    let at = cx.tensor(0)?;
    let dtype = cx.common_dtype(1, 2)?;
    let depth = cx.int("depth")?;
    if depth < 1 {
        return Err(cx.fail(format!("attribute `depth` must be positive, it is {depth}")));
    }
    let Some(rank) = at.dims.rank() else { return cx.result(Dims::Unknown, dtype) };
    let axis = cx.axis("axis", cx.int("axis")?, rank + 1)?;
    let Some(d) = at.dims.known() else { return cx.result(Dims::Rank(rank + 1), dtype) };
    let mut dims = d.to_vec();
    dims.insert(axis, PrimExpr::i64(depth));
    cx.result(Dims::Known(dims), dtype)
}

fn lower_one_hot(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let indices: &Buffer = cx.buffer(0)?;
    let (on, off) = (cx.scalar(1)?, cx.scalar(2)?);
    let dims = cx.out_dims()?;
    let axis = cx.with_infer(|c| c.axis("axis", c.int("axis")?, dims.len()))?;
    let mut te = Te::new();
    let out = te.compute("T_one_hot", Axes::Ax, dims, cx.out_dtype()?, |i| {
        let mut at = i.to_vec();
        let place = at.remove(axis);
        PrimExpr::select(PrimExpr::load(indices, at).cast(DType::I64).eq(place), on, off)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
