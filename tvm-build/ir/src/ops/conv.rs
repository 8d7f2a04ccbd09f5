//! Convolutions over one to three spatial axes, in any layout, with groups.

use super::row::{attr, op, tensor};
use super::show::{show_expr, show_tensor};
use super::window::{Window, layout, lowered_layout, pad_stage, pads_of, prepare, same_layout};
use crate::diag::Diag;
use crate::prim::PrimExpr;
use crate::relax::{ArgDef, AttrDef, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, ReduceAxis, Reducer, Te};
use crate::tir::PrimFunc;

const ARGS: &[ArgDef] = &[tensor("data"), tensor("weight")];

const fn attrs(strides: AttrDefault, pads: AttrDefault, data: &'static str, kernel: &'static str) -> [AttrDef; 8] {
    [
        attr("strides", AttrKind::Ints, strides),
        attr("padding", AttrKind::Ints, pads),
        attr("dilation", AttrKind::Ints, strides),
        attr("groups", AttrKind::Int, AttrDefault::Int(1)),
        attr("data_layout", AttrKind::Str, AttrDefault::Str(data)),
        attr("kernel_layout", AttrKind::Str, AttrDefault::Str(kernel)),
        attr("out_layout", AttrKind::Str, AttrDefault::Str("")),
        attr("out_dtype", AttrKind::DType, AttrDefault::Void),
    ]
}

static ATTRS1: [AttrDef; 8] = attrs(AttrDefault::Ints(&[1]), AttrDefault::Ints(&[0]), "NCW", "OIW");
static ATTRS2: [AttrDef; 8] = attrs(AttrDefault::Ints(&[1]), AttrDefault::Ints(&[0]), "NCHW", "OIHW");
static ATTRS3: [AttrDef; 8] = attrs(AttrDefault::Ints(&[1]), AttrDefault::Ints(&[0]), "NCDHW", "OIDHW");

pub(super) static OPS: &[OpDef] = &[
    op(
        "nn.conv1d",
        "cross-correlation along one spatial axis; channels in `groups`",
        ARGS,
        &ATTRS1,
        |cx| infer(cx, 1),
        Lower::Tir("conv1d", |cx| lower(cx, 1)),
        Pattern::OutEWiseFusable,
    )
    .prepared(|c| prepare(c, 1, "data_layout")),
    op(
        "nn.conv2d",
        "cross-correlation along two spatial axes; channels in `groups`",
        ARGS,
        &ATTRS2,
        |cx| infer(cx, 2),
        Lower::Tir("conv2d", |cx| lower(cx, 2)),
        Pattern::OutEWiseFusable,
    )
    .prepared(|c| prepare(c, 2, "data_layout")),
    op(
        "nn.conv3d",
        "cross-correlation along three spatial axes; channels in `groups`",
        ARGS,
        &ATTRS3,
        |cx| infer(cx, 3),
        Lower::Tir("conv3d", |cx| lower(cx, 3)),
        Pattern::OutEWiseFusable,
    )
    .prepared(|c| prepare(c, 3, "data_layout")),
];

