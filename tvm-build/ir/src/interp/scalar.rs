//! What operators, conversions and intrinsics compute on scalars: one definition for both interpreters.

use super::erf::erf;
use crate::dtype::DType;
use crate::float;
use crate::prim::{Intrinsic, wrap_int};
use std::f64::consts::LN_2;

/// The lesser; NaN wins.
pub(crate) fn min_f64(a: f64, b: f64) -> f64 {
    if a.is_nan() || a < b { a } else { b }
}

/// The greater; NaN wins.
pub(crate) fn max_f64(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}

/// The lesser; NaN wins.
pub(crate) fn min_f32(a: f32, b: f32) -> f32 {
    if a.is_nan() || a < b { a } else { b }
}

/// The greater; NaN wins.
pub(crate) fn max_f32(a: f32, b: f32) -> f32 {
    if a.is_nan() || a > b { a } else { b }
}

/// `a - floor(a / b) * b`, with the divisor's sign.
pub(crate) fn floormod_f64(a: f64, b: f64) -> f64 {
    let r = a % b;
    if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
}

/// A float as an integer or bool of a type: truncated, saturated, NaN is 0 (and true as a bool).
pub(crate) fn float_to_int(v: f64, to: DType) -> i64 {
    if to.is_bool() {
        return i64::from(v != 0.0);
    }
    if to.is_uint() {
        let max = if to.bits >= 64 { u64::MAX } else { (1u64 << to.bits) - 1 };
        return (v as u64).min(max) as i64;
    }
    let (min, max) = (to.min_int().unwrap_or(i64::MIN), to.max_int().unwrap_or(i64::MAX));
    (v as i64).clamp(min, max)
}

/// Half the range of exponents from here: `x * x ± 1` is `x * x`, and twice the greatest number is none.
const LARGE: f64 = 1e150;

fn acosh(x: f64) -> f64 {
    if x > LARGE { x.ln() + LN_2 } else { x.acosh() }
}

fn asinh(x: f64) -> f64 {
    if x.abs() > LARGE { (x.abs().ln() + LN_2).copysign(x) } else { x.asinh() }
}

/// The function of one float argument, in double precision; `None` when the intrinsic is none.
pub(crate) fn float_unary(f: Intrinsic) -> Option<fn(f64) -> f64> {
    use Intrinsic as I;
    Some(match f {
        I::Abs => f64::abs,
        I::Acos => f64::acos,
        I::Acosh => acosh,
        I::Asin => f64::asin,
        I::Asinh => asinh,
        I::Atan => f64::atan,
        I::Atanh => f64::atanh,
        I::Ceil => f64::ceil,
        I::Cos => f64::cos,
        I::Cosh => f64::cosh,
        I::Erf => erf,
        I::Exp => f64::exp,
        I::Exp10 => |x| 10f64.powf(x),
        I::Exp2 => f64::exp2,
        I::Floor => f64::floor,
        I::Log => f64::ln,
        I::Log10 => f64::log10,
        I::Log1p => f64::ln_1p,
        I::Log2 => f64::log2,
        I::Nearbyint | I::Round => f64::round_ties_even,
        I::Rsqrt => |x| 1.0 / x.sqrt(),
        I::Sigmoid => |x| 1.0 / (1.0 + (-x).exp()),
        I::Sin => f64::sin,
        I::Sinh => f64::sinh,
        I::Sqrt => f64::sqrt,
        I::Tan => f64::tan,
        I::Tanh => f64::tanh,
        I::Trunc => f64::trunc,
        _ => return None,
    })
}

/// The function of two float arguments, in double precision; `None` when the intrinsic is none.
pub(crate) fn float_binary(f: Intrinsic) -> Option<fn(f64, f64) -> f64> {
    use Intrinsic as I;
    Some(match f {
        I::Atan2 => f64::atan2,
        I::Copysign => f64::copysign,
        I::Fmod => |a, b| a % b,
        I::Hypot => f64::hypot,
        I::Pow => f64::powf,
        _ => return None,
    })
}

/// The function of one float that gives a bool.
pub(crate) fn float_test(f: Intrinsic) -> Option<fn(f64) -> bool> {
    Some(match f {
        Intrinsic::IsFinite => f64::is_finite,
        Intrinsic::IsInf => f64::is_infinite,
        Intrinsic::IsNan => f64::is_nan,
        _ => return None,
    })
}

/// An intrinsic of integers; `None` when it has no meaning for them.
pub(crate) fn int_intrinsic(f: Intrinsic, dtype: DType, args: [i64; 2]) -> Option<i64> {
    use Intrinsic as I;
    let [x, y] = args;
    let bits = u32::from(dtype.bits);
    let unsigned = (x as u64) & if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
    Some(match f {
        I::Abs if dtype.is_uint() => x,
        I::Abs => wrap_int(dtype, x.wrapping_abs()),
        I::BitNot => wrap_int(dtype, !x),
        I::Ceil | I::Floor | I::Round | I::Nearbyint | I::Trunc => x,
        I::Clz => i64::from(unsigned.leading_zeros()) - i64::from(64 - bits),
        I::Popcount => i64::from(unsigned.count_ones()),
        I::IsFinite => 1,
        I::IsInf | I::IsNan => 0,
        I::Pow => power(dtype, x, y),
        _ => return None,
    })
}

