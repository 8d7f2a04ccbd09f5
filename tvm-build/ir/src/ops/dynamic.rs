//! Slices, pads and scans whose parameters are tensors. Every index is kept in range here, whatever the tensors hold.

use super::extents::assert;
use super::row::{arg, attr, op, tensor};
use super::scatter::nest;
use super::show::{show_dims, show_tensor};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, PrimExpr};
use crate::relax::{
    ArgDef, ArgKind, AttrDef, AttrDefault, AttrKind, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo,
};
use crate::te::{Axes, Reducer, Te};
use crate::tir::{PrimFunc, Stmt};

const SCAN: &[ArgDef] = &[tensor("data"), arg("axis", ArgKind::Prim)];
const SCAN_ATTRS: &[AttrDef] = &[
    attr("exclusive", AttrKind::Bool, AttrDefault::Bool(false)),
    attr("reverse", AttrKind::Bool, AttrDefault::Bool(false)),
];

pub(super) static OPS: &[OpDef] = &[
    op(
        "dynamic_cumprod",
        "running product along an axis that is given at run time: `exclusive` leaves the element itself out, `reverse` \
         begins at the end. An axis out of range is an error at run time",
        SCAN,
        SCAN_ATTRS,
        infer_scan,
        Lower::Tir("dynamic_cumprod", |cx| lower_scan(cx, Reducer::Prod)),
        Pattern::Opaque,
    ),
    op(
        "dynamic_cumsum",
        "running sum along an axis that is given at run time: `exclusive` leaves the element itself out, `reverse` \
         begins at the end. An axis out of range is an error at run time",
        SCAN,
        SCAN_ATTRS,
        infer_scan,
        Lower::Tir("dynamic_cumsum", |cx| lower_scan(cx, Reducer::Sum)),
        Pattern::Opaque,
    ),
    op(
        "dynamic_pad",
        "x in a shape with what R.padded_extents says before and after each axis: one value (\"constant\"), or x \
         mirrored without the edge (\"reflect\"), its edge (\"replicate\"), or x wrapped around (\"circular\")",
        &[tensor("x"), tensor("before"), tensor("after"), arg("value", ArgKind::Prim), arg("shape", ArgKind::Shape)],
        &[attr("pad_mode", AttrKind::Str, AttrDefault::Str("constant"))],
        infer_pad,
        Lower::Tir("dynamic_pad", lower_pad),
        Pattern::Opaque,
    ),
    op(
        "dynamic_slice",
        "a shape of elements of x, whose indices begin and step along each axis, or each of `axes` where these are \
         given, as R.slice_ranges says; 0 for those that are not in x",
        &[tensor("x"), tensor("begin"), tensor("strides"), arg("shape", ArgKind::Shape)],
        &[attr("axes", AttrKind::OptInts, AttrDefault::None)],
        infer_slice,
        Lower::Tir("dynamic_slice", lower_slice),
        Pattern::Opaque,
    ),
];

fn infer_scan(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(1, "an integer type", DType::is_integer)?;
    let x = cx.tensor(0)?;
    if x.dims.rank() == Some(0) {
        return Err(cx.fail("`data` has no axes"));
    }
    cx.result(x.dims, x.dtype)
}