fn infer(cx: &InferCx<'_>, dims: usize) -> Result<StructInfo, Diag> {
    let (x, w) = (cx.tensor(0)?, cx.tensor(1)?);
    let dtype = match cx.dtype_attr("out_dtype") {
        Some(d) => Some(d),
        None => cx.common_dtype(0, 1)?,
    };
    cx.expect_rank(0, &x, dims + 2)?;
    cx.expect_rank(1, &w, dims + 2)?;
    let data = layout(cx, "data_layout", 'N', 'C', dims)?;
    let kernel = layout(cx, "kernel_layout", 'O', 'I', dims)?;
    same_layout(cx, "data_layout")?;
    let window = Window::of(cx, dims)?;
    let groups = cx.int("groups")?;
    if groups < 1 {
        return Err(cx.fail(format!("attribute `groups` must be at least 1, it is {groups}")));
    }
    let (Some(xd), Some(wd)) = (x.dims.known(), w.dims.known()) else {
        return cx.result(Dims::Rank(dims + 2), dtype);
    };
    let (channels, per_group, outputs) = (&xd[data.channel], &wd[kernel.channel], &wd[kernel.outer]);
    if cx.differ(channels, &(per_group * groups)) {
        let message = format!(
            "`data` {} has {} channels, `weight` {} reads {} in each of {groups} group(s)",
            show_tensor(&x),
            show_expr(channels),
            show_tensor(&w),
            show_expr(per_group)
        );
        let fits = matches!((channels.as_int(), per_group.as_int()), (Some(c), Some(p)) if p > 0 && c % p == 0);
        let diag = cx.fail(message);
        return Err(match (channels.as_int(), per_group.as_int()) {
            (Some(c), Some(p)) if fits => diag.help(format!("groups={} would fit", c / p)),
            _ => diag.help("check data_layout and kernel_layout"),
        });
    }
    if outputs.as_int().is_some_and(|o| o % groups != 0) {
        let message = format!("{} output channels do not split into {groups} groups", show_expr(outputs));
        return Err(cx.fail(message));
    }
    let spatial = window.out_dims(cx, &data.spatial_of(xd), &kernel.spatial_of(wd), false)?;
    cx.result(Dims::Known(data.arrange(xd[data.outer].clone(), outputs.clone(), &spatial)), dtype)
}

fn lower(cx: &LowerCx<'_>, dims: usize) -> Result<PrimFunc, Diag> {
    let (x, w) = (cx.buffer(0)?, cx.buffer(1)?);
    let (out_dims, dtype) = (cx.out_dims()?, cx.out_dtype()?);
    let data = lowered_layout(cx, "data_layout", 'N', 'C', dims)?;
    let kernel = lowered_layout(cx, "kernel_layout", 'O', 'I', dims)?;
    let window = cx.with_infer(|c| Window::of(c, dims))?;
    let groups = cx.with_infer(|c| c.int("groups"))?;
    let mut te = Te::new();
    let (before, after) = (pads_of(&data, &window.before), pads_of(&data, &window.after));
    let padded = pad_stage(&mut te, "pad_temp", x, (&before, &after), &PrimExpr::zero(x.dtype), Axes::I);

    let per_group = w.shape[kernel.channel].clone();
    let out_per_group = w.shape[kernel.outer].clone().floordiv(groups);
    let names = data.arrange("nn", "ff", &["yy", "xx", "zz"][..dims]);
    let axes: Vec<ReduceAxis> = std::iter::once(("rc", per_group.clone()))
        .chain(["ry", "rx", "rz"].into_iter().zip(kernel.spatial_of(&w.shape)))
        .collect();
    // The reduced axes stand in the order of the input's axes.
    let mut order: Vec<usize> = (0..=dims).collect();
    order.sort_by_key(|i| if *i == 0 { data.channel } else { data.spatial[*i - 1] });
    let reduced: Vec<ReduceAxis> = order.iter().map(|i| axes[*i].clone()).collect();
    let prefix = if groups > 1 { "group_" } else { "" };
    let text = cx.with_infer(|c| Ok(c.str("data_layout")?.to_lowercase()))?;
    let name = format!("{prefix}conv{dims}d_{text}");
    let out = te.reduce(&name, Axes::Named(&names), out_dims, &reduced, Reducer::Sum, dtype, |i, r| {
        let mut red = vec![PrimExpr::i64(0); dims + 1];
        for (slot, v) in order.iter().zip(r) {
            red[*slot] = v.clone();
        }
        let (batch, channel) = (i[data.outer].clone(), i[data.channel].clone());
        let rc = &red[0];
        let in_channel = if groups > 1 {
            channel.clone().floordiv(out_per_group.clone()) * per_group.clone() + rc
        } else {
            rc.clone()
        };
        let at: Vec<PrimExpr> =
            (0..dims).map(|d| &i[data.spatial[d]] * window.strides[d] + &red[d + 1] * window.dilation[d]).collect();
        let x = PrimExpr::load(&padded, data.arrange(batch, in_channel, &at));
        let w = PrimExpr::load(w, kernel.arrange(channel, rc.clone(), &red[1..]));
        x.cast(dtype) * w.cast(dtype)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
