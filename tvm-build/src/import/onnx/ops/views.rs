//! Shapes, axes and repeats that are given at run time.

use tvm_ir::prim::{BinOp, PrimExpr};

use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// `x` in a shape with extents of 0, which keep those at their places unless `allow_zero`, and one of -1. That it fills
/// the shape is checked at run time.
pub(super) fn reshaped(cx: &mut OpCx<'_>, x: &Value, shape: &Value, allow_zero: bool) -> Outputs {
    let extents = Value::ints(cx.dims(x, "data")?);
    let attrs = vec![("allow_zero", allow_zero.into())];
    let extents = cx.call("reshaped_extents", vec![extents, shape.clone()], attrs)?;
    let dims = cx.run_time_dims_of(&extents, "the shape")?;
    Ok(vec![cx.reshape(x, dims)?])
}

/// `x` with dimensions of which it is not known whether it fills them: that is checked at run time.
pub(super) fn filled(cx: &mut OpCx<'_>, x: &Value, dims: Vec<PrimExpr>) -> Outputs {
    let own = cx.dims(x, "data")?;
    let product = |dims: &[PrimExpr]| dims.iter().fold(PrimExpr::i64(1), |a, b| a * b);
    if !cx.emitter.function.bindings().analyzer.prove_equal(&product(&own), &product(&dims)) {
        let attrs = vec![("allow_zero", true.into())];
        let extents = cx.call("reshaped_extents", vec![Value::ints(own), Value::ints(dims.clone())], attrs)?;
        let known: Vec<_> = dims.iter().cloned().map(Some).collect();
        cx.run_time_dims_beside(&extents, &known)?;
    }
    Ok(vec![cx.reshape(x, dims)?])
}

/// `x` and a shape broadcast to each other; that they do is checked at run time. An extent of the shape that is known
/// and not 1 is taken for the extent of the result.
pub(super) fn expanded(cx: &mut OpCx<'_>, x: Value, shape: &Value) -> Outputs {
    let dims = cx.dims(&x, "input")?;
    let length = cx.length(shape, "the shape")?;
    let target = shape.known_ints();
    let rank = length.max(dims.len());
    let one = || PrimExpr::i64(1);
    let own = |i: usize| (i + dims.len()).checked_sub(rank).map_or_else(one, |at| dims[at].clone());
    let wanted = |i: usize| match ((i + length).checked_sub(rank), &target) {
        (None, _) => Some(one()),
        (Some(at), Some(target)) => target.get(at).cloned(),
        (Some(_), None) => None,
    };
    let known: Vec<Option<PrimExpr>> = (0..rank)
        .map(|i| match (own(i), wanted(i)) {
            (own, _) if own.as_int().is_some_and(|n| n != 1) => Some(own),
            (own, Some(wanted)) if wanted.is_int(1) => Some(own),
            (_, wanted) => wanted,
        })
        .collect();
    let extents = cx.call("expanded_extents", vec![Value::ints(dims.clone()), shape.clone()], vec![])?;
    let out = cx.run_time_dims_beside(&extents, &known)?;
    let mut x = x;
    for (i, to) in out.iter().enumerate().skip(rank - dims.len()) {
        // An extent that may be 1 is repeated by index.
        if own(i).as_int().is_none() && own(i) != *to {
            let place = cx.call("arange", vec![number(to)], vec![])?;
            let axis = i64::try_from(i + dims.len() - rank).unwrap_or(i64::MAX);
            x = cx.call("take", vec![x, place], vec![("axis", axis.into()), ("mode", "clip".into())])?;
        }
    }
    if cx.dims(&x, "input")? == out {
        return Ok(vec![x]);
    }
    Ok(vec![cx.call("broadcast_to", vec![x, Value::shape(out)], vec![])?])
}

/// An extent as an argument.
fn number(extent: &PrimExpr) -> Value {
    tvm_ir::relax::Leaf::Prim(extent.clone()).into()
}

/// `x` without the axes; that they have extents of 1 is checked at run time.
pub(super) fn squeezed(cx: &mut OpCx<'_>, x: &Value, axes: &Value) -> Outputs {
    let extents = Value::ints(cx.dims(x, "data")?);
    let left = cx.call("reduced_extents", vec![extents, axes.clone()], vec![("keepdims", false.into())])?;
    reshaped(cx, x, &left, true)
}

/// `x` with axes of extent 1 put in.
pub(super) fn unsqueezed(cx: &mut OpCx<'_>, x: &Value, axes: &Value) -> Outputs {
    let extents = Value::ints(cx.dims(x, "data")?);
    let extents = cx.call("unsqueezed_extents", vec![extents, axes.clone()], vec![])?;
    let dims = cx.run_time_dims_of(&extents, "the axes")?;
    Ok(vec![cx.reshape(x, dims)?])
}

/// `x` repeated along each axis.
pub(super) fn tiled(cx: &mut OpCx<'_>, x: &Value, repeats: &Value) -> Result<Value, Fail> {
    let dims = cx.dims(x, "input")?;
    let repeats = cx.run_time_dims(repeats, dims.len())?;
    let mut out = x.clone();
    for (axis, (times, extent)) in repeats.iter().zip(&dims).enumerate() {
        if times.is_int(1) {
            continue;
        }
        let whole = PrimExpr::binary(BinOp::Mul, times.clone(), extent.clone());
        let place = cx.call("arange", vec![number(&whole)], vec![])?;
        let axis = i64::try_from(axis).unwrap_or(i64::MAX);
        out = cx.call("take", vec![out, place], vec![("axis", axis.into()), ("mode", "wrap".into())])?;
    }
    Ok(out)
}
