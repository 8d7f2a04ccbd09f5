//! Diagnostics as errors of rustc.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;
use tvm_ir::diag::{Diag, Diags, Severity};
use tvm_ir::syntax::rust::TokenSpans;

/// A `compile_error!` for each error, at its tokens.
pub(crate) fn errors(diags: &Diags, spans: &TokenSpans) -> TokenStream {
    diags.0.iter().filter(|d| d.severity == Severity::Error).map(|d| error(d, spans)).collect()
}

fn error(d: &Diag, spans: &TokenSpans) -> TokenStream {
    let (first, last) = spans.get(d.span()).unwrap_or_else(|| (Span::call_site(), Span::call_site()));
    let mut text = d.message.clone();
    if let Some(label) = d.labels.first().filter(|l| !l.text.is_empty()) {
        text.push_str(&format!(": {}", label.text));
    }
    // Stable Rust shows one place an error: the others are quoted.
    for label in d.labels.iter().skip(1) {
        let quoted = spans.tokens(label.span).map(written).filter(|code| code.len() <= 60);
        match (quoted, label.text.is_empty()) {
            (Some(code), false) => text.push_str(&format!("\nnote: {}: `{code}`", label.text)),
            (Some(code), true) => text.push_str(&format!("\nnote: see `{code}`")),
            (None, false) => text.push_str(&format!("\nnote: {}", label.text)),
            (None, true) => {}
        }
    }
    for note in &d.notes {
        text.push_str(&format!("\nnote: {note}"));
    }
    if let Some(help) = &d.help {
        text.push_str(&format!("\nhelp: {help}"));
    }
    at(first, last, &text)
}

/// `compile_error!(text)` that rustc shows from one token to another.
pub(crate) fn at(first: Span, last: Span, text: &str) -> TokenStream {
    let core = Ident::new("core", first);
    let arguments = quote_spanned!(last=> { #text });
    quote_spanned!(first=> ::#core::compile_error! #arguments)
}

/// Tokens as one writes them.
fn written(tokens: &TokenStream) -> String {
    let mut text = tokens.to_string();
    for (from, to) in [(" :: ", "::"), (" < ", "<"), (" >", ">"), (" ,", ","), (" . ", "."), ("( ", "("), (" )", ")")] {
        text = text.replace(from, to);
    }
    text
}
