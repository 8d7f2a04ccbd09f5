//! Rule-based simplification of what is no sum: minima, selections, conditions, casts, vectors.

use super::canonical::Mode;
use super::session::Session;
use super::sum::Sum;
use crate::prim::{BinOp, CmpOp, Intrinsic, PrimExpr, PrimKind};

impl Session<'_> {
    /// An equal expression in normal form.
    pub(super) fn simplify(&mut self, e: &PrimExpr) -> PrimExpr {
        if let Some(s) = self.simplify_memo.get(e) {
            return s;
        }
        let scalar_int = e.dtype().is_integer() && e.dtype().lanes == 1;
        let out = match e.kind() {
            PrimKind::Binary(
                BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod,
                ..,
            ) if scalar_int => {
                let sum = self.sum(e, Mode::Simplify);
                self.fewest_terms(sum).to_expr()
            }
            _ => self.simplify_node(e),
        };
        let out = if out == *e { e.clone() } else { keep_span(out, e) };
        self.simplify_memo.put(e, out.clone());
        out
    }

    /// Rewrites `k * (X % c)` and `k * (X // c)` of compound `X` where the sum gets shorter by it.
    fn fewest_terms(&mut self, mut s: Sum) -> Sum {
        let mut i = 0;
        while i < s.terms.len() {
            let splits = |s: &Sum| s.terms.iter().filter(|t| !t.is_plain()).count();
            let shorter =
                |n: &Sum| n.terms.len() < s.terms.len() || n.terms.len() == s.terms.len() && splits(n) < splits(&s);
            match self.without_split(&s, i).filter(shorter) {
                Some(shorter) => {
                    s = shorter;
                    i = 0;
                }
                None => i += 1,
            }
        }
        s
    }

    fn without_split(&mut self, s: &Sum, i: usize) -> Option<Sum> {
        let t = s.terms.get(i)?.clone();
        let mut rest = s.clone();
        rest.terms.remove(i);
        if !matches!(t.index.kind(), PrimKind::Binary(BinOp::Add | BinOp::Sub, ..)) {
            // k*c * (X // c) of known X % c
            let m = self.modular(&t.index);
            if t.upper.is_some() || t.lower == 1 || t.scale % t.lower != 0 || m.coeff % t.lower != 0 {
                return None;
            }
            let inner = self.sum(&t.index, Mode::Simplify).offset(m.base.rem_euclid(t.lower).checked_neg()?)?;
            return rest.add(&inner.scale(t.scale / t.lower)?);
        }
        let inner = self.sum(&t.index, Mode::Simplify);
        let split = |scale, lower, upper| super::sum::Term { scale, index: t.index.clone(), lower, upper };
        match (t.lower, t.upper) {
            (1, Some(c)) => {
                let mut out = rest.add(&inner.scale(t.scale)?)?;
                out.add_term(split(t.scale.checked_mul(c)?.checked_neg()?, c, None))?;
                Some(out)
            }
            (c, None) if c > 1 && t.scale % c == 0 => {
                let k = t.scale / c;
                let mut out = rest.add(&inner.scale(k)?)?;
                out.add_term(split(k.checked_neg()?, 1, Some(c)))?;
                Some(out)
            }
            _ => None,
        }
    }

    /// Simplifies a node that [`Session::sum`] takes for one term.
    pub(super) fn simplify_node(&mut self, e: &PrimExpr) -> PrimExpr {
        if let Some(s) = self.node_memo.get(e) {
            return s;
        }
        let out = self.simplify_kind(e);
        self.node_memo.put(e, out.clone());
        out
    }

    fn simplify_kind(&mut self, e: &PrimExpr) -> PrimExpr {
        match e.kind() {
            PrimKind::Int(_) | PrimKind::Float(_) | PrimKind::Str(_) => e.clone(),
            PrimKind::Var(v) => match self.facts.var(v).and_then(|f| f.value.clone()) {
                Some(value) => self.simplify(&value),
                None => match self.facts.var_bound(v).as_point() {
                    Some(c) if v.dtype().is_integer() => PrimExpr::int(v.dtype(), c),
                    _ => e.clone(),
                },
            },
            PrimKind::Binary(op @ (BinOp::Min | BinOp::Max), a, b) => {
                let (a, b) = (self.simplify(a), self.simplify(b));
                self.simplify_min_max(*op, &a, &b)
            }
            PrimKind::Binary(op, a, b) => {
                let (a, b) = (self.simplify(a), self.simplify(b));
                match vector_binary(*op, &a, &b) {
                    Some(v) => self.simplify(&v),
                    None => PrimExpr::binary(*op, a, b),
                }
            }
            PrimKind::Cmp(op, a, b) => {
                let out = self.simplify_cmp(*op, a, b);
                self.known_condition(out)
            }
            PrimKind::And(a, b) => self.simplify_and(a, b),
            PrimKind::Or(a, b) => self.simplify_or(a, b),
            PrimKind::Not(a) => self.simplify_not(a),
            PrimKind::Select(c, a, b) => self.simplify_choice(e, c, a, b),
            PrimKind::Call(Intrinsic::IfThenElse, args) => match args.as_slice() {
                [c, a, b] => self.simplify_choice(e, c, a, b),
                _ => e.clone(),
            },
            PrimKind::Call(Intrinsic::Likely, args) => match args.as_slice() {
                [c] => match self.simplify(c) {
                    c if c.as_int().is_some() => c,
                    c => PrimExpr::call(Intrinsic::Likely, vec![c]),
                },
                _ => e.clone(),
            },
            PrimKind::Cast(a) => {
                let a = self.simplify(a);
                self.simplify_cast(e, &a)
            }
            PrimKind::Ramp(base, stride) => {
                let (base, stride) = (self.simplify(base), self.simplify(stride));
                if stride.is_int(0) {
                    base.broadcast(e.dtype().lanes)
                } else {
                    PrimExpr::ramp(base, stride, e.dtype().lanes)
                }
            }
            PrimKind::Let(v, value, body) => {
                let value = self.simplify(value);
                let mut inner = self.facts.clone();
                if v.dtype().is_integer() {
                    let bound = self.bounds(&value);
                    inner.set_bound(v, bound);
                }
                let body = self.inner(&inner).simplify(body);
                if value.as_int().is_some() || value.as_var().is_some() {
                    let body = crate::prim::substitute(&body, &[(v.clone(), value)].into());
                    return self.simplify(&body);
                }
                if !crate::prim::free_vars(&body).contains(v) {
                    return body;
                }
                PrimExpr::new(PrimKind::Let(v.clone(), value, body), e.dtype())
            }
            PrimKind::Broadcast(_) | PrimKind::Load(..) | PrimKind::Call(..) | PrimKind::CallExtern(..) => {
                e.map_children(&mut |c| self.simplify(c))
            }
        }
    }

    fn simplify_min_max(&mut self, op: BinOp, a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
        let dtype = a.dtype();
        if !dtype.is_integer() || dtype.lanes != 1 {
            return PrimExpr::binary(op, a.clone(), b.clone());
        }
        let is_min = op == BinOp::Min;
        if self.decide(CmpOp::Le, a, b) == Some(true) {
            return if is_min { a.clone() } else { b.clone() };
        }
        if self.decide(CmpOp::Le, b, a) == Some(true) {
            return if is_min { b.clone() } else { a.clone() };
        }
        // min(min(x, c), d), min(min(x, y), x), min(max(x, y), x)
        for (x, y) in [(a, b), (b, a)] {
            let PrimKind::Binary(inner @ (BinOp::Min | BinOp::Max), p, q) = x.kind() else { continue };
            if p == y || q == y {
                return if *inner == op { x.clone() } else { y.clone() };
            }
            for (p, q) in [(p, q), (q, p)] {
                if *inner == op && q.as_int().is_some() && y.as_int().is_some() {
                    return PrimExpr::binary(op, p.clone(), PrimExpr::binary(op, q.clone(), y.clone()));
                }
            }
        }
        // Literals last.
        if a.as_int().is_some() {
            PrimExpr::binary(op, b.clone(), a.clone())
        } else {
            PrimExpr::binary(op, a.clone(), b.clone())
        }
    }

    /// A condition that is among those known, or contradicts one.
    fn known_condition(&mut self, cond: PrimExpr) -> PrimExpr {
        if cond.dtype().lanes != 1 || cond.as_int().is_some() {
            return cond;
        }
        if self.facts.known.contains(&cond) {
            return PrimExpr::bool(true);
        }
        match super::compare::inverse(&cond) {
            Some(inverse) if self.facts.known.contains(&inverse) => PrimExpr::bool(false),
            _ => cond,
        }
    }

    /// Simplifies under a further condition.
    fn simplify_under(&mut self, cond: &PrimExpr, e: &PrimExpr) -> PrimExpr {
        if cond.dtype().lanes != 1 || e.children().is_empty() {
            return self.simplify(e);
        }
        let mut facts = self.facts.clone();
        facts.assume(cond);
        self.inner(&facts).simplify(e)
    }

    fn simplify_and(&mut self, a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
        let a = self.simplify(a);
        if a.is_int(0) {
            return a;
        }
        let b = self.simplify_under(&a, b);
        if a == b { a } else { a.and(b) }
    }

    fn simplify_or(&mut self, a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
        let a = self.simplify(a);
        if a.is_int(1) {
            return a;
        }
        let b = self.simplify_under(&a.clone().logical_not(), b);
        if a == b { a } else { a.or(b) }
    }

    pub(super) fn simplify_not(&mut self, a: &PrimExpr) -> PrimExpr {
        let a = self.simplify(a);
        if let Some(inverse) = super::compare::inverse(&a) {
            return self.simplify(&inverse);
        }
        match a.kind() {
            PrimKind::Not(inner) => inner.clone(),
            PrimKind::And(x, y) => self.simplify_not(x).or(self.simplify_not(y)),
            PrimKind::Or(x, y) => self.simplify_not(x).and(self.simplify_not(y)),
            _ => a.logical_not(),
        }
    }

    /// `Select` and `if_then_else`
    fn simplify_choice(&mut self, e: &PrimExpr, c: &PrimExpr, a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
        let c = self.simplify(c);
        match c.as_int() {
            Some(0) => return self.simplify(b),
            Some(_) => return self.simplify(a),
            None => {}
        }
        // Only a lazy choice may assume its condition inside: the sides of a `Select` are both evaluated.
        let lazy = matches!(e.kind(), PrimKind::Call(..));
        let (a, b) = if lazy {
            (self.simplify_under(&c, a), self.simplify_under(&c.clone().logical_not(), b))
        } else {
            (self.simplify(a), self.simplify(b))
        };
        if a == b {
            return a;
        }
        if e.dtype().is_bool() && e.dtype().lanes == 1 && a.is_int(1) && b.is_int(0) {
            return c;
        }
        let kind = if lazy { PrimKind::Call(Intrinsic::IfThenElse, vec![c, a, b]) } else { PrimKind::Select(c, a, b) };
        PrimExpr::new(kind, e.dtype())
    }

    fn simplify_cast(&mut self, e: &PrimExpr, a: &PrimExpr) -> PrimExpr {
        let (to, from) = (e.dtype(), a.dtype());
        if let PrimKind::Cast(inner) = a.kind() {
            let first = inner.dtype();
            // A widening that loses nothing, and then any conversion.
            let lossless = from.is_int() && first.is_int() && from.bits >= first.bits;
            if lossless && to.is_integer() {
                return inner.cast(to);
            }
        }
        if let PrimKind::Broadcast(x) = a.kind() {
            return x.cast(to.scalar()).broadcast(to.lanes);
        }
        a.cast(to)
    }
}

