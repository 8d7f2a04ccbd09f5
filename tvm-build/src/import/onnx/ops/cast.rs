//! Casts, with ONNX's choices for what a narrow float cannot hold.

use tvm_ir::attrs::AttrValue;
use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::dtype::{DType, TypeCode};

use super::Row;
use super::create::element_type;
use super::text_cast::{of_text, to_text};
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[("BitCast", 26, bit_cast), ("Cast", 6, cast), ("CastLike", 15, cast_like)];

fn astype(cx: &mut OpCx<'_>, value: &Value, to: DType) -> Result<Value, Fail> {
    cx.call("astype", vec![value.clone()], vec![("dtype", AttrValue::DType(to))])
}

fn bit_cast(cx: &mut OpCx<'_>) -> Outputs {
    let value = cx.input(0, "input")?;
    let code = cx.node.int("to")?.ok_or("attribute 'to' is missing")?;
    Ok(vec![bits(cx, &value, element_type(code)?)?])
}

fn bits(cx: &mut OpCx<'_>, value: &Value, to: DType) -> Result<Value, Fail> {
    cx.call("bitcast", vec![value.clone()], vec![("dtype", AttrValue::DType(to))])
}

fn cast(cx: &mut OpCx<'_>) -> Outputs {
    let value = cx.input(0, "input")?;
    let code = cx.node.int("to")?.ok_or("attribute 'to' is missing")?;
    convert(cx, value, element_type(code)?)
}

fn cast_like(cx: &mut OpCx<'_>) -> Outputs {
    let (value, target) = (cx.input(0, "input")?, cx.input(1, "target_type")?);
    let to = cx.dtype(&target, "target_type")?;
    convert(cx, value, to)
}

/// The conversion of `Cast`: `saturate` says what becomes of numbers beyond an 8-bit float, `round_mode` how to round
/// to `float8_e8m0fnu`.
fn convert(cx: &mut OpCx<'_>, value: Value, to: DType) -> Outputs {
    let saturate = cx.node.flag_or("saturate", true)?;
    let mode = cx.node.string_or("round_mode", "up")?;
    let mode = match mode {
        "up" => Round::Up,
        "down" => Round::Down,
        "nearest" => Round::Nearest,
        other => return Err(format!("attribute 'round_mode' cannot be '{other}'").into()),
    };
    let from = cx.dtype(&value, "input")?;
    if from == to {
        return Ok(vec![value]);
    }
    if to == DType::TEXT {
        return Ok(vec![to_text(cx, &value)?]);
    }
    let value = if from == DType::TEXT { of_text(cx, &value, to)? } else { value };
    if cx.dtype(&value, "input")? == to {
        return Ok(vec![value]);
    }
    let out = match to.code {
        TypeCode::Float8E8M0FNU => to_e8m0(cx, &value, mode, saturate)?,
        // Until version 24 an infinity became NaN in the types that have none and one NaN only.
        TypeCode::Float8E4M3FNUZ | TypeCode::Float8E5M2FNUZ if saturate && cx.opset < 24 => {
            nan_beyond(cx, &value, to, f64::INFINITY)?
        }
        // What is out of range is undefined by the standard; its reference keeps the low bits.
        TypeCode::Int | TypeCode::UInt if to.is_packed() && cx.dtype(&value, "input")?.is_float() => {
            let wide = astype(cx, &value, DType::I32)?;
            astype(cx, &wide, to)?
        }
        _ if saturate => astype(cx, &value, to)?,
        _ => unsaturated(cx, &value, to)?,
    };
    Ok(vec![out])
}

/// A conversion to an 8-bit float in which what is too great becomes an infinity where there is one, else NaN; to
/// other types the conversion of `astype`.
pub(super) fn unsaturated(cx: &mut OpCx<'_>, value: &Value, to: DType) -> Result<Value, Fail> {
    // From where on values round to what there is not: half-way to the next number, which is even or odd.
    let limit = match to.code {
        TypeCode::Float8E4M3FN => f64::from_bits(464f64.to_bits() + 1),
        TypeCode::Float8E4M3FNUZ => 248.0,
        TypeCode::Float8E5M2 | TypeCode::Float8E5M2FNUZ => 61440.0,
        _ => return astype(cx, value, to),
    };
    nan_beyond(cx, value, to, limit)
}

