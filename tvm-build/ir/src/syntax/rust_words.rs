//! Words of the Rust spelling: scalar types and keywords.

use crate::dtype::DType;

/// Keywords that cannot be raw identifiers.
const NEVER_RAW: &[&str] = &["self", "Self", "super", "crate", "_"];

const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// The type that a word stands for: `f32`, `bf16`, `i8x4`, `bool`, or TVM's own name as `float8_e4m3fn`.
pub(super) fn scalar_type(word: &str) -> Option<DType> {
    for (short, long) in [("bf", "bfloat"), ("f", "float"), ("i", "int"), ("u", "uint")] {
        if let Some(rest) = word.strip_prefix(short).filter(|r| r.starts_with(|c: char| c.is_ascii_digit())) {
            // Only whole bytes have a short word: `i1` and `i4` are loop variables.
            let bits = rest.split('x').next().unwrap_or(rest);
            return if matches!(bits, "8" | "16" | "32" | "64") { format!("{long}{rest}").parse().ok() } else { None };
        }
    }
    word.parse().ok()
}

/// How the Rust spelling writes a type: `f32` for `float32`.
pub(super) fn type_word(dtype: DType) -> String {
    let long = dtype.to_string();
    for (short, name) in [("bf", "bfloat"), ("f", "float"), ("i", "int"), ("u", "uint")] {
        if let Some(rest) = long.strip_prefix(name) {
            let word = format!("{short}{rest}");
            if scalar_type(&word) == Some(dtype) {
                return word;
            }
        }
    }
    long
}

/// Whether a word can name something only after a change: the name of a scalar type, or a keyword without a raw form.
pub(super) fn is_unusable(word: &str) -> bool {
    (NEVER_RAW.contains(&word) && word != "_") || scalar_type(word).is_some()
}

/// An identifier, raw where it is a keyword.
pub(super) fn ident(word: &str) -> String {
    if KEYWORDS.contains(&word) { format!("r#{word}") } else { word.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_one_word() {
        for (dtype, word) in
            [("float32", "f32"), ("bfloat16", "bf16"), ("int8x4", "i8x4"), ("uint64", "u64"), ("bool", "bool")]
        {
            let dtype: DType = dtype.parse().unwrap();
            assert_eq!(type_word(dtype), word);
            assert_eq!(scalar_type(word), Some(dtype));
        }
        assert_eq!(scalar_type("i"), None);
        assert_eq!(scalar_type("i1"), None);
        assert_eq!(type_word("int4".parse().unwrap()), "int4");
        assert_eq!(scalar_type("f1"), None);
    }
}
