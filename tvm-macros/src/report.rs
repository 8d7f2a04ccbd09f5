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
    at(first, last, &spans.text_of(d))
}

/// `compile_error!(text)` that rustc shows from one token to another.
pub(crate) fn at(first: Span, last: Span, text: &str) -> TokenStream {
    let core = Ident::new("core", first);
    let arguments = quote_spanned!(last=> { #text });
    quote_spanned!(first=> ::#core::compile_error! #arguments)
}
