//! Narrow floats: `float16`, `bfloat16`, the 8-bit families and `float4_e2m1fn`, to and from bits.
//!
//! Every conversion to a narrow type rounds once, to nearest, ties to even. Beyond the largest finite value `float16`
//! and `bfloat16` give infinity; the 8-bit types saturate as ONNX's `Cast` with `saturate=1` does (infinity too becomes
//! the largest finite value).

use crate::dtype::{DType, TypeCode};

/// How a format spells what is not finite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Special {
    /// Infinities and NaNs under the all-ones exponent.
    Ieee,
    /// One NaN of each sign, all ones; no infinity.
    AllOnes,
    /// One NaN in the place of -0; no infinity.
    NegZero,
    /// Neither.
    None,
}

/// A binary format with a sign bit.
#[derive(Clone, Copy, Debug)]
struct Format {
    man_bits: u32,
    bias: i32,
    special: Special,
    /// Bits of the largest finite value.
    max: u64,
    sign: u64,
}

fn format(dtype: DType) -> Option<Format> {
    let f = |exp_bits: u32, man_bits: u32, bias: i32, special| {
        let all = (1u64 << (exp_bits + man_bits)) - 1;
        let max = match special {
            Special::Ieee => all - (1 << man_bits),
            Special::AllOnes => all - 1,
            Special::NegZero | Special::None => all,
        };
        Some(Format { man_bits, bias, special, max, sign: all + 1 })
    };
    match (dtype.code, dtype.bits) {
        (TypeCode::Float, 16) => f(5, 10, 15, Special::Ieee),
        (TypeCode::BFloat, 16) => f(8, 7, 127, Special::Ieee),
        (TypeCode::Float8E4M3FN, _) => f(4, 3, 7, Special::AllOnes),
        (TypeCode::Float8E4M3FNUZ, _) => f(4, 3, 8, Special::NegZero),
        (TypeCode::Float8E5M2, _) => f(5, 2, 15, Special::Ieee),
        (TypeCode::Float8E5M2FNUZ, _) => f(5, 2, 16, Special::NegZero),
        (TypeCode::Float4E2M1FN, _) => f(2, 1, 1, Special::None),
        _ => None,
    }
}

/// `2^e` for exponents of normal doubles.
fn pow2(e: i32) -> f64 {
    f64::from_bits(u64::try_from(e + 1023).unwrap_or(0) << 52)
}

/// What to do with values beyond the largest finite one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overflow {
    /// The largest finite value (8-bit and 4-bit types; the others give infinity all the same).
    Saturate,
    /// Infinity where there is one, else NaN, else the largest finite value.
    Special,
}

/// The bits of a number in a float type of at most 64 bits, rounded to nearest even; 8-bit types saturate.
/// `float32` and `float64` are converted as the machine does. Of a type that is no float: 0.
pub fn encode(dtype: DType, v: f64) -> u64 {
    encode_with(dtype, v, Overflow::Saturate)
}

/// [`encode`] with a choice for values out of range.
pub fn encode_with(dtype: DType, v: f64, overflow: Overflow) -> u64 {
    match (dtype.code, dtype.bits) {
        (TypeCode::Float, 32) => u64::from((v as f32).to_bits()),
        (TypeCode::Float, 64) => v.to_bits(),
        (TypeCode::Float8E8M0FNU, _) => encode_e8m0(v),
        _ => format(dtype).map_or(0, |f| encode_format(f, v, overflow)),
    }
}

