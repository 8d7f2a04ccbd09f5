//! Operators of sequence models that carry a state from call to call, and of sequences of different lengths.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, PrimExpr};

use super::Row;
use super::conv::biased;
use super::index::from_the_start;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("CausalConvWithState", 1, causal_conv),
    ("ReverseSequence", 10, reverse_sequence),
    ("SwiGLU", 1, swiglu),
    ("TensorScatter", 24, tensor_scatter),
];

/// A convolution of each channel over the past and the input, and the past of the next call.
fn causal_conv(cx: &mut OpCx<'_>) -> Outputs {
    let (x, weight) = (cx.input(0, "input")?, cx.input(1, "weight")?);
    let (bias, past) = (cx.optional(2), cx.optional(3));
    let activation = cx.node.string_or("activation", "none")?;
    let (dims, kernel) = (cx.dims(&x, "input")?, cx.dims(&weight, "weight")?);
    let ([batch, channels, length], [_, _, width]) = (&dims[..], &kernel[..]) else {
        return Err(format!("input and weight must have 3 axes, not {dims:?} and {kernel:?}").into());
    };
    let (Some(groups), Some(width)) = (channels.as_int(), width.as_int().filter(|w| *w > 0)) else {
        return Err("the channels and the kernel must be fixed".into());
    };
    let dtype = cx.dtype(&x, "input")?;
    let past = match past {
        Some(past) => past,
        None => {
            let shape = vec![batch.clone(), channels.clone(), PrimExpr::i64(width - 1)];
            cx.call("zeros", vec![Value::shape(shape)], vec![("dtype", AttrValue::DType(dtype))])?
        }
    };
    let whole =
        if width == 1 { x } else { cx.call("concat", vec![Value::Tuple(vec![past, x])], vec![("axis", 2.into())])? };
    let attrs = vec![("groups", groups.into()), ("data_layout", "NCW".into()), ("kernel_layout", "OIW".into())];
    let out = cx.call("nn.conv1d", vec![whole.clone(), weight], attrs)?;
    let mut out = biased(cx, out, bias)?;
    match activation {
        "none" => {}
        "silu" | "swish" => {
            // In single precision at least.
            let wide = if dtype.bits < 32 { DType::F32 } else { dtype };
            for (op, to) in [(None, wide), (Some("nn.silu"), dtype)] {
                if let Some(op) = op {
                    out = cx.apply(op, &[&out])?;
                }
                if wide != dtype {
                    out = cx.call("astype", vec![out], vec![("dtype", AttrValue::DType(to))])?;
                }
            }
        }
        other => return Err(format!("attribute 'activation' cannot be '{other}'").into()),
    }
    // The last elements of past and input, which has as many more as the past is long.
    let end = PrimExpr::binary(BinOp::Add, length.clone(), PrimExpr::i64(width - 1));
    let one = |e: PrimExpr| super::slice::tuple(vec![e]);
    let args = vec![whole, one(PrimExpr::i64(2)), one(length.clone()), one(end)];
    let present = cx.call("strided_slice", args, vec![])?;
    Ok(vec![out, present])
}

/// 0, 1, … along one axis of as many as `dims`.
fn counted(cx: &mut OpCx<'_>, dims: &[PrimExpr], axis: usize) -> Result<Value, Fail> {
    let line = super::attention::positions(cx, &dims[axis], false)?;
    spread(cx, &line, dims, axis)
}

/// A vector along one axis of as many as `dims`, the others of extent 1.
fn spread(cx: &mut OpCx<'_>, line: &Value, dims: &[PrimExpr], axis: usize) -> Result<Value, Fail> {
    let mut shape = vec![PrimExpr::i64(1); dims.len()];
    shape[axis] = dims[axis].clone();
    cx.reshape(line, shape)
}

