//! Transposed convolutions over one to three spatial axes, channels first, with groups.

use super::row::{attr, op, tensor};
use super::show::{show_expr, show_tensor};
use super::window::{Window, layout, lowered_layout, pad_stage, pads_of, prepare, same_layout};
use crate::arith::Analyzer;
use crate::diag::Diag;
use crate::prim::PrimExpr;
use crate::relax::{ArgDef, AttrDef, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, ReduceAxis, Reducer, Te};
use crate::tir::PrimFunc;

const ARGS: &[ArgDef] = &[tensor("data"), tensor("weight")];

const fn attrs(data: &'static str, kernel: &'static str) -> [AttrDef; 9] {
    const ONE: AttrDefault = AttrDefault::Ints(&[1]);
    const ZERO: AttrDefault = AttrDefault::Ints(&[0]);
    [
        attr("strides", AttrKind::Ints, ONE),
        attr("padding", AttrKind::Ints, ZERO),
        attr("output_padding", AttrKind::Ints, ZERO),
        attr("dilation", AttrKind::Ints, ONE),
        attr("groups", AttrKind::Int, AttrDefault::Int(1)),
        attr("data_layout", AttrKind::Str, AttrDefault::Str(data)),
        attr("kernel_layout", AttrKind::Str, AttrDefault::Str(kernel)),
        attr("out_layout", AttrKind::Str, AttrDefault::Str("")),
        attr("out_dtype", AttrKind::DType, AttrDefault::Void),
    ]
}

static ATTRS1: [AttrDef; 9] = attrs("NCW", "IOW");
static ATTRS2: [AttrDef; 9] = attrs("NCHW", "IOHW");
static ATTRS3: [AttrDef; 9] = attrs("NCDHW", "IODHW");

macro_rules! transposed {
    ($($name:literal $hint:literal $dims:literal $attrs:ident $doc:literal;)*) => {
        pub(super) static OPS: &[OpDef] = &[$(
            op($name, $doc, ARGS, &$attrs, |cx| infer(cx, $dims), Lower::Tir($hint, |cx| lower(cx, $dims)), Pattern::OutEWiseFusable)
                .prepared(|c| prepare(c, $dims, "data_layout")),
        )*];
    };
}

transposed! {
    "nn.conv1d_transpose" "conv1d_transpose" 1 ATTRS1 "gradient of conv1d with respect to its input";
    "nn.conv2d_transpose" "conv2d_transpose" 2 ATTRS2 "gradient of conv2d with respect to its input";
    "nn.conv3d_transpose" "conv3d_transpose" 3 ATTRS3 "gradient of conv3d with respect to its input";
}

fn groups(cx: &InferCx<'_>) -> Result<i64, Diag> {
    match cx.int("groups")? {
        g if g >= 1 => Ok(g),
        g => Err(cx.fail(format!("attribute `groups` must be at least 1, it is {g}"))),
    }
}

fn infer(cx: &InferCx<'_>, dims: usize) -> Result<StructInfo, Diag> {
    let (x, w) = (cx.tensor(0)?, cx.tensor(1)?);
    let dtype = match cx.dtype_attr("out_dtype") {
        Some(d) => Some(d),
        None => cx.common_dtype(0, 1)?,
    };
    cx.expect_rank(0, &x, dims + 2)?;
    cx.expect_rank(1, &w, dims + 2)?;
    let data = layout(cx, "data_layout", 'N', 'C', dims)?;
    let kernel = layout(cx, "kernel_layout", 'I', 'O', dims)?;
    same_layout(cx, "data_layout")?;
    let window = Window::of(cx, dims)?;
    let extra = cx.ints("output_padding")?;
    let groups = groups(cx)?;
    if extra.iter().zip(window.strides.iter().zip(&window.dilation)).any(|(e, (s, d))| *e < 0 || *e >= *s.max(d)) {
        let message =
            format!("`output_padding` {extra:?} must be less than the stride {:?} or dilation", window.strides);
        return Err(cx.fail(message));
    }
    let (Some(xd), Some(wd)) = (x.dims.known(), w.dims.known()) else {
        return cx.result(Dims::Rank(dims + 2), dtype);
    };
    let (channels, inputs) = (&xd[data.channel], &wd[kernel.outer]);
    if cx.differ(channels, inputs) {
        let message = format!(
            "`data` {} has {} channels, `weight` {} takes {}",
            show_tensor(&x),
            show_expr(channels),
            show_tensor(&w),
            show_expr(inputs)
        );
        return Err(cx.fail(message).help("a transposed kernel has the input channels first: IOHW"));
    }
    if inputs.as_int().is_some_and(|i| i % groups != 0) {
        return Err(cx.fail(format!("{} input channels do not split into {groups} groups", show_expr(inputs))));
    }
    let spatial = data.spatial_of(xd).into_iter().zip(kernel.spatial_of(wd)).enumerate().map(|(d, (n, k))| {
        let reach = (k - 1) * window.dilation[d];
        let pads = window.before[d] + window.after[d];
        cx.analyzer.simplify(&((n - 1) * window.strides[d] + reach + (1 + extra[d] - pads)))
    });
    let spatial: Vec<PrimExpr> = spatial.collect();
    if let Some(bad) = spatial.iter().find(|e| e.as_int().is_some_and(|v| v < 0)) {
        return Err(cx.fail(format!("a spatial axis of the result has extent {}", show_expr(bad))));
    }
    let outputs = cx.analyzer.simplify(&(&wd[kernel.channel] * groups));
    cx.result(Dims::Known(data.arrange(xd[data.outer].clone(), outputs, &spatial)), dtype)
}

