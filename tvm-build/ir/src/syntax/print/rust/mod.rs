//! IR to the Rust spelling: the surface tree of the printed text, written as Rust.

mod expr;
mod func;
#[cfg(feature = "rust")]
mod respell;
mod stmt;
mod types;

use super::doc::Doc;
use super::print_with_constants;
use crate::constant::Constant;
use crate::diag::{Diag, Diags};
use crate::module::IRModule;
use crate::name::Name;
use crate::span::{SourceId, Span};
use crate::syntax::ast::{Expr, ExprKind, Stmt, StmtKind};
use crate::syntax::{Dialect, grammar, literal, rust_words};
use std::collections::{BTreeMap, BTreeSet};

#[cfg(feature = "rust")]
pub(in crate::syntax) use respell::respell;

/// Constants of more elements are not written out.
const MAX_ELEMENTS: usize = 1024;

/// Writes surface trees as Rust.
#[derive(Default)]
struct Writer {
    lines: Vec<String>,
    indent: usize,
    /// In a Relax function, where an index of a value is a field.
    relax: bool,
    /// Names of the module's functions.
    functions: BTreeSet<Name>,
    /// Names bound in the function being written.
    locals: BTreeSet<Name>,
    /// Names that Rust cannot have, and what they are written as.
    renamed: BTreeMap<Name, Name>,
    constants: Vec<Constant>,
    /// Constants that are not written out, by their place in `constants`.
    kept: Vec<usize>,
}

/// The text of a module in the Rust spelling, as it stands inside `ir_module! { … }`, and the constants that are too
/// large to be written out: `I::metadata(i)` in the text is the constant `i` of them.
///
/// Errors: a function whose name no Rust identifier can be.
pub fn print_rust(module: &IRModule, name: &str) -> Result<(String, Vec<Constant>), Diags> {
    let (text, constants) = print_with_constants(module, Dialect::Tutorial);
    let surface = grammar::parse(SourceId(0), &text)?;
    let class = surface.iter().find_map(|s| match &s.kind {
        StmtKind::Class(c) => Some(c),
        _ => None,
    });
    let body: &[Stmt] = class.map_or(&[], |c| &c.body);
    let mut w = Writer { constants, ..Writer::default() };
    for s in body {
        match &s.kind {
            StmtKind::Def(d) => w.functions.insert(d.ident.name.clone()),
            StmtKind::Assign { target, .. } => target.name().is_some_and(|n| w.functions.insert(n.clone())),
            _ => false,
        };
    }
    let bad = w.functions.iter().find(|n| rust_words::is_unusable(n));
    if let Some(n) = bad {
        return Err(Diag::error(Span::NONE, format!("no Rust function can be named `{n}`")).into());
    }
    w.module(name, body);
    let kept = w.kept.iter().filter_map(|i| w.constants.get(*i)).cloned().collect();
    let mut out = w.lines.join("\n");
    out.push('\n');
    Ok((out, kept))
}

impl Writer {
    fn line(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref();
        self.lines.push(if text.is_empty() { String::new() } else { format!("{}{text}", "    ".repeat(self.indent)) });
    }

    fn module(&mut self, name: &str, body: &[Stmt]) {
        for s in body {
            let StmtKind::Expr(e) = &s.kind else { continue };
            if let Some((_, [attrs], [])) = e.call() {
                let dict = self.dict_items(attrs);
                self.line(format!("#[I::module_attrs({dict})]"));
            }
        }
        self.line(format!("pub mod {} {{", rust_words::ident(name)));
        self.indent += 1;
        let mut first = true;
        for s in body {
            if !matches!(s.kind, StmtKind::Def(_) | StmtKind::Assign { .. }) {
                continue;
            }
            if !first {
                self.line("");
            }
            first = false;
            match &s.kind {
                StmtKind::Def(d) => self.function(d, false),
                StmtKind::Assign { target, value: Some(value), .. } => {
                    let symbol = value.call().and_then(|(_, args, _)| args.first().and_then(|a| a.str().cloned()));
                    let (name, symbol) =
                        (target.name().map_or("", Name::as_str), symbol.as_ref().map_or("", Name::as_str));
                    self.line(format!("static {}: R::ExternFunc = {};", rust_words::ident(name), quoted(symbol)));
                }
                _ => {}
            }
        }
        self.indent -= 1;
        self.line("}");
    }

    /// The constant that `metadata["…"][i]` stands for, written out; `I::metadata(i)` when it is too large.
    fn constant(&mut self, index: usize) -> Doc {
        let text = self.constants.get(index).and_then(written_out);
        if let Some(text) = text {
            return Doc::atom(text);
        }
        let at = match self.kept.iter().position(|k| *k == index) {
            Some(at) => at,
            None => {
                self.kept.push(index);
                self.kept.len() - 1
            }
        };
        Doc::atom(format!("I::metadata({at})"))
    }
}

/// `R::constant([[1.0, 2.0]], f32)`; `None` when the constant is too large or cannot be written so.
fn written_out(c: &Constant) -> Option<String> {
    let bytes = usize::from(c.dtype().bits).div_ceil(8);
    let count = c.data().len().checked_div(bytes)?;
    if count == 0 || count > MAX_ELEMENTS || c.shape().contains(&0) {
        return None;
    }
    let mut items = Vec::with_capacity(count);
    for chunk in c.data().chunks(bytes) {
        let n = literal::decode(c.dtype(), chunk)?;
        if literal::encode(c.dtype(), n).as_deref() != Some(chunk) {
            return None;
        }
        items.push(match n {
            literal::Number::Int(v) => v.to_string(),
            literal::Number::Float(v) => super::doc::float(v),
            literal::Number::Bool(b) => b.to_string(),
        });
    }
    for dim in c.shape().iter().rev() {
        let n = usize::try_from(*dim).ok()?;
        items = items.chunks(n).map(|row| format!("[{}]", row.join(", "))).collect();
    }
    let [text] = items.as_slice() else { return None };
    Some(format!("R::constant({text}, {})", rust_words::type_word(c.dtype())))
}

/// A string literal.
fn quoted(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The index of `metadata["…"][i]`.
fn metadata_index(e: &Expr) -> Option<usize> {
    let ExprKind::Index(base, items) = &e.kind else { return None };
    let ExprKind::Index(word, _) = &base.kind else { return None };
    match items.as_slice() {
        [Expr { kind: ExprKind::Int(i), .. }] if word.name().is_some_and(|n| n == "metadata") => {
            usize::try_from(*i).ok()
        }
        _ => None,
    }
}
