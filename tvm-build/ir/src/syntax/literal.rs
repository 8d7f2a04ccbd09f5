//! Elements of constants written out: numbers to bytes and back.

use crate::dtype::{DType, TypeCode};

/// A number as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Int(i128),
    Float(f64),
    Bool(bool),
}

impl Number {
    fn as_f64(self) -> f64 {
        match self {
            Number::Int(v) => v as f64,
            Number::Float(v) => v,
            Number::Bool(v) => f64::from(u8::from(v)),
        }
    }
}

/// The little-endian bytes of one element. `None` when the type cannot be written out or the number does not fit it.
pub(super) fn encode(dtype: DType, v: Number) -> Option<Vec<u8>> {
    if dtype.lanes != 1 {
        return None;
    }
    Some(match dtype {
        DType::F64 => v.as_f64().to_le_bytes().to_vec(),
        DType::F32 => (v.as_f64() as f32).to_le_bytes().to_vec(),
        DType::F16 => f16_bits(v.as_f64()).to_le_bytes().to_vec(),
        DType::BF16 => bf16_bits(v.as_f64() as f32).to_le_bytes().to_vec(),
        DType::BOOL => match v {
            Number::Bool(b) => vec![u8::from(b)],
            Number::Int(i @ (0 | 1)) => vec![u8::from(i == 1)],
            _ => return None,
        },
        _ if dtype.is_integer() && matches!(dtype.bits, 8 | 16 | 32 | 64) => {
            let i = match v {
                Number::Int(i) => i,
                Number::Bool(b) => i128::from(b),
                Number::Float(_) => return None,
            };
            let bits = u32::from(dtype.bits);
            let (lo, hi) = if dtype.is_uint() {
                (0, (1i128 << bits) - 1)
            } else {
                (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
            };
            if !(lo..=hi).contains(&i) {
                return None;
            }
            i.to_le_bytes()[..usize::from(dtype.bits / 8)].to_vec()
        }
        _ => return None,
    })
}

/// The number of one element. `None` when the type cannot be written out.
pub(super) fn decode(dtype: DType, bytes: &[u8]) -> Option<Number> {
    Some(match dtype {
        DType::F64 => Number::Float(f64::from_le_bytes(bytes.try_into().ok()?)),
        DType::F32 => Number::Float(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
        DType::F16 => Number::Float(f16_value(u16::from_le_bytes(bytes.try_into().ok()?))),
        DType::BF16 => {
            let bits = u32::from(u16::from_le_bytes(bytes.try_into().ok()?)) << 16;
            Number::Float(f64::from(f32::from_bits(bits)))
        }
        DType::BOOL => Number::Bool(*bytes.first()? != 0),
        DType { code: TypeCode::Int | TypeCode::UInt, bits: 8 | 16 | 32 | 64, lanes: 1 } => {
            let mut wide = [0u8; 16];
            wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
            let v = i128::from_le_bytes(wide);
            let bits = u32::from(dtype.bits);
            let negative = dtype.is_int() && v >> (bits - 1) & 1 == 1;
            Number::Int(if negative { v - (1i128 << bits) } else { v })
        }
        _ => return None,
    })
}

fn bf16_bits(v: f32) -> u16 {
    let bits = v.to_bits();
    let rounded = if v.is_nan() { bits | 1 << 22 } else { bits.wrapping_add(0x7fff + (bits >> 16 & 1)) };
    u16::try_from(rounded >> 16).unwrap_or(0)
}

/// Rounds to the nearest half, ties to even.
fn f16_bits(v: f64) -> u16 {
    let sign = if v.is_sign_negative() { 0x8000 } else { 0 };
    let a = v.abs();
    if a.is_nan() {
        return sign | 0x7e00;
    }
    if a >= 65520.0 {
        return sign | 0x7c00;
    }
    // The spacing of halves around `a`: 2^-24 below the least normal number, else 2^(exponent - 10).
    let exponent = i32::try_from(a.to_bits() >> 52).unwrap_or(0) - 1023;
    let scale = f64::from(2.0f32).powi(exponent.max(-14) - 10);
    let steps = (a / scale).round_ties_even() as u32;
    // Steps carry over into the exponent where rounding reaches the next power of two.
    let base = u32::try_from((exponent.max(-14) + 14).max(0)).unwrap_or(0) << 10;
    sign | u16::try_from(base + steps).unwrap_or(0x7c00)
}

fn f16_value(bits: u16) -> f64 {
    let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        e => (1.0 + fraction / 1024.0) * 2f64.powi(e - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_trip() {
        for bits in 0..=u16::MAX {
            let v = f16_value(bits);
            if !v.is_nan() {
                assert_eq!(f16_bits(v), bits, "{v}");
            }
        }
        assert_eq!(f16_bits(65519.0), 0x7bff);
        assert_eq!(f16_bits(65520.0), 0x7c00);
        assert_eq!(f16_bits(2f64.powi(-25)), 0);
    }

    #[test]
    fn integers_are_checked() {
        assert_eq!(encode(DType::I8, Number::Int(-128)), Some(vec![0x80]));
        assert_eq!(encode(DType::I8, Number::Int(128)), None);
        assert_eq!(decode(DType::I8, &[0x80]), Some(Number::Int(-128)));
        assert_eq!(decode(DType::U64, &[0xff; 8]), Some(Number::Int(i128::from(u64::MAX))));
        assert_eq!(encode(DType::I32, Number::Float(1.5)), None);
    }
}
