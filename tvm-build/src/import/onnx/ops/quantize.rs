//! Quantization, written with arithmetic: scales and zero points become ordinary operands.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::Leaf;

use super::conv::{biased, convolve};
use super::create::element_type;
use super::{Row, cast};
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("ConvInteger", 10, conv_integer),
    ("DequantizeLinear", 10, dequantize),
    ("DynamicQuantizeLinear", 11, dynamic_quantize),
    ("MatMulInteger", 10, matmul_integer),
    ("QLinearConv", 10, qlinear_conv),
    ("QLinearMatMul", 10, qlinear_matmul),
    ("QuantizeLinear", 10, quantize),
];

/// A scale or zero point in a shape that broadcasts to data of shape `dims`: one number, one for each place along
/// `axis`, or one for each block of `block` places along it.
fn spread(cx: &mut OpCx<'_>, value: &Value, dims: &[PrimExpr], axis: i64, block: i64) -> Result<Value, Fail> {
    let own = cx.dims(value, "a scale or zero point")?;
    match &own[..] {
        [] => Ok(value.clone()),
        [one] if one.is_int(1) => cx.reshape(value, vec![]),
        [extent] if block == 0 => {
            let axis = cx.axis(axis, dims.len())?;
            let mut shape = vec![PrimExpr::i64(1); dims.len()];
            shape[axis] = extent.clone();
            cx.reshape(value, shape)
        }
        _ if block > 0 && own.len() == dims.len() => {
            let axis = cx.axis(axis, dims.len())?;
            let at = i64::try_from(axis).unwrap_or(i64::MAX);
            let whole = own[axis].as_int().and_then(|n| n.checked_mul(block));
            let attrs = vec![("repeats", AttrValue::Int(block)), ("axis", AttrValue::Int(at))];
            let repeated = cx.call("repeat", vec![value.clone()], attrs)?;
            if whole.is_some() && whole == dims[axis].as_int() {
                return Ok(repeated);
            }
            // The last block is not full.
            let one = |v: PrimExpr| Value::Leaf(Leaf::Tuple(vec![Leaf::Prim(v)]));
            let args = vec![repeated, one(PrimExpr::i64(at)), one(PrimExpr::i64(0)), one(dims[axis].clone())];
            cx.call("strided_slice", args, vec![])
        }
        _ => Err(format!("a scale or zero point of shape {own:?} does not fit data of shape {dims:?}").into()),
    }
}

/// `value - zero`, in 32-bit integers, without a zero point `value` alone.
pub(super) fn centered(cx: &mut OpCx<'_>, value: &Value, zero: Option<Value>) -> Result<Value, Fail> {
    let wide = cx.astype(value, DType::I32)?;
    let Some(zero) = zero else { return Ok(wide) };
    let zero = cx.astype(&zero, DType::I32)?;
    cx.apply("subtract", &[&wide, &zero])
}

/// `x / scale + zero`, rounded half to even and brought into the range of `to`.
pub(super) fn to_quantized(
    cx: &mut OpCx<'_>,
    ratio: &Value,
    zero: Option<&Value>,
    to: DType,
    saturate: bool,
) -> Result<Value, Fail> {
    if to.is_float() {
        return if saturate { cx.astype(ratio, to) } else { cast::unsaturated(cx, ratio, to) };
    }
    let (Some(low), Some(high)) = (to.min_int(), to.max_int()) else {
        return Err(format!("quantized values cannot be {to}").into());
    };
    // 16-bit floats do not hold every integer of 16 bits.
    let compute = if cx.dtype(ratio, "the ratio")? == DType::F64 { DType::F64 } else { DType::F32 };
    let mut value = cx.apply("round", &[ratio])?;
    value = cx.astype(&value, compute)?;
    if let Some(zero) = zero {
        let zero = cx.astype(zero, compute)?;
        value = cx.apply("add", &[&value, &zero])?;
    }
    let bound = |v: i64| Value::Leaf(Leaf::Prim(PrimExpr::number(compute, v as f64)));
    let value = cx.call("clip", vec![value, bound(low), bound(high)], vec![])?;
    cx.astype(&value, to)
}

fn block_size(cx: &OpCx<'_>) -> Result<i64, Fail> {
    let block = cx.node.int_or("block_size", 0)?;
    if block < 0 { Err(format!("attribute 'block_size' cannot be {block}").into()) } else { Ok(block) }
}

