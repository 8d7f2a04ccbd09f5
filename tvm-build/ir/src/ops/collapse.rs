//! Reductions to a given shape.

use super::reduce::reduce_axes;
use super::row::{arg, attr, op, tensor};
use super::show::{show_dims, show_tensor};
use super::topi::{Value, binary};
use crate::diag::Diag;
use crate::prim::{BinOp, PrimExpr};
use crate::relax::{ArgKind, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Reducer, Te};
use crate::tir::PrimFunc;

pub(super) static OPS: &[OpDef] = &[op(
    "collapse_to",
    "x reduced to a shape of as many axes, each of the extent it has in x, which is kept, or of 1, which reduces the \
     axis: by \"sum\", \"prod\", \"max\", \"min\" or \"mean\"",
    &[tensor("x"), arg("shape", ArgKind::Shape)],
    &[attr("reduction", AttrKind::Str, AttrDefault::Str("sum"))],
    infer,
    Lower::Tir("collapse_to", lower),
    Pattern::CommReduce,
)];

fn reducer(cx: &InferCx<'_>) -> Result<Reducer, Diag> {
    match cx.str("reduction")? {
        "sum" | "mean" => Ok(Reducer::Sum),
        "prod" => Ok(Reducer::Prod),
        "max" => Ok(Reducer::Max),
        "min" => Ok(Reducer::Min),
        other => Err(cx
            .fail(format!("attribute `reduction` is \"{other}\""))
            .help("it is \"sum\", \"prod\", \"max\", \"min\" or \"mean\"")),
    }
}

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    reducer(cx)?;
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
    let (reducer, mean) = cx.with_infer(|c| Ok((reducer(c)?, c.str("reduction")? == "mean")))?;
    let axes: Vec<usize> = (0..shape.len()).filter(|a| x.shape[*a] != shape[*a]).collect();
    let steps: Vec<PrimExpr> =
        x.shape.iter().zip(shape).map(|(d, o)| if o.is_int(1) { d.clone() } else { d - o.clone() + 1 }).collect();
    let mut te = Te::new();
    let name = format!("{}_red", x.name);
    let reduced = reduce_axes(&steps, &axes);
    let mut out = te.reduce(&name, Axes::Ax, shape, &reduced, reducer, x.dtype, |i, k| {
        let mut at = i.to_vec();
        for (axis, k) in axes.iter().zip(k) {
            at[*axis] = if shape[*axis].is_int(1) { k.clone() } else { &i[*axis] + k.clone() };
        }
        PrimExpr::load(x, at)
    });
    if mean {
        let count = axes.iter().fold(PrimExpr::i64(1), |n, a| n * &steps[*a]).cast(x.dtype);
        out = binary(&mut te, BinOp::Div, &out, &Value::Of(&out), &Value::Scalar(count));
    }
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