/// `x` to the `y`, wrapping; of a negative exponent the truncated quotient `1 / x^-y`.
fn power(dtype: DType, x: i64, y: i64) -> i64 {
    if y < 0 && !dtype.is_uint() {
        return match x {
            1 => 1,
            -1 => {
                if y % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        };
    }
    let (mut base, mut exponent, mut out) = (x, y as u64, 1i64);
    while exponent > 0 {
        if exponent & 1 == 1 {
            out = out.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    wrap_int(dtype, out)
}

/// `x * 2^n`, rounded once.
pub(crate) fn ldexp(x: f64, n: i64) -> f64 {
    let mut left = n.clamp(-2200, 2200);
    let mut out = x;
    // Growing first and shrinking in one last step keeps it to one rounding.
    while left > 1000 {
        out *= 2f64.powi(1000);
        left -= 1000;
    }
    while left < -1000 {
        out *= 2f64.powi(-900);
        left += 900;
    }
    out * 2f64.powi(i32::try_from(left).unwrap_or(0))
}

/// The next value of a float type after `x` toward `y`.
pub(crate) fn nextafter(dtype: DType, x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    if x == y {
        return y;
    }
    let sign = 1u64 << (dtype.bits.clamp(1, 64) - 1);
    if x == 0.0 {
        return float::decode(dtype, if y < 0.0 { sign | 1 } else { 1 });
    }
    let bits = float::encode(dtype, x);
    let away = (y > x) == (x > 0.0);
    float::decode(dtype, if away { bits + 1 } else { bits - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_wins() {
        for (a, b) in [(f64::NAN, 1.0), (1.0, f64::NAN)] {
            assert!(min_f64(a, b).is_nan() && max_f64(a, b).is_nan());
            assert!(min_f32(a as f32, b as f32).is_nan() && max_f32(a as f32, b as f32).is_nan());
        }
        assert_eq!((min_f64(2.0, 1.0), max_f64(2.0, 1.0)), (1.0, 2.0));
    }

    #[test]
    fn inverse_hyperbolic_functions_of_the_greatest_numbers() {
        for (f, sign) in [(Intrinsic::Acosh, 1.0), (Intrinsic::Asinh, 1.0), (Intrinsic::Asinh, -1.0)] {
            let f = float_unary(f).unwrap();
            assert!((f(sign * f64::MAX) - sign * 710.475_860_073_943_9).abs() < 1e-9);
            assert_eq!(f(sign * f64::INFINITY), sign * f64::INFINITY);
            assert!((f(sign * 1e150) - f(sign * 1.000_000_001e150)).abs() < 1e-8);
        }
    }

    #[test]
    fn conversions_saturate() {
        assert_eq!(float_to_int(f64::NAN, DType::I32), 0);
        assert_eq!(float_to_int(1e20, DType::I32), i64::from(i32::MAX));
        assert_eq!(float_to_int(-1e20, DType::I8), -128);
        assert_eq!(float_to_int(-3.9, DType::I8), -3);
        assert_eq!(float_to_int(-3.9, DType::U8), 0);
        assert_eq!(float_to_int(300.0, DType::U8), 255);
        assert_eq!(float_to_int(1e30, DType::U64) as u64, u64::MAX);
        assert_eq!(float_to_int(0.2, DType::BOOL), 1);
    }

    #[test]
    fn integers() {
        let one = |f, d, x| int_intrinsic(f, d, [x, 0]).unwrap();
        assert_eq!(one(Intrinsic::Clz, DType::I32, 1), 31);
        assert_eq!(one(Intrinsic::Clz, DType::U8, 0), 8);
        assert_eq!(one(Intrinsic::Popcount, DType::I8, -1), 8);
        assert_eq!(one(Intrinsic::Abs, DType::I8, -128), -128);
        assert_eq!(one(Intrinsic::BitNot, DType::U8, 0), 255);
        assert_eq!(int_intrinsic(Intrinsic::Pow, DType::I32, [3, 4]), Some(81));
        assert_eq!(int_intrinsic(Intrinsic::Pow, DType::I32, [-1, -3]), Some(-1));
    }

    #[test]
    fn neighbours() {
        assert_eq!(nextafter(DType::F32, 1.0, 2.0), f64::from(1.0f32 + f32::EPSILON));
        assert_eq!(nextafter(DType::F16, 0.0, -1.0), -2f64.powi(-24));
        assert_eq!(nextafter(DType::F64, -1.0, 0.0), -1.0 + f64::EPSILON / 2.0);
        assert_eq!(ldexp(1.5, 3), 12.0);
        assert_eq!(ldexp(1.0, -1074), 5e-324);
        assert_eq!(floormod_f64(-7.0, 3.0), 2.0);
    }
}
