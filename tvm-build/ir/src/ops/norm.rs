//! Normalizations over axes of each sample.

use super::reduce::{input_index, reduce_axes};
use super::row::{attr, op, required, tensor};
use super::show::show_tensor;
use super::topi::reshape;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, Intrinsic, PrimExpr};
use crate::relax::{
    AttrDef, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo, TensorInfo,
};
use crate::te::{Axes, Reducer, Te};
use crate::tir::PrimFunc;

const EPSILON: AttrDef = attr("epsilon", AttrKind::Float, AttrDefault::Float(1e-5));
const CENTER: AttrDef = attr("center", AttrKind::Bool, AttrDefault::Bool(true));
const SCALE: AttrDef = attr("scale", AttrKind::Bool, AttrDefault::Bool(true));
const AXES: AttrDef = required("axes", AttrKind::Ints);
const CHANNEL: AttrDef = required("channel_axis", AttrKind::Int);

pub(super) static OPS: &[OpDef] = &[
    op(
        "nn.group_norm",
        "channels in groups, each normalized over its channels and the given axes, then scaled and shifted by channel",
        &[tensor("data"), tensor("gamma"), tensor("beta")],
        &[required("num_groups", AttrKind::Int), CHANNEL, AXES, EPSILON, CENTER, SCALE],
        infer_group,
        Lower::Tir("group_norm", lower_group),
        Pattern::OutEWiseFusable,
    ),
    op(
        "nn.instance_norm",
        "each channel normalized over the given axes, then scaled and shifted by channel",
        &[tensor("data"), tensor("gamma"), tensor("beta")],
        &[CHANNEL, AXES, EPSILON, CENTER, SCALE],
        infer_instance,
        Lower::Tir("instance_norm", lower_instance),
        Pattern::OutEWiseFusable,
    ),
    op(
        "nn.layer_norm",
        "(data - mean) / sqrt(variance + epsilon) * gamma + beta, with mean and variance over the given axes",
        &[tensor("data"), tensor("gamma"), tensor("beta")],
        &[AXES, EPSILON, CENTER, SCALE],
        |cx| infer_layer(cx, &[1, 2]),
        Lower::Tir("layer_norm", lower_layer),
        Pattern::OutEWiseFusable,
    ),
    op(
        "nn.rms_norm",
        "data / sqrt(mean of squares + epsilon) * weight, with the mean over the given axes",
        &[tensor("data"), tensor("weight")],
        &[AXES, EPSILON],
        |cx| infer_layer(cx, &[1]),
        Lower::Tir("rms_norm", lower_rms),
        Pattern::OutEWiseFusable,
    ),
];

/// Checks that parameters have the extents of the given axes of data.
fn check_params(cx: &InferCx<'_>, x: &TensorInfo, axes: &[usize], params: &[usize]) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, "floating point", DType::is_float)?;
    for p in params {
        cx.common_dtype(0, *p)?;
        let t = cx.tensor(*p)?;
        cx.expect_rank(*p, &t, axes.len())?;
        if let (Some(d), Some(own)) = (x.dims.known(), t.dims.known()) {
            if axes.iter().zip(own).any(|(a, e)| cx.differ(&d[*a], e)) {
                let (name, p, q) = (cx.arg_name(*p), show_tensor(&t), show_tensor(x));
                return Err(cx.fail(format!("`{name}` {p} does not fit axes {axes:?} of `data` {q}")));
            }
        }
    }
    cx.result(x.dims.clone(), x.dtype)
}

fn norm_axes(cx: &InferCx<'_>, rank: usize) -> Result<Vec<usize>, Diag> {
    let axes = cx.ints("axes")?;
    if axes.is_empty() {
        return Err(cx.fail("attribute `axes` is empty"));
    }
    cx.axes("axis", &axes, rank)
}

fn infer_layer(cx: &InferCx<'_>, params: &[usize]) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let Some(rank) = x.dims.rank() else { return cx.result(Dims::Unknown, x.dtype) };
    check_params(cx, &x, &norm_axes(cx, rank)?, params)
}

/// The channel axis and the axes normalized over, without it.
fn channel_axes(cx: &InferCx<'_>, rank: usize) -> Result<(usize, Vec<usize>), Diag> {
    let channel = cx.axis("channel_axis", cx.int("channel_axis")?, rank)?;
    let axes = norm_axes(cx, rank)?;
    if axes.contains(&channel) {
        return Err(cx.fail(format!("`axes` {axes:?} must not hold the channel axis {channel}")));
    }
    Ok((channel, axes))
}

