//! Types of values, parameters and results.

use super::Writer;
use crate::span::SourceId;
use crate::syntax::ast::{Expr, ExprKind, Keyword};
use crate::syntax::grammar::parse_fragment;
use crate::syntax::rust_words::{ident, type_word};

impl Writer {
    /// A type.
    pub(super) fn ty(&mut self, e: &Expr) -> String {
        if let Some(items) = e.items() {
            let types: Vec<String> = items.iter().map(|t| self.ty(t)).collect();
            return super::super::doc::tuple(&types);
        }
        let (path, args, keywords) = match e.call() {
            Some(c) => c,
            None => (e.path().unwrap_or_default(), &[][..], &[][..]),
        };
        if let Some(Ok(dtype)) = path.strip_prefix("T.").map(str::parse) {
            return type_word(dtype);
        }
        let name = path.split('.').map(ident).collect::<Vec<_>>().join("::");
        let inside: Vec<String> = match path.as_str() {
            "R.Tensor" => self.tensor(args, keywords),
            "T.Buffer" => self.buffer(args, keywords),
            "R.Shape" => match args {
                [dims] => self.dims(dims),
                _ => unknown_dims(keywords),
            },
            "R.Prim" => match (args.first().and_then(|a| a.str()), keyword(keywords, "value")) {
                (Some(d), _) => return d.parse().map_or_else(|_| d.to_string(), type_word),
                (None, Some(v)) => vec![self.dim(v)],
                (None, None) => Vec::new(),
            },
            "R.Tuple" => {
                let types: Vec<String> = args.iter().map(|t| self.ty(t)).collect();
                return super::super::doc::tuple(&types);
            }
            "R.Callable" => match args {
                [params, ret, Expr { kind: ExprKind::Bool(pure), .. }] => {
                    let types: Vec<String> = params.items().unwrap_or_default().iter().map(|t| self.ty(t)).collect();
                    let ret = self.ty(ret);
                    if *pure {
                        return format!("fn({}) -> {ret}", types.join(", "));
                    }
                    vec![super::super::doc::tuple(&types), ret, "false".into()]
                }
                _ => Vec::new(),
            },
            _ => args.iter().map(|t| self.ty(t)).collect(),
        };
        if inside.is_empty() { name } else { format!("{name}<{}>", inside.join(", ")) }
    }

    /// Element type and dimensions.
    fn tensor(&mut self, args: &[Expr], keywords: &[Keyword]) -> Vec<String> {
        let dtype = keyword(keywords, "dtype").or(args.get(1));
        let mut out = vec![dtype.map_or("_".to_string(), scalar)];
        match args.first() {
            Some(dims) => out.extend(self.dims(dims)),
            None => out.extend(unknown_dims(keywords)),
        }
        if out == ["_"] { Vec::new() } else { out }
    }

    fn buffer(&mut self, args: &[Expr], keywords: &[Keyword]) -> Vec<String> {
        let dtype = keyword(keywords, "dtype").or(args.get(1));
        let mut out = vec![dtype.map_or("f32".to_string(), scalar)];
        if let Some(dims) = args.first() {
            out.extend(self.dims(dims));
        }
        for k in keywords.iter().filter(|k| k.name != "dtype") {
            let value = match &k.value.kind {
                ExprKind::Str(_) | ExprKind::Int(_) => self.expr(&k.value),
                _ => format!("{{ {} }}", self.expr(&k.value)),
            };
            out.push(format!("{} = {value}", ident(&k.name)));
        }
        out
    }

    fn dims(&mut self, e: &Expr) -> Vec<String> {
        match e.items() {
            Some([]) => vec!["()".into()],
            Some(items) => items.iter().map(|d| self.dim(d)).collect(),
            None => vec![self.dim(e)],
        }
    }

    /// A dimension: a number, a name, or an expression in braces.
    fn dim(&mut self, e: &Expr) -> String {
        let inner = e.str().and_then(|s| parse_fragment(SourceId(0), s, 0).ok());
        let e = inner.as_ref().unwrap_or(e);
        let text = self.expr(e);
        let plain = text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '#');
        if plain { text } else { format!("{{ {text} }}") }
    }
}

fn keyword<'k>(keywords: &'k [Keyword], name: &str) -> Option<&'k Expr> {
    keywords.iter().find(|k| k.name == name).map(|k| &k.value)
}

fn scalar(e: &Expr) -> String {
    match e.str() {
        Some(s) => s.parse().map_or_else(|_| s.to_string(), type_word),
        None => "_".into(),
    }
}

/// `_` for each dimension of `ndim=`.
fn unknown_dims(keywords: &[Keyword]) -> Vec<String> {
    match keyword(keywords, "ndim").map(|e| &e.kind) {
        Some(ExprKind::Int(0)) => vec!["ndim = 0".into()],
        Some(ExprKind::Int(n)) => (0..*n).map(|_| "_".to_string()).collect(),
        _ => Vec::new(),
    }
}
