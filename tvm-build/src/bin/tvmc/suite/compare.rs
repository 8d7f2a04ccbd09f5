//! Whether a result is the expected one, as NumPy's `assert_allclose` decides: same type and shape, each element within
//! `atol + rtol * |expected|`, NaN equal to NaN.

use tvm_ir::dtype::{DType, TypeCode};
use tvm_ir::float;

/// How far an element may be from the expected one.
#[derive(Clone, Copy)]
pub struct Tolerance {
    pub relative: f64,
    pub absolute: f64,
}

impl Tolerance {
    /// Two numbers in text, relative first.
    pub fn parse(text: &str) -> Option<Tolerance> {
        let mut numbers = text.split_whitespace().map(str::parse);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(relative)), Some(Ok(absolute)), None) => Some(Tolerance { relative, absolute }),
            _ => None,
        }
    }

    fn float(self, actual: f64, wanted: f64) -> bool {
        if actual.is_nan() || wanted.is_nan() {
            return actual.is_nan() && wanted.is_nan();
        }
        if actual.is_infinite() || wanted.is_infinite() {
            return actual == wanted;
        }
        (actual - wanted).abs() <= self.absolute + self.relative * wanted.abs()
    }

    fn int(self, actual: i128, wanted: i128) -> bool {
        actual == wanted || (actual - wanted).abs() as f64 <= self.absolute + self.relative * (wanted.abs() as f64)
    }
}

/// A tensor to compare.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub dtype: DType,
    pub shape: &'a [u64],
    pub data: &'a [u8],
}

/// `Err` says how the results differ.
pub fn compare(actual: View<'_>, wanted: View<'_>, tolerance: Tolerance) -> Result<(), String> {
    if actual.dtype != wanted.dtype {
        return Err(format!("its elements are {}, expected {}", actual.dtype, wanted.dtype));
    }
    if actual.shape != wanted.shape {
        return Err(format!("its shape is {:?}, expected {:?}", actual.shape, wanted.shape));
    }
    let count: u64 = wanted.shape.iter().product();
    let count = usize::try_from(count).map_err(|_| "it has too many elements".to_owned())?;
    let (mut wrong, mut first) = (0usize, None);
    for i in 0..count {
        let (a, w) = (element(actual, i), element(wanted, i));
        let same = match (a, w) {
            (Some(Number::Float(a)), Some(Number::Float(w))) => tolerance.float(a, w),
            (Some(Number::Int(a)), Some(Number::Int(w))) => tolerance.int(a, w),
            (Some(Number::Complex(a, b)), Some(Number::Complex(c, d))) => {
                tolerance.float(a, c) && tolerance.float(b, d)
            }
            _ => return Err(format!("elements of {} cannot be compared", wanted.dtype)),
        };
        if !same {
            wrong += 1;
            first.get_or_insert((i, a, w));
        }
    }
    match first {
        None => Ok(()),
        Some((i, a, w)) => {
            let at = index(i, wanted.shape);
            let show = |n: Option<Number>| n.map(|n| n.to_string()).unwrap_or_default();
            Err(format!("{wrong} of {count} elements differ, first {at:?}: {}, expected {}", show(a), show(w)))
        }
    }
}

/// An element as a number.
#[derive(Clone, Copy)]
enum Number {
    Float(f64),
    Int(i128),
    Complex(f64, f64),
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Float(v) => write!(f, "{v}"),
            Number::Int(v) => write!(f, "{v}"),
            Number::Complex(re, im) => write!(f, "{re}+{im}i"),
        }
    }
}

