//! Matrix products.

use super::cx::load_broadcast;
use super::row::{attr, op, optional, tensor};
use super::show::{show_expr, show_tensor};
use crate::diag::Diag;
use crate::prim::{Buffer, PrimExpr};
use crate::relax::build::BindingBuilder;
use crate::relax::{
    ArgKind, AttrDefault, AttrKind, Dims, InferCx, Leaf, Lower, LowerCx, OpDef, Pattern, RewriteCx, StructInfo,
};
use crate::te::{Axes, Reducer, Te};
use crate::tir::PrimFunc;

pub(super) static OPS: &[OpDef] = &[
    op(
        "linear",
        "data @ weight.T + bias, of a weight of shape (out, in)",
        &[tensor("data"), tensor("weight"), optional("bias", ArgKind::Tensor)],
        &[attr("out_dtype", AttrKind::DType, AttrDefault::Void)],
        infer_linear,
        Lower::Ops(lower_linear),
        Pattern::Opaque,
    ),
    op(
        "matmul",
        "matrix product of the last two axes; leading axes broadcast; a vector is a row on the left, a column on the right",
        &[tensor("x1"), tensor("x2")],
        &[attr("out_dtype", AttrKind::DType, AttrDefault::Void)],
        infer,
        Lower::Tir("matmul", lower),
        Pattern::OutEWiseFusable,
    ),
    op(
        "outer",
        "x1[i] * x2[j] of two vectors",
        &[tensor("x1"), tensor("x2")],
        &[],
        infer_outer,
        Lower::Tir("outer", lower_outer),
        Pattern::Injective,
    ),
];

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let dtype = match cx.dtype_attr("out_dtype") {
        Some(d) => Some(d),
        None => cx.common_dtype(0, 1)?,
    };
    for (i, t) in [(0, &a), (1, &b)] {
        if t.dims.rank() == Some(0) {
            return Err(cx.fail(format!("`{}` must have at least one axis, it is a scalar", cx.arg_name(i))));
        }
    }
    let (Some(ra), Some(rb)) = (a.dims.rank(), b.dims.rank()) else { return cx.result(Dims::Unknown, dtype) };
    let rank = ra.max(rb).max(2) - usize::from(ra == 1) - usize::from(rb == 1);
    let (Some(da), Some(db)) = (a.dims.known(), b.dims.known()) else { return cx.result(Dims::Rank(rank), dtype) };
    let (ka, kb) = (&da[ra - 1], &db[rb.saturating_sub(2)]);
    if cx.differ(ka, kb) {
        let message = format!(
            "`x1` {} and `x2` {} do not fit: the last axis of `x1` is {}, the {} axis of `x2` is {}",
            show_tensor(&a),
            show_tensor(&b),
            show_expr(ka),
            if rb == 1 { "only" } else { "second last" },
            show_expr(kb)
        );
        let diag = cx.fail(message);
        let transposed = rb > 1 && !cx.differ(ka, &db[rb - 1]);
        return Err(if transposed { diag.help("transpose `x2`: R.matmul(x1, R.permute_dims(x2))") } else { diag });
    }
    let lead = |d: &[PrimExpr]| Dims::Known(d[..d.len().saturating_sub(2)].to_vec());
    let batch = cx.broadcast_dims(&lead(da), &lead(db)).map_err(|(x, y)| {
        cx.fail(format!(
            "the leading axes of `x1` {} and `x2` {} do not broadcast: {} against {}",
            show_tensor(&a),
            show_tensor(&b),
            show_expr(&x),
            show_expr(&y)
        ))
    })?;
    let Dims::Known(mut out) = batch else { return cx.result(Dims::Rank(rank), dtype) };
    if ra > 1 {
        out.push(da[ra - 2].clone());
    }
    if rb > 1 {
        out.push(db[rb - 1].clone());
    }
    cx.result(Dims::Known(out), dtype)
}

/// Emits the calls `linear` stands for.
fn linear(builder: &mut BindingBuilder, args: &[Leaf], out_dtype: &crate::attrs::AttrValue) -> Result<Leaf, Diag> {
    let [data, weight, bias] = args else {
        return Err(Diag::error(builder.span, "R.linear: three arguments expected"));
    };
    let one = matches!(weight.info(), Some(StructInfo::Tensor(t)) if t.dims.rank() == Some(1));
    let weight = if one { weight.clone() } else { builder.call("permute_dims", vec![weight.clone()], &[])? };
    let product = builder.call("matmul", vec![data.clone(), weight], &[("out_dtype", out_dtype.clone())])?;
    match bias {
        Leaf::Absent => Ok(product),
        b => builder.call("add", vec![product, b.clone()], &[]),
    }
}

