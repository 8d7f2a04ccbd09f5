//! Proofs that every access is in bounds.

use super::eval::eval;
use crate::arith::{Analyzer, IntBound};
use crate::diag::{Diag, Diags};
use crate::prim::{BinOp, Buffer, CmpOp, Intrinsic, PrimExpr, PrimKind, Range, Var, free_vars};
use crate::span::Span;
use crate::tir::{Block, Param, PrimFunc, Stmt};
use std::collections::{BTreeMap, BTreeSet};

/// Points tried for a counterexample of one access.
const POINTS: u64 = 2048;

/// Every access of a well-formed function that is not proven to be in bounds, and every block iterator that is not
/// proven to stay in its domain. One that leaves them at a point that was found is an error, with the point; one that
/// could not be decided is a warning. Symbolic extents count as at least 0.
///
/// A side of `if_then_else`, and the right side of `and` and `or`, is only reached where the condition says so; both
/// sides of a `Select` always are. An index that divides is taken to have divided by something: division by zero is
/// another error.
pub fn verify_bounds(func: &PrimFunc) -> Diags {
    let mut analyzer = Analyzer::new();
    let mut shape_vars = BTreeSet::new();
    for b in func.buffers() {
        shape_vars.extend(b.shape.iter().filter_map(|e| e.as_var()).cloned());
    }
    for v in &shape_vars {
        analyzer.assume_nonnegative(v);
    }
    for p in &func.params {
        if let Param::Scalar(v) = p {
            shape_vars.insert(v.clone());
        }
    }
    let free = shape_vars.into_iter().filter(|v| v.dtype().is_integer()).collect();
    let mut checker = Checker { diags: Diags::new(), span: func.span, free, frames: Vec::new() };
    checker.stmt(&func.body, &analyzer);
    checker.diags
}

/// What surrounds an access, from the outside in.
#[derive(Clone)]
enum Frame {
    Loop(Var, Range),
    /// A variable with the value of an expression.
    Value(Var, PrimExpr),
    Holds(PrimExpr),
}

struct Checker {
    diags: Diags,
    span: Span,
    /// Variables that may have any value: symbolic extents and scalar parameters.
    free: Vec<Var>,
    frames: Vec<Frame>,
}

impl Checker {
    fn stmt(&mut self, s: &Stmt, an: &Analyzer) {
        match s {
            Stmt::Seq(stmts) => {
                // An assertion holds for what follows it.
                let mut an = an.clone();
                let depth = self.frames.len();
                for s in stmts {
                    self.stmt(s, &an);
                    if let Stmt::Assert(a) = s {
                        an.assume(&a.cond);
                        self.frames.push(Frame::Holds(a.cond.clone()));
                    }
                }
                self.frames.truncate(depth);
            }
            Stmt::For(f) => {
                let outer = self.enter_span(f.span);
                self.expr(&f.min, an);
                self.expr(&f.extent, an);
                let range = Range { min: f.min.clone(), extent: f.extent.clone() };
                if an.simplify(&f.extent).as_int().is_some_and(|n| n <= 0) {
                    // The body never runs.
                    self.span = outer;
                    return;
                }
                let mut inner = an.clone();
                inner.bind_range(&f.var, range.clone());
                // The body runs only where there is an iteration.
                inner.assume(&PrimExpr::cmp(CmpOp::Gt, f.extent.clone(), PrimExpr::int(f.extent.dtype(), 0)));
                self.within(Frame::Loop(f.var.clone(), range), |c| c.stmt(&f.body, &inner));
                self.span = outer;
            }
            Stmt::Block(b) => self.block(b, an),
            Stmt::Store(s) => {
                let outer = self.enter_span(s.span);
                self.expr(&s.value, an);
                self.access(&s.buffer, &s.indices, an);
                self.span = outer;
            }
            Stmt::Let(l) => {
                self.expr(&l.value, an);
                let mut inner = an.clone();
                if l.var.dtype().is_integer() && l.var.dtype().lanes == 1 {
                    inner.bind(&l.var, l.value.clone());
                }
                self.within(Frame::Value(l.var.clone(), l.value.clone()), |c| c.stmt(&l.body, &inner));
            }
            Stmt::If(i) => {
                self.expr(&i.cond, an);
                self.given(&i.cond, an, |c, an| c.stmt(&i.then, an));
                if let Some(otherwise) = &i.otherwise {
                    self.given(&i.cond.clone().logical_not(), an, |c, an| c.stmt(otherwise, an));
                }
            }
            Stmt::While(w) => {
                self.expr(&w.cond, an);
                self.given(&w.cond, an, |c, an| c.stmt(&w.body, an));
            }
            Stmt::Assert(a) => self.expr(&a.cond, an),
            Stmt::Evaluate(e) => self.expr(e, an),
        }
    }

    /// Sets the place that diagnostics point to; gives the one before.
    fn enter_span(&mut self, span: Span) -> Span {
        let outer = self.span;
        self.span = span.or(outer);
        outer
    }

    fn within(&mut self, frame: Frame, f: impl FnOnce(&mut Self)) {
        self.frames.push(frame);
        f(self);
        self.frames.pop();
    }

