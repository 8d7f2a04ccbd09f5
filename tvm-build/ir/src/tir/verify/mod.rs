//! Well-formedness of [`PrimFunc`]s. Every violation is a located diagnostic whose note names the rule; all are
//! collected.
//!
//!  1. Variables are defined where they are used: scalar parameters, variables that stand alone as an extent, stride or
//!     offset of a parameter buffer, loop variables, block iterators and `let`s, each in its scope.
//!  2. Each variable is defined once in the function (a `let` inside an expression: once in its scope).
//!  3. Buffers are parameters or allocated by a block around the use, each declared once.
//!  4. An access has one index a dimension; indices are integers, and only the last may be a vector.
//!  5. Loads and stores have the buffer's type, times the lanes of the index.
//!  6. Operands have the types their operator wants, and its result follows from them.
//!  7. Conditions are bools, of one lane except in a vector `Select`.
//!  8. Loop variables, minima and extents are integers of one type; a literal extent is not negative; thread-bound
//!     loops name a known axis.
//!  9. A block's iterators are integers, their domains and bindings of the same type; bindings and predicate do not
//!     mention the block's own iterators; inside a block with iterators no loop variable around it is visible.
//! 10. `init` does not mention reduction iterators.
//! 11. A block's own stores are not indexed by its reduction iterators.
//! 12. Declared regions cover the accesses of the block (of blocks that declare any; a reduction's reads of what it
//!     writes need no declaration). What cannot be decided is accepted.
//! 13. Regions have one range a dimension and name visible buffers.
//! 14. Extents, strides and offsets of buffers are integer scalars; strides are none or one a dimension.
//! 15. A body with blocks is one block without iterators (the root).
//! 16. Calls without a value stand alone as statements; strings are arguments of calls.
//! 17. A sequence does not directly hold a sequence.

mod bounds;
mod counterexample;
mod eval;
mod instrument;
mod regions;
#[cfg(test)]
mod tests;
mod types;
mod unproven;

pub use bounds::{CHECK_BOUNDS, check_bounds, verify_bounds};
pub use instrument::instrument_bound_checkers;

use super::{Block, For, ForKind, IterKind, Param, PrimFunc, Stmt};
use crate::diag::{Diag, Diags};
use crate::prim::{Buffer, PrimExpr, PrimKind, Var};
use crate::span::Span;
use std::collections::{BTreeMap, BTreeSet};

/// The axes that thread-bound loops may name, beside virtual threads.
pub const THREAD_AXES: &[&str] =
    &["blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z"];

/// Checks every rule. Errors: all violations, in the order met.
pub fn verify(func: &PrimFunc) -> Result<(), Diags> {
    let mut v = Verifier {
        diags: Diags::new(),
        span: func.span,
        scope: BTreeSet::new(),
        loops: BTreeSet::new(),
        defined: BTreeSet::new(),
        hidden: BTreeMap::new(),
        buffers: Vec::new(),
        declared: Vec::new(),
    };
    v.params(func);
    v.root(func);
    v.stmt(&func.body);
    v.diags.into_result(())
}

struct Verifier {
    diags: Diags,
    span: Span,
    /// Variables visible here.
    scope: BTreeSet<Var>,
    /// The loop variables among them.
    loops: BTreeSet<Var>,
    /// Variables defined anywhere so far.
    defined: BTreeSet<Var>,
    /// Loop variables that a block hides, with the block's name.
    hidden: BTreeMap<Var, String>,
    buffers: Vec<Buffer>,
    declared: Vec<Buffer>,
}

/// Where a variable is first used in a statement.
fn first_use(s: &Stmt, v: &Var) -> Span {
    let mut found = Span::NONE;
    super::visit_exprs(s, &mut |e| {
        if e.as_var() == Some(v) {
            found = found.or(e.span());
        }
    });
    found
}

impl Verifier {
    fn report(&mut self, rule: u32, span: Span, message: String) {
        let diag = Diag::error(span.or(self.span), message);
        self.diags.push(diag.note(format!("rule {rule} of well-formed TensorIR")));
    }

    fn report_with(&mut self, rule: u32, span: Span, message: String, help: String) {
        self.report(rule, span, message);
        if let Some(last) = self.diags.0.last_mut() {
            last.help = Some(help);
        }
    }

    fn in_span(&mut self, span: Span, f: impl FnOnce(&mut Self)) {
        let outer = self.span;
        self.span = span.or(outer);
        f(self);
        self.span = outer;
    }

