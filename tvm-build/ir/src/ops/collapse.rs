//! Reductions to a given shape.

use super::reduce::reduce_axes;
use super::row::{arg, attr, op, tensor};
use super::show::{show_dims, show_tensor};
use super::topi::{Value, binary};
use crate::diag::Diag;
use crate::prim::{BinOp, Intrinsic, PrimExpr};
use crate::relax::{ArgKind, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Reducer, Te};
use crate::tir::PrimFunc;

pub(super) static OPS: &[OpDef] = &[op(
    "collapse_to",
    "x reduced to a shape of as many axes, each of the extent it has in x, which is kept, or of 1, which reduces the \
     axis: by \"sum\", \"prod\", \"max\", \"min\", \"mean\" or \"log_sum_exp\"",
    &[tensor("x"), arg("shape", ArgKind::Shape)],
    &[attr("reduction", AttrKind::Str, AttrDefault::Str("sum"))],
    infer,
    Lower::Tir("collapse_to", lower),
    Pattern::CommReduce,
)];

fn reducer(cx: &InferCx<'_>) -> Result<Reducer, Diag> {
    match cx.str("reduction")? {
        "sum" | "mean" | "log_sum_exp" => Ok(Reducer::Sum),
        "prod" => Ok(Reducer::Prod),
        "max" => Ok(Reducer::Max),
        "min" => Ok(Reducer::Min),
        other => Err(cx
            .fail(format!("attribute `reduction` is \"{other}\""))
            .help("it is \"sum\", \"prod\", \"max\", \"min\", \"mean\" or \"log_sum_exp\"")),
    }
}

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    reducer(cx)?;
    if cx.str("reduction")? == "log_sum_exp" {
        cx.expect_dtype(0, "a float type", |d| d.is_float())?;
    }
    let x = cx.tensor(0)?;
    let StructInfo::Shape(dims) = cx.info(1)? else { return Err(cx.fail("`shape` must be a shape")) };
    if let (Some(own), Some(to)) = (x.dims.known(), dims.known()) {
        let fits = |(a, b): (&PrimExpr, &PrimExpr)| b.is_int(1) || b.as_int().is_none() || !cx.differ(a, b);
        if own.len() != to.len() || !own.iter().zip(to).all(fits) {
            let message = format!("`x` {} does not collapse to {}", show_tensor(&x), show_dims(to));
            return Err(cx.fail(message).help("each extent of the shape is that of `x`, or 1"));
        }
    }
    let dims = if dims.rank().is_none() { x.dims.rank().map_or(Dims::Unknown, Dims::Rank) } else { dims };
    cx.result(dims, x.dtype)
}

/// Along an axis of extent `d` that the shape has as `o`, each result takes `d - o + 1` elements: one where the axis
/// is kept, all where `o` is 1.
fn lower(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let shape = cx.out_dims()?;
    let (reducer, reduction) = cx.with_infer(|c| Ok((reducer(c)?, c.str("reduction")?.to_string())))?;
    let axes: Vec<usize> = (0..shape.len()).filter(|a| x.shape[*a] != shape[*a]).collect();
    let taken = |(d, o): (&PrimExpr, &PrimExpr)| if o.is_int(1) { d.clone() } else { d - o.clone() + 1 };
    let taken: Vec<PrimExpr> = x.shape.iter().zip(shape).map(taken).collect();
    let reduced = reduce_axes(&taken, &axes);
    let place = |i: &[PrimExpr], k: &[PrimExpr]| {
        let mut at = i.to_vec();
        for (axis, k) in axes.iter().zip(k) {
            at[*axis] = if shape[*axis].is_int(1) { k.clone() } else { &i[*axis] + k.clone() };
        }
        PrimExpr::load(x, at)
    };
    let mut te = Te::new();
    let name = format!("{}_red", x.name);
    let stage = |te: &mut Te, reducer: Reducer, f: &dyn Fn(&[PrimExpr], PrimExpr) -> PrimExpr| {
        te.reduce(&name, Axes::Ax, shape, &reduced, reducer, x.dtype, |i, k| f(i, place(i, k)))
    };
    let out = match reduction.as_str() {
        "mean" => {
            let sum = stage(&mut te, reducer, &|_, x| x);
            let count = axes.iter().fold(PrimExpr::i64(1), |n, a| n * &taken[*a]).cast(x.dtype);
            binary(&mut te, BinOp::Div, &sum, &Value::Of(&sum), &Value::Scalar(count))
        }
        "log_sum_exp" => {
            let max = stage(&mut te, Reducer::Max, &|_, x| x);
            // Infinities are not subtracted from infinities.
            let shift = |i: &[PrimExpr]| {
                let max = PrimExpr::load(&max, i.to_vec());
                let finite = PrimExpr::call(Intrinsic::IsFinite, vec![max.clone()]);
                PrimExpr::select(finite, max, PrimExpr::zero(x.dtype))
            };
            let sum = stage(&mut te, reducer, &|i, x| PrimExpr::call(Intrinsic::Exp, vec![x - shift(i)]));
            te.compute("compute", Axes::Ax, shape, x.dtype, |i| {
                PrimExpr::call(Intrinsic::Log, vec![PrimExpr::load(&sum, i.to_vec())]) + shift(i)
            })
        }
        _ => stage(&mut te, reducer, &|_, x| x),
    };
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
