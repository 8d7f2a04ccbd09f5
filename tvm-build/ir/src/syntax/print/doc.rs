//! Text with a precedence, numbers and strings as upstream writes them.

/// Precedence levels, weakest first, as Python's.
pub(super) mod level {
    pub(crate) const OR: u8 = 0;
    pub(crate) const AND: u8 = 1;
    pub(crate) const NOT: u8 = 2;
    pub(crate) const COMPARE: u8 = 3;
    pub(crate) const BIT_OR: u8 = 4;
    pub(crate) const BIT_XOR: u8 = 5;
    pub(crate) const BIT_AND: u8 = 6;
    pub(crate) const SHIFT: u8 = 7;
    pub(crate) const SUM: u8 = 8;
    pub(crate) const PRODUCT: u8 = 9;
    pub(crate) const UNARY: u8 = 10;
    pub(crate) const ATOM: u8 = 12;
}

/// An expression's text and how tightly its outermost operator binds.
#[derive(Clone, Debug)]
pub(super) struct Doc {
    pub(super) text: String,
    level: u8,
}

impl Doc {
    /// Text that never needs parentheses.
    pub(super) fn atom(text: impl Into<String>) -> Doc {
        Doc { text: text.into(), level: level::ATOM }
    }

    /// `name(args)`
    pub(super) fn call(name: &str, args: &[String]) -> Doc {
        Doc::atom(format!("{name}({})", args.join(", ")))
    }

    /// `a op b`: the left operand may bind as tightly as the operator, the right one must bind more tightly.
    pub(super) fn binary(op: &str, level: u8, a: Doc, b: Doc) -> Doc {
        Doc { text: format!("{} {op} {}", a.at_least(level), b.at_least(level + 1)), level }
    }

    /// `op a`
    pub(super) fn unary(op: &str, level: u8, a: Doc) -> Doc {
        Doc { text: format!("{op}{}", a.at_least(level)), level }
    }

    /// `a op b` where neither operand may bind as loosely as the operator.
    pub(super) fn compare(op: &str, a: Doc, b: Doc) -> Doc {
        let level = level::COMPARE;
        Doc { text: format!("{} {op} {}", a.at_least(level + 1), b.at_least(level + 1)), level }
    }

    /// `a as ty`; stands in parentheses below every operator.
    pub(super) fn cast(a: Doc, ty: &str) -> Doc {
        Doc { text: format!("{} as {ty}", a.at_least(level::UNARY)), level: level::OR }
    }

    /// The text, in parentheses unless it is an atom.
    pub(super) fn into_atom(self) -> String {
        self.at_least(level::ATOM)
    }

    fn at_least(self, level: u8) -> String {
        if self.level < level { format!("({})", self.text) } else { self.text }
    }
}

/// `(a, b)`, `(a,)`, `()`
pub(super) fn tuple(items: &[String]) -> String {
    match items {
        [one] => format!("({one},)"),
        _ => format!("({})", items.join(", ")),
    }
}

/// A string literal.
pub(super) fn quoted(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A float as C++ streams write it with 17 digits; whole numbers in full with `.0`; `"inf"`, `"-inf"`, `"nan"`.
pub(super) fn float(v: f64) -> String {
    if v.is_nan() {
        return "\"nan\"".into();
    }
    if v.is_infinite() {
        return if v > 0.0 { "\"inf\"".into() } else { "\"-inf\"".into() };
    }
    if v.fract() == 0.0 {
        return format!("{v:.1}");
    }
    let scientific = format!("{v:.16e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let strip = |s: &str| s.trim_end_matches('0').trim_end_matches('.').to_string();
    if !(-4..17).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", strip(mantissa), exponent.unsigned_abs());
    }
    let decimals = usize::try_from(16 - exponent).unwrap_or(0);
    strip(&format!("{v:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_as_upstream() {
        for (v, text) in [
            (0.0, "0.0"),
            (1e20, "100000000000000000000.0"),
            (1e-10, "1e-10"),
            (0.1, "0.10000000000000001"),
            (2.7182817, "2.7182816999999999"),
            (0.0001, "0.0001"),
            (1e-5, "1.0000000000000001e-05"),
            (1234567.125, "1234567.125"),
            (f64::NEG_INFINITY, "\"-inf\""),
        ] {
            assert_eq!(float(v), text);
        }
        assert_eq!(float(f64::from(0.1f32)), "0.10000000149011612");
    }

    #[test]
    fn precedence() {
        let v = |s: &str| Doc::atom(s);
        let sum = Doc::binary("+", level::SUM, v("a"), v("b"));
        assert_eq!(Doc::binary("-", level::SUM, sum.clone(), sum.clone()).text, "a + b - (a + b)");
        assert_eq!(Doc::binary("*", level::PRODUCT, sum, v("c")).text, "(a + b) * c");
    }
}
