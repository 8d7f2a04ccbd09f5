//! Counts of sequences in sequences.

use super::row::{attr, op, tensor};
use super::show::show_tensor;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::PrimExpr;
use crate::relax::{AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Reducer, Te};
use crate::tir::PrimFunc;

pub(super) static OPS: &[OpDef] = &[op(
    "ngram_count",
    "how often each row of `grams` occurs in each row of x, as float32: its elements follow each other with up to \
     `max_skip` others between them, always as many",
    &[tensor("x"), tensor("grams")],
    &[attr("max_skip", AttrKind::Int, AttrDefault::Int(0))],
    infer,
    Lower::Tir("ngram_count", lower),
    Pattern::Opaque,
)];

fn max_skip(cx: &InferCx<'_>) -> Result<i64, Diag> {
    let skip = cx.int("max_skip")?;
    if (0..1 << 31).contains(&skip) { Ok(skip) } else { Err(cx.fail(format!("attribute `max_skip` cannot be {skip}"))) }
}

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    max_skip(cx)?;
    cx.expect_dtype(0, "an integer type", DType::is_integer)?;
    cx.common_dtype(0, 1)?;
    let (x, grams) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.expect_rank(0, &x, 2)?;
    cx.expect_rank(1, &grams, 2)?;
    let (Some([rows, _]), Some([count, _])) = (x.dims.known(), grams.dims.known()) else {
        return cx.result(Dims::Rank(2), Some(DType::F32));
    };
    cx.result(Dims::Known(vec![rows.clone(), count.clone()]), Some(DType::F32))
}

fn lower(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, grams) = (cx.buffer(0)?, cx.buffer(1)?);
    let length = grams.shape[1].as_int().filter(|n| (1..=64).contains(n));
    let info = cx.with_infer(|c| c.tensor(1))?;
    let length = length
        .ok_or_else(|| cx.fail(format!("the rows of `grams` {} must have 1 to 64 elements", show_tensor(&info))))?;
    // One element has none between.
    let skips = if length == 1 { 0 } else { cx.with_infer(max_skip)? };
    let width = x.shape[1].clone();
    let reduced = [("skip", PrimExpr::i64(skips + 1)), ("at", width.clone())];
    let mut te = Te::new();
    let out = te.reduce("ngram_count", Axes::Ax, cx.out_dims()?, &reduced, Reducer::Sum, DType::F32, |i, k| {
        let place = |j: i64| k[1].clone() + (k[0].clone() + 1) * j;
        let same = |j: i64| {
            let element = PrimExpr::load(x, vec![i[0].clone(), place(j)]);
            element.eq(PrimExpr::load(grams, vec![i[1].clone(), PrimExpr::i64(j)]))
        };
        let all = (1..length).fold(same(0), |all, j| all.and(same(j)));
        let inside = place(length - 1).lt(width.clone());
        PrimExpr::if_then_else(inside, all.cast(DType::F32), PrimExpr::zero(DType::F32))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
