//! Convolutions.

use tvm_ir::attrs::AttrValue;
use tvm_ir::prim::PrimExpr;

use super::Row;
use super::window::{AutoPad, Window, divide};
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[("Conv", 1, conv), ("ConvTranspose", 1, conv_transpose)];

/// Data, weights, and the numbers that both kinds of convolution read.
struct Operands {
    data: Value,
    weight: Value,
    dims: Vec<PrimExpr>,
    kernel: Vec<PrimExpr>,
    window: Window,
    group: i64,
}

fn operands(cx: &mut OpCx<'_>, data: Value, weight: Value) -> Result<Operands, Fail> {
    let (dims, mut kernel) = (cx.dims(&data, "X")?, cx.dims(&weight, "W")?);
    if !(3..=5).contains(&dims.len()) || kernel.len() != dims.len() {
        return Err(format!("convolutions are over 1 to 3 spatial axes: X has shape {dims:?}, W {kernel:?}").into());
    }
    let extents = kernel[2..].iter().map(PrimExpr::as_int).collect::<Option<Vec<_>>>();
    let window = Window::read(cx, dims.len() - 2, extents)?;
    let group = cx.node.int_or("group", 1)?;
    if group < 1 {
        return Err(format!("attribute 'group' cannot be {group}").into());
    }
    for (own, known) in kernel[2..].iter_mut().zip(&window.kernel) {
        *own = PrimExpr::i64(*known);
    }
    let weight = cx.emitter.of_shape(&weight, kernel.clone())?;
    Ok(Operands { data, weight, dims, kernel, window, group })
}

/// Adds the bias along the channels.
pub(super) fn biased(cx: &mut OpCx<'_>, out: Value, bias: Option<Value>) -> Result<Value, Fail> {
    let Some(bias) = bias else { return Ok(out) };
    let rank = cx.rank(&out, "the output")?;
    let channels = match &cx.dims(&bias, "B")?[..] {
        [channels] => channels.clone(),
        dims => return Err(format!("the bias must have one axis, not shape {dims:?}").into()),
    };
    cx.emitter.normalize(&out)?;
    let mut shape = vec![PrimExpr::i64(1); rank];
    shape[1] = channels;
    let bias = cx.reshape(&bias, shape)?;
    cx.apply("add", &[&out, &bias])
}

fn conv(cx: &mut OpCx<'_>) -> Outputs {
    let (data, weight, bias) = (cx.input(0, "X")?, cx.input(1, "W")?, cx.optional(2));
    let out = convolve(cx, data, weight)?;
    Ok(vec![biased(cx, out, bias)?])
}

/// The convolution that the attributes describe, without a bias.
pub(super) fn convolve(cx: &mut OpCx<'_>, data: Value, weight: Value) -> Result<Value, Fail> {
    let Operands { data, weight, mut dims, kernel, mut window, group } = operands(cx, data, weight)?;
    if let (Some(channels), Some(each)) = (dims[1].as_int(), kernel[1].as_int()) {
        if each.checked_mul(group) != Some(channels) {
            return Err(format!("X has {channels} channels, and W takes {each} of each of {group} group(s)").into());
        }
    }
    if let (None, Some(all)) = (dims[1].as_int(), kernel[1].as_int().and_then(|each| each.checked_mul(group))) {
        dims[1] = PrimExpr::i64(all);
    }
    let data = cx.emitter.of_shape(&data, dims.clone())?;
    let (op, data_layout, kernel_layout) = match dims.len() {
        3 => ("nn.conv1d", "NCW", "OIW"),
        4 => ("nn.conv2d", "NCHW", "OIHW"),
        _ => ("nn.conv3d", "NCDHW", "OIDHW"),
    };
    let dtype = cx.dtype(&data, "X")?;
    let zero = cx.scalar(0.0, dtype)?;
    let data = window.padded(cx, data, zero)?;
    let padding = window.padding(&dims[2..])?;
    cx.call(
        op,
        vec![data, weight],
        vec![
            ("strides", window.strides.into()),
            ("padding", padding.into()),
            ("dilation", window.dilations.into()),
            ("groups", group.into()),
            ("data_layout", data_layout.into()),
            ("kernel_layout", kernel_layout.into()),
        ],
    )
}