/// The elements of each sequence in reverse, those behind its end as they are.
fn reverse_sequence(cx: &mut OpCx<'_>) -> Outputs {
    let (x, lengths) = (cx.input(0, "input")?, cx.input(1, "sequence_lens")?);
    let (batch, time) = (cx.node.int_or("batch_axis", 1)?, cx.node.int_or("time_axis", 0)?);
    let dims = cx.dims(&x, "input")?;
    let (batch, time) = (cx.axis(batch, dims.len())?, cx.axis(time, dims.len())?);
    if batch == time {
        return Err("'batch_axis' and 'time_axis' must differ".into());
    }
    let at = counted(cx, &dims, time)?;
    let lengths = spread(cx, &lengths, &dims, batch)?;
    let one = cx.scalar(1.0, DType::I64)?;
    let last = cx.apply("subtract", &[&lengths, &one])?;
    let back = cx.apply("subtract", &[&last, &at])?;
    let within = cx.apply("less", &[&at, &lengths])?;
    let from = cx.apply("where", &[&within, &back, &at])?;
    // A length beyond the axis would name elements that are not there.
    let from = from_the_start(cx, from, &dims[time])?;
    let from = cx.call("broadcast_to", vec![from, Value::shape(dims.clone())], vec![])?;
    let axis = i64::try_from(time).unwrap_or(i64::MAX);
    Ok(vec![cx.call("gather_elements", vec![x, from], vec![("axis", axis.into())])?])
}

fn swiglu(cx: &mut OpCx<'_>) -> Outputs {
    let (a, b) = (cx.input(0, "A")?, cx.input(1, "B")?);
    let alpha = f64::from(cx.node.float_or("alpha", 1.0)?);
    let gate = if alpha == 1.0 {
        cx.apply("nn.silu", &[&a])?
    } else {
        let dtype = cx.dtype(&a, "A")?;
        let alpha = cx.scalar(alpha, dtype)?;
        let scaled = cx.apply("multiply", &[&a, &alpha])?;
        let gate = cx.apply("sigmoid", &[&scaled])?;
        cx.apply("multiply", &[&a, &gate])?
    };
    Ok(vec![cx.apply("multiply", &[&gate, &b])?])
}

/// A cache with an update written over it, in each batch entry from its own place on.
fn tensor_scatter(cx: &mut OpCx<'_>) -> Outputs {
    let (cache, update, starts) = (cx.input(0, "past_cache")?, cx.input(1, "update")?, cx.optional(2));
    let circular = match cx.node.string_or("mode", "linear")? {
        "linear" => false,
        "circular" => true,
        other => return Err(format!("attribute 'mode' cannot be '{other}'").into()),
    };
    let axis = cx.node.int_or("axis", -2)?;
    let (dims, news) = (cx.dims(&cache, "past_cache")?, cx.dims(&update, "update")?);
    let axis = cx.axis(axis, dims.len())?;
    if axis == 0 || news.len() != dims.len() {
        return Err(
            format!("an update of shape {news:?} does not fit a cache of shape {dims:?} along axis {axis}").into()
        );
    }
    let mut at = counted(cx, &dims, axis)?;
    if let Some(starts) = starts {
        let starts = spread(cx, &starts, &dims, 0)?;
        at = cx.apply("subtract", &[&at, &starts])?;
    }
    if circular {
        let extent = cx.emitter.materialize(&dims[axis..=axis], true)?;
        at = cx.apply("floor_mod", &[&at, &extent])?;
    }
    let (zero, count) = (cx.scalar(0.0, DType::I64)?, cx.emitter.materialize(&news[axis..=axis], true)?);
    let (above, below) = (cx.apply("greater_equal", &[&at, &zero])?, cx.apply("less", &[&at, &count])?);
    let written = cx.apply("logical_and", &[&above, &below])?;
    let from = cx.apply("where", &[&written, &at, &zero])?;
    let from = cx.call("broadcast_to", vec![from, Value::shape(dims.clone())], vec![])?;
    let axis = i64::try_from(axis).unwrap_or(i64::MAX);
    let new = cx.call("gather_elements", vec![update, from], vec![("axis", axis.into())])?;
    Ok(vec![cx.apply("where", &[&written, &new, &cache])?])
}