    fn given(&mut self, cond: &PrimExpr, an: &Analyzer, f: impl FnOnce(&mut Self, &Analyzer)) {
        let inner = an.with_constraint(cond);
        self.within(Frame::Holds(cond.clone()), |c| f(c, &inner));
    }

    fn block(&mut self, b: &Block, an: &Analyzer) {
        let outer = self.enter_span(b.span);
        self.expr(&b.predicate, an);
        let always = b.predicate.is_int(1);
        let mut an = if always { an.clone() } else { an.with_constraint(&b.predicate) };
        let depth = self.frames.len();
        if !always {
            self.frames.push(Frame::Holds(b.predicate.clone()));
        }
        let outside = an.clone();
        for i in &b.iters {
            self.expr(&i.binding, &outside);
            let place = format!("iterator `{}` of block `{}`", i.var.name(), b.name);
            let inside = self.inside(&i.binding, &i.dom.min, &i.dom.extent, &place, &outside);
            let loads = reads_memory(&i.binding);
            if inside && loads {
                an.bind_range(&i.var, i.dom.clone());
            } else {
                an.bind(&i.var, i.binding.clone());
            }
            self.frames.push(Frame::Value(i.var.clone(), i.binding.clone()));
        }
        if let Some(init) = &b.init {
            self.stmt(init, &an);
        }
        self.stmt(&b.body, &an);
        self.frames.truncate(depth);
        self.span = outer;
    }

    fn expr(&mut self, e: &PrimExpr, an: &Analyzer) {
        let outer = self.enter_span(e.span());
        match e.kind() {
            PrimKind::Load(b, indices) => self.access(b, indices, an),
            PrimKind::Call(Intrinsic::IfThenElse, args) => {
                if let [c, a, b] = args.as_slice() {
                    self.expr(c, an);
                    self.given(c, an, |s, an| s.expr(a, an));
                    self.given(&c.clone().logical_not(), an, |s, an| s.expr(b, an));
                }
            }
            PrimKind::And(a, b) if e.dtype().lanes == 1 => {
                self.expr(a, an);
                self.given(a, an, |s, an| s.expr(b, an));
            }
            PrimKind::Or(a, b) if e.dtype().lanes == 1 => {
                self.expr(a, an);
                self.given(&a.clone().logical_not(), an, |s, an| s.expr(b, an));
            }
            PrimKind::Let(v, value, body) => {
                self.expr(value, an);
                let mut inner = an.clone();
                if v.dtype().is_integer() && v.dtype().lanes == 1 {
                    inner.bind(v, value.clone());
                }
                self.within(Frame::Value(v.clone(), value.clone()), |s| s.expr(body, &inner));
            }
            _ => e.children().into_iter().for_each(|c| self.expr(c, an)),
        }
        self.span = outer;
    }

    fn access(&mut self, b: &Buffer, indices: &[PrimExpr], an: &Analyzer) {
        for (dim, (index, extent)) in indices.iter().zip(&b.shape).enumerate() {
            self.expr(index, an);
            let place = format!("index of dimension {dim} of buffer `{}`", b.name);
            let zero = PrimExpr::int(extent.dtype(), 0);
            for end in lane_ends(index, an) {
                if !self.inside(&end, &zero, extent, &place, an) {
                    break;
                }
            }
        }
    }

    /// Whether `min <= e < min + extent` is proven; reports it when not.
    fn inside(&mut self, e: &PrimExpr, min: &PrimExpr, extent: &PrimExpr, place: &str, an: &Analyzer) -> bool {
        let low = PrimExpr::cmp(CmpOp::Ge, e.clone(), min.clone());
        let high = PrimExpr::cmp(CmpOp::Lt, e.clone(), min.clone() + extent.clone());
        if an.prove(&low) && an.prove(&high) {
            return true;
        }
        let divided = with_divisors(e, an);
        if divided.as_ref().is_some_and(|an| an.prove(&low) && an.prove(&high)) {
            return true;
        }
        let inside = low.and(high);
        let diag = match self.counterexample(e, extent, &inside) {
            Some((at, value, extent_value)) => {
                let vars: Vec<String> = at.iter().map(|(v, x)| format!("{} = {x}", v.name())).collect();
                let message =
                    format!("{place} is {value} where {}, out of bounds (extent {extent_value})", vars.join(", "));
                Diag::error(self.span, message)
            }
            None => {
                let why = if reads_memory(e) { "depends on data" } else { "is not proven to be in bounds" };
                Diag::warning(self.span, format!("{place} {why}: {:?} of {:?}", an.simplify(e), an.simplify(extent)))
            }
        };
        self.diags.push(diag);
        false
    }