/// `value` as an 8-bit float; from `limit` on the infinity or NaN of the type.
fn nan_beyond(cx: &mut OpCx<'_>, value: &Value, to: DType, limit: f64) -> Result<Value, Fail> {
    let (above, below) = match to.code {
        TypeCode::Float8E4M3FN => (0x7f, 0xff),
        TypeCode::Float8E5M2 => (0x7c, 0xfc),
        _ => (0x80, 0x80),
    };
    // Integers are compared as doubles: those that are not exact there are far beyond every limit.
    let value = if cx.dtype(value, "input")?.is_float() { value.clone() } else { astype(cx, value, DType::F64)? };
    let from = cx.dtype(&value, "input")?;
    let out = astype(cx, &value, to)?;
    let special = |bits: u8| Constant::new(to, vec![], Bytes::new(vec![bits])).map_err(|_| "a constant is malformed");
    let (above, below): (Value, Value) = (special(above)?.into(), special(below)?.into());
    // Of two floats of 8 bits, and of what is not exact in the type compared in, the wider one decides.
    let wide = if from.bits >= 64 { DType::F64 } else { DType::F32 };
    let value = if from == wide { value } else { astype(cx, &value, wide)? };
    let limit = if wide == DType::F32 { f64::from(round_up(limit)) } else { limit };
    let (limit, zero) = (cx.scalar(limit, wide)?, cx.scalar(0.0, wide)?);
    let positive = cx.apply("less", &[&zero, &value])?;
    let beyond = cx.apply("where", &[&positive, &above, &below])?;
    let size = cx.apply("abs", &[&value])?;
    let too_large = cx.apply("greater_equal", &[&size, &limit])?;
    cx.apply("where", &[&too_large, &beyond, &out])
}

/// The least `f32` that is not below a positive number.
fn round_up(v: f64) -> f32 {
    let nearest = v as f32;
    if f64::from(nearest) < v { f32::from_bits(nearest.to_bits() + 1) } else { nearest }
}

/// How numbers between two powers of two are rounded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    Up,
    Down,
    Nearest,
}

/// Powers of two, from the bits of a `float32`: the exponent field plus one where the fraction says so. NaN and
/// numbers below zero, of which the standard says nothing, give NaN; what is out of range the least or greatest power,
/// or NaN where that is not wanted.
fn to_e8m0(cx: &mut OpCx<'_>, value: &Value, mode: Round, saturate: bool) -> Result<Value, Fail> {
    let to = DType::new(TypeCode::Float8E8M0FNU, 8);
    let x = if cx.dtype(value, "input")? == DType::F32 { value.clone() } else { astype(cx, value, DType::F32)? };
    let signed = bits(cx, &x, DType::I32)?;
    let all = int(cx, i32::MAX)?;
    let magnitude = cx.apply("bitwise_and", &[&signed, &all])?;
    // What is added carries into the exponent. Below 2^-126 there is one power left, 2^-127, and no exponent field:
    // numbers under `lowest` go to it.
    let (carry, lowest) = match mode {
        Round::Up => (0x7f_ffff, 0x40_0001),
        Round::Nearest => (0x40_0000, 0x60_0000),
        Round::Down => (0, 0),
    };
    let (carry, lowest, zero) = (int(cx, carry)?, int(cx, lowest)?, int(cx, 0)?);
    let (fraction, greatest, none) = (int(cx, 23)?, int(cx, 0xfe)?, int(cx, 0xff)?);
    let sum = cx.apply("add", &[&magnitude, &carry])?;
    let exponent = cx.apply("right_shift", &[&sum, &fraction])?;
    let small = cx.apply("less", &[&magnitude, &lowest])?;
    let mut code = cx.apply("where", &[&small, &zero, &exponent])?;
    if saturate {
        code = cx.apply("minimum", &[&code, &greatest])?;
    } else {
        let least = int(cx, 0x40_0000)?;
        let below = cx.apply("less", &[&magnitude, &least])?;
        code = cx.apply("minimum", &[&code, &none])?;
        code = cx.apply("where", &[&below, &none, &code])?;
    }
    let infinity = int(cx, 0x7f80_0000)?;
    let nan = cx.apply("less", &[&infinity, &magnitude])?;
    let origin = cx.scalar(0.0, DType::F32)?;
    let negative = cx.apply("less", &[&x, &origin])?;
    let absent = cx.apply("logical_or", &[&nan, &negative])?;
    let code = cx.apply("where", &[&absent, &none, &code])?;
    let byte = astype(cx, &code, DType::U8)?;
    bits(cx, &byte, to)
}

fn int(cx: &OpCx<'_>, v: i32) -> Result<Value, Fail> {
    cx.scalar(f64::from(v), DType::I32)
}