fn infer_linear(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let (data, weight) = (cx.tensor(0)?, cx.tensor(1)?);
    if let (Some([.., k]), Some([out, own])) = (data.dims.known(), weight.dims.known()) {
        if cx.differ(k, own) {
            let (a, b) = (show_tensor(&data), show_tensor(&weight));
            let diag = cx.fail(format!(
                "`data` {a} and `weight` {b} do not fit: the last axis of `data` is {}, the last axis of `weight` is {}",
                show_expr(k),
                show_expr(own)
            ));
            let transposed = !cx.differ(k, out);
            return Err(if transposed { diag.help("transpose `weight`: R.permute_dims(weight)") } else { diag });
        }
        if let (true, Some([bias])) = (cx.is_given(2), cx.tensor(2).ok().as_ref().and_then(|t| t.dims.known())) {
            if cx.differ(bias, out) && !bias.is_int(1) {
                let (b, o) = (show_expr(bias), show_expr(out));
                return Err(cx.fail(format!("`bias` has {b} elements, `weight` {} gives {o}", show_tensor(&weight))));
            }
        }
    }
    let mut builder = BindingBuilder { analyzer: cx.analyzer.clone(), span: cx.call.span, ..BindingBuilder::new() };
    let result = linear(&mut builder, &cx.call.args, cx.call.attr("out_dtype"))
        .map_err(|d| Diag { message: format!("R.linear is permute_dims, matmul, add: {}", d.message), ..d })?;
    result.info().ok_or_else(|| cx.fail("has no result"))
}

fn lower_linear(cx: &mut RewriteCx<'_>) -> Result<Leaf, Diag> {
    linear(cx.builder, &cx.call.args, cx.call.attr("out_dtype"))
}

fn lower(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (a, b) = (cx.buffer(0)?, cx.buffer(1)?);
    let (dims, dtype) = (cx.out_dims()?, cx.out_dtype()?);
    let (ra, rb) = (a.shape.len(), b.shape.len());
    let k = a.shape.last().ok_or_else(|| cx.fail("`x1` has no axes"))?.clone();
    let mut te = Te::new();
    let out = te.reduce("matmul", Axes::I, dims, &[("k", k)], Reducer::Sum, dtype, |i, r| {
        let batch = i.len() - usize::from(ra > 1) - usize::from(rb > 1);
        let k = &r[0];
        let mut left = i[..batch].to_vec();
        let mut right = left.clone();
        let mut at = batch;
        if ra > 1 {
            left.push(i[at].clone());
            at += 1;
        }
        left.push(k.clone());
        right.push(k.clone());
        if rb > 1 {
            right.push(i[at].clone());
        }
        operand(a, &dims[..batch], left).cast(dtype) * operand(b, &dims[..batch], right).cast(dtype)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// An element: leading indices broadcast, the last two (or one) as they are.
fn operand(b: &Buffer, batch: &[PrimExpr], index: Vec<PrimExpr>) -> PrimExpr {
    let own = index.len() - batch.len();
    let tail = b.shape.len().saturating_sub(own);
    let mut out = batch.to_vec();
    out.extend_from_slice(&b.shape[tail..]);
    load_broadcast(b, &out, &index)
}

fn infer_outer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let dtype = cx.common_dtype(0, 1)?;
    for (i, t) in [(0, &a), (1, &b)] {
        if t.dims.rank().is_some_and(|rank| rank != 1) {
            let message = format!("`{}` must be a vector, it is {}", cx.arg_name(i), show_tensor(t));
            return Err(cx.fail(message).help("flatten it: R.flatten(x)"));
        }
    }
    match (a.dims.known(), b.dims.known()) {
        (Some([n]), Some([m])) => cx.result(Dims::Known(vec![n.clone(), m.clone()]), dtype),
        _ => cx.result(Dims::Rank(2), dtype),
    }
}

fn lower_outer(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (a, b) = (cx.buffer(0)?, cx.buffer(1)?);
    let mut te = Te::new();
    let out = te.compute("outer", Axes::Named(&["i", "j"]), cx.out_dims()?, cx.out_dtype()?, |i| {
        PrimExpr::load(a, vec![i[0].clone()]) * PrimExpr::load(b, vec![i[1].clone()])
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
