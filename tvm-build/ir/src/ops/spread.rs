//! Elements repeated: broadcast, repeat, tile; and reversed: flip.

use super::cx::load_broadcast;
use super::reshape::{ravel, unravel};
use super::row::{arg, attr, op, required, tensor};
use super::show::{show_dims, show_tensor};
use crate::diag::Diag;
use crate::prim::PrimExpr;
use crate::relax::{ArgKind, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::PrimFunc;

pub(super) static OPS: &[OpDef] = &[
    op(
        "broadcast_to",
        "x spread to a shape: axes of extent 1 are repeated, leading axes added",
        &[tensor("x"), arg("shape", ArgKind::Shape)],
        &[],
        infer_broadcast,
        Lower::Tir("broadcast_to", lower_broadcast),
        Pattern::Broadcast,
    ),
    op(
        "flip",
        "x with the order along an axis reversed",
        &[tensor("data")],
        &[required("axis", AttrKind::Int)],
        infer_flip,
        Lower::Tir("flip", lower_flip),
        Pattern::Injective,
    ),
    op(
        "repeat",
        "each element repeated along an axis; of the flattened tensor when axis is None",
        &[tensor("data")],
        &[required("repeats", AttrKind::Int), attr("axis", AttrKind::OptInt, AttrDefault::None)],
        infer_repeat,
        Lower::Tir("repeat", lower_repeat),
        Pattern::Injective,
    ),
    op(
        "tile",
        "the whole tensor repeated along each axis",
        &[tensor("data")],
        &[required("repeats", AttrKind::Ints)],
        infer_tile,
        Lower::Tir("tile", lower_tile),
        Pattern::Injective,
    ),
];

fn infer_broadcast(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let StructInfo::Shape(target) = cx.info(1)? else { return cx.result(Dims::Unknown, x.dtype) };
    if let (Some(from), Some(to)) = (x.dims.known(), target.known()) {
        let skip = to.len().checked_sub(from.len());
        let misfit = skip.is_none_or(|skip| from.iter().zip(&to[skip..]).any(|(a, b)| !a.is_int(1) && cx.differ(a, b)));
        if misfit {
            let message = format!("`x` {} does not spread to {}", show_tensor(&x), show_dims(to));
            return Err(cx
                .fail(message)
                .help("each axis must have extent 1 or that of the shape, counted from the last"));
        }
    }
    cx.result(target, x.dtype)
}

fn lower_broadcast(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, dims) = (cx.buffer(0)?, cx.out_dims()?);
    let mut te = Te::new();
    let out = te.compute("T_broadcast_to", Axes::Ax, dims, x.dtype, |i| load_broadcast(x, dims, i));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn infer_flip(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    if let Some(rank) = x.dims.rank() {
        cx.axis("axis", cx.int("axis")?, rank)?;
    }
    cx.result(x.dims, x.dtype)
}

fn lower_flip(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let axis = cx.with_infer(|c| c.axis("axis", c.int("axis")?, x.shape.len()))?;
    let mut te = Te::new();
    let out = te.compute("T_reverse_sequence", Axes::Ax, &x.shape, x.dtype, |i| {
        let mut at = i.to_vec();
        at[axis] = &x.shape[axis] - 1 - &i[axis];
        PrimExpr::load(x, at)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// The number of repeats and the axis.
fn repeats(cx: &InferCx<'_>, rank: usize) -> Result<(i64, Option<usize>), Diag> {
    let n = cx.int("repeats")?;
    if n < 0 {
        return Err(cx.fail(format!("attribute `repeats` is negative: {n}")));
    }
    let axis = cx.call.attr("axis").as_int().map(|a| cx.axis("axis", a, rank)).transpose()?;
    Ok((n, axis))
}

fn infer_repeat(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let flat = cx.call.attr("axis").as_int().is_none();
    let Some(rank) = x.dims.rank() else {
        return cx.result(if flat { Dims::Rank(1) } else { Dims::Unknown }, x.dtype);
    };
    let (n, axis) = repeats(cx, rank)?;
    let Some(d) = x.dims.known() else {
        return cx.result(Dims::Rank(if flat { 1 } else { rank }), x.dtype);
    };
    let dims = match axis {
        Some(a) => {
            let mut dims = d.to_vec();
            dims[a] = cx.analyzer.simplify(&(&d[a] * n));
            dims
        }
        None => {
            let all = d.iter().fold(PrimExpr::i64(1), |a, b| a * b);
            vec![cx.analyzer.simplify(&(all * n))]
        }
    };
    cx.result(Dims::Known(dims), x.dtype)
}

fn lower_repeat(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, dims) = (cx.buffer(0)?, cx.out_dims()?);
    let (n, axis) = cx.with_infer(|c| repeats(c, x.shape.len()))?;
    // No element is read when there are no repeats.
    let n = n.max(1);
    let mut te = Te::new();
    let (from, axis) = match axis {
        Some(a) => (x.clone(), a),
        None => {
            let all = x.shape.iter().fold(PrimExpr::i64(1), |a, b| a * b);
            let flat = [crate::arith::Analyzer::new().simplify(&all)];
            let flattened = te.compute("T_reshape", Axes::Ax, &flat, x.dtype, |i| {
                PrimExpr::load(x, unravel(&ravel(i, &flat), &x.shape))
            });
            (flattened, 0)
        }
    };
    let out = te.compute("T_repeat", Axes::Ax, dims, x.dtype, |i| {
        let mut at = i.to_vec();
        at[axis] = i[axis].clone().floordiv(n);
        PrimExpr::load(&from, at)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn infer_tile(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let repeats = cx.ints("repeats")?;
    if let Some(bad) = repeats.iter().find(|r| **r < 0) {
        return Err(cx.fail(format!("attribute `repeats` holds the negative {bad}")));
    }
    let Some(rank) = x.dims.rank() else { return cx.result(Dims::Unknown, x.dtype) };
    let out = rank.max(repeats.len());
    let Some(d) = x.dims.known() else { return cx.result(Dims::Rank(out), x.dtype) };
    let dims = (0..out).map(|a| {
        let own = (a + rank).checked_sub(out).map_or_else(|| PrimExpr::i64(1), |at| d[at].clone());
        let times = (a + repeats.len()).checked_sub(out).map_or(1, |at| repeats[at]);
        cx.analyzer.simplify(&(own * times))
    });
    cx.result(Dims::Known(dims.collect()), x.dtype)
}

fn lower_tile(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, dims) = (cx.buffer(0)?, cx.out_dims()?);
    let skip = dims.len() - x.shape.len();
    // Of an empty result no element is read.
    let empty = dims.iter().any(|d| d.is_int(0));
    let mut te = Te::new();
    let out = te.compute("T_tile", Axes::Ax, dims, x.dtype, |i| {
        if empty {
            return PrimExpr::zero(x.dtype);
        }
        PrimExpr::load(x, i[skip..].iter().zip(&x.shape).map(|(i, d)| i.clone().floormod(d)).collect())
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
