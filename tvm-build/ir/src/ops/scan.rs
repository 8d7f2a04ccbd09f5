//! Running sums and products.

use super::reshape::{ravel, unravel};
use super::row::{attr, op, tensor};
use crate::arith::Analyzer;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, PrimExpr, Var};
use crate::relax::{AttrDef, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Reducer, Te};
use crate::tir::{PrimFunc, Stmt};

const ATTRS: &[AttrDef] = &[
    attr("axis", AttrKind::OptInt, AttrDefault::None),
    attr("dtype", AttrKind::DType, AttrDefault::Void),
    attr("exclusive", AttrKind::Bool, AttrDefault::Bool(false)),
];

pub(super) static OPS: &[OpDef] = &[
    op(
        "cumprod",
        "running product along an axis, or of the flattened tensor; `exclusive` leaves the element itself out",
        &[tensor("data")],
        ATTRS,
        infer,
        Lower::Tir("cumprod", |cx| lower(cx, Reducer::Prod)),
        Pattern::Opaque,
    ),
    op(
        "cumsum",
        "running sum along an axis, or of the flattened tensor; `exclusive` leaves the element itself out",
        &[tensor("data")],
        ATTRS,
        infer,
        Lower::Tir("cumsum", |cx| lower(cx, Reducer::Sum)),
        Pattern::Opaque,
    ),
];

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let dtype = cx.dtype_attr("dtype").or(x.dtype);
    let Some(axis) = cx.call.attr("axis").as_int() else {
        let dims = match x.dims.known() {
            Some(d) => {
                let all = d.iter().fold(PrimExpr::i64(1), |a, b| a * b);
                Dims::Known(vec![cx.analyzer.simplify(&all)])
            }
            None => Dims::Rank(1),
        };
        return cx.result(dims, dtype);
    };
    if let Some(rank) = x.dims.rank() {
        cx.axis("axis", axis, rank)?;
    }
    cx.result(x.dims, dtype)
}

fn lower(cx: &LowerCx<'_>, reducer: Reducer) -> Result<PrimFunc, Diag> {
    let (input, dtype) = (cx.buffer(0)?, cx.out_dtype()?);
    let exclusive = cx.call.attr("exclusive").as_bool() == Some(true);
    let mut te = Te::new();
    let (x, axis) = match cx.call.attr("axis").as_int() {
        Some(a) => (input.clone(), cx.with_infer(|c| c.axis("axis", a, input.shape.len()))?),
        None => {
            let all = input.shape.iter().fold(PrimExpr::i64(1), |a, b| a * b);
            let flat = [Analyzer::new().simplify(&all)];
            let stage = te.compute("T_reshape", Axes::Ax, &flat, input.dtype, |i| {
                PrimExpr::load(input, unravel(&ravel(i, &flat), &input.shape))
            });
            (stage, 0)
        }
    };
    let name = if reducer == Reducer::Sum { "cumsum" } else { "cumprod" };
    let out = Buffer::new(name, x.shape.clone(), dtype);
    let mut outer = x.shape.clone();
    let extent = outer.remove(axis);
    te.block(name, Axes::Ax, &outer, &[], std::slice::from_ref(&out), |i, _| {
        let k = Var::new("k", DType::I64);
        let at = |k: PrimExpr| {
            let mut index = i.to_vec();
            index.insert(axis, k);
            index
        };
        let first = k.expr().eq(0);
        let before = PrimExpr::load(&out, at(k.expr() - 1));
        let start = reducer.identity(dtype);
        let value = if exclusive {
            let last = PrimExpr::load(&x, at(k.expr() - 1)).cast(dtype);
            PrimExpr::if_then_else(first, start, reducer.combine(before, last))
        } else {
            let own = PrimExpr::load(&x, at(k.expr())).cast(dtype);
            reducer.combine(PrimExpr::if_then_else(first, start, before), own)
        };
        (None, Stmt::serial(k.clone(), extent, Stmt::store(&out, at(k.expr()), value)))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
