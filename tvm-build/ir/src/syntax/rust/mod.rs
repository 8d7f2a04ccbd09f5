//! The Rust spelling: items of `syn` to the surface tree, lowered as TVMScript is.
//!
//! ```text
//! tokens ─ syn ─→ items ─ module, function, stmt, expr, types ─→ ast ─ lower_module ─→ IRModule
//! ```
//!
//! Spans of what is read are indices into a [`TokenSpans`], which gives back the user's own tokens.

mod check;
mod expr;
mod function;
mod limits;
mod module;
pub mod names;
mod report;
mod spans;
mod stmt;
mod stub;
mod types;

pub use check::{Checked, check_item};
pub use spans::{TokenSpans, text_span};
pub use stub::stub;

use super::ParseOptions;
use super::ast::{Expr, ExprKind, Ident, MAX_DEPTH};
use super::lower_module::lower_text;
use super::print::rust::respell;
use crate::diag::{Diag, Diags};
use crate::module::IRModule;
use crate::name::Name;
use crate::span::{SourceKind, SourceMap, Span};
use proc_macro2::TokenStream;
use quote::ToTokens;
use std::collections::BTreeSet;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};

/// Deepest nesting of expressions and blocks.
const MAX_NESTING: u32 = 100;

/// The content of `ir_module! { … }`: modules.
pub struct Modules(pub Vec<syn::ItemMod>);

impl Modules {
    /// Parses tokens. Errors: what is no Rust or no module, and what is nested so deeply that a parser may not be given it.
    pub fn read(tokens: TokenStream) -> syn::Result<Modules> {
        limits::check(tokens.clone())?;
        Modules::parse.parse2(tokens)
    }

    fn parse(input: ParseStream<'_>) -> syn::Result<Modules> {
        let python = looks_like_python(&input.cursor());
        let mut out = Vec::new();
        while !input.is_empty() {
            out.push(input.parse().map_err(|e: syn::Error| match python {
                Some(word) => syn::Error::new(
                    e.span(),
                    format!("`{word}` is Python's spelling: inside of `ir_module!` everything is Rust\nhelp: write \
                    `pub mod name {{ #[R::function] pub fn main(x: R::Tensor<f32, 1, N>) -> R::Tensor<f32, 1, N> {{ … }} }}`"),
                ),
                None => e,
            })?);
        }
        if out.is_empty() {
            return Err(input.error("expected a module: `pub mod name { … }`"));
        }
        Ok(Modules(out))
    }
}

/// A word of Python in tokens that Rust has no meaning for: `def`, `class`, or `@` before a name.
fn looks_like_python(cursor: &syn::buffer::Cursor<'_>) -> Option<&'static str> {
    let tokens = cursor.token_stream();
    let mut stack: Vec<proc_macro2::token_stream::IntoIter> = vec![tokens.into_iter()];
    // Modules and functions: no deeper than where decorators stand.
    while let Some(mut top) = stack.pop() {
        let Some(tree) = top.next() else { continue };
        stack.push(top);
        match tree {
            proc_macro2::TokenTree::Ident(i) if i == "def" => return Some("def"),
            proc_macro2::TokenTree::Ident(i) if i == "class" => return Some("class"),
            proc_macro2::TokenTree::Punct(p) if p.as_char() == '@' => return Some("@"),
            proc_macro2::TokenTree::Group(g) if stack.len() < 3 => stack.push(g.stream().into_iter()),
            _ => {}
        }
    }
    None
}

/// Reads one module. Errors are all that were found; their spans are of `spans`.
pub fn lower_item(
    sources: &mut SourceMap,
    spans: &mut TokenSpans,
    item: &syn::ItemMod,
    options: &ParseOptions,
) -> Result<IRModule, Diags> {
    let source = sources.add(item.ident.to_string(), SourceKind::Tokens);
    spans.open(source);
    let mut reader = Reader::new(spans);
    let surface = reader.module(item);
    let mut diags = std::mem::take(&mut reader.diags);
    // What could be read is lowered too: its errors are told together with those of what could not.
    let module = match lower_text(source, &[surface], options) {
        Ok(module) => Some(module),
        Err(found) => {
            diags.extend(found);
            None
        }
    };
    diags.0.sort_by_key(|d| d.span().start);
    match module {
        Some(module) => diags.into_result(module),
        None => Err(diags),
    }
    .map_err(respelled)
}

/// The surface tree of a module; `None` when some of it has none.
#[cfg(test)]
pub(super) fn surface(
    sources: &mut SourceMap,
    spans: &mut TokenSpans,
    item: &syn::ItemMod,
) -> Option<super::ast::Stmt> {
    spans.open(sources.add(item.ident.to_string(), SourceKind::Tokens));
    let mut reader = Reader::new(spans);
    let tree = reader.module(item);
    reader.diags.0.is_empty().then_some(tree)
}

/// Reads the text of one module, as it stands inside `ir_module! { … }`. Errors are located in the text.
pub fn parse_rust(sources: &mut SourceMap, name: &str, text: &str, options: &ParseOptions) -> Result<IRModule, Diags> {
    let id = sources.add(name, SourceKind::Text(text.to_string()));
    let whole = Span::new(id, 0, 0);
    let item = match text.parse::<TokenStream>().map_err(syn::Error::from).and_then(Modules::read) {
        Ok(Modules(items)) if items.len() == 1 => items.into_iter().next(),
        Ok(_) => None,
        Err(e) => return Err(Diag::error(spans::text_span(id, e.span(), e.span()), e.to_string()).into()),
    };
    let Some(item) = item else { return Err(Diag::error(whole, "a text holds one module").into()) };
    let mut spans = TokenSpans::default();
    lower_item(sources, &mut spans, &item, options).map_err(|diags| spans.in_text(diags, id))
}

/// Messages in the Rust spelling.
pub fn respelled(mut diags: Diags) -> Diags {
    for d in &mut diags.0 {
        d.message = respell(&d.message);
        d.help = d.help.take().map(|h| respell(&h));
        d.notes.iter_mut().for_each(|n| *n = respell(n));
        d.labels.iter_mut().for_each(|l| l.text = respell(&l.text));
    }
    diags
}

type Parsed<T> = Result<T, Diag>;

/// State of reading a module.
struct Reader<'s> {
    spans: &'s mut TokenSpans,
    diags: Diags,
    nesting: u32,
    /// Names of the module's functions.
    functions: BTreeSet<Name>,
    /// Names bound so far in the function being read.
    locals: BTreeSet<Name>,
    /// In a Relax function.
    relax: bool,
    /// Names in the dimensions of the signature.
    symbols: Vec<Ident>,
    dims: Dims,
}

