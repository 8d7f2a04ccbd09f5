//! Reductions over axes.

use super::row::{attr, op, tensor};
use super::topi::{Value, binary, unary};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{BinOp, Buffer, Intrinsic, PrimExpr};
use crate::relax::{AttrDef, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, ReduceAxis, Reducer, Te};
use crate::tir::PrimFunc;

const ATTRS: &[AttrDef] =
    &[attr("axis", AttrKind::OptInts, AttrDefault::None), attr("keepdims", AttrKind::Bool, AttrDefault::Bool(false))];

/// One row an op; all reduce over `axis`, or over every axis when it is None.
macro_rules! reductions {
    ($($name:literal $pattern:ident $lower:expr, $doc:literal;)*) => {
        pub(super) static OPS: &[OpDef] = &[$(
            op($name, $doc, &[tensor("x")], ATTRS, infer, Lower::Tir($name, $lower), Pattern::$pattern),
        )*];
    };
}

reductions! {
    "max" CommReduce |cx| lower(cx, Reducer::Max), "greatest element; a NaN gives NaN";
    "mean" OutEWiseFusable lower_mean, "sum divided by the number of elements";
    "min" CommReduce |cx| lower(cx, Reducer::Min), "least element; a NaN gives NaN";
    "prod" CommReduce |cx| lower(cx, Reducer::Prod), "product of the elements";
    "std" OutEWiseFusable |cx| lower_variance(cx, true), "square root of the variance";
    "sum" CommReduce |cx| lower(cx, Reducer::Sum), "sum of the elements";
    "variance" OutEWiseFusable |cx| lower_variance(cx, false), "mean of the squared distances to the mean (biased)";
}

/// The reduced axes, ascending; all when `axis` is None.
pub(super) fn reduced_axes(cx: &InferCx<'_>, rank: usize) -> Result<Vec<usize>, Diag> {
    match cx.opt_ints("axis") {
        None => Ok((0..rank).collect()),
        Some(axes) => {
            let mut out = cx.axes("axis", &axes, rank)?;
            out.sort_unstable();
            Ok(out)
        }
    }
}

/// Dimensions after reduction.
pub(super) fn reduced_dims(cx: &InferCx<'_>, dims: &Dims) -> Result<Dims, Diag> {
    let keep = cx.call.attr("keepdims").as_bool() == Some(true);
    let Some(rank) = dims.rank() else {
        let all = cx.opt_ints("axis").is_none() && !keep;
        return Ok(if all { Dims::Known(Vec::new()) } else { Dims::Unknown });
    };
    let axes = reduced_axes(cx, rank)?;
    Ok(match dims.known() {
        Some(d) => Dims::Known(
            d.iter()
                .enumerate()
                .filter(|(a, _)| keep || !axes.contains(a))
                .map(|(a, e)| if axes.contains(&a) { PrimExpr::i64(1) } else { e.clone() })
                .collect(),
        ),
        None if keep => Dims::Rank(rank),
        None if axes.len() == rank => Dims::Known(Vec::new()),
        None => Dims::Rank(rank - axes.len()),
    })
}

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    cx.result(reduced_dims(cx, &x.dims)?, x.dtype)
}

const NAMES: [&str; 16] =
    ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11", "k12", "k13", "k14", "k15"];

/// Axes of a shape to reduce over, named after their place as TOPI does.
pub(super) fn reduce_axes(shape: &[PrimExpr], axes: &[usize]) -> Vec<ReduceAxis> {
    axes.iter().map(|a| (NAMES.get(*a).copied().unwrap_or("k"), shape[*a].clone())).collect()
}

/// The index of an input element, from that of the result and the reduced one. With `keep` the result has all axes.
pub(super) fn input_index(
    rank: usize,
    axes: &[usize],
    keep: bool,
    index: &[PrimExpr],
    reduced: &[PrimExpr],
) -> Vec<PrimExpr> {
    let mut own = index.iter();
    let mut red = reduced.iter();
    (0..rank)
        .filter_map(|a| {
            if axes.contains(&a) {
                if keep {
                    own.next();
                }
                red.next().cloned()
            } else {
                own.next().cloned()
            }
        })
        .collect()
}

/// How a reduction of a buffer goes.
pub(super) struct Plan {
    pub(super) axes: Vec<usize>,
    pub(super) keep: bool,
}

impl Plan {
    pub(super) fn of(cx: &LowerCx<'_>, x: &Buffer) -> Result<Plan, Diag> {
        let axes = cx.with_infer(|c| reduced_axes(c, x.shape.len()))?;
        Ok(Plan { axes, keep: cx.call.attr("keepdims").as_bool() == Some(true) })
    }

    /// Shape of the result, with the reduced axes kept or not.
    pub(super) fn shape(&self, x: &Buffer, keep: bool) -> Vec<PrimExpr> {
        let all = x.shape.iter().enumerate();
        all.filter(|(a, _)| keep || !self.axes.contains(a))
            .map(|(a, e)| if self.axes.contains(&a) { PrimExpr::i64(1) } else { e.clone() })
            .collect()
    }

    /// Number of elements reduced to one, as a value of a type.
    pub(super) fn count(&self, x: &Buffer, dtype: DType) -> PrimExpr {
        self.axes.iter().fold(PrimExpr::i64(1), |n, a| n * &x.shape[*a]).cast(dtype)
    }

    /// The stage `<name>_red`.
    pub(super) fn stage(&self, te: &mut Te, x: &Buffer, keep: bool, reducer: Reducer) -> Buffer {
        let (name, shape) = (format!("{}_red", x.name), self.shape(x, keep));
        te.reduce(&name, Axes::Ax, &shape, &reduce_axes(&x.shape, &self.axes), reducer, x.dtype, |i, r| {
            PrimExpr::load(x, input_index(x.shape.len(), &self.axes, keep, i, r))
        })
    }
}

fn lower(cx: &LowerCx<'_>, reducer: Reducer) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let plan = Plan::of(cx, x)?;
    let mut te = Te::new();
    let out = plan.stage(&mut te, x, plan.keep, reducer);
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn mean_stages(te: &mut Te, plan: &Plan, x: &Buffer, keep: bool) -> Buffer {
    let sum = plan.stage(te, x, keep, Reducer::Sum);
    binary(te, BinOp::Div, &sum, &Value::Of(&sum), &Value::Scalar(plan.count(x, x.dtype)))
}

fn lower_mean(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let plan = Plan::of(cx, x)?;
    let mut te = Te::new();
    let out = mean_stages(&mut te, &plan, x, plan.keep);
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn lower_variance(cx: &LowerCx<'_>, root: bool) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let plan = Plan::of(cx, x)?;
    let mut te = Te::new();
    let mean = mean_stages(&mut te, &plan, x, true);
    let distance = binary(&mut te, BinOp::Sub, x, &Value::Of(x), &Value::Of(&mean));
    let square = binary(&mut te, BinOp::Mul, x, &Value::Of(&distance), &Value::Of(&distance));
    let mut out = mean_stages(&mut te, &plan, &square, plan.keep);
    if root {
        out = unary(&mut te, Intrinsic::Sqrt, &out);
    }
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