    /// Values of the variables around at which all conditions hold and the claim does not.
    fn counterexample(
        &self,
        e: &PrimExpr,
        extent: &PrimExpr,
        claim: &PrimExpr,
    ) -> Option<(BTreeMap<Var, i64>, i64, i64)> {
        let mut search = Search { frames: &self.frames, e, extent, claim, left: POINTS };
        if self.free.is_empty() {
            return search.go(0, &mut BTreeMap::new());
        }
        // Extents of a few sizes, the same for all and different ones.
        for base in [1i64, 2, 3, 4, 5, 7, 8, 16, 31, 100] {
            for step in [0i64, 1, 3] {
                let mut at = BTreeMap::new();
                for (i, v) in self.free.iter().enumerate() {
                    let x = base + step * i64::try_from(i).unwrap_or(0);
                    let fits = IntBound::of_type(v.dtype()).contains(x);
                    at.insert(v.clone(), if fits { x } else { 1 });
                }
                search.left = POINTS / 30;
                if let Some(found) = search.go(0, &mut at) {
                    return Some(found);
                }
            }
        }
        None
    }
}

struct Search<'a> {
    frames: &'a [Frame],
    e: &'a PrimExpr,
    extent: &'a PrimExpr,
    claim: &'a PrimExpr,
    left: u64,
}

impl Search<'_> {
    fn go(&mut self, depth: usize, at: &mut BTreeMap<Var, i64>) -> Option<(BTreeMap<Var, i64>, i64, i64)> {
        if self.left == 0 {
            return None;
        }
        match self.frames.get(depth) {
            None => {
                self.left -= 1;
                if eval(self.claim, at)? != 0 {
                    return None;
                }
                let mut shown = BTreeMap::new();
                let used: BTreeSet<Var> = free_vars(self.claim);
                for (v, x) in at.iter() {
                    if used.contains(v) || matches!(self.frames.iter().find(|f| binds(f, v)), Some(Frame::Loop(..))) {
                        shown.insert(v.clone(), *x);
                    }
                }
                Some((shown, eval(self.e, at)?, eval(self.extent, at)?))
            }
            Some(Frame::Holds(cond)) => (eval(cond, at)? != 0).then_some(()).and_then(|()| self.go(depth + 1, at)),
            Some(Frame::Value(v, value)) => {
                // A value from memory is left open: what depends on it is not decided.
                if let Some(x) = eval(value, at) {
                    at.insert(v.clone(), x);
                }
                let found = self.go(depth + 1, at);
                at.remove(v);
                found
            }
            Some(Frame::Loop(v, range)) => {
                let (min, extent) = (eval(&range.min, at)?, eval(&range.extent, at)?);
                if extent <= 0 {
                    return None;
                }
                let last = min.checked_add(extent - 1)?;
                // The ends first, where accesses leave their buffers, then some between.
                let mut values = vec![min, last, min.saturating_add(1), last.saturating_sub(1)];
                values.extend([min.saturating_add(extent / 2)]);
                values.retain(|x| (min..=last).contains(x));
                let mut tried = BTreeSet::new();
                for x in values {
                    if !tried.insert(x) {
                        continue;
                    }
                    at.insert(v.clone(), x);
                    if let Some(found) = self.go(depth + 1, at) {
                        return Some(found);
                    }
                }
                at.remove(v);
                None
            }
        }
    }
}

fn binds(f: &Frame, v: &Var) -> bool {
    matches!(f, Frame::Loop(w, _) | Frame::Value(w, _) if w == v)
}

/// What is known when the divisions of an expression have values; `None` when it has none to learn from.
fn with_divisors(e: &PrimExpr, an: &Analyzer) -> Option<Analyzer> {
    let mut divisors = Vec::new();
    crate::prim::visit(e, &mut |n| {
        if let PrimKind::Binary(BinOp::FloorDiv | BinOp::FloorMod | BinOp::Div | BinOp::Mod, _, d) = n.kind() {
            if d.as_int().is_none() && d.dtype().is_integer() && d.dtype().lanes == 1 && !divisors.contains(d) {
                divisors.push(d.clone());
            }
        }
    });
    let mut out = an.clone();
    let mut any = false;
    for d in divisors {
        let zero = PrimExpr::int(d.dtype(), 0);
        if an.prove(&PrimExpr::cmp(CmpOp::Ge, d.clone(), zero.clone())) {
            out.assume(&PrimExpr::cmp(CmpOp::Gt, d, zero));
            any = true;
        }
    }
    any.then_some(out)
}

fn reads_memory(e: &PrimExpr) -> bool {
    let mut found = false;
    crate::prim::visit(e, &mut |n| found |= matches!(n.kind(), PrimKind::Load(..) | PrimKind::CallExtern(..)));
    found
}

/// Scalars that bound the lanes of an index: the first and the last of a ramp. A vector that is no ramp is left as it
/// is, and then nothing is proven of it.
fn lane_ends(index: &PrimExpr, an: &Analyzer) -> Vec<PrimExpr> {
    if index.dtype().lanes == 1 {
        return vec![index.clone()];
    }
    let index = an.simplify(index);
    match index.kind() {
        PrimKind::Ramp(base, stride) => {
            let last = PrimExpr::int(base.dtype(), i64::from(index.dtype().lanes) - 1);
            vec![base.clone(), base.clone() + stride.clone() * last]
        }
        PrimKind::Broadcast(x) => vec![x.clone()],
        _ => vec![index],
    }
}