/// What a name alone in a dimension is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Dims {
    /// Of a signature: a symbol of the function, declared by its use.
    Signature,
    /// Of a body: a name in scope.
    Body,
    /// Of a cast: a name in scope, or a new symbol.
    Cast,
}

impl<'s> Reader<'s> {
    fn new(spans: &'s mut TokenSpans) -> Reader<'s> {
        Reader {
            spans,
            diags: Diags::new(),
            nesting: 0,
            functions: BTreeSet::new(),
            locals: BTreeSet::new(),
            relax: false,
            symbols: Vec::new(),
            dims: Dims::Body,
        }
    }

    /// The span of a node.
    fn span(&mut self, node: &impl ToTokens) -> Span {
        self.spans.add(node.to_token_stream())
    }

    fn error(&mut self, node: &impl ToTokens, message: impl Into<String>) -> Diag {
        Diag::error(self.span(node), message)
    }

    fn ident(&mut self, ident: &syn::Ident) -> Ident {
        Ident { name: Name::from(ident.unraw().to_string()), span: self.span(ident) }
    }

    /// A node, unless the tree gets too deep.
    fn node(&self, kind: ExprKind, span: Span) -> Parsed<Expr> {
        let e = Expr::new(kind, span);
        if e.depth > MAX_DEPTH {
            return Err(Diag::error(span, format!("the expression is more than {MAX_DEPTH} levels deep"))
                .help("bind parts of it to names"));
        }
        Ok(e)
    }

    /// Runs a nested rule; too deep a nesting is an error.
    fn nested<T>(&mut self, at: &impl ToTokens, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting >= MAX_NESTING {
            return Err(self.error(at, format!("nested more than {MAX_NESTING} levels deep")));
        }
        self.nesting += 1;
        let result = f(self);
        self.nesting -= 1;
        result
    }
}

/// `base.name`
fn attr(base: Expr, name: &str, span: Span) -> Expr {
    Expr::new(ExprKind::Attr(Box::new(base), name.into()), span)
}

/// A dotted name, as `T.axis.spatial`.
fn dotted(path: &str, span: Span) -> Expr {
    let mut parts = path.split('.');
    let first = Expr::new(ExprKind::Name(parts.next().unwrap_or_default().into()), span);
    parts.fold(first, |base, name| attr(base, name, span))
}

/// `path(args)`
fn call(path: &str, args: Vec<Expr>, span: Span) -> Expr {
    Expr::new(ExprKind::Call { func: Box::new(dotted(path, span)), args, keywords: Vec::new() }, span)
}
