//! Normalizations of a sum.

use tvm_ir::dtype::DType;

use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs, axes_attr};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("SkipLayerNormalization", 1, |cx| skip(cx, true)),
    ("SkipSimplifiedLayerNormalization", 1, |cx| skip(cx, false)),
];

/// The norm of `input + skip + bias` along the last axis; the sum is the last output.
fn skip(cx: &mut OpCx<'_>, centered: bool) -> Outputs {
    let (x, skip, gamma) = (cx.input(0, "input")?, cx.input(1, "skip")?, cx.input(2, "gamma")?);
    let beta = if centered { cx.optional(3) } else { None };
    let bias = cx.optional(if centered { 4 } else { 3 });
    let epsilon = f64::from(cx.node.float_or("epsilon", 1e-12)?);
    if [1, 2].iter().any(|&i| cx.node.node().outputs.get(i).is_some_and(|name| !name.is_empty())) {
        return Err(Fail::limit("the outputs mean and inv_std_var are not supported"));
    }
    let mut sum = cx.apply("add", &[&x, &skip])?;
    if let Some(bias) = bias {
        sum = cx.apply("add", &[&sum, &bias])?;
    }
    let out = if centered { layer_norm(cx, &sum, gamma, beta, epsilon)? } else { rms_norm(cx, &sum, gamma, epsilon)? };
    // What is in between is not asked for.
    Ok(vec![out, sum.clone(), sum.clone(), sum])
}

/// The type that sums are kept in.
fn compute_type(cx: &OpCx<'_>, x: &Value) -> Result<(DType, DType), Fail> {
    let dtype = cx.dtype(x, "input")?;
    Ok((dtype, if dtype.bits < 32 { DType::F32 } else { dtype }))
}

fn last_axis(cx: &OpCx<'_>, x: &Value, epsilon: f64) -> Result<Vec<(&'static str, tvm_ir::attrs::AttrValue)>, Fail> {
    let rank = cx.rank(x, "input")?;
    let last = rank.checked_sub(1).ok_or("input must have at least one axis")?;
    Ok(vec![("axes", axes_attr(&[last])), ("epsilon", epsilon.into())])
}

fn layer_norm(cx: &mut OpCx<'_>, x: &Value, gamma: Value, beta: Option<Value>, epsilon: f64) -> Result<Value, Fail> {
    let (dtype, compute) = compute_type(cx, x)?;
    let (x, gamma) = (cx.astype(x, compute)?, cx.astype(&gamma, compute)?);
    let beta = match beta {
        Some(beta) => cx.astype(&beta, compute)?,
        None => {
            let (zero, shape) = (cx.scalar(0.0, compute)?, Value::shape(cx.dims(&gamma, "gamma")?));
            cx.call("broadcast_to", vec![zero, shape], vec![])?
        }
    };
    let attrs = last_axis(cx, &x, epsilon)?;
    let out = cx.call("nn.layer_norm", vec![x, gamma, beta], attrs)?;
    cx.astype(&out, dtype)
}

fn rms_norm(cx: &mut OpCx<'_>, x: &Value, gamma: Value, epsilon: f64) -> Result<Value, Fail> {
    let (dtype, compute) = compute_type(cx, x)?;
    let (x, gamma) = (cx.astype(x, compute)?, cx.astype(&gamma, compute)?);
    let attrs = last_axis(cx, &x, epsilon)?;
    let out = cx.call("nn.rms_norm", vec![x, gamma], attrs)?;
    cx.astype(&out, dtype)
}

/// `SimplifiedLayerNormalization`, which ONNX Runtime has in the standard's own domain.
pub(in super::super) fn simplified_layer_norm(cx: &mut OpCx<'_>) -> Outputs {
    let (x, scale) = (cx.input(0, "X")?, cx.input(1, "scale")?);
    let epsilon = f64::from(cx.node.float_or("epsilon", 1e-5)?);
    let (axis, stash) = (cx.node.int_or("axis", -1)?, cx.node.int_or("stash_type", 1)?);
    let rank = cx.rank(&x, "X")?;
    if cx.axis(axis, rank)? + 1 != rank || stash != 1 {
        return Err(Fail::limit(format!("attribute 'axis' of {axis} and 'stash_type' of {stash} are not supported")));
    }
    cx.refuse_output(1, "inv_std_var is not supported")?;
    Ok(vec![rms_norm(cx, &x, scale, epsilon)?])
}
