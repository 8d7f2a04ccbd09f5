//! Choice between tensors, and where the greatest and least elements are.

use super::cx::load_broadcast;
use super::reduce::{Plan, input_index, reduce_axes, reduced_dims};
use super::reshape::ravel;
use super::row::{attr, op, tensor};
use super::show::show_expr;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::name::Name;
use crate::prim::{Buffer, CmpOp, PrimExpr, Var};
use crate::relax::{AttrDef, AttrDefault, AttrKind, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te, highest, lowest};
use crate::tir::{LetStmt, PrimFunc, Stmt};

const ATTRS: &[AttrDef] =
    &[attr("axis", AttrKind::OptInt, AttrDefault::None), attr("keepdims", AttrKind::Bool, AttrDefault::Bool(false))];

pub(super) static OPS: &[OpDef] = &[
    op(
        "argmax",
        "index along an axis (or of the flattened tensor) of the greatest element, the first of equals",
        &[tensor("x")],
        ATTRS,
        infer_arg,
        Lower::Tir("argmax", |cx| lower_arg(cx, CmpOp::Gt)),
        Pattern::OutEWiseFusable,
    ),
    op(
        "argmin",
        "index along an axis (or of the flattened tensor) of the least element, the first of equals",
        &[tensor("x")],
        ATTRS,
        infer_arg,
        Lower::Tir("argmin", |cx| lower_arg(cx, CmpOp::Lt)),
        Pattern::OutEWiseFusable,
    ),
    op(
        "where",
        "x1 where the condition holds, else x2; all three broadcast",
        &[tensor("condition"), tensor("x1"), tensor("x2")],
        &[],
        infer_where,
        Lower::Tir("where", lower_where),
        Pattern::Broadcast,
    ),
];

fn infer_where(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, "bool", DType::is_bool)?;
    let dtype = cx.common_dtype(1, 2)?;
    let values = cx.broadcast(1, 2)?;
    let cond = cx.tensor(0)?.dims;
    let dims = cx.broadcast_dims(&cond, &values).map_err(|(a, b)| {
        cx.fail(format!(
            "`condition` does not broadcast with `x1` and `x2`: {} against {}",
            show_expr(&a),
            show_expr(&b)
        ))
    })?;
    cx.result(dims, dtype)
}

fn lower_where(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (cond, a, b) = (cx.buffer(0)?, cx.buffer(1)?, cx.buffer(2)?);
    let dims = cx.out_dims()?;
    let mut te = Te::new();
    let out = te.compute("T_where", Axes::Ax, dims, a.dtype, |i| {
        let holds = PrimExpr::i64(0).lt(load_broadcast(cond, dims, i).cast(DType::I64));
        PrimExpr::select(holds, load_broadcast(a, dims, i), load_broadcast(b, dims, i))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn infer_arg(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    if x.dims.known().is_some_and(|d| d.iter().any(|e| e.is_int(0))) {
        return Err(cx.fail("`x` holds no elements"));
    }
    cx.result(reduced_dims(cx, &x.dims)?, Some(DType::I64))
}

fn lower_arg(cx: &LowerCx<'_>, better: CmpOp) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let plan = Plan::of(cx, x)?;
    let (dims, name) = (cx.out_dims()?, format!("{}_red", x.name));
    let temp = format!("{name}_temp");
    let best_index = Buffer::new(format!("{temp}_v0"), dims.to_vec(), DType::I64);
    let best = Buffer::new(format!("{temp}_v1"), dims.to_vec(), x.dtype);
    let extents: Vec<PrimExpr> = plan.axes.iter().map(|a| x.shape[*a].clone()).collect();
    let mut te = Te::new();
    let outputs = [best_index.clone(), best.clone()];
    te.block(&temp, Axes::Ax, dims, &reduce_axes(&x.shape, &plan.axes), &outputs, |i, r| {
        let at = |b: &Buffer| PrimExpr::load(b, i.to_vec());
        // An index above all others: the first element replaces it even when its value is the start value.
        let start = if better == CmpOp::Gt { lowest(x.dtype) } else { highest(x.dtype) };
        let init = Stmt::seq([
            Stmt::store(&best_index, i.to_vec(), PrimExpr::i64(i64::MAX)),
            Stmt::store(&best, i.to_vec(), start),
        ]);
        let value = PrimExpr::load(x, input_index(x.shape.len(), &plan.axes, plan.keep, i, r));
        let index = ravel(r, &extents);
        let wins = PrimExpr::cmp(better, at(&best), value.clone());
        let ties = at(&best).eq(value.clone()).and(at(&best_index).lt(index.clone()));
        let chosen_index = PrimExpr::select(wins.clone().or(ties), at(&best_index), index);
        let chosen = PrimExpr::select(wins, at(&best), value);
        let body = two_lets([(&best_index, chosen_index), (&best, chosen)], i);
        (Some(init), body)
    });
    let out = te.compute(&name, Axes::Ax, dims, DType::I64, |i| PrimExpr::load(&best_index, i.to_vec()));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// Both values computed, then both stored.
fn two_lets(parts: [(&Buffer, PrimExpr); 2], index: &[PrimExpr]) -> Stmt {
    let vars: Vec<Var> = parts.iter().map(|(b, e)| Var::new(Name::from(format!("v_{}", b.name)), e.dtype())).collect();
    let stores = parts.iter().zip(&vars).map(|((b, _), v)| Stmt::store(b, index.to_vec(), v.expr()));
    let body = Stmt::seq(stores);
    parts
        .into_iter()
        .zip(vars)
        .rev()
        .fold(body, |body, ((_, value), var)| Stmt::Let(Box::new(LetStmt { var, value, body })))
}