fn infer_instance(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let Some(rank) = x.dims.rank() else { return cx.result(Dims::Unknown, x.dtype) };
    check_params(cx, &x, &[channel_axes(cx, rank)?.0], &[1, 2])
}

fn infer_group(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let groups = cx.int("num_groups")?;
    let Some(rank) = x.dims.rank() else { return cx.result(Dims::Unknown, x.dtype) };
    let (channel, _) = channel_axes(cx, rank)?;
    let channels = x.dims.known().and_then(|d| d[channel].as_int());
    if groups < 1 || channels.is_some_and(|c| c % groups != 0) {
        let message = format!("axis {channel} of `data` {} does not split into {groups} groups", show_tensor(&x));
        return Err(cx.fail(message));
    }
    check_params(cx, &x, &[channel], &[1, 2])
}

fn epsilon(cx: &LowerCx<'_>, dtype: DType) -> Result<PrimExpr, Diag> {
    let v = cx.call.attr("epsilon").as_float().ok_or_else(|| cx.fail("`epsilon` must be a number"))?;
    Ok(PrimExpr::float(dtype, v))
}

/// The type sums are kept in.
fn sum_dtype(dtype: DType) -> DType {
    if dtype.bits < 32 { DType::F32 } else { dtype }
}

fn flag(cx: &LowerCx<'_>, name: &str) -> bool {
    cx.call.attr(name).as_bool() == Some(true)
}

/// What all mean-and-variance normalizations share: `x` over `axes`, then the parameters at `at` of an index.
/// The mean is taken first and the variance of the distances to it, so large means lose no digits.
fn normalized(
    te: &mut Te,
    cx: &LowerCx<'_>,
    stage: &str,
    (x, axes): (&Buffer, &[usize]),
    params: (&Buffer, &Buffer),
    at: impl Fn(&[PrimExpr]) -> Vec<PrimExpr>,
) -> Result<Buffer, Diag> {
    let (rank, sum) = (x.shape.len(), sum_dtype(x.dtype));
    let kept: Vec<usize> = (0..rank).filter(|a| !axes.contains(a)).collect();
    let outer: Vec<PrimExpr> = kept.iter().map(|a| x.shape[*a].clone()).collect();
    let reduced = reduce_axes(&x.shape, axes);
    let count = axes.iter().fold(PrimExpr::i64(1), |n, a| n * &x.shape[*a]).cast(sum);
    let element = |i: &[PrimExpr], r: &[PrimExpr]| {
        let mut order: Vec<(usize, &PrimExpr)> = axes.iter().copied().zip(r).collect();
        order.sort_by_key(|(a, _)| *a);
        let sorted: Vec<PrimExpr> = order.iter().map(|(_, e)| (*e).clone()).collect();
        PrimExpr::load(x, input_index(rank, axes, false, i, &sorted)).cast(sum)
    };
    let name = &x.name;
    let total = te.reduce(&format!("{name}_sum"), Axes::Ax, &outer, &reduced, Reducer::Sum, sum, element);
    let mean = te.compute(&format!("{name}_mean"), Axes::Ax, &outer, sum, |i| {
        PrimExpr::load(&total, i.to_vec()) / count.clone()
    });
    let var = te.reduce(&format!("{name}_var_sum"), Axes::Ax, &outer, &reduced, Reducer::Sum, sum, |i, r| {
        let distance = element(i, r) - PrimExpr::load(&mean, i.to_vec());
        distance.clone() * distance
    });
    let (epsilon, center, scale) = (epsilon(cx, sum)?, flag(cx, "center"), flag(cx, "scale"));
    Ok(te.compute(stage, Axes::Ax, &x.shape, x.dtype, |i| {
        let group: Vec<PrimExpr> = kept.iter().map(|a| i[*a].clone()).collect();
        let distance = PrimExpr::load(x, i.to_vec()).cast(sum) - PrimExpr::load(&mean, group.clone());
        let variance = PrimExpr::load(&var, group) / count.clone() + epsilon;
        let mut out = (distance * PrimExpr::call(Intrinsic::Rsqrt, vec![variance])).cast(x.dtype);
        if scale {
            out = out * PrimExpr::load(params.0, at(i));
        }
        if center {
            out = out + PrimExpr::load(params.1, at(i));
        }
        out
    }))
}