/// Ramps and broadcasts under `+ - *`, and broadcasts under every operator.
fn vector_binary(op: BinOp, a: &PrimExpr, b: &PrimExpr) -> Option<PrimExpr> {
    let lanes = a.dtype().lanes;
    let each = |x: &PrimExpr, y: &PrimExpr| PrimExpr::binary(op, x.clone(), y.clone());
    match (a.kind(), b.kind()) {
        (PrimKind::Broadcast(x), PrimKind::Broadcast(y)) if x.dtype() == y.dtype() => Some(each(x, y).broadcast(lanes)),
        _ if !a.dtype().is_integer() => None,
        (PrimKind::Ramp(base, s), PrimKind::Broadcast(y)) if y.dtype() == base.dtype() => match op {
            BinOp::Add | BinOp::Sub => Some(PrimExpr::ramp(each(base, y), s.clone(), lanes)),
            BinOp::Mul => Some(PrimExpr::ramp(each(base, y), each(s, y), lanes)),
            _ => None,
        },
        (PrimKind::Broadcast(x), PrimKind::Ramp(base, s)) if x.dtype() == base.dtype() => match op {
            BinOp::Add => Some(PrimExpr::ramp(each(x, base), s.clone(), lanes)),
            BinOp::Sub => Some(PrimExpr::ramp(each(x, base), PrimExpr::int(s.dtype(), 0) - s.clone(), lanes)),
            BinOp::Mul => Some(PrimExpr::ramp(each(x, base), each(x, s), lanes)),
            _ => None,
        },
        (PrimKind::Ramp(base, s), PrimKind::Ramp(other, t)) if matches!(op, BinOp::Add | BinOp::Sub) => {
            (base.dtype() == other.dtype()).then(|| PrimExpr::ramp(each(base, other), each(s, t), lanes))
        }
        _ => None,
    }
}

fn keep_span(out: PrimExpr, from: &PrimExpr) -> PrimExpr {
    if out.span().is_none() && !from.span().is_none() && !out.children().is_empty() {
        out.with_span(from.span())
    } else {
        out
    }
}
