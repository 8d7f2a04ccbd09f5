//! Mutated and hostile Rust spelling: any tokens give a module or located errors, never a panic, in bounded time.

use super::fuzz::Rng;
use super::*;
use crate::syntax::rust::{Modules, TokenSpans, check_item};
use std::time::{Duration, Instant};

/// Words that are put between others.
const SPICE: &[&str] = &[
    "mod",
    "m",
    "{",
    "}",
    "fn",
    "f",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    "::",
    "::<",
    "#[R::function]",
    "#[T::prim_func]",
    "#[T::check_bounds]",
    "#[cfg(any())]",
    "#![allow(unused)]",
    "pub",
    "pub(crate)",
    "x",
    ":",
    "R::Tensor",
    "T::Buffer",
    "f32",
    "f32x4",
    "int4",
    "bool",
    "1",
    ",",
    "let",
    "let mut",
    "=",
    "==",
    "+=",
    ";",
    "if",
    "else",
    "for",
    "in",
    "..",
    "..=",
    "while",
    "loop",
    "match",
    "return",
    "break",
    "T::block",
    "T::init",
    "R::dataflow",
    "R::output",
    "\"a\"",
    "'a'",
    "b\"x\"",
    "+",
    "-",
    "!",
    "&",
    "&mut",
    "*",
    "->",
    "=>",
    "R::add",
    "R::constant",
    "R::call_tir",
    "static",
    "as",
    "_",
    "'a",
    "I::dict",
    "I::metadata",
    "{ N + 1 }",
    "1.5f32",
    "1e400",
    "0xffff_ffff_ffff_ffff_ffff",
    "170141183460469231731687303715884105727",
    "99999999999999999999999999999999999999999999",
    "1usize",
    "1_000i8",
    "1f16",
    "r#type",
    "r#fn",
    "r#where",
    "größe",
    "变量",
    "self",
    "Self",
    "super",
    "crate",
    "$x",
    "assert!(x, \"m\")",
    "println!(\"{}\", x)",
    "vec![1, 2]",
    "macro_rules!",
    "unsafe",
    "async",
    "await",
    "dyn",
    "impl",
    "where",
    "const",
    "|x| x",
    "x?",
    "&&",
    "||",
    "<<",
    ">>",
    "@",
    "~",
    "?",
    ".0",
    ".x",
    ".relu()",
    "\u{301}",
];

/// The modules that mutations start from: every ui case, good modules in the Rust spelling.
fn bases() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/ui");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "rs"));
    paths.sort();
    let mut out: Vec<String> = Vec::new();
    for p in paths {
        let text = std::fs::read_to_string(p).unwrap();
        let inner =
            text.split_once("ir_module! {").and_then(|(_, rest)| rest.rsplit_once("\n}\n")).map(|(inner, _)| inner);
        out.extend(inner.map(str::to_string));
    }
    for text in TUTORIAL.into_iter().chain([include_str!("kitchen_sink.py")]) {
        let (rust, _) = print_rust(&parse(text), "m").unwrap();
        // Short enough that a mutation hits what matters.
        out.push(rust.chars().take(6000).collect());
        out.push(rust);
    }
    out
}

/// The text in pieces that a mutation moves: words and signs, with the space after them.
fn pieces(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let len = if word(c) { rest.find(|c| !word(c)).unwrap_or(rest.len()) } else { c.len_utf8() };
        out.push(&rest[..len]);
        rest = &rest[len..];
    }
    out
}

fn mutate(rng: &mut Rng, text: &str) -> String {
    let mut words = pieces(text);
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(words.len());
        let end = (at + 1 + rng.below(8)).min(words.len());
        let kind = |w: &str| w.chars().next().map(|c| (c.is_alphabetic(), c.is_ascii_digit()));
        match rng.below(9) {
            // A word in the place of one of its kind: what syn accepts.
            5.. => {
                let start = rng.below(words.len());
                let like = |w: &&str| kind(w).is_some_and(|k| k != (false, false));
                let found = (start..words.len()).find(|i| like(&words[*i]));
                let Some(found) = found else { continue };
                let others: Vec<&str> = words.iter().copied().filter(|w| kind(w) == kind(words[found])).collect();
                words[found] = others[rng.below(others.len())];
            }
            0 => drop(words.drain(at..end)),
            1 => words.insert(at, SPICE[rng.below(SPICE.len())]),
            2 => words[at] = SPICE[rng.below(SPICE.len())],
            3 => {
                let from = rng.below(words.len());
                let piece = words[from..(from + 20).min(words.len())].to_vec();
                words.splice(at..at, piece);
            }
            _ => {
                let other = rng.below(words.len());
                words.swap(at, other);
            }
        }
        if words.is_empty() {
            words.push("x");
        }
    }
    // Spaces keep pieces apart that were.
    words.iter().flat_map(|w| [*w, if w.starts_with(char::is_alphanumeric) { " " } else { "" }]).collect()
}