fn lower_layer(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let axes = cx.with_infer(|c| norm_axes(c, x.shape.len()))?;
    let mut te = Te::new();
    let at = |i: &[PrimExpr]| axes.iter().map(|a| i[*a].clone()).collect();
    let out = normalized(&mut te, cx, "T_layer_norm", (x, &axes), (cx.buffer(1)?, cx.buffer(2)?), at)?;
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn lower_instance(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let (channel, axes) = cx.with_infer(|c| channel_axes(c, x.shape.len()))?;
    let mut te = Te::new();
    let at = |i: &[PrimExpr]| vec![i[channel].clone()];
    let out = normalized(&mut te, cx, "T_instance_norm", (x, &axes), (cx.buffer(1)?, cx.buffer(2)?), at)?;
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn lower_group(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let (channel, axes) = cx.with_infer(|c| channel_axes(c, x.shape.len()))?;
    let groups = cx.with_infer(|c| c.int("num_groups"))?;
    let each = crate::arith::Analyzer::new().simplify(&x.shape[channel].clone().floordiv(groups));
    let split = |dims: &[PrimExpr], at: usize| {
        let mut out = dims.to_vec();
        out.splice(at..=at, [PrimExpr::i64(groups), each.clone()]);
        out
    };
    let mut te = Te::new();
    let grouped = reshape(&mut te, x, &split(&x.shape, channel));
    let gamma = reshape(&mut te, cx.buffer(1)?, &split(&cx.buffer(1)?.shape, 0));
    let beta = reshape(&mut te, cx.buffer(2)?, &split(&cx.buffer(2)?.shape, 0));
    let over: Vec<usize> =
        std::iter::once(channel + 1).chain(axes.iter().map(|a| if *a > channel { a + 1 } else { *a })).collect();
    let at = |i: &[PrimExpr]| vec![i[channel].clone(), i[channel + 1].clone()];
    let out = normalized(&mut te, cx, "T_group_norm", (&grouped, &over), (&gamma, &beta), at)?;
    let out = reshape(&mut te, &out, &x.shape);
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn lower_rms(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, weight) = (cx.buffer(0)?, cx.buffer(1)?);
    let axes = cx.with_infer(|c| norm_axes(c, x.shape.len()))?;
    let (rank, sum) = (x.shape.len(), sum_dtype(x.dtype));
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    let kept: Vec<usize> = (0..rank).filter(|a| !axes.contains(a)).collect();
    let outer: Vec<PrimExpr> = kept.iter().map(|a| x.shape[*a].clone()).collect();
    let count = axes.iter().fold(PrimExpr::i64(1), |n, a| n * &x.shape[*a]).cast(sum);
    let epsilon = epsilon(cx, sum)?;
    let mut te = Te::new();
    let cast = |te: &mut Te, b: &Buffer, to: DType| {
        te.compute("T_cast", Axes::Ax, &b.shape, to, |i| PrimExpr::load(b, i.to_vec()).cast(to))
    };
    let wide = cast(&mut te, x, sum);
    let square = te.compute("T_multiply", Axes::Ax, &x.shape, sum, |i| {
        let v = PrimExpr::load(&wide, i.to_vec());
        v.clone() * v
    });
    let total =
        te.reduce("T_multiply_red", Axes::Ax, &outer, &reduce_axes(&x.shape, &sorted), Reducer::Sum, sum, |i, r| {
            PrimExpr::load(&square, input_index(rank, &sorted, false, i, r))
        });
    let factor = te.compute("rsqrt", Axes::Ax, &outer, sum, |i| {
        PrimExpr::call(Intrinsic::Rsqrt, vec![PrimExpr::load(&total, i.to_vec()) / count + epsilon])
    });
    let wide_weight = cast(&mut te, weight, sum);
    let normed = te.compute("T_rms_norm", Axes::Ax, &x.shape, sum, |i| {
        let group = kept.iter().map(|a| i[*a].clone()).collect();
        let at = axes.iter().map(|a| i[*a].clone()).collect();
        PrimExpr::load(&factor, group) * PrimExpr::load(&wide, i.to_vec()) * PrimExpr::load(&wide_weight, at)
    });
    let out = cast(&mut te, &normed, x.dtype);
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