pub(super) fn quantize(cx: &mut OpCx<'_>) -> Outputs {
    let (x, scale, zero) = (cx.input(0, "x")?, cx.input(1, "y_scale")?, cx.optional(2));
    let axis = cx.node.int_or("axis", 1)?;
    let block = block_size(cx)?;
    let saturate = cx.node.flag_or("saturate", true)?;
    let output = cx.node.int("output_dtype")?.filter(|&code| code != 0).map(element_type).transpose()?;
    let to = match (&zero, output) {
        (Some(zero), _) => cx.dtype(zero, "y_zero_point")?,
        (None, Some(output)) => output,
        (None, None) => DType::U8,
    };
    if output.is_some_and(|output| output != to) {
        return Err(format!("attribute 'output_dtype' differs from the type of the zero point, {to}").into());
    }
    let precision = match cx.node.int("precision")?.filter(|&code| code != 0) {
        Some(code) => element_type(code)?,
        None => cx.dtype(&scale, "y_scale")?,
    };
    if !precision.is_float() {
        return Err(Fail::limit(format!("a scale of {precision} is not supported")));
    }
    let dims = cx.dims(&x, "x")?;
    let scale = spread(cx, &scale, &dims, axis, block)?;
    let zero = zero.map(|z| spread(cx, &z, &dims, axis, block)).transpose()?;
    let (x, scale) = (cx.astype(&x, precision)?, cx.astype(&scale, precision)?);
    let ratio = cx.apply("divide", &[&x, &scale])?;
    Ok(vec![to_quantized(cx, &ratio, zero.as_ref(), to, saturate)?])
}

pub(super) fn dequantize(cx: &mut OpCx<'_>) -> Outputs {
    let (x, scale, zero) = (cx.input(0, "x")?, cx.input(1, "x_scale")?, cx.optional(2));
    let axis = cx.node.int_or("axis", 1)?;
    let block = block_size(cx)?;
    let to = match cx.node.int("output_dtype")?.filter(|&code| code != 0) {
        Some(code) => element_type(code)?,
        None => cx.dtype(&scale, "x_scale")?,
    };
    let dims = cx.dims(&x, "x")?;
    let scale = spread(cx, &scale, &dims, axis, block)?;
    let scale = cx.astype(&scale, to)?;
    let zero = zero.map(|z| spread(cx, &z, &dims, axis, block)).transpose()?;
    let difference = if cx.dtype(&x, "x")?.is_integer() {
        centered(cx, &x, zero)?
    } else {
        // Floats of 8 bits have no zero point to speak of: it is 0.
        let wide = cx.astype(&x, to)?;
        match zero {
            None => wide,
            Some(zero) => {
                let zero = cx.astype(&zero, to)?;
                cx.apply("subtract", &[&wide, &zero])?
            }
        }
    };
    let value = cx.astype(&difference, to)?;
    Ok(vec![cx.apply("multiply", &[&value, &scale])?])
}

fn dynamic_quantize(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "x")?;
    Ok(dynamically_quantized(cx, &x)?.to_vec())
}

/// To `uint8`, with the scale and zero point that the data asks for.
pub(super) fn dynamically_quantized(cx: &mut OpCx<'_>, x: &Value) -> Result<[Value; 3], Fail> {
    let dtype = cx.dtype(x, "x")?;
    let (zero, steps) = (cx.scalar(0.0, dtype)?, cx.scalar(255.0, dtype)?);
    let top = cx.apply("max", &[x])?;
    let top = cx.apply("maximum", &[&top, &zero])?;
    let bottom = cx.apply("min", &[x])?;
    let bottom = cx.apply("minimum", &[&bottom, &zero])?;
    let span = cx.apply("subtract", &[&top, &bottom])?;
    let scale = cx.apply("divide", &[&span, &steps])?;
    let offset = cx.apply("divide", &[&bottom, &scale])?;
    let offset = cx.apply("negative", &[&offset])?;
    let point = to_quantized(cx, &offset, None, DType::U8, true)?;
    let ratio = cx.apply("divide", &[x, &scale])?;
    let y = to_quantized(cx, &ratio, Some(&point), DType::U8, true)?;
    Ok([y, scale, point])
}

/// A zero point of the left operand of a product: one a row.
fn by_row(cx: &mut OpCx<'_>, zero: Option<Value>) -> Result<Option<Value>, Fail> {
    let Some(zero) = zero else { return Ok(None) };
    match &cx.dims(&zero, "the zero point")?[..] {
        [one] if one.is_int(1) => Ok(Some(cx.reshape(&zero, vec![])?)),
        [rows] => {
            let rows = rows.clone();
            Ok(Some(cx.reshape(&zero, vec![rows, PrimExpr::i64(1)])?))
        }
        _ => Ok(Some(zero)),
    }
}

