//! Pools: the greatest or mean element of a sliding window.

use super::row::{attr, op, tensor};
use super::window::{Window, layout, lowered_layout, pad_stage, pads_of, prepare, same_layout};
use crate::arith::Analyzer;
use crate::diag::Diag;
use crate::prim::{BinOp, PrimExpr};
use crate::relax::{AttrDef, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, ReduceAxis, Reducer, Te, min_value};
use crate::tir::PrimFunc;

const fn attrs(layout: &'static str, include: bool) -> [AttrDef; 8] {
    const ONE: AttrDefault = AttrDefault::Ints(&[1]);
    [
        attr("pool_size", AttrKind::Ints, ONE),
        attr("strides", AttrKind::Ints, ONE),
        attr("dilation", AttrKind::Ints, ONE),
        attr("padding", AttrKind::Ints, AttrDefault::Ints(&[0])),
        attr("ceil_mode", AttrKind::Bool, AttrDefault::Bool(false)),
        attr("count_include_pad", AttrKind::Bool, AttrDefault::Bool(include)),
        attr("layout", AttrKind::Str, AttrDefault::Str(layout)),
        attr("out_layout", AttrKind::Str, AttrDefault::Str("")),
    ]
}

static MAX1: [AttrDef; 8] = attrs("NCW", false);
static MAX2: [AttrDef; 8] = attrs("NCHW", false);
static MAX3: [AttrDef; 8] = attrs("NCDHW", false);
static AVG1: [AttrDef; 8] = attrs("NCW", true);
static AVG2: [AttrDef; 8] = attrs("NCHW", false);
static AVG3: [AttrDef; 8] = attrs("NCDHW", true);

macro_rules! pools {
    ($($name:literal $hint:literal $dims:literal $attrs:ident $lower:ident $doc:literal;)*) => {
        pub(super) static OPS: &[OpDef] = &[$(
            op($name, $doc, &[tensor("data")], &$attrs, |cx| infer(cx, $dims), Lower::Tir($hint, |cx| $lower(cx, $dims)), Pattern::OutEWiseFusable)
                .prepared(|c| prepare(c, $dims, "layout")),
        )*];
    };
}

pools! {
    "nn.avg_pool1d" "avg_pool1d" 1 AVG1 lower_avg "mean of a window along one spatial axis";
    "nn.avg_pool2d" "avg_pool2d" 2 AVG2 lower_avg "mean of a window along two spatial axes";
    "nn.avg_pool3d" "avg_pool3d" 3 AVG3 lower_avg "mean of a window along three spatial axes";
    "nn.max_pool1d" "max_pool1d" 1 MAX1 lower_max "greatest element of a window along one spatial axis";
    "nn.max_pool2d" "max_pool2d" 2 MAX2 lower_max "greatest element of a window along two spatial axes";
    "nn.max_pool3d" "max_pool3d" 3 MAX3 lower_max "greatest element of a window along three spatial axes";
}

fn kernel(cx: &InferCx<'_>, dims: usize) -> Result<Vec<i64>, Diag> {
    let k = cx.ints("pool_size")?;
    if k.len() != dims || k.iter().any(|v| *v < 1) {
        return Err(cx.fail(format!("attribute `pool_size` must be {dims} positive integers, it is {k:?}")));
    }
    Ok(k)
}

fn ceil_mode(cx: &InferCx<'_>) -> bool {
    cx.call.attr("ceil_mode").as_bool() == Some(true)
}

fn infer(cx: &InferCx<'_>, dims: usize) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    cx.expect_rank(0, &x, dims + 2)?;
    let data = layout(cx, "layout", 'N', 'C', dims)?;
    same_layout(cx, "layout")?;
    let window = Window::of(cx, dims)?;
    let kernel: Vec<PrimExpr> = kernel(cx, dims)?.into_iter().map(PrimExpr::i64).collect();
    let Some(xd) = x.dims.known() else { return cx.result(Dims::Rank(dims + 2), x.dtype) };
    let spatial = window.out_dims(cx, &data.spatial_of(xd), &kernel, ceil_mode(cx))?;
    let out = data.arrange(xd[data.outer].clone(), xd[data.channel].clone(), &spatial);
    cx.result(Dims::Known(out), x.dtype)
}