/// Reads the text as the macro reads its tokens.
fn check(text: &str) -> usize {
    let start = Instant::now();
    let mut errors = 0;
    let Ok(tokens) = text.parse::<proc_macro2::TokenStream>() else { return 0 };
    if let Ok(Modules(items)) = Modules::read(tokens) {
        for item in &items {
            let (mut sources, mut spans) = (SourceMap::default(), TokenSpans::default());
            match check_item(&mut sources, &mut spans, item) {
                Ok(checked) => drop(print_module(&checked.module, Dialect::Tutorial)),
                Err(diags) => {
                    assert!(diags.has_errors(), "an empty error");
                    for d in &diags.0 {
                        assert!(!d.message.is_empty(), "an error without a message");
                        assert!(spans.get(d.span()).is_some(), "`{}` has no place", d.message);
                        spans.text_of(d);
                    }
                    errors += diags.0.len();
                }
            }
        }
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    errors
}

#[test]
fn mutated_modules_never_panic() {
    let bases = bases();
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    let mut errors = 0;
    for i in 0..2500 {
        let text = mutate(&mut rng, &bases[i % bases.len()]);
        match std::panic::catch_unwind(|| check(&text)) {
            Ok(n) => errors += n,
            Err(_) => panic!("round {i}:\n{text}"),
        }
    }
    // The mutations reach what lies behind syn.
    assert!(errors > 300, "{errors}");
}

/// A function around an expression, in TensorIR and in Relax.
fn around(e: &str) -> [String; 2] {
    [
        format!("mod m {{ #[T::prim_func] fn f(a: T::Buffer<f32, 16>) {{ a[0] = {e}; }} }}"),
        format!("mod m {{ #[R::function] pub fn f(x: R::Tensor<f32, 16>) -> R::Object {{ {e} }} }}"),
    ]
}

#[test]
fn deep_nesting_is_an_error() {
    let n = 8_000;
    for (open, middle, close) in [
        ("(", "x", ")"),
        ("[", "x", "]"),
        ("{", "x", "}"),
        ("-", "x", ""),
        ("!", "x", ""),
        ("&", "x", ""),
        ("*", "x", ""),
        ("T::exp(", "x", ")"),
        ("R::add(x, ", "x", ")"),
        ("x + ", "x", ""),
        ("x = ", "x", ""),
        ("if x { x } else ", "{ x }", ""),
        ("if x { ", "x", " } else { x }"),
        ("for i in 0..4 { ", "", "}"),
        ("T::block(\"b\", { ", "", "});"),
        ("R::constant(", "x", ", f32)"),
        ("", "x", ".relu()"),
        ("", "x", ".0"),
        ("", "x", "(x)"),
        ("", "x", "[x]"),
        ("", "x", "?"),
        ("", "x", " as f32"),
        ("|x| ", "x", ""),
        ("return ", "x", ""),
        ("R::call_packed::<", "R::Object", ">(\"f\")"),
        ("x::", "x", ""),
        ("R::Tensor<", "f32", ">"),
    ] {
        for text in around(&format!("{}{middle}{}", open.repeat(n), close.repeat(n))) {
            check(&text);
        }
    }
    for (open, close) in
        [("R::Tuple<", ">"), ("(", ",)"), ("fn(", ")"), ("&", ""), ("[", "; 4]"), ("*const ", ""), ("x::", "")]
    {
        check(&format!(
            "mod m {{ #[R::function] pub fn f(x: {}R::Object{}) -> R::Object {{ x }} }}",
            open.repeat(n),
            close.repeat(n)
        ));
    }
    check(&format!("{}{}", "mod m { ".repeat(n), "}".repeat(n)));
    check(&format!("{}mod m {{}}", "#[a]".repeat(n)));
    // Long, not deep.
    let body = "let y = R::nn::relu(x);\n".repeat(2_000);
    check(&format!("mod m {{ #[R::function] pub fn f(x: R::Tensor<f32, 16>) -> R::Object {{ {body} y }} }}"));
    let body = "a[0] = a[1] + 1.0f32;\n".repeat(2_000);
    check(&format!("mod m {{ #[T::prim_func] fn f(a: T::Buffer<f32, 16>) {{ {body} }} }}"));
    let list = "1.0, ".repeat(20_000);
    check(&around(&format!("R::constant([{list}], f32)"))[1]);
}

#[test]
fn hostile_words_are_errors() {
    for word in SPICE {
        for text in around(word) {
            check(&text);
        }
        for text in [
            format!("mod m {{ #[R::function] pub fn f(x: {word}) -> {word} {{ x }} }}"),
            format!("mod m {{ #[R::function] pub fn f(x: R::Tensor<f32, {word}>) -> R::Object {{ x }} }}"),
            format!(
                "mod m {{ #[R::function] pub fn {word}({word}: R::Object) -> R::Object {{ let {word} = x; {word} }} }}"
            ),
            format!(
                "mod m {{ {word} #[R::function] {word} pub fn f(x: R::Object) -> R::Object {{ {word} x }} {word} }}"
            ),
            format!(
                "mod {word} {{ #[R::function({word})] #[R::func_attr({word} = {word})] pub fn f(x: R::Object) -> R::Object {{ x }} }}"
            ),
            format!(
                "mod m {{ #[T::prim_func] fn f(a: T::Buffer<f32, {word}>, n: i64) {{ for {word} in 0..{word} {{ a[{word}] = {word}; }} }} }}"
            ),
            format!(
                "mod m {{ #[T::prim_func] fn f(a: T::Buffer<f32, 16>) {{ let {word} = T::alloc_buffer(({word},), {word}, scope = {word}); T::block({word}, {{ let v = T::axis::spatial({word}, {word}); a[v] = {word} as {word}; }}); }} }}"
            ),
            format!(
                "#[{word}] mod m {{ #[{word}] fn f(#[{word}] x: R::Object) -> R::Object {{ #[{word}] let y = x; #[{word}] y }} }}"
            ),
        ] {
            check(&text);
        }
    }
}