fn matmul_integer(cx: &mut OpCx<'_>) -> Outputs {
    let (a, b) = (cx.input(0, "A")?, cx.input(1, "B")?);
    let (a_zero, b_zero) = (cx.optional(2), cx.optional(3));
    let a_zero = by_row(cx, a_zero)?;
    let a = centered(cx, &a, a_zero)?;
    let b = centered(cx, &b, b_zero)?;
    Ok(vec![cx.apply("matmul", &[&a, &b])?])
}

/// A zero point or scale of the weights of a convolution: one an output channel.
fn by_channel(cx: &mut OpCx<'_>, value: Value, rank: usize, axis: usize) -> Result<Value, Fail> {
    match &cx.dims(&value, "a parameter of the weights")?[..] {
        [one] if one.is_int(1) => cx.reshape(&value, vec![]),
        [channels] => {
            let mut shape = vec![PrimExpr::i64(1); rank];
            shape[axis] = channels.clone();
            cx.reshape(&value, shape)
        }
        _ => Ok(value),
    }
}

/// The padding of a convolution is the zero point, which is what zero is after it is taken away.
fn convolved(
    cx: &mut OpCx<'_>,
    x: &Value,
    x_zero: Option<Value>,
    w: &Value,
    w_zero: Option<Value>,
) -> Result<Value, Fail> {
    let rank = cx.rank(w, "the weights")?;
    let x = centered(cx, x, x_zero)?;
    let w_zero = w_zero.map(|z| by_channel(cx, z, rank, 0)).transpose()?;
    let w = centered(cx, w, w_zero)?;
    convolve(cx, x, w)
}

fn conv_integer(cx: &mut OpCx<'_>) -> Outputs {
    let (x, w) = (cx.input(0, "x")?, cx.input(1, "w")?);
    let (x_zero, w_zero) = (cx.optional(2), cx.optional(3));
    Ok(vec![convolved(cx, &x, x_zero, &w, w_zero)?])
}

/// `sums * (a * b / y)` quantized, with the scales as floats.
fn rescaled(cx: &mut OpCx<'_>, sums: &Value, a: &Value, b: &Value, y: &Value, zero: &Value) -> Result<Value, Fail> {
    let (a, b, y) = (cx.astype(a, DType::F32)?, cx.astype(b, DType::F32)?, cx.astype(y, DType::F32)?);
    let factor = cx.apply("multiply", &[&a, &b])?;
    let factor = cx.apply("divide", &[&factor, &y])?;
    let sums = cx.astype(sums, DType::F32)?;
    let ratio = cx.apply("multiply", &[&sums, &factor])?;
    let to = cx.dtype(zero, "y_zero_point")?;
    to_quantized(cx, &ratio, Some(zero), to, true)
}

fn qlinear_matmul(cx: &mut OpCx<'_>) -> Outputs {
    let (a, a_scale, a_zero) = (cx.input(0, "a")?, cx.input(1, "a_scale")?, cx.input(2, "a_zero_point")?);
    let (b, b_scale, b_zero) = (cx.input(3, "b")?, cx.input(4, "b_scale")?, cx.input(5, "b_zero_point")?);
    let (y_scale, y_zero) = (cx.input(6, "y_scale")?, cx.input(7, "y_zero_point")?);
    let a_zero = by_row(cx, Some(a_zero))?;
    let a_scale = by_row(cx, Some(a_scale))?.ok_or("a_scale is missing")?;
    let a = centered(cx, &a, a_zero)?;
    let b = centered(cx, &b, Some(b_zero))?;
    let sums = cx.apply("matmul", &[&a, &b])?;
    Ok(vec![rescaled(cx, &sums, &a_scale, &b_scale, &y_scale, &y_zero)?])
}

fn qlinear_conv(cx: &mut OpCx<'_>) -> Outputs {
    let (x, x_scale, x_zero) = (cx.input(0, "x")?, cx.input(1, "x_scale")?, cx.input(2, "x_zero_point")?);
    let (w, w_scale, w_zero) = (cx.input(3, "w")?, cx.input(4, "w_scale")?, cx.input(5, "w_zero_point")?);
    let (y_scale, y_zero) = (cx.input(6, "y_scale")?, cx.input(7, "y_zero_point")?);
    let bias = cx.optional(8);
    let rank = cx.rank(&w, "w")?;
    let sums = convolved(cx, &x, Some(x_zero), &w, Some(w_zero))?;
    let sums = biased(cx, sums, bias)?;
    let w_scale = by_channel(cx, w_scale, rank, 1)?;
    Ok(vec![rescaled(cx, &sums, &x_scale, &w_scale, &y_scale, &y_zero)?])
}
