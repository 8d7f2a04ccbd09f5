//! Walking and rewriting statements.

use super::{Block, IterVar, Region, Stmt};
use crate::prim::{PrimExpr, Range, Substitution, Var, free_vars};
use std::collections::BTreeSet;

impl Stmt {
    /// The statements directly inside (a block's init before its body).
    pub fn children(&self) -> Vec<&Stmt> {
        match self {
            Stmt::Seq(stmts) => stmts.iter().collect(),
            Stmt::For(f) => vec![&f.body],
            Stmt::Block(b) => b.init.iter().chain(std::iter::once(&b.body)).collect(),
            Stmt::Let(l) => vec![&l.body],
            Stmt::If(i) => std::iter::once(&i.then).chain(i.otherwise.iter()).collect(),
            Stmt::While(w) => vec![&w.body],
            Stmt::Store(_) | Stmt::Assert(_) | Stmt::Evaluate(_) => Vec::new(),
        }
    }

    /// The same statement over mapped inner statements.
    #[must_use]
    pub fn map_children(self, f: &mut dyn FnMut(Stmt) -> Stmt) -> Stmt {
        match self {
            Stmt::Seq(stmts) => Stmt::seq(stmts.into_iter().map(f)),
            Stmt::For(mut s) => {
                s.body = f(s.body);
                Stmt::For(s)
            }
            Stmt::Block(mut b) => {
                b.init = b.init.map(&mut *f);
                b.body = f(b.body);
                Stmt::Block(b)
            }
            Stmt::Let(mut l) => {
                l.body = f(l.body);
                Stmt::Let(l)
            }
            Stmt::If(mut i) => {
                i.then = f(i.then);
                i.otherwise = i.otherwise.map(f);
                Stmt::If(i)
            }
            Stmt::While(mut w) => {
                w.body = f(w.body);
                Stmt::While(w)
            }
            leaf @ (Stmt::Store(_) | Stmt::Assert(_) | Stmt::Evaluate(_)) => leaf,
        }
    }

    /// The expressions directly in this statement: bounds, indices, values, bindings, regions, predicates.
    pub fn exprs(&self) -> Vec<&PrimExpr> {
        match self {
            Stmt::Seq(_) => Vec::new(),
            Stmt::For(f) => vec![&f.min, &f.extent],
            Stmt::Block(b) => {
                let mut out = Vec::new();
                for i in &b.iters {
                    out.extend([&i.dom.min, &i.dom.extent, &i.binding]);
                }
                out.push(&b.predicate);
                for r in b.reads.iter().chain(&b.writes) {
                    out.extend(r.ranges.iter().flat_map(|r| [&r.min, &r.extent]));
                }
                out
            }
            Stmt::Store(s) => s.indices.iter().chain(std::iter::once(&s.value)).collect(),
            Stmt::Let(l) => vec![&l.value],
            Stmt::If(i) => vec![&i.cond],
            Stmt::While(w) => vec![&w.cond],
            Stmt::Assert(a) => vec![&a.cond],
            Stmt::Evaluate(e) => vec![e],
        }
    }
}

/// Calls `f` on every statement, parents first.
pub fn visit_stmt(s: &Stmt, f: &mut dyn FnMut(&Stmt)) {
    f(s);
    for child in s.children() {
        visit_stmt(child, f);
    }
}

/// Calls `f` on every expression node of every statement.
pub fn visit_exprs(s: &Stmt, f: &mut dyn FnMut(&PrimExpr)) {
    visit_stmt(s, &mut |s| s.exprs().into_iter().for_each(|e| crate::prim::visit(e, f)));
}

/// Rewrites bottom-up: `f` sees each statement with its inner statements rewritten.
pub fn rewrite_stmt(s: Stmt, f: &mut dyn FnMut(Stmt) -> Stmt) -> Stmt {
    let mapped = s.map_children(&mut |c| rewrite_stmt(c, f));
    f(mapped)
}

fn map_range(r: Range, f: &mut dyn FnMut(&PrimExpr) -> PrimExpr) -> Range {
    Range { min: f(&r.min), extent: f(&r.extent) }
}

fn map_region(r: Region, f: &mut dyn FnMut(&PrimExpr) -> PrimExpr) -> Region {
    Region { buffer: r.buffer, ranges: r.ranges.into_iter().map(|r| map_range(r, f)).collect() }
}

/// Maps the expressions that stand directly in one statement (not those of inner statements).
pub fn map_exprs(s: Stmt, f: &mut dyn FnMut(&PrimExpr) -> PrimExpr) -> Stmt {
    match s {
        Stmt::Seq(_) => s,
        Stmt::For(mut l) => {
            l.min = f(&l.min);
            l.extent = f(&l.extent);
            Stmt::For(l)
        }
        Stmt::Block(b) => {
            let Block { iters, predicate, reads, writes, .. } = *b;
            let iters =
                iters.into_iter().map(|i| IterVar { dom: map_range(i.dom, f), binding: f(&i.binding), ..i }).collect();
            let predicate = f(&predicate);
            let reads = reads.into_iter().map(|r| map_region(r, f)).collect();
            let writes = writes.into_iter().map(|r| map_region(r, f)).collect();
            Stmt::Block(Box::new(Block { iters, predicate, reads, writes, ..*b }))
        }
        Stmt::Store(mut s) => {
            s.indices = s.indices.iter().map(&mut *f).collect();
            s.value = f(&s.value);
            Stmt::Store(s)
        }
        Stmt::Let(mut l) => {
            l.value = f(&l.value);
            Stmt::Let(l)
        }
        Stmt::If(mut i) => {
            i.cond = f(&i.cond);
            Stmt::If(i)
        }
        Stmt::While(mut w) => {
            w.cond = f(&w.cond);
            Stmt::While(w)
        }
        Stmt::Assert(mut a) => {
            a.cond = f(&a.cond);
            Stmt::Assert(a)
        }
        Stmt::Evaluate(e) => Stmt::Evaluate(f(&e)),
    }
}

/// Applies a substitution everywhere: expressions, stored-to buffers, regions, allocations.
/// Binders are kept: substitute only variables that the statement does not bind.
pub fn substitute_stmt(s: Stmt, sub: &Substitution) -> Stmt {
    if sub.is_empty() {
        return s;
    }
    rewrite_stmt(s, &mut |s| match map_exprs(s, &mut |e| sub.apply(e)) {
        Stmt::Store(mut s) => {
            s.buffer = sub.buffer(&s.buffer);
            Stmt::Store(s)
        }
        Stmt::Block(mut b) => {
            for r in b.reads.iter_mut().chain(&mut b.writes) {
                r.buffer = sub.buffer(&r.buffer);
            }
            b.allocs.iter_mut().for_each(|a| *a = sub.buffer(a));
            Stmt::Block(b)
        }
        other => other,
    })
}

/// The variables a statement reads and does not bind.
pub fn stmt_free_vars(s: &Stmt) -> BTreeSet<Var> {
    let mut used = BTreeSet::new();
    let mut bound = BTreeSet::new();
    visit_stmt(s, &mut |s| {
        for e in s.exprs() {
            used.extend(free_vars(e));
        }
        match s {
            Stmt::For(f) => {
                bound.insert(f.var.clone());
            }
            Stmt::Let(l) => {
                bound.insert(l.var.clone());
            }
            Stmt::Block(b) => bound.extend(b.iters.iter().map(|i| i.var.clone())),
            _ => {}
        }
    });
    used.difference(&bound).cloned().collect()
}
