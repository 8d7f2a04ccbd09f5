//! Ranges whose limits are tensors.

use super::extents::assert;
use super::row::{arg, op, tensor};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, Intrinsic, PrimExpr};
use crate::relax::{ArgKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::{PrimFunc, Stmt};

pub(super) static OPS: &[OpDef] = &[
    op(
        "dynamic_arange",
        "start, start + step, …: as many numbers as the shape of rank 1 says",
        &[tensor("start"), tensor("step"), arg("shape", ArgKind::Shape)],
        &[],
        infer_range,
        Lower::Tir("dynamic_arange", lower_range),
        Pattern::Opaque,
    ),
    op(
        "range_extent",
        "how many numbers start, start + step, … there are before the end, a vector of one; none when the step leads \
         away from it. A step of 0 and more than 2^40 numbers are an error at run time",
        &[tensor("start"), tensor("end"), tensor("step")],
        &[],
        infer_extent,
        Lower::Tir("range_extent", lower_extent),
        Pattern::Opaque,
    ),
];

fn scalars(cx: &InferCx<'_>, count: usize) -> Result<Option<DType>, Diag> {
    let mut dtype = None;
    for i in 0..count {
        let t = cx.tensor(i)?;
        cx.expect_rank(i, &t, 0)?;
        dtype = cx.common_dtype(0, i)?;
    }
    Ok(dtype)
}

fn infer_range(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let dtype = scalars(cx, 2)?;
    let StructInfo::Shape(dims) = cx.info(2)? else { return Err(cx.fail("`shape` must be a shape")) };
    if dims.rank().is_some_and(|r| r != 1) {
        return Err(cx.fail("`shape` must have one extent"));
    }
    cx.result(dims, dtype)
}

fn infer_extent(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    scalars(cx, 3)?;
    cx.result(Dims::Known(vec![PrimExpr::i64(1)]), Some(DType::I64))
}

/// Narrow floats are computed with as `float32`.
fn wide(dtype: DType) -> DType {
    if dtype.is_float() && dtype.bits < 32 { DType::F32 } else { dtype }
}

fn lower_range(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (start, step) = (cx.scalar(0)?, cx.scalar(1)?);
    let (dtype, mut te) = (cx.out_dtype()?, Te::new());
    let out = te.compute("T_dynamic_arange", Axes::Ax, cx.out_dims()?, dtype, |i| {
        let to = wide(dtype);
        (start.cast(to) + i[0].cast(to) * step.cast(to)).cast(dtype)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// `a` where a range goes forward, else `b`.
fn forward_of(forward: &PrimExpr, a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
    PrimExpr::select(forward.clone(), a.clone(), b.clone())
}

fn lower_extent(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (start, end, step) = (cx.scalar(0)?, cx.scalar(1)?, cx.scalar(2)?);
    let float = start.dtype().is_float();
    let to = if float { DType::F64 } else { DType::I64 };
    let [start, end, step] = [start, end, step].map(|e| e.cast(to));
    let (zero, most) = (PrimExpr::zero(to), PrimExpr::number(to, 2f64.powi(40)));
    let out = Buffer::new("extent", vec![PrimExpr::i64(1)], DType::I64);
    let mut te = Te::new();
    te.block("range_extent", Axes::Ax, &[], &[], std::slice::from_ref(&out), |_, _| {
        let still = step.clone().eq(zero.clone());
        let divisor = PrimExpr::select(still.clone(), PrimExpr::number(to, 1.0), step.clone());
        let count = if float {
            PrimExpr::call(Intrinsic::Ceil, vec![(end.clone() - start.clone()) / divisor])
        } else {
            // Rounded up; the difference of what is apart by no more than a range may have.
            zero.clone() - (start.clone() - end.clone()).floordiv(divisor)
        };
        let mut fits = count.clone().le(most.clone());
        if !float {
            // A difference that wraps has the other sign.
            let forward = step.clone().gt(zero.clone());
            let (low, high) = (forward_of(&forward, &start, &end), forward_of(&forward, &end, &start));
            fits = fits.and(low.clone().ge(high.clone()).or((high - low).gt(zero.clone())));
        }
        let count = count.max(zero).min(most).cast(DType::I64);
        let store = Stmt::store(&out, vec![PrimExpr::i64(0)], count);
        let checks = [assert(still.logical_not(), "the step of a range is 0"), assert(fits, "a range is too long")];
        (None, Stmt::seq(checks.into_iter().chain([store])))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