fn element(view: View<'_>, i: usize) -> Option<Number> {
    let bits = usize::from(view.dtype.bits);
    if view.dtype.code == TypeCode::Complex {
        let half = DType::new(TypeCode::Float, view.dtype.bits / 2);
        let parts = View { dtype: half, ..view };
        return match (element(parts, 2 * i)?, element(parts, 2 * i + 1)?) {
            (Number::Float(re), Number::Float(im)) => Some(Number::Complex(re, im)),
            _ => None,
        };
    }
    let raw = if view.dtype.is_bool() {
        u64::from(*view.data.get(i)? != 0)
    } else if bits < 8 {
        let per_byte = 8 / bits.max(1);
        u64::from(*view.data.get(i / per_byte)? >> (i % per_byte * bits)) & ((1 << bits) - 1)
    } else {
        let width = bits / 8;
        let bytes = view.data.get(i * width..(i + 1) * width)?;
        let mut word = [0; 8];
        word.get_mut(..width)?.copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let signed = || ((raw << (64 - bits)) as i64) >> (64 - bits);
    Some(match (view.dtype.code, bits) {
        (TypeCode::Float, 32) => Number::Float(f64::from(f32::from_bits(raw as u32))),
        (TypeCode::Float, 64) => Number::Float(f64::from_bits(raw)),
        (TypeCode::Int, _) => Number::Int(i128::from(signed())),
        (TypeCode::UInt | TypeCode::Bool, _) => Number::Int(i128::from(raw)),
        _ if view.dtype.is_float() => Number::Float(float::decode(view.dtype, raw)),
        _ => return None,
    })
}

/// The index of an element, an axis a number.
fn index(mut i: usize, shape: &[u64]) -> Vec<usize> {
    let mut at: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&extent| {
            let extent = usize::try_from(extent).unwrap_or(usize::MAX).max(1);
            let here = i % extent;
            i /= extent;
            here
        })
        .collect();
    at.reverse();
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSE: Tolerance = Tolerance { relative: 1e-3, absolute: 1e-7 };

    fn check(dtype: DType, shape: &[u64], actual: &[u8], wanted: &[u8]) -> Result<(), String> {
        compare(View { dtype, shape, data: actual }, View { dtype, shape, data: wanted }, CLOSE)
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn floats_are_close_and_what_is_not_finite_is_equal() {
        let f = |a: &[f32], b: &[f32]| check(DType::F32, &[2, 1], &floats(a), &floats(b));
        assert_eq!(f(&[1.0005, f32::NAN], &[1.0, f32::NAN]), Ok(()));
        assert_eq!(f(&[f32::INFINITY, 0.0], &[f32::INFINITY, -0.0]), Ok(()));
        assert_eq!(f(&[1.0, 3.0], &[1.0, 2.0]).unwrap_err(), "1 of 2 elements differ, first [1, 0]: 3, expected 2");
        for (a, b) in [(f32::NAN, 1.0), (1.0, f32::NAN), (f32::INFINITY, f32::MAX), (1.0, f32::NEG_INFINITY)] {
            assert!(f(&[a, 0.0], &[b, 0.0]).is_err());
        }
    }

    #[test]
    fn integers() {
        let big = i64::MAX.to_le_bytes();
        assert_eq!(check(DType::I64, &[], &big, &big), Ok(()));
        assert!(check(DType::I64, &[], &5i64.to_le_bytes(), &6i64.to_le_bytes()).is_err());
        assert_eq!(check(DType::I4, &[3], &[0x7F, 0x08], &[0x7F, 0x08]), Ok(()));
        let message = check(DType::I4, &[3], &[0x7F, 0x08], &[0x7F, 0x07]).unwrap_err();
        assert!(message.ends_with("first [2]: -8, expected 7"), "{message}");
        assert!(check(DType::BOOL, &[1], &[1], &[0]).is_err());
    }

    #[test]
    fn types_and_shapes() {
        let one = View { dtype: DType::F32, shape: &[1], data: &[0; 4] };
        let scalar = View { shape: &[], ..one };
        assert!(compare(one, scalar, CLOSE).unwrap_err().contains("shape"));
        let int = View { dtype: DType::I32, ..one };
        assert!(compare(one, int, CLOSE).unwrap_err().contains("float32, expected int32"));
        assert!(Tolerance::parse("0.001 1e-07\n").is_some());
        assert!(Tolerance::parse("0.001").is_none());
    }
}