    fn params(&mut self, func: &PrimFunc) {
        for p in &func.params {
            match p {
                Param::Scalar(v) => {
                    self.define(v);
                }
                Param::Buffer(b) => {
                    self.declare(b);
                    let offset = b.elem_offset.iter();
                    for e in b.shape.iter().chain(&b.strides).chain(offset) {
                        if let Some(v) = e.as_var() {
                            self.scope.insert(v.clone());
                            self.defined.insert(v.clone());
                        }
                    }
                }
            }
        }
        for b in func.buffers() {
            self.buffer_parts(b);
        }
    }

    fn root(&mut self, func: &PrimFunc) {
        if func.root().is_some() {
            return;
        }
        let mut first = None;
        super::visit_stmt(&func.body, &mut |s| {
            if let (Stmt::Block(b), None) = (s, &first) {
                first = Some((b.name.to_string(), b.span));
            }
        });
        if let Some((name, span)) = first {
            self.report(15, span, format!("block `{name}` stands outside of a root block"));
        }
    }

    /// Makes a variable visible. False when it already was defined.
    fn define(&mut self, v: &Var) -> bool {
        self.scope.insert(v.clone());
        let new = self.defined.insert(v.clone());
        if !new {
            self.report(2, v.span(), format!("variable `{}` is defined twice", v.name()));
        }
        new
    }

    fn declare(&mut self, b: &Buffer) {
        if self.declared.contains(b) {
            self.report(3, b.span, format!("buffer `{}` is declared twice", b.name));
        } else {
            self.declared.push(b.clone());
        }
        self.buffers.push(b.clone());
    }

    fn buffer_parts(&mut self, b: &Buffer) {
        if !b.strides.is_empty() && b.strides.len() != b.shape.len() {
            let message = format!("buffer `{}` has {} strides for rank {}", b.name, b.strides.len(), b.shape.len());
            self.report(14, b.span, message);
        }
        for e in b.shape.iter().chain(&b.strides).chain(b.elem_offset.iter()) {
            if !e.dtype().is_integer() || e.dtype().lanes != 1 {
                let message = format!("buffer `{}` has an extent, stride or offset of type {}", b.name, e.dtype());
                self.report(14, b.span, message);
            }
            self.in_span(b.span, |v| v.expr(e));
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::Seq(stmts) => {
                for s in stmts {
                    if matches!(s, Stmt::Seq(_)) {
                        self.report(17, Span::NONE, "a sequence holds a sequence".to_string());
                    }
                    self.stmt(s);
                }
            }
            Stmt::For(f) => self.for_loop(f),
            Stmt::Block(b) => self.in_span(b.span, |v| v.block(b)),
            Stmt::Store(s) => self.in_span(s.span, |v| v.store(s)),
            Stmt::Let(l) => {
                self.expr(&l.value);
                if l.value.dtype() != l.var.dtype() {
                    let message = format!(
                        "`{}` of type {} is bound to a value of type {}",
                        l.var.name(),
                        l.var.dtype(),
                        l.value.dtype()
                    );
                    self.report(6, l.value.span(), message);
                }
                self.define(&l.var);
                self.stmt(&l.body);
                self.scope.remove(&l.var);
            }
            Stmt::If(i) => {
                self.condition("if", &i.cond);
                self.stmt(&i.then);
                i.otherwise.iter().for_each(|s| self.stmt(s));
            }
            Stmt::While(w) => {
                self.condition("while", &w.cond);
                self.stmt(&w.body);
            }
            Stmt::Assert(a) => self.condition("assert", &a.cond),
            Stmt::Evaluate(e) => self.value_or_effect(e),
        }
    }

    fn condition(&mut self, what: &str, cond: &PrimExpr) {
        self.expr(cond);
        if cond.dtype() != crate::dtype::DType::BOOL {
            self.report(7, cond.span(), format!("the condition of {what} is of type {}, expected bool", cond.dtype()));
        }
    }

    fn for_loop(&mut self, f: &For) {
        let outer = self.span;
        self.span = f.span.or(outer);
        self.expr(&f.min);
        self.expr(&f.extent);
        let d = f.var.dtype();
        let name = f.var.name();
        if !d.is_integer() || d.lanes != 1 {
            self.report(8, f.span, format!("loop variable `{name}` is of type {d}, expected an integer"));
        } else if f.min.dtype() != d || f.extent.dtype() != d {
            let message = format!(
                "loop variable `{name}` is of type {d}, but runs from {} over {}",
                f.min.dtype(),
                f.extent.dtype()
            );
            self.report(8, f.span, message);
        }
        if let Some(n) = f.extent.as_int().filter(|n| *n < 0 && !d.is_uint()) {
            self.report(8, f.extent.span(), format!("loop `{name}` has a negative extent {n}"));
        }
        if let ForKind::ThreadBinding(axis) = &f.kind {
            if !THREAD_AXES.contains(&axis.as_str()) && !axis.starts_with("vthread") {
                self.report(8, f.span, format!("loop `{name}` is bound to unknown axis `{axis}`"));
            }
        }
        self.define(&f.var);
        self.loops.insert(f.var.clone());
        self.stmt(&f.body);
        self.loops.remove(&f.var);
        self.scope.remove(&f.var);
        self.span = outer;
    }