/// In the order of the elements each one comes after the one before it along every axis, so that one pass will do for
/// all of them.
fn lower_scan(cx: &LowerCx<'_>, reducer: Reducer) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let axis = cx.scalar(1)?.cast(DType::I64);
    let flag = |name: &str| cx.call.attr(name).as_bool() == Some(true);
    let (exclusive, reverse) = (flag("exclusive"), flag("reverse"));
    let rank = i64::try_from(x.shape.len()).map_err(|_| cx.fail("`data` has too many axes"))?;
    let out = Buffer::new(cx.call.op.name(), x.shape.clone(), x.dtype);
    let mut te = Te::new();
    te.block(cx.call.op.name(), Axes::Ax, &[], &[], std::slice::from_ref(&out), |_, _| {
        let inside = PrimExpr::i64(-rank).le(axis.clone()).and(axis.clone().lt(rank));
        let body = nest(&x.shape, "i", |i| {
            let chosen = |a: i64| axis.clone().eq(a).or(axis.clone().eq(a - rank));
            let counted =
                (0i64..).zip(i).fold(PrimExpr::i64(0), |sum, (a, i)| PrimExpr::select(chosen(a), i.clone(), sum));
            let turned = |a: usize, i: PrimExpr| if reverse { x.shape[a].clone() - 1 - i } else { i };
            let at: Vec<PrimExpr> = i.iter().enumerate().map(|(a, i)| turned(a, i.clone())).collect();
            let before: Vec<PrimExpr> = (0i64..)
                .zip(i.iter().enumerate())
                .map(|(n, (a, i))| turned(a, PrimExpr::select(chosen(n), i.clone() - 1, i.clone()).max(0)))
                .collect();
            let first = counted.eq(0);
            let (own, last) = (PrimExpr::load(x, at.clone()), PrimExpr::load(&out, before.clone()));
            let start = reducer.identity(x.dtype);
            let value = if exclusive {
                PrimExpr::if_then_else(first, start, reducer.combine(last, PrimExpr::load(x, before)))
            } else {
                reducer.combine(PrimExpr::if_then_else(first, start, last), own)
            };
            Stmt::store(&out, at, value)
        });
        (None, Stmt::seq([assert(inside, "the axis is out of range"), body]))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// The result, after checks of the vectors `1` and `2` and of the number of axes of the shape, argument `shape`.
fn shaped(cx: &InferCx<'_>, shape: usize) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let StructInfo::Shape(dims) = cx.info(shape)? else { return Err(cx.fail("`shape` must be a shape")) };
    for i in [1, 2] {
        cx.expect_rank(i, &cx.tensor(i)?, 1)?;
        cx.expect_dtype(i, "int64", |d| d == DType::I64)?;
    }
    if let (Some(rank), Some(to)) = (x.dims.rank(), dims.known()) {
        if rank != to.len() {
            let message = format!("`x` {} and `shape` {} differ in rank", show_tensor(&x), show_dims(to));
            return Err(cx.fail(message));
        }
        for i in [1, 2] {
            let n = cx.tensor(i)?.dims.known().and_then(|d| d.first()?.as_int());
            if n.is_some_and(|n| usize::try_from(n) != Ok(rank)) {
                return Err(cx.fail(format!("`{}` must have {rank} elements, one an axis", cx.arg_name(i))));
            }
        }
    }
    cx.result(dims, x.dtype)
}

fn infer_pad(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let mode = cx.str("pad_mode")?;
    if !matches!(mode, "constant" | "reflect" | "replicate" | "circular") {
        return Err(cx
            .fail(format!("attribute `pad_mode` is \"{mode}\""))
            .help("it is \"constant\", \"reflect\", \"replicate\" or \"circular\""));
    }
    cx.common_dtype(0, 3)?;
    shaped(cx, 4)
}

/// Element `a` of a vector with one element an axis.
fn of_axis(b: &Buffer, a: usize) -> PrimExpr {
    PrimExpr::load(b, vec![PrimExpr::i64(i64::try_from(a).unwrap_or(i64::MAX))])
}

/// What is left of an axis after cutting off pads below zero is padded: `from` is where it begins, `n` how much is left.
fn lower_pad(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, before, after, value) = (cx.buffer(0)?, cx.buffer(1)?, cx.buffer(2)?, cx.scalar(3)?);
    let mode = cx.with_infer(|c| Ok(c.str("pad_mode")?.to_string()))?;
    let mut te = Te::new();
    let out = te.compute("T_dynamic_pad", Axes::Ax, cx.out_dims()?, x.dtype, |i| {
        let mut inside = PrimExpr::bool(true);
        let mut at = Vec::with_capacity(i.len());
        for (a, (i, extent)) in i.iter().zip(&x.shape).enumerate() {
            let (before, after) = (of_axis(before, a), of_axis(after, a));
            let from = (PrimExpr::i64(0) - before.clone()).max(0);
            let n = extent.clone() + after.min(0) - from.clone();
            let own = i - before.max(0);
            let own = match mode.as_str() {
                "reflect" => {
                    let period = ((n.clone() - 1) * 2).max(1);
                    let own = own.floormod(period.clone());
                    PrimExpr::select(own.clone().lt(n), own.clone(), period - own)
                }
                "replicate" => own.max(0).min(n - 1),
                "circular" => own.floormod(n.max(1)),
                _ => {
                    inside = inside.clone().and(PrimExpr::i64(0).le(own.clone())).and(own.clone().lt(n));
                    own
                }
            };
            let own = own + from;
            inside = inside.clone().and(PrimExpr::i64(0).le(own.clone())).and(own.clone().lt(extent.clone()));
            at.push(own);
        }
        PrimExpr::if_then_else(inside, PrimExpr::load(x, at), value.cast(x.dtype))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// The axes along which the slice is not the whole axis.
fn sliced_axes(cx: &InferCx<'_>, rank: usize) -> Result<Vec<usize>, Diag> {
    cx.opt_ints("axes").map_or_else(|| Ok((0..rank).collect()), |axes| cx.axes("axis", &axes, rank))
}

fn infer_slice(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let (x, out) = (cx.tensor(0)?, shaped(cx, 3)?);
    let to = out.as_tensor().and_then(|t| t.dims.known());
    if let (Some(own), Some(to)) = (x.dims.known(), to) {
        let sliced = sliced_axes(cx, own.len())?;
        if let Some(a) = (0..own.len()).find(|a| !sliced.contains(a) && cx.differ(&own[*a], &to[*a])) {
            let message =
                format!("axis {a} is not sliced, and differs in `x` {} and `shape` {}", show_tensor(&x), show_dims(to));
            return Err(cx.fail(message));
        }
    }
    Ok(out)
}

fn lower_slice(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, begin, strides) = (cx.buffer(0)?, cx.buffer(1)?, cx.buffer(2)?);
    let sliced = cx.with_infer(|c| sliced_axes(c, x.shape.len()))?;
    let mut te = Te::new();
    let out = te.compute("T_dynamic_slice", Axes::Ax, cx.out_dims()?, x.dtype, |i| {
        let mut inside = PrimExpr::bool(true);
        let mut at = i.to_vec();
        for a in sliced {
            at[a] = of_axis(begin, a) + &i[a] * of_axis(strides, a);
            inside = inside.clone().and(PrimExpr::i64(0).le(at[a].clone())).and(at[a].clone().lt(x.shape[a].clone()));
        }
        PrimExpr::if_then_else(inside, PrimExpr::load(x, at), PrimExpr::zero(x.dtype))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
