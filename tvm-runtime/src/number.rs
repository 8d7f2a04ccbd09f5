//! Numbers as strings, as casts write and read them: at run time, and in the compiler, which folds casts of constants.

use core::fmt::{self, Write};

/// How a float is written: plain, with an exponent (`1e-05`, `2.5e+20`) where it is small or great; what is no number as
/// `NaN`, `INF` and `-INF`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Float {
    /// One of at most 32 bits: eight significant digits, without zeros at the end.
    Single(f32),
    /// One of 64 bits: as few digits as read back to it.
    Double(f64),
}

/// Digits of a float, and what else the standard library writes between them.
#[derive(Default)]
struct Digits {
    bytes: [u8; 32],
    len: usize,
}

impl Write for Digits {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let to = self.bytes.get_mut(self.len..self.len + s.len()).ok_or(fmt::Error)?;
        to.copy_from_slice(s.as_bytes());
        self.len += s.len();
        Ok(())
    }
}

impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, plain) = match *self {
            Float::Single(v) => (f64::from(v), 8),
            Float::Double(v) => (v, 16),
        };
        if value.is_nan() {
            return f.write_str("NaN");
        }
        if value.is_sign_negative() {
            f.write_char('-')?;
        }
        if value.is_infinite() {
            return f.write_str("INF");
        }
        let mut text = Digits::default();
        match self {
            Float::Single(_) => write!(text, "{:.7e}", value.abs())?,
            Float::Double(_) => write!(text, "{:e}", value.abs())?,
        }
        let text = text.bytes.get(..text.len).and_then(|t| core::str::from_utf8(t).ok()).ok_or(fmt::Error)?;
        let (digits, exponent) = text.split_once('e').ok_or(fmt::Error)?;
        let exponent: i32 = exponent.parse().map_err(|_| fmt::Error)?;
        let (first, rest) = digits.split_at(1);
        let rest = rest.trim_start_matches('.').trim_end_matches('0');
        if !(-4..plain).contains(&exponent) {
            let point = if rest.is_empty() { "" } else { "." };
            let sign = if exponent < 0 { '-' } else { '+' };
            return write!(f, "{first}{point}{rest}e{sign}{:02}", exponent.abs());
        }
        let Ok(whole) = usize::try_from(exponent) else {
            f.write_str("0.")?;
            (1..exponent.unsigned_abs()).try_for_each(|_| f.write_char('0'))?;
            return write!(f, "{first}{rest}");
        };
        let (inside, fraction) = rest.split_at(whole.min(rest.len()));
        write!(f, "{first}{inside}")?;
        (inside.len()..whole).try_for_each(|_| f.write_char('0'))?;
        if fraction.is_empty() { Ok(()) } else { write!(f, ".{fraction}") }
    }
}

/// The float that a string writes: plain or with an exponent, `NaN`, `INF`, `+INF` or `-INF` in any case, with white space
/// around it. Too great numbers are infinite.
pub fn float(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

/// The integer from `least` to `most` that a string writes; of a number with a fraction the part before the point.
pub fn int(text: &str, least: i128, most: i128) -> Option<i128> {
    let text = text.trim();
    // Beyond 2^53 a float would not hold what stands before the point.
    let whole =
        text.split_once('.').filter(|(_, rest)| rest.bytes().all(|b| b.is_ascii_digit())).map_or(text, |(w, _)| w);
    let value = match whole.parse::<i128>() {
        Ok(value) => value,
        // A cast of a float cuts fractions off, and gives the nearest integer for what is too great: out of range here.
        Err(_) => text.parse::<f64>().ok().filter(|v| v.is_finite())? as i128,
    };
    (least..=most).contains(&value).then_some(value)
}

/// The truth value that a string writes: `true` or `false` in any case, else whether its number is not 0.
pub fn truth(text: &str) -> Option<bool> {
    let text = text.trim();
    match [("true", true), ("false", false)].iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
        Some((_, value)) => Some(*value),
        None => float(text).map(|v| v != 0.0),
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn singles_are_written_with_eight_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (0.3, "0.30000001"),
            (-314.15927, "-314.15927"),
            (1e-4, "9.9999997e-05"),
            (0.001, "0.001"),
            (16777217.0, "16777216"),
            (1e7, "10000000"),
            (1e8, "1e+08"),
            (99999999.0, "1e+08"),
            (123456789.0, "1.2345679e+08"),
            (1e30, "1e+30"),
            (f32::MAX, "3.4028235e+38"),
            (f32::from_bits(1), "1.4012985e-45"),
            (f32::NAN, "NaN"),
            (f32::INFINITY, "INF"),
            (f32::NEG_INFINITY, "-INF"),
        ] {
            assert_eq!(Float::Single(value).to_string(), text);
        }
    }

    #[test]
    fn doubles_read_back() {
        for (value, text) in [
            (1.0 / 3.0, "0.3333333333333333"),
            (123456789.125, "123456789.125"),
            (1e15, "1000000000000000"),
            (1e16, "1e+16"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::from_bits(1), "5e-324"),
            (2.5e-5, "2.5e-05"),
            (-100.0, "-100"),
        ] {
            assert_eq!(Float::Double(value).to_string(), text);
            assert_eq!(float(text), Some(value));
        }
    }

    #[test]
    fn floats_are_read() {
        for (text, value) in [
            ("3.25", 3.25),
            (" 1e5\n", 1e5),
            ("1E-8", 1e-8),
            (".5", 0.5),
            ("1.", 1.0),
            ("+2", 2.0),
            ("1e400", f64::INFINITY),
        ] {
            assert_eq!(float(text), Some(value));
        }
        for text in ["INF", "+INF", "inf", "Infinity"] {
            assert_eq!(float(text), Some(f64::INFINITY));
        }
        assert_eq!(float("-Inf"), Some(f64::NEG_INFINITY));
        assert!(float("nAn").unwrap().is_nan());
        for text in ["", " ", ".", "1e", "1 2", "0x10", "1,5", "abc", "--1", "NaN1"] {
            assert_eq!((float(text), int(text, -9, 9), truth(text)), (None, None, None), "{text:?}");
        }
    }

    #[test]
    fn integers_and_truth_values_are_read() {
        let wide = |text| int(text, i64::MIN.into(), u64::MAX.into());
        assert_eq!(wide("18446744073709551615"), Some(u64::MAX.into()));
        assert_eq!(wide("-9223372036854775808"), Some(i64::MIN.into()));
        assert_eq!(
            (wide(" +7 "), wide("100.5"), wide("-2.9"), wide("1e3")),
            (Some(7), Some(100), Some(-2), Some(1000))
        );
        assert_eq!((wide("18446744073709551616"), wide("1e300"), wide("NaN"), wide("INF")), (None, None, None, None));
        assert_eq!((int("255", 0, 255), int("256", 0, 255), int("-1", 0, 255)), (Some(255), None, None));
        assert_eq!(["True", "0", "0.5", "FALSE", "NaN"].map(truth), [true, false, true, false, true].map(Some));
    }
}