/// The padding is given, or follows from the output's shape, which is given or the input's times the strides.
fn conv_transpose(cx: &mut OpCx<'_>) -> Outputs {
    let (data, weight, bias) = (cx.input(0, "X")?, cx.input(1, "W")?, cx.optional(2));
    let Operands { data, weight, mut dims, kernel, window, group } = operands(cx, data, weight)?;
    if let (Some(channels), Some(taken)) = (dims[1].as_int(), kernel[0].as_int()) {
        if channels != taken {
            return Err(format!("X has {channels} channels, and W takes {taken}").into());
        }
    }
    if dims[1].as_int().is_none() {
        dims[1] = kernel[0].clone();
    }
    let data = cx.emitter.of_shape(&data, dims.clone())?;
    let spatial = dims.len() - 2;
    let output_padding = cx.node.ints("output_padding")?.map_or_else(|| vec![0; spatial], <[i64]>::to_vec);
    if output_padding.len() != spatial || output_padding.iter().any(|p| !(0..=i64::from(i32::MAX)).contains(p)) {
        return Err(format!("attribute 'output_padding' cannot be {output_padding:?}").into());
    }
    let output_shape = cx.node.ints("output_shape")?;
    let padding = match (output_shape, window.auto_pad) {
        (None, AutoPad::NotSet | AutoPad::Valid) => window.pads.clone(),
        (None, AutoPad::SameUpper | AutoPad::SameLower) => {
            let total = |a: usize| (window.span(a) + output_padding[a] - window.strides[a]).max(0);
            divide(&(0..spatial).map(total).collect::<Vec<_>>(), window.auto_pad == AutoPad::SameLower)
        }
        (Some(shape), _) => {
            let extents = dims[2..].iter().map(PrimExpr::as_int).collect::<Option<Vec<_>>>();
            let extents = extents.filter(|_| shape.len() == spatial);
            let extents = extents.ok_or("attribute 'output_shape' needs an input of fixed spatial extents")?;
            let total = |a: usize| -> Option<i64> {
                let slid = window.strides[a].checked_mul(extents[a].checked_sub(1)?)?;
                slid.checked_add(output_padding[a])?.checked_add(window.span(a))?.checked_sub(shape[a])
            };
            let totals = (0..spatial).map(total).collect::<Option<Vec<_>>>();
            let totals = totals.ok_or_else(|| format!("attribute 'output_shape' cannot be {shape:?}"))?;
            // Here the odd one goes before, unless the attribute says otherwise.
            divide(&totals, window.auto_pad != AutoPad::SameUpper)
        }
    };
    // Padding takes away from the output; less than none adds to it.
    let taken: Vec<i64> = padding.iter().map(|&p| p.max(0)).collect();
    let mut added = vec![0; 2 * dims.len()];
    for (i, &p) in padding.iter().enumerate() {
        added[2 * (2 + i % spatial) + i / spatial] = (-p).max(0);
    }
    let (op, data_layout, kernel_layout) = match dims.len() {
        3 => ("nn.conv1d_transpose", "NCW", "IOW"),
        4 => ("nn.conv2d_transpose", "NCHW", "IOHW"),
        _ => ("nn.conv3d_transpose", "NCDHW", "IODHW"),
    };
    let attrs: Vec<(&'static str, AttrValue)> = vec![
        ("strides", window.strides.into()),
        ("padding", taken.into()),
        ("output_padding", output_padding.into()),
        ("dilation", window.dilations.into()),
        ("groups", group.into()),
        ("data_layout", data_layout.into()),
        ("kernel_layout", kernel_layout.into()),
    ];
    let mut out = cx.call(op, vec![data, weight], attrs)?;
    if added.iter().any(|&w| w > 0) {
        out = cx.call("nn.pad", vec![out], vec![("pad_width", added.into())])?;
    }
    Ok(vec![biased(cx, out, bias)?])
}
