//! Element-wise ops with parameters.

use super::row::{arg, op, required, tensor};
use super::unary::any;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Intrinsic, PrimExpr, PrimKind};
use crate::relax::{ArgKind, AttrKind, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::PrimFunc;

pub(super) static OPS: &[OpDef] = &[
    op(
        "astype",
        "x converted: floats to integers truncate, out-of-range values saturate; to bool is x != 0",
        &[tensor("x")],
        &[required("dtype", AttrKind::DType)],
        infer_astype,
        Lower::Tir("cast", lower_astype),
        Pattern::ElemWise,
    ),
    op(
        "bitcast",
        "the bits of x as elements of another type of as many bits; a bool is 0 or 1 of 8 bits",
        &[tensor("x")],
        &[required("dtype", AttrKind::DType)],
        infer_bitcast,
        Lower::Tir("bitcast", lower_bitcast),
        Pattern::ElemWise,
    ),
    op(
        "clip",
        "x limited to min .. max: max(min(x, max), min); a NaN stays",
        &[tensor("x"), arg("min", ArgKind::Prim), arg("max", ArgKind::Prim)],
        &[],
        any,
        Lower::Tir("tir_clip", lower_clip),
        Pattern::ElemWise,
    ),
];

fn infer_astype(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let dtype = cx.dtype_attr("dtype").ok_or_else(|| cx.fail("attribute `dtype` must be a data type"))?;
    cx.result(cx.tensor(0)?.dims, Some(dtype))
}

fn lower_astype(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, dtype) = (cx.buffer(0)?, cx.out_dtype()?);
    let mut te = Te::new();
    let out = te.compute("compute", Axes::I, cx.out_dims()?, dtype, |i| PrimExpr::load(x, i.to_vec()).cast(dtype));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn infer_bitcast(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let dtype = cx.dtype_attr("dtype").ok_or_else(|| cx.fail("attribute `dtype` must be a data type"))?;
    let x = cx.tensor(0)?;
    let bits = |d: DType| if d.is_bool() { 8 } else { d.bits };
    if dtype.is_bool() || dtype.bits < 8 && !dtype.is_packed() || x.dtype.is_some_and(|d| bits(d) != dtype.bits) {
        let own = x.dtype.map_or("unknown".to_owned(), |d| d.to_string());
        return Err(cx
            .fail(format!("elements of {own} have no bits of {dtype}"))
            .help("use R.astype to convert values"));
    }
    cx.result(x.dims, Some(dtype))
}

fn lower_bitcast(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, dtype) = (cx.buffer(0)?, cx.out_dtype()?);
    let mut te = Te::new();
    let out = te.compute("bitcast", Axes::I, cx.out_dims()?, dtype, |i| {
        let x = PrimExpr::load(x, i.to_vec());
        let x = if x.dtype().is_bool() { x.cast(DType::U8) } else { x };
        if x.dtype() == dtype { x } else { PrimExpr::new(PrimKind::Call(Intrinsic::Reinterpret, vec![x]), dtype) }
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn lower_clip(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let (low, high) = (cx.scalar(1)?.cast(x.dtype), cx.scalar(2)?.cast(x.dtype));
    let mut te = Te::new();
    let out =
        te.compute("compute", Axes::I, cx.out_dims()?, x.dtype, |i| PrimExpr::load(x, i.to_vec()).min(high).max(low));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
