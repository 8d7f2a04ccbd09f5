//! Operators on images that read or write at places from data.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, PrimExpr};
use tvm_ir::relax::Leaf;

use super::Row;
use super::conv::biased;
use super::ints::product;
use super::slice::padded_by;
use super::window::{AutoPad, Window};
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("DeformConv", 19, deform_conv),
    ("MaxUnpool", 9, max_unpool),
    ("RoiAlign", 10, |cx| roi_align(cx, false)),
    ("RoiAlign", 16, |cx| roi_align(cx, true)),
];

fn deform_conv(cx: &mut OpCx<'_>) -> Outputs {
    let (x, weight, offset) = (cx.input(0, "X")?, cx.input(1, "W")?, cx.input(2, "offset")?);
    let (bias, mask) = (cx.optional(3), cx.optional(4));
    let kernel = cx.dims(&weight, "W")?;
    if kernel.len() != 4 {
        return Err(format!("only two spatial axes are supported, and W has shape {kernel:?}").into());
    }
    let extents = kernel[2..].iter().map(PrimExpr::as_int).collect::<Option<Vec<_>>>();
    let window = Window::read(cx, 2, extents)?;
    let (group, offset_group) = (cx.node.int_or("group", 1)?, cx.node.int_or("offset_group", 1)?);
    let attrs: Vec<(&'static str, AttrValue)> = vec![
        ("strides", window.strides.clone().into()),
        ("padding", window.pads.clone().into()),
        ("dilation", window.dilations.clone().into()),
        ("deformable_groups", offset_group.into()),
        ("groups", group.into()),
    ];
    let mask = mask.unwrap_or(Value::Leaf(Leaf::Absent));
    let out = cx.call("nn.deformable_conv2d", vec![x, offset, weight, mask], attrs)?;
    Ok(vec![biased(cx, out, bias)?])
}

fn roi_align(cx: &mut OpCx<'_>, half_pixel: bool) -> Outputs {
    let (x, rois, batch) = (cx.input(0, "X")?, cx.input(1, "rois")?, cx.input(2, "batch_indices")?);
    let aligned = match cx.node.string("coordinate_transformation_mode")? {
        None => half_pixel,
        Some("half_pixel") => true,
        Some("output_half_pixel") => false,
        Some(other) => {
            return Err(format!("attribute 'coordinate_transformation_mode' cannot be '{other}'").into());
        }
    };
    let mode = match cx.node.string_or("mode", "avg")? {
        mode @ ("avg" | "max") => mode,
        other => return Err(format!("attribute 'mode' is 'avg' or 'max', not '{other}'").into()),
    };
    let size = vec![cx.node.int_or("output_height", 1)?, cx.node.int_or("output_width", 1)?];
    let ratio = cx.node.int_or("sampling_ratio", 0)?;
    let scale = f64::from(cx.node.float_or("spatial_scale", 1.0)?);
    let dtype = cx.dtype(&rois, "rois")?;
    let batch = cx.call("astype", vec![batch], vec![("dtype", AttrValue::DType(dtype))])?;
    let batch = cx.call("expand_dims", vec![batch], vec![("axis", vec![1].into())])?;
    let rois = cx.call("concat", vec![Value::Tuple(vec![batch, rois])], vec![("axis", 1.into())])?;
    let attrs: Vec<(&'static str, AttrValue)> = vec![
        ("pooled_size", size.into()),
        ("spatial_scale", scale.into()),
        ("sample_ratio", ratio.into()),
        ("aligned", aligned.into()),
        ("mode", mode.into()),
    ];
    Ok(vec![cx.call("vision.roi_align", vec![x, rois], attrs)?])
}

/// The indices are places in a flat tensor of the shape that the windows cover; `output_shape` adds zeros after it.
fn max_unpool(cx: &mut OpCx<'_>) -> Outputs {
    let (x, indices, shape) = (cx.input(0, "X")?, cx.input(1, "I")?, cx.optional(2));
    let dims = cx.dims(&x, "X")?;
    let batch = &dims[..2.min(dims.len())];
    let spatial =
        dims.get(2..).filter(|s| !s.is_empty()).ok_or_else(|| format!("X of shape {dims:?} has no spatial axes"))?;
    let window = Window::read(cx, spatial.len(), None)?;
    if window.auto_pad != AutoPad::NotSet {
        return Err(Fail::limit("attribute 'auto_pad' is not supported; use 'pads'"));
    }
    let axes = spatial.len();
    let mut covered = batch.to_vec();
    for (axis, extent) in spatial.iter().enumerate() {
        let before = PrimExpr::binary(BinOp::Sub, extent.clone(), PrimExpr::i64(1));
        let steps = PrimExpr::binary(BinOp::Mul, before, PrimExpr::i64(window.strides[axis]));
        let more = window.kernel[axis] - window.pads[axis] - window.pads[axis + axes];
        covered.push(PrimExpr::binary(BinOp::Add, steps, PrimExpr::i64(more)));
    }
    if let Some(bad) = covered.iter().filter_map(PrimExpr::as_int).find(|n| *n < 0) {
        return Err(format!("the windows cover {bad} elements along an axis").into());
    }
    let (count, total) = (product(&dims), product(&covered));
    let dtype = cx.dtype(&x, "X")?;
    let zero = cx.scalar(0.0, dtype)?;
    let empty = cx.call("broadcast_to", vec![zero.clone(), Value::shape(vec![total.clone()])], vec![])?;
    let (x, indices) = (cx.reshape(&x, vec![count.clone()])?, cx.reshape(&indices, vec![count])?);
    let total = cx.emitter.materialize(&[total], true)?;
    let indices = cx.apply("checked_index", &[&indices, &total])?;
    let flat = cx.call("scatter_elements", vec![empty, indices, x], vec![("axis", 0.into())])?;
    let out = cx.reshape(&flat, covered.clone())?;
    let Some(shape) = shape else { return Ok(vec![out]) };
    if cx.length(&shape, "output_shape")? != covered.len() {
        return Err(format!("output_shape does not have {} extents", covered.len()).into());
    }
    let known: Option<Vec<i64>> = shape.fixed_ints();
    if let (Some(want), Some(have)) = (known, covered.iter().map(PrimExpr::as_int).collect::<Option<Vec<_>>>()) {
        if want == have {
            return Ok(vec![out]);
        }
    }
    let have = cx.emitter.materialize(&covered, false)?;
    let shape = if cx.dtype(&shape, "output_shape")? == DType::I64 {
        shape
    } else {
        cx.call("astype", vec![shape], vec![("dtype", AttrValue::DType(DType::I64))])?
    };
    let after = cx.apply("subtract", &[&shape, &have])?;
    let none = vec![PrimExpr::i64(0); covered.len()];
    let before = cx.emitter.materialize(&none, false)?;
    padded_by(cx, out, (before, after), None, zero, "constant")
}