const OUT: [&[&str]; 3] = [&["w"], &["h", "w"], &["d", "h", "w"]];
const RED: [&[&str]; 3] = [&["dw"], &["dh", "dw"], &["dd", "dh", "dw"]];

/// As TOPI: zeros between the elements, a border, the kernel mirrored, then a plain convolution.
fn lower(cx: &LowerCx<'_>, dims: usize) -> Result<PrimFunc, Diag> {
    let (x, w) = (cx.buffer(0)?, cx.buffer(1)?);
    let (out_dims, dtype) = (cx.out_dims()?, cx.out_dtype()?);
    let data = lowered_layout(cx, "data_layout", 'N', 'C', dims)?;
    let kernel = lowered_layout(cx, "kernel_layout", 'I', 'O', dims)?;
    let (window, extra, groups) =
        cx.with_infer(|c| Ok((Window::of(c, dims)?, c.ints("output_padding")?, groups(c)?)))?;
    let analyzer = Analyzer::new();
    let extents = kernel.spatial_of(&w.shape);
    let reach: Option<Vec<i64>> =
        extents.iter().zip(&window.dilation).map(|(k, d)| k.as_int().map(|k| (k - 1) * d)).collect();
    let reach = reach.ok_or_else(|| cx.fail("the spatial extents of `weight` must be fixed"))?;

    let mut te = Te::new();
    let mut wide = x.shape.clone();
    for (axis, s) in data.spatial.iter().zip(&window.strides) {
        wide[*axis] = analyzer.simplify(&((&x.shape[*axis] - 1) * *s + 1));
    }
    let dilated = te.compute("data_dilate", Axes::I, &wide, x.dtype, |i| {
        let mut hit = PrimExpr::bool(true);
        let mut at = i.to_vec();
        for (axis, s) in data.spatial.iter().zip(&window.strides).filter(|(_, s)| **s > 1) {
            hit = hit.and(i[*axis].clone().floormod(*s).eq(0));
            at[*axis] = i[*axis].clone().floordiv(*s);
        }
        PrimExpr::if_then_else(hit, PrimExpr::load(x, at), PrimExpr::zero(x.dtype))
    });
    let before: Vec<i64> = reach.iter().zip(&window.before).map(|(r, p)| r - p).collect();
    let after: Vec<i64> = reach.iter().zip(&window.after).zip(&extra).map(|((r, p), e)| r - p + e).collect();
    let zero = PrimExpr::zero(x.dtype);
    let padded =
        pad_stage(&mut te, "data_pad", &dilated, (&pads_of(&data, &before), &pads_of(&data, &after)), &zero, Axes::I);

    let per_group = w.shape[kernel.channel].clone();
    let in_per_group = analyzer.simplify(&w.shape[kernel.outer].clone().floordiv(groups));
    let mut flipped_dims = vec![per_group.clone(), w.shape[kernel.outer].clone()];
    flipped_dims.extend(extents.iter().cloned());
    let (name, lead) = match (dims, groups) {
        (1, 1) => ("kernel", ["o", "i"]),
        (_, 1) => ("kernel_transform", ["o", "i"]),
        _ => ("kernel_transform", ["i", "o"]),
    };
    let names: Vec<&str> = lead.iter().chain(OUT[dims - 1]).copied().collect();
    let flipped = te.compute(name, Axes::Named(&names), &flipped_dims, w.dtype, |i| {
        let mirrored: Vec<PrimExpr> = extents.iter().zip(&i[2..]).map(|(k, v)| k - 1 - v).collect();
        PrimExpr::load(w, kernel.arrange(i[1].clone(), i[0].clone(), &mirrored))
    });
    let names = data.arrange("b", "c", OUT[dims - 1]);
    let reduced: Vec<ReduceAxis> = std::iter::once(("dc", in_per_group.clone()))
        .chain(RED[dims - 1].iter().copied().zip(extents.iter().cloned()))
        .collect();
    let out = te.reduce("compute", Axes::Named(&names), out_dims, &reduced, Reducer::Sum, dtype, |i, r| {
        let channel = &i[data.channel];
        let (of_group, in_channel) = if groups > 1 {
            let group = channel.clone().floordiv(per_group.clone());
            (channel.clone().floormod(per_group), group * in_per_group + &r[0])
        } else {
            (channel.clone(), r[0].clone())
        };
        let at: Vec<PrimExpr> = (0..dims).map(|d| &i[data.spatial[d]] + &r[d + 1] * window.dilation[d]).collect();
        let value = PrimExpr::load(&padded, data.arrange(i[data.outer].clone(), in_channel.clone(), &at));
        let mut weight = vec![of_group, in_channel];
        weight.extend(r[1..].iter().cloned());
        value.cast(dtype) * PrimExpr::load(&flipped, weight).cast(dtype)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
