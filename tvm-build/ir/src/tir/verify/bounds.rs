//! Proofs that every access is in bounds.

use super::counterexample::find;
use super::unproven::{Unproven, What, reads_memory};
use crate::arith::Analyzer;
use crate::attrs::AttrValue;
use crate::diag::{Diag, Diags, Severity};
use crate::prim::{BinOp, Buffer, CmpOp, Intrinsic, PrimExpr, PrimKind, Range, Var};
use crate::span::Span;
use crate::tir::{Block, Param, PrimFunc, Stmt};
use std::collections::BTreeSet;

/// The attribute of functions whose accesses are checked at run time where they are not proven.
pub const CHECK_BOUNDS: &str = "tir.check_bounds";

/// Every access of a well-formed function that is not proven to be in bounds, and every block iterator that is not
/// proven to stay in its domain. One that leaves them at a point that was found is an error, with the point; one that
/// could not be decided is a warning. Symbolic extents count as at least 0.
///
/// A side of `if_then_else`, and the right side of `and` and `or`, is only reached where the condition says so; both
/// sides of a `Select` always are. An index that divides is taken to have divided by something: division by zero is
/// another error.
pub fn verify_bounds(func: &PrimFunc) -> Diags {
    let mut diags = Diags::new();
    for d in unproven(func).iter().map(Unproven::diag) {
        // The same index of the same buffer, read and written.
        if !diags.0.iter().any(|other| other.message == d.message) {
            diags.push(d);
        }
    }
    diags
}

/// As [`verify_bounds`], as a condition: what could not be decided is an error too. A function that has its accesses
/// checked at run time ([`CHECK_BOUNDS`]) satisfies it.
pub fn check_bounds(func: &PrimFunc) -> Result<(), Diags> {
    if func.attrs.get(CHECK_BOUNDS).and_then(AttrValue::as_bool) == Some(true) {
        return Ok(());
    }
    let all = verify_bounds(func).0.into_iter().map(|d| Diag { severity: Severity::Error, ..d });
    Diags(all.collect()).into_result(())
}

/// The accesses and iterators that [`verify_bounds`] reports.
pub(super) fn unproven(func: &PrimFunc) -> Vec<Unproven> {
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
    let mut checker =
        Checker { found: Vec::new(), span: func.span, free, frames: Vec::new(), site: Site { stmt: 0, depth: 0 } };
    checker.stmt(&func.body, &analyzer);
    checker.found
}

/// Where a statement begins: its address, and how much surrounds it.
#[derive(Clone, Copy)]
struct Site {
    stmt: usize,
    depth: usize,
}

/// What surrounds an access, from the outside in.
#[derive(Clone)]
pub(super) enum Frame {
    Loop(Var, Range),
    /// A variable with the value of an expression.
    Value(Var, PrimExpr),
    Holds(PrimExpr),
}

struct Checker {
    found: Vec<Unproven>,
    span: Span,
    /// Variables that may have any value: symbolic extents and scalar parameters.
    free: Vec<Var>,
    frames: Vec<Frame>,
    /// The statement being checked.
    site: Site,
}

impl Checker {
    fn stmt(&mut self, s: &Stmt, an: &Analyzer) {
        let outer = self.site;
        self.site = Site { stmt: address(s), depth: self.frames.len() };
        self.stmt_inside(s, an);
        self.site = outer;
    }

    fn stmt_inside(&mut self, s: &Stmt, an: &Analyzer) {
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
            let what = What::Iterator(i.var.name().to_string(), b.name.to_string());
            let inside = self.inside(&i.binding, &i.dom.min, &i.dom.extent, &what, &outside);
            let loads = reads_memory(&i.binding);
            // One that leaves its domain is told of once: inside of the block it counts as being in it.
            if !inside || loads {
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
            let what = What::Dimension(b.clone(), dim);
            let zero = PrimExpr::int(extent.dtype(), 0);
            for end in lane_ends(index, an) {
                if !self.inside(&end, &zero, extent, &what, an) {
                    break;
                }
            }
        }
    }

    /// Whether `min <= e < min + extent` is proven; reports it when not.
    fn inside(&mut self, e: &PrimExpr, min: &PrimExpr, extent: &PrimExpr, what: &What, an: &Analyzer) -> bool {
        let low = PrimExpr::cmp(CmpOp::Ge, e.clone(), min.clone());
        let high = PrimExpr::cmp(CmpOp::Lt, e.clone(), min.clone() + extent.clone());
        if an.prove(&low) && an.prove(&high) {
            return true;
        }
        let divided = with_divisors(e, an);
        if divided.as_ref().is_some_and(|an| an.prove(&low) && an.prove(&high)) {
            return true;
        }
        if self.with_choices(an).is_some_and(|an| an.prove(&low) && an.prove(&high)) {
            return true;
        }
        let claim = low.clone().and(high.clone());
        let counterexample = find(&self.free, &self.frames, e, extent, &claim);
        let span = e.span().or(self.span);
        self.found.push(Unproven {
            stmt: self.site.stmt,
            claim: self.where_the_statement_stands(claim),
            what: what.clone(),
            index: e.clone(),
            proven: [an.prove(&low), an.prove(&high)],
            min: min.clone(),
            extent: extent.clone(),
            span,
            counterexample,
        });
        false
    }

    /// What is known when of each "either … or" that holds here the side is taken that can hold; `None` when there is
    /// nothing to learn.
    fn with_choices(&self, an: &Analyzer) -> Option<Analyzer> {
        let mut out = an.clone();
        let mut any = false;
        for f in &self.frames {
            let Frame::Holds(cond) = f else { continue };
            let PrimKind::Or(a, b) = cond.kind() else { continue };
            let left = [(a, b), (b, a)].into_iter().find(|(not, _)| an.prove(&(*not).clone().logical_not()));
            if let Some((_, holds)) = left {
                out.assume(holds);
                any = true;
            }
        }
        any.then_some(out)
    }

    /// A claim of an expression inside the statement, as one that must hold before it: it says nothing where the
    /// expression is not reached.
    fn where_the_statement_stands(&self, claim: PrimExpr) -> PrimExpr {
        let inner = self.frames.get(self.site.depth..).unwrap_or_default();
        inner.iter().rev().fold(claim, |claim, f| match f {
            Frame::Holds(cond) => match cond.kind() {
                PrimKind::Not(c) => c.clone().or(claim),
                _ => cond.clone().logical_not().or(claim),
            },
            Frame::Value(v, value) if crate::prim::free_vars(&claim).contains(v) => {
                PrimExpr::new(PrimKind::Let(v.clone(), value.clone(), claim.clone()), claim.dtype())
            }
            Frame::Value(..) | Frame::Loop(..) => claim,
        })
    }
}

/// What tells a statement of a function apart from its others.
pub(super) fn address(s: &Stmt) -> usize {
    std::ptr::from_ref(s) as usize
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
            vec![base.clone(), an.simplify(&(base.clone() + stride.clone() * last))]
        }
        PrimKind::Broadcast(x) => vec![x.clone()],
        _ => vec![index],
    }
}