fn encode_format(f: Format, v: f64, overflow: Overflow) -> u64 {
    let negative = v.is_sign_negative();
    let sign = if negative { f.sign } else { 0 };
    let nan = match f.special {
        Special::Ieee => f.max + 1 + (1 << (f.man_bits - 1)),
        Special::AllOnes => f.max + 1,
        // Where there is no NaN, -0 stands for it: as a number it does the least harm.
        Special::NegZero | Special::None => f.sign,
    };
    if v.is_nan() {
        return if matches!(f.special, Special::NegZero | Special::None) { nan } else { nan | sign };
    }
    let wide = f.sign >= 1 << 15;
    let too_large = || {
        let saturates = overflow == Overflow::Saturate && !wide;
        match f.special {
            _ if saturates => f.max | sign,
            Special::Ieee => (f.max + 1) | sign,
            Special::AllOnes => nan | sign,
            Special::NegZero => nan,
            Special::None => f.max | sign,
        }
    };
    let magnitude = v.abs();
    if magnitude.is_infinite() {
        return too_large();
    }
    let least = 1 - f.bias;
    let exponent = i32::try_from((magnitude.to_bits() >> 52) & 0x7ff).unwrap_or(0) - 1023;
    let man_bits = i32::try_from(f.man_bits).unwrap_or(0);
    let e = exponent.max(least);
    if e > f.bias + 1 {
        return too_large();
    }
    // In units of the last place this is exact, so that one rounding is all.
    let units = (magnitude * pow2(man_bits - e)).round_ties_even() as u64;
    let field = u64::try_from(e + f.bias).unwrap_or(0);
    let bits = (field << f.man_bits) + units - (1 << f.man_bits);
    if bits > f.max {
        return too_large();
    }
    // The `fnuz` types have one zero.
    if bits == 0 && f.special == Special::NegZero { 0 } else { bits | sign }
}

/// Powers of two alone: to the nearest exponent (1.5 and more rounds up), 0 to the least; negatives and NaN give NaN.
fn encode_e8m0(v: f64) -> u64 {
    if v.is_nan() || v < 0.0 || v == f64::INFINITY {
        return 0xff;
    }
    let exponent = i64::try_from((v.to_bits() >> 52) & 0x7ff).unwrap_or(0) - 1023;
    let up = i64::from(v.to_bits() >> 51 & 1 == 1);
    u64::try_from((exponent + up + 127).clamp(0, 0xfe)).unwrap_or(0)
}

/// The number of bits in a float type; exact. Of a type that is no float: 0.
pub fn decode(dtype: DType, bits: u64) -> f64 {
    match (dtype.code, dtype.bits) {
        (TypeCode::Float, 32) => f64::from(f32::from_bits(bits as u32)),
        (TypeCode::Float, 64) => f64::from_bits(bits),
        (TypeCode::Float8E8M0FNU, _) => match i32::try_from(bits & 0xff).unwrap_or(0) {
            0xff => f64::NAN,
            e => pow2(e - 127),
        },
        _ => format(dtype).map_or(0.0, |f| decode_format(f, bits)),
    }
}

fn decode_format(f: Format, bits: u64) -> f64 {
    let magnitude = bits & (f.sign - 1);
    let negative = bits & f.sign != 0;
    let value = match f.special {
        Special::NegZero if negative && magnitude == 0 => return f64::NAN,
        Special::AllOnes if magnitude > f.max => f64::NAN,
        Special::Ieee if magnitude == f.max + 1 => f64::INFINITY,
        Special::Ieee if magnitude > f.max => f64::NAN,
        _ => {
            let field = i32::try_from(magnitude >> f.man_bits).unwrap_or(0);
            let fraction = magnitude & ((1 << f.man_bits) - 1);
            let man_bits = i32::try_from(f.man_bits).unwrap_or(0);
            let units = if field == 0 { fraction } else { fraction + (1 << f.man_bits) };
            units as f64 * pow2(field.max(1) - f.bias - man_bits)
        }
    };
    if negative { -value } else { value }
}

/// A number rounded to a float type: the value that storing and loading gives.
pub fn round_to(dtype: DType, v: f64) -> f64 {
    match (dtype.code, dtype.bits) {
        (TypeCode::Float, 64) => v,
        (TypeCode::Float, 32) => f64::from(v as f32),
        _ => decode(dtype, encode(dtype, v)),
    }
}

/// `float16` from `float32`.
pub fn f16_from_f32(v: f32) -> u16 {
    encode(DType::F16, f64::from(v)) as u16
}

/// `float32` from `float16`; exact.
pub fn f16_to_f32(bits: u16) -> f32 {
    decode(DType::F16, u64::from(bits)) as f32
}

/// `bfloat16` from `float32`.
pub fn bf16_from_f32(v: f32) -> u16 {
    let bits = v.to_bits();
    if v.is_nan() {
        // Quiet, so that no payload is cut to an infinity.
        return ((bits >> 16) | 0x40) as u16;
    }
    let round = 0x7fff + ((bits >> 16) & 1);
    (bits.wrapping_add(round) >> 16) as u16
}

