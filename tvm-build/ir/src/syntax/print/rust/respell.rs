//! Messages, which speak TVMScript, in the Rust spelling.

use super::Writer;
use crate::span::SourceId;
use crate::syntax::ast::ExprKind;
use crate::syntax::grammar::parse_fragment;
use crate::syntax::rust_words::type_word;

/// Phrases of messages that have a wording of their own.
const PHRASES: &[(&str, &str)] = &[
    ("neither @R.function nor @T.prim_func", "neither #[R::function] nor #[T::prim_func]"),
    ("a local function needs @R.function", "a local function needs #[R::function]"),
    ("`//` (rounds down)", "T::floordiv (rounds down)"),
    ("`with T.block(\"name\"):`", "`T::block(\"name\", { … });`"),
    ("`with R.dataflow():`", "`R::dataflow({ … });`"),
    ("`with R.dataflow()`", "the block of `R::dataflow`"),
    ("end it with `return`", "end it with the value to return"),
    ("write R.Tensor(shape, dtype), R.Object, …", "write R::Tensor<f32, 1, N>, R::Object, …"),
    ("write T.Buffer(shape, dtype), T.int64, T.handle, …", "write T::Buffer<f32, 16, N>, i64, T::handle, …"),
    ("expected a type, as R.Tensor((1, 4), dtype=\"float32\")", "expected a type, as R::Tensor<f32, 1, 4>"),
    (
        "argument `out_sinfo` is missing",
        "the type of the outputs is missing: write R::call_tir::<R::Tensor<f32, N>>(f, (x,))",
    ),
    ("cannot be opened with `with`", "opens no block"),
    ("write R.const(…, \"float32\")", "write R::constant(…, f32)"),
    ("cast one with T.Cast", "cast one with `as`"),
    ("T.LetStmt", "`let`"),
    ("with `and`", "with `&&`"),
    ("a class inside", "a module inside"),
    ("one T.init", "one T::init"),
    ("T.func_attr({\"tir.check_bounds\": True})", "#[T::check_bounds] above the function"),
    ("@R.function(pure=False)", "#[R::function(pure = false)]"),
];

/// The text with what it quotes of TVMScript in the Rust spelling.
pub(in crate::syntax) fn respell(text: &str) -> String {
    let mut text = text.to_string();
    for (from, to) in PHRASES {
        text = text.replace(from, to);
    }
    if let Some((head, symbol)) = split_call_tir(&text) {
        text = format!("{head}R::call_tir::<R::Tensor<…>>({symbol}, (…,))");
    }
    if let Some((head, dtype, tail)) = split_cast(&text) {
        text = format!("{head}`… as {dtype}`{tail}");
    }
    // Every other part stands in backticks.
    let parts: Vec<String> = text.split('`').enumerate().map(|(i, p)| respell_part(p, i % 2 == 1)).collect();
    parts.join("`")
}

fn respell_part(text: &str, quoted: bool) -> String {
    if quoted && (text.contains(['[', '/']) || text.contains(" and ")) {
        let (head, code) = text.strip_prefix("if ").map_or(("", text), |rest| ("if ", rest));
        if let Some(code) = respell_code(code) {
            return format!("{head}{code}");
        }
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let inside = out.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.' || c == ':' || c == '"');
        let spelled = if inside { None } else { respell_at(rest).or_else(|| respell_type(rest)) };
        match spelled {
            Some((written, len)) => {
                out.push_str(&written);
                rest = &rest[len..];
            }
            None => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

/// An expression that is quoted whole.
fn respell_code(text: &str) -> Option<String> {
    let text = text.trim_end_matches('…');
    let e = parse_fragment(SourceId(0), text, 0).ok()?;
    matches!(e.kind, ExprKind::Index(..) | ExprKind::Binary(..) | ExprKind::Compare(..)).then_some(())?;
    Some(Writer::default().expr(&e))
}

/// A type by its long name: `float32` becomes `f32`.
fn respell_type(text: &str) -> Option<(String, usize)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let word = text.get(..end).filter(|w| w.ends_with(|c: char| c.is_ascii_digit()))?;
    let short = type_word(word.parse().ok()?);
    (short != word).then_some((short, end))
}

/// `… R.call_tir(cls.f, (…), out_sinfo=…)`: what stands before, and `f`.
fn split_call_tir(text: &str) -> Option<(String, String)> {
    let (head, rest) = text.split_once("R.call_tir(cls.")?;
    let (symbol, _) = rest.split_once(", (…), out_sinfo=…)")?;
    Some((head.to_string(), symbol.to_string()))
}

/// `… T.Cast("int32", …) …`: what stands before, the type's word, and what stands behind.
fn split_cast(text: &str) -> Option<(String, String, String)> {
    let (head, rest) = text.split_once("T.Cast(\"")?;
    let (dtype, tail) = rest.split_once("\", …)")?;
    Some((head.to_string(), type_word(dtype.parse().ok()?), tail.to_string()))
}

/// What stands at the start of a text, spelled anew, and how long it was.
fn respell_at(text: &str) -> Option<(String, usize)> {
    if let Some(rest) = text.strip_prefix("cls.") {
        let len = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        return Some((rest[..len].to_string(), 4 + len));
    }
    let starts = ["R.", "T.", "I."].iter().any(|p| text.starts_with(p));
    if !starts || !text[2..].starts_with(|c: char| c.is_alphabetic()) {
        return None;
    }
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut len = text.find(|c: char| !word(c)).unwrap_or(text.len());
    while text[..len].ends_with('.') {
        len -= 1;
    }
    let path = &text[..len];
    let end = if text[len..].starts_with('(') { closing(&text[len..]).map(|n| len + n) } else { None };
    let end = end.unwrap_or(len);
    let is_type = ["R.Tensor", "R.Shape", "R.Tuple", "R.Prim", "R.Object", "R.Callable", "T.Buffer"].contains(&path);
    let parsed = parse_fragment(SourceId(0), &text[..end], 0).ok();
    match parsed {
        Some(e) if end > len => {
            let mut w = Writer::default();
            let spelled = if is_type { w.ty(&e) } else { w.expr(&e) };
            Some((spelled, end))
        }
        Some(e) if matches!(e.kind, ExprKind::Attr(..)) => {
            let path = if path == "R.const" { "R.constant" } else { path };
            Some((path.replace('.', "::"), len))
        }
        _ => Some((path.replace('.', "::"), len)),
    }
}

/// The length up to the bracket that closes the first one.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(i + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::respell;

    #[test]
    fn messages_are_respelled() {
        for (from, to) in [
            ("R.matmul: 1 argument given", "R::matmul: 1 argument given"),
            ("this is R.Tensor((1, n), dtype=\"float32\")", "this is R::Tensor<f32, 1, n>"),
            ("did you mean R.nn.relu?", "did you mean R::nn::relu?"),
            (
                "call it with R.call_tir(cls.add, (…), out_sinfo=…)",
                "call it with R::call_tir::<R::Tensor<…>>(add, (…,))",
            ),
            ("`main` is neither @R.function nor @T.prim_func", "`main` is neither #[R::function] nor #[T::prim_func]"),
            ("cast it: T.Cast(\"int32\", …)", "cast it: `… as i32`"),
            ("x.T. and VAR.name stay", "x.T. and VAR.name stay"),
        ] {
            assert_eq!(respell(from), to);
        }
    }
}