const REDUCED: [&str; 3] = ["rv0", "rv1", "rv2"];

/// The window stage over the padded input.
fn window_stage(
    te: &mut Te,
    cx: &LowerCx<'_>,
    dims: usize,
    (name, reducer, fill): (&str, Reducer, PrimExpr),
) -> Result<(Window, crate::prim::Buffer), Diag> {
    let x = cx.buffer(0)?;
    let data = lowered_layout(cx, "layout", 'N', 'C', dims)?;
    let mut window = cx.with_infer(|c| Window::of(c, dims))?;
    let kernel = cx.with_infer(|c| kernel(c, dims))?;
    if cx.with_infer(|c| Ok(ceil_mode(c)))? {
        // The last window may reach past the padding.
        window.after.iter_mut().zip(&window.strides).for_each(|(a, s)| *a += s - 1);
    }
    let padded = if window.before.iter().chain(&window.after).all(|p| *p == 0) {
        x.clone()
    } else {
        {
            let pads = (&pads_of(&data, &window.before)[..], &pads_of(&data, &window.after)[..]);
            pad_stage(te, "pad_temp", x, pads, &fill, Axes::Ax)
        }
    };
    let reduced: Vec<ReduceAxis> = REDUCED.into_iter().zip(kernel.iter().map(|k| PrimExpr::i64(*k))).collect();
    if name == "pool_max" {
        te.annotate("schedule_rule", "meta_schedule.pool_max");
    }
    let out = te.reduce(name, Axes::Ax, cx.out_dims()?, &reduced, reducer, x.dtype, |i, r| {
        let mut at = i.to_vec();
        for (d, axis) in data.spatial.iter().enumerate() {
            at[*axis] = &i[*axis] * window.strides[d] + &r[d] * window.dilation[d];
        }
        PrimExpr::load(&padded, at)
    });
    Ok((window, out))
}

fn lower_max(cx: &LowerCx<'_>, dims: usize) -> Result<PrimFunc, Diag> {
    let mut te = Te::new();
    let (_, out) = window_stage(&mut te, cx, dims, ("pool_max", Reducer::MaxFinite, min_value(cx.buffer(0)?.dtype)))?;
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn lower_avg(cx: &LowerCx<'_>, dims: usize) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let mut te = Te::new();
    let (window, sum) = window_stage(&mut te, cx, dims, ("pool_sum", Reducer::Sum, PrimExpr::zero(x.dtype)))?;
    let data = lowered_layout(cx, "layout", 'N', 'C', dims)?;
    let kernel = cx.with_infer(|c| kernel(c, dims))?;
    let include = cx.call.attr("count_include_pad").as_bool() == Some(true);
    let analyzer = Analyzer::new();
    te.annotate("schedule_rule", "meta_schedule.pool_avg");
    let out = te.compute("pool_avg", Axes::Ax, cx.out_dims()?, x.dtype, |i| {
        // How many elements of the window count: those inside the input, or inside input and padding.
        let mut count = PrimExpr::i64(1);
        for (d, axis) in data.spatial.iter().enumerate() {
            let dilation = window.dilation[d];
            let start = &i[*axis] * window.strides[d] - window.before[d];
            let last = start.clone() + (kernel[d] - 1) * dilation;
            let edge = if include { &x.shape[*axis] + (window.after[d] - 1) } else { &x.shape[*axis] - 1 };
            let last = last.min(analyzer.simplify(&edge));
            let first = if include {
                start
            } else {
                let skipped = trunc_div(PrimExpr::i64(dilation - 1) - start.clone(), dilation).max(0);
                start + skipped * dilation
            };
            count = count * (trunc_div(last - first, dilation) + 1);
        }
        let count = analyzer.simplify(&count);
        let count = if include { count } else { count.max(1) };
        PrimExpr::load(&sum, i.to_vec()) / count.cast(x.dtype)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn trunc_div(a: PrimExpr, b: i64) -> PrimExpr {
    PrimExpr::binary(BinOp::Div, a, PrimExpr::i64(b))
}
