//! Ranges of axes.

use super::row::{arg, attr, op, optional, tensor};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::PrimExpr;
use crate::relax::{ArgKind, AttrDefault, AttrKind, Dims, InferCx, Leaf, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::PrimFunc;

pub(super) static OPS: &[OpDef] = &[op(
    "strided_slice",
    "elements begin, begin + stride, … before end of the given axes; negative bounds count from the end, bounds out of \
     range are clamped, negative strides go backwards",
    &[
        tensor("x"),
        arg("axes", ArgKind::Any),
        arg("begin", ArgKind::Any),
        arg("end", ArgKind::Any),
        optional("strides", ArgKind::Any),
    ],
    &[attr("assume_inbound", AttrKind::Bool, AttrDefault::Bool(false))],
    infer,
    Lower::Tir("strided_slice", lower),
    Pattern::Injective,
)];

/// The scalars of a tuple or shape argument.
fn values(cx: &InferCx<'_>, i: usize) -> Result<Vec<PrimExpr>, Diag> {
    let name = cx.arg_name(i);
    match cx.call.args.get(i) {
        Some(Leaf::Tuple(items)) => items
            .iter()
            .map(|l| match l {
                Leaf::Prim(e) => Ok(e.cast(DType::I64)),
                _ => Err(cx.fail(format!("`{name}` must hold integers"))),
            })
            .collect(),
        Some(Leaf::Shape(dims)) => Ok(dims.clone()),
        _ => Err(cx.fail(format!("`{name}` must be a tuple of integers"))),
    }
}

/// What is taken of one axis.
struct Range {
    axis: usize,
    begin: PrimExpr,
    stride: i64,
    extent: PrimExpr,
}

/// `None` where the rank is not known.
fn ranges(cx: &InferCx<'_>, dims: &[PrimExpr]) -> Result<Vec<Range>, Diag> {
    let axes: Option<Vec<i64>> = values(cx, 1)?.iter().map(PrimExpr::as_int).collect();
    let axes = axes.ok_or_else(|| cx.fail("`axes` must hold fixed integers"))?;
    let (begin, end) = (values(cx, 2)?, values(cx, 3)?);
    let strides: Option<Vec<i64>> = match cx.is_given(4) {
        true => values(cx, 4)?.iter().map(PrimExpr::as_int).collect(),
        false => Some(vec![1; axes.len()]),
    };
    let strides = strides.ok_or_else(|| cx.fail("`strides` must hold fixed integers"))?;
    if begin.len() != axes.len() || end.len() != axes.len() || strides.len() != axes.len() {
        let lists = [("begin", begin.len()), ("end", end.len()), ("strides", strides.len())];
        let (name, n) = lists.into_iter().find(|(_, n)| *n != axes.len()).unwrap_or(("axes", 0));
        let message = format!("`{name}` has length {n}, `axes` has length {}", axes.len());
        return Err(cx.fail(message).help("give one entry for each axis"));
    }
    let inbound = cx.call.attr("assume_inbound").as_bool() == Some(true);
    let fixed = cx.axes("axis", &axes, dims.len())?;
    let mut out = Vec::with_capacity(fixed.len());
    for (i, axis) in fixed.into_iter().enumerate() {
        // Further than any axis is long: one element.
        let stride = strides[i].clamp(-(1 << 40), 1 << 40);
        if stride == 0 {
            return Err(cx.fail("a stride is 0"));
        }
        let n = &dims[axis];
        let clamp = |e: &PrimExpr| bound(cx, e, n, stride, inbound);
        let (from, to) = (clamp(&begin[i]), clamp(&end[i]));
        let (span, step) = match stride {
            s if s < 0 => (from.clone() - to, -s),
            // A begin past the end needs no clamp here: a negative number of elements is none.
            s if !inbound && begin[i].as_int().is_some_and(|v| v >= 0) => (to - &begin[i], s),
            s => (to - from.clone(), s),
        };
        let count = (span + (step - 1)).floordiv(step);
        let count = if inbound { count } else { count.max(0) };
        let extent = cx.analyzer.simplify(&count);
        out.push(Range { axis, begin: cx.analyzer.simplify(&from), stride, extent });
    }
    Ok(out)
}

/// A bound counted from the start and clamped: to `0 ..= n` going forward, `-1 ..= n - 1` going backward.
fn bound(cx: &InferCx<'_>, e: &PrimExpr, n: &PrimExpr, stride: i64, inbound: bool) -> PrimExpr {
    let e = match e.as_int() {
        Some(v) if v < 0 => {
            // -v may be as far as the least integer, "to the very beginning".
            match n.as_int() {
                Some(n) => PrimExpr::i64(v.saturating_add(n).max(-1)),
                None if v < -(1 << 40) => PrimExpr::i64(-1),
                None => n + v,
            }
        }
        Some(v) if v > 1 << 40 => n.clone(),
        Some(_) => e.clone(),
        None if cx.analyzer.prove(&PrimExpr::i64(0).le(e)) || inbound => e.clone(),
        None if is_extent(e, n) => e.clone(),
        None => PrimExpr::select(e.clone().lt(PrimExpr::i64(0)), e + n, e.clone()),
    };
    if inbound {
        return e;
    }
    let (low, high) = if stride < 0 { (-1, n - 1) } else { (0, n.clone()) };
    let upper = if is_extent(&e, n) && stride > 0 { e } else { e.min(high) };
    let clamped = match upper.as_int() {
        Some(v) => PrimExpr::i64(v.max(low)),
        // A literal begin at or above the lower bound needs no clamp from below: extents are not negative.
        None if not_below(&upper) => upper,
        None => upper.max(low),
    };
    cx.analyzer.simplify(&clamped)
}

fn is_extent(e: &PrimExpr, n: &PrimExpr) -> bool {
    e == n
}

/// Whether it is a variable (an extent), or the least of extents and literals that are not negative.
fn not_below(e: &PrimExpr) -> bool {
    match e.kind() {
        crate::prim::PrimKind::Var(_) => true,
        crate::prim::PrimKind::Int(v) => *v >= 0,
        crate::prim::PrimKind::Binary(crate::prim::BinOp::Min, a, b) => not_below(a) && not_below(b),
        _ => false,
    }
}

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let Some(d) = x.dims.known() else {
        return cx.result(x.dims.rank().map_or(Dims::Unknown, Dims::Rank), x.dtype);
    };
    let mut dims = d.to_vec();
    for r in ranges(cx, d)? {
        dims[r.axis] = r.extent;
    }
    cx.result(Dims::Known(dims), x.dtype)
}

fn lower(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let ranges = cx.with_infer(|c| ranges(c, &x.shape))?;
    let fixed = x.shape.iter().all(|d| d.as_int().is_some());
    let name = if fixed { "T_strided_slice_with_axes" } else { "T_dynamic_strided_slice_with_axes" };
    let mut te = Te::new();
    let out = te.compute(name, Axes::Ax, cx.out_dims()?, x.dtype, |i| {
        let mut at = i.to_vec();
        for r in ranges {
            at[r.axis] = &i[r.axis] * r.stride + r.begin;
        }
        PrimExpr::load(x, at)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
