//! Functions: signature, attributes, names.

use super::Writer;
use crate::name::Name;
use crate::syntax::ast::{Expr, ExprKind, FuncDef, Keyword, Stmt, StmtKind};
use crate::syntax::rust_words::{ident, is_unusable};
use std::collections::{BTreeMap, BTreeSet};

impl Writer {
    /// A function with its attributes; `local` inside another one.
    pub(super) fn function(&mut self, d: &FuncDef, local: bool) {
        let decorator = d.decorators.first();
        let path = decorator.and_then(|e| e.call().map(|(p, ..)| p).or_else(|| e.path())).unwrap_or_default();
        self.relax = path.starts_with("R.");
        let outer = (std::mem::take(&mut self.locals), std::mem::take(&mut self.renamed));
        if local {
            self.locals.clone_from(&outer.0);
            self.renamed.clone_from(&outer.1);
        }
        self.locals.extend(d.params.iter().map(|p| p.ident.name.clone()));
        bound_names(&d.body, &mut self.locals);
        self.rename();
        let buffers = if self.relax { Buffers::default() } else { buffers(d) };

        let keywords = decorator.and_then(|e| e.call().map(|(_, _, k)| k)).unwrap_or_default();
        let private = keywords.iter().any(|k| k.name == "private");
        let flags = self.flags(keywords);
        self.line(format!("#[{}{flags}]", path.replace('.', "::")));
        let body: Vec<&Stmt> =
            d.body.iter().enumerate().filter(|(i, _)| !buffers.dropped.contains(i)).map(|(_, s)| s).collect();
        let mut rest = Vec::new();
        for s in body {
            match func_attrs(s) {
                Some((path, attrs)) => {
                    let dict = self.dict_items(attrs);
                    self.line(format!("#[{}({dict})]", path.replace('.', "::")));
                }
                None => rest.push(s.clone()),
            }
        }
        let params: Vec<String> = d
            .params
            .iter()
            .map(|p| match (buffers.types.get(&p.ident.name), &p.annotation) {
                (Some((name, ty)), _) => format!("{}: {}", self.name(name), self.ty(ty)),
                (None, Some(a)) => format!("{}: {}", self.name(&p.ident.name), self.ty(a)),
                (None, None) => self.name(&p.ident.name),
            })
            .collect();
        let ret = d.ret.as_ref().map_or(String::new(), |r| format!(" -> {}", self.ty(r)));
        let vis = if private || local { "" } else { "pub " };
        let name = ident(&d.ident.name);
        let one_line = format!("{vis}fn {name}({}){ret} {{", params.join(", "));
        if one_line.len() + 4 * self.indent <= 110 {
            self.line(one_line);
        } else {
            self.line(format!("{vis}fn {name}("));
            self.indent += 1;
            params.iter().for_each(|p| self.line(format!("{p},")));
            self.indent -= 1;
            self.line(format!("){ret} {{"));
        }
        self.indent += 1;
        self.stmts(&rest);
        self.indent -= 1;
        self.line("}");
        (self.locals, self.renamed) = outer;
    }

    /// `(pure = false)`
    fn flags(&mut self, keywords: &[Keyword]) -> String {
        let docs: Vec<String> = keywords
            .iter()
            .filter(|k| k.name != "private")
            .map(|k| format!("{} = {}", k.name, self.expr(&k.value)))
            .collect();
        if docs.is_empty() { String::new() } else { format!("({})", docs.join(", ")) }
    }

    /// Finds another name for locals that Rust cannot have.
    fn rename(&mut self) {
        let bad: Vec<Name> = self.locals.iter().filter(|n| is_unusable(n)).cloned().collect();
        for n in bad {
            if self.renamed.contains_key(&n) {
                continue;
            }
            let mut new = Name::from(format!("{n}_"));
            while self.locals.contains(&new) || is_unusable(&new) {
                new = Name::from(format!("{new}_"));
            }
            self.locals.insert(new.clone());
            self.renamed.insert(n, new);
        }
    }
}

/// `X.func_attr({…})`
fn func_attrs(s: &Stmt) -> Option<(String, &Expr)> {
    let StmtKind::Expr(e) = &s.kind else { return None };
    match e.call()? {
        (path, [attrs], []) if path == "R.func_attr" || path == "T.func_attr" => Some((path, attrs)),
        _ => None,
    }
}