/// `float32` from `bfloat16`; exact.
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow() -> Vec<DType> {
        ["float16", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"]
            .iter()
            .map(|s| s.parse().unwrap())
            .collect()
    }

    #[test]
    fn every_value_survives() {
        for d in narrow() {
            for bits in 0..1u64 << d.bits {
                let v = decode(d, bits);
                if v.is_nan() {
                    assert!(decode(d, encode(d, v)).is_nan(), "{d} {bits:#x}");
                } else if v.is_infinite() && d.bits == 8 {
                    assert_eq!(decode(d, encode_with(d, v, Overflow::Special)), v, "{d} {bits:#x}");
                } else {
                    assert_eq!(encode(d, v), bits, "{d} {bits:#x} {v}");
                }
            }
        }
    }

    #[test]
    fn halves_go_to_even_and_the_rest_to_the_nearest() {
        for d in narrow() {
            let top = format(d).unwrap().max;
            for low in 0..top {
                let (a, b) = (decode(d, low), decode(d, low + 1));
                let middle = (a + b) / 2.0;
                let even = if low % 2 == 0 { low } else { low + 1 };
                assert_eq!(encode(d, middle), even, "{d} between {a} and {b}");
                let eps = (b - a) / 1024.0;
                assert_eq!(encode(d, middle - eps), low, "{d} {middle}");
                assert_eq!(encode(d, middle + eps), low + 1, "{d} {middle}");
                let negative = encode(d, -(middle - eps));
                assert_eq!(decode(d, negative), -a, "{d} -{middle}");
            }
        }
    }

    #[test]
    fn out_of_range() {
        let d = |s: &str| s.parse::<DType>().unwrap();
        let value = |s: &str, v: f64, o| decode(d(s), encode_with(d(s), v, o));
        let largest = [
            ("float8_e4m3fn", 448.0),
            ("float8_e4m3fnuz", 240.0),
            ("float8_e5m2", 57344.0),
            ("float8_e5m2fnuz", 57344.0),
        ];
        for (s, max) in largest {
            assert_eq!(value(s, 1e9, Overflow::Saturate), max, "{s}");
            assert_eq!(value(s, -1e9, Overflow::Saturate), -max, "{s}");
            let infinite = value(s, f64::INFINITY, Overflow::Saturate);
            assert_eq!(infinite, max, "{s}");
            let special = value(s, 1e9, Overflow::Special);
            assert!(if s == "float8_e5m2" { special == f64::INFINITY } else { special.is_nan() }, "{s} {special}");
        }
        assert_eq!(value("float16", 65519.9, Overflow::Saturate), 65504.0);
        assert_eq!(value("float16", 65520.0, Overflow::Saturate), f64::INFINITY);
        assert_eq!(value("bfloat16", 3.4e38, Overflow::Saturate), f64::INFINITY);
        assert_eq!(value("float4_e2m1fn", -100.0, Overflow::Saturate), -6.0);
        assert_eq!(encode(d("float4_e2m1fn"), f64::NAN), 8);
        assert_eq!(value("float16", 5e-324, Overflow::Saturate), 0.0);
        let e8 = d("float8_e8m0fnu");
        for (v, want) in [(1.0, 1.0), (1.49, 1.0), (1.5, 2.0), (3.0, 4.0), (0.0, pow2(-127)), (1e39, pow2(127))] {
            assert_eq!(decode(e8, encode(e8, v)), want, "{v}");
        }
        assert!(decode(e8, encode(e8, -1.0)).is_nan());
    }

    #[test]
    fn fast_paths_agree() {
        let mut x = 1u32;
        for i in 0..2_000_000u32 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let v = f32::from_bits(if i < 70000 { i << 16 | 0x8000 } else { x });
            if v.is_nan() {
                assert!(bf16_to_f32(bf16_from_f32(v)).is_nan());
                continue;
            }
            assert_eq!(u64::from(bf16_from_f32(v)), encode(DType::BF16, f64::from(v)), "{v}");
        }
    }
}