    fn block(&mut self, b: &Block) {
        for i in &b.iters {
            let d = i.var.dtype();
            for (what, e) in [("minimum", &i.dom.min), ("extent", &i.dom.extent), ("binding", &i.binding)] {
                self.expr(e);
                if e.dtype() != d {
                    let message = format!(
                        "iterator `{}` of block `{}` is of type {d}, its {what} of type {}",
                        i.var.name(),
                        b.name,
                        e.dtype()
                    );
                    self.report(9, e.span(), message);
                }
            }
            if !d.is_integer() || d.lanes != 1 {
                let message = format!("iterator `{}` of block `{}` is of type {d}", i.var.name(), b.name);
                self.report(9, i.var.span(), message);
            }
        }
        self.condition(&format!("the predicate of block `{}`", b.name), &b.predicate);
        // Domains, bindings and predicate were seen without the iterators; a use of one of them was an unknown name.
        let outer = (self.scope.clone(), self.hidden.clone());
        if !b.iters.is_empty() {
            for v in std::mem::take(&mut self.scope) {
                if self.loops.contains(&v) {
                    self.hidden.insert(v, b.name.to_string());
                } else {
                    self.scope.insert(v);
                }
            }
        }
        for i in &b.iters {
            self.define(&i.var);
        }
        let depth = self.buffers.len();
        for a in &b.allocs {
            self.declare(a);
            self.buffer_parts(a);
        }
        self.regions(b);
        if let Some(init) = &b.init {
            let reduce: Vec<Var> =
                b.iters.iter().filter(|i| i.kind == IterKind::Reduce).map(|i| i.var.clone()).collect();
            let used = super::stmt_free_vars(init);
            for v in reduce.iter().filter(|v| used.contains(v)) {
                let message = format!("init of block `{}` mentions reduction iterator `{}`", b.name, v.name());
                let help = "it runs once, before the first step of the reduction: use spatial iterators alone";
                self.report_with(10, first_use(init, v).or(v.span()), message, help.to_string());
            }
            self.stmt(init);
        }
        self.reduction_stores(b);
        self.stmt(&b.body);
        self.buffers.truncate(depth);
        (self.scope, self.hidden) = outer;
    }

    /// Rule 11.
    fn reduction_stores(&mut self, b: &Block) {
        let reduce: Vec<&Var> = b.iters.iter().filter(|i| i.kind == IterKind::Reduce).map(|i| &i.var).collect();
        if reduce.is_empty() {
            return;
        }
        let mut found = Vec::new();
        super::visit_stmt(&b.body, &mut |s| {
            if let Stmt::Store(s) = s {
                if b.allocs.contains(&s.buffer) {
                    return;
                }
                for e in &s.indices {
                    let used = crate::prim::free_vars(e);
                    if let Some(v) = reduce.iter().find(|v| used.contains(v)) {
                        found.push((e.span().or(s.span), s.buffer.name.to_string(), v.name().to_string()));
                    }
                }
            }
        });
        for (span, buffer, var) in found {
            let message =
                format!("a store to `{buffer}` in block `{}` is indexed by reduction iterator `{var}`", b.name);
            let help = format!("make `{var}` spatial, or store at spatial iterators alone");
            self.report_with(11, span, message, help);
        }
    }

    fn visible(&mut self, v: &Var, span: Span) {
        if self.scope.contains(v) {
            return;
        }
        match self.hidden.get(v) {
            Some(block) => {
                let message = format!("loop variable `{}` is used inside block `{block}`", v.name());
                let help = "use the block's iterator that is bound to it, or bind one".to_string();
                self.report_with(9, span, message, help);
            }
            None => self.report(1, span, format!("variable `{}` is not defined here", v.name())),
        }
    }

    fn value_or_effect(&mut self, e: &PrimExpr) {
        match e.kind() {
            PrimKind::Call(_, args) | PrimKind::CallExtern(_, args) if e.dtype().is_void() => {
                self.in_span(e.span(), |v| args.iter().for_each(|a| v.argument(a)));
                self.call_types(e);
            }
            _ => self.expr(e),
        }
    }
}