/// Every name that statements bind.
fn bound_names(list: &[Stmt], out: &mut BTreeSet<Name>) {
    let target = |e: &Expr, out: &mut BTreeSet<Name>| {
        out.extend(e.items().unwrap_or(std::slice::from_ref(e)).iter().filter_map(|t| t.name().cloned()));
    };
    for s in list {
        match &s.kind {
            StmtKind::Assign { target: t, .. } => target(t, out),
            StmtKind::For { target: t, body, .. } => {
                target(t, out);
                bound_names(body, out);
            }
            StmtKind::With { target: t, body, .. } => {
                t.iter().for_each(|t| target(t, out));
                bound_names(body, out);
            }
            StmtKind::While { body, .. } => bound_names(body, out),
            StmtKind::If { then, otherwise, .. } => {
                bound_names(then, out);
                bound_names(otherwise, out);
            }
            StmtKind::Def(d) => {
                out.insert(d.ident.name.clone());
            }
            _ => {}
        }
    }
}

/// Handles that the signature can name as buffers.
#[derive(Default)]
struct Buffers {
    /// By handle: name and type of the buffer.
    types: BTreeMap<Name, (Name, Expr)>,
    /// Statements that say nothing more.
    dropped: BTreeSet<usize>,
}

/// Matches at the head of a function over shapes of `int64` variables: the signature can say them.
fn buffers(d: &FuncDef) -> Buffers {
    let mut out = Buffers::default();
    let mut symbols: BTreeMap<Name, usize> = BTreeMap::new();
    let mut used = BTreeSet::new();
    let scalars: BTreeSet<&Name> = d.params.iter().map(|p| &p.ident.name).collect();
    for (i, s) in d.body.iter().enumerate() {
        if func_attrs(s).is_some() {
            continue;
        }
        let StmtKind::Assign { target, annotation: None, value: Some(value) } = &s.kind else { break };
        match (target.name(), value.call()) {
            (Some(name), Some((path, [], []))) if path == "T.int64" => {
                symbols.insert(name.clone(), i);
            }
            (None, None) => {
                let (Some(names), Some(values)) = (target.items(), value.items()) else { break };
                if values.iter().any(|v| v.call().is_none_or(|(p, a, _)| p != "T.int64" || !a.is_empty())) {
                    break;
                }
                symbols.extend(names.iter().filter_map(|n| n.name().map(|n| (n.clone(), i))));
            }
            (Some(name), Some((path, [handle, shape, rest @ ..], []))) if path == "T.match_buffer" => {
                let mut names = BTreeSet::new();
                let known = dim_names(shape, &mut names)
                    && names.iter().all(|n| symbols.contains_key(n) || scalars.contains(n));
                let Some(handle) = handle.name().filter(|_| known && rest.len() <= 1) else { break };
                let dtype =
                    rest.first().cloned().unwrap_or_else(|| Expr::new(ExprKind::Str("float32".into()), shape.span));
                let ty = ExprKind::Call {
                    func: Box::new(Expr::new(
                        ExprKind::Attr(Box::new(Expr::new(ExprKind::Name("T".into()), shape.span)), "Buffer".into()),
                        shape.span,
                    )),
                    args: vec![shape.clone(), dtype],
                    keywords: Vec::new(),
                };
                out.types.insert(handle.clone(), (name.clone(), Expr::new(ty, shape.span)));
                out.dropped.insert(i);
                used.extend(names);
            }
            _ => break,
        }
    }
    // A declaration goes where every name of it is in the signature now.
    let lines: BTreeSet<usize> = symbols.values().copied().collect();
    for line in lines {
        if symbols.iter().filter(|(_, i)| **i == line).all(|(n, _)| used.contains(n)) {
            out.dropped.insert(line);
        }
    }
    out
}

/// The names in dimensions; false when something else than arithmetic stands there.
fn dim_names(e: &Expr, out: &mut BTreeSet<Name>) -> bool {
    match &e.kind {
        ExprKind::Int(_) => true,
        ExprKind::Name(n) => {
            out.insert(n.clone());
            true
        }
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().all(|i| dim_names(i, out)),
        ExprKind::Unary(_, a) => dim_names(a, out),
        ExprKind::Binary(_, a, b) => dim_names(a, out) && dim_names(b, out),
        ExprKind::Call { args, keywords, .. } => keywords.is_empty() && args.iter().all(|a| dim_names(a, out)),
        _ => false,
    }
}
