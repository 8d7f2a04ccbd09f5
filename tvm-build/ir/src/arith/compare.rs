//! Comparisons of integers: decided through the difference of both sides.

use super::canonical::Mode;
use super::session::Session;
use crate::prim::{CmpOp, PrimExpr, PrimKind};

/// The comparison that says the same with its sides swapped.
pub(super) fn swapped(op: CmpOp) -> CmpOp {
    match op {
        CmpOp::Eq => CmpOp::Eq,
        CmpOp::Ne => CmpOp::Ne,
        CmpOp::Lt => CmpOp::Gt,
        CmpOp::Le => CmpOp::Ge,
        CmpOp::Gt => CmpOp::Lt,
        CmpOp::Ge => CmpOp::Le,
    }
}

/// The comparison that holds exactly when this one does not; `None` for what is no comparison of integers or bools
/// (a comparison with NaN has no such inverse).
pub(super) fn inverse(cond: &PrimExpr) -> Option<PrimExpr> {
    let PrimKind::Cmp(op, a, b) = cond.kind() else { return None };
    if !(a.dtype().is_integer() || a.dtype().is_bool()) {
        return None;
    }
    // As TVM has it, only `<`, `<=`, `==` and `!=` come out.
    Some(match op {
        CmpOp::Eq => PrimExpr::cmp(CmpOp::Ne, a.clone(), b.clone()),
        CmpOp::Ne => PrimExpr::cmp(CmpOp::Eq, a.clone(), b.clone()),
        CmpOp::Lt => PrimExpr::cmp(CmpOp::Le, b.clone(), a.clone()),
        CmpOp::Le => PrimExpr::cmp(CmpOp::Lt, b.clone(), a.clone()),
        CmpOp::Gt => PrimExpr::cmp(CmpOp::Le, a.clone(), b.clone()),
        CmpOp::Ge => PrimExpr::cmp(CmpOp::Lt, a.clone(), b.clone()),
    })
}

impl Session<'_> {
    /// Whether `a op b` is always true or always false; both sides scalar integers or bools.
    pub(super) fn decide(&mut self, op: CmpOp, a: &PrimExpr, b: &PrimExpr) -> Option<bool> {
        if a == b {
            return Some(matches!(op, CmpOp::Eq | CmpOp::Le | CmpOp::Ge));
        }
        if a.dtype().is_bool() {
            return None;
        }
        let (x, y) = (self.bounds(a), self.bounds(b));
        let apart = |low: super::IntBound, high: super::IntBound| low.max < high.min;
        match op {
            CmpOp::Lt | CmpOp::Le | CmpOp::Ne if apart(x, y) => return Some(true),
            CmpOp::Gt | CmpOp::Ge | CmpOp::Ne if apart(y, x) => return Some(true),
            CmpOp::Lt | CmpOp::Le | CmpOp::Eq if apart(y, x) => return Some(false),
            CmpOp::Gt | CmpOp::Ge | CmpOp::Eq if apart(x, y) => return Some(false),
            _ => {}
        }
        let exact = self.exact(a) && self.exact(b);
        let (x, y) = (self.sum(a, Mode::Prove), self.sum(b, Mode::Prove));
        let d = y.sub(&x)?;
        if !exact {
            // Equal modulo the type's width is equal.
            let zero = d.as_const().map(|c| crate::prim::wrap_int(a.dtype(), c) == 0)?;
            return match op {
                CmpOp::Eq | CmpOp::Ne => Some(zero == (op == CmpOp::Eq)),
                CmpOp::Le | CmpOp::Ge if zero => Some(true),
                CmpOp::Lt | CmpOp::Gt if zero => Some(false),
                _ => None,
            };
        }
        let negated = d.clone().scale(-1)?;
        let above = |s: &mut Self, d: &super::sum::Sum| d.clone().offset(-1).is_some_and(|d| s.nonneg(&d));
        match op {
            // d = b - a
            CmpOp::Lt if above(self, &d) => Some(true),
            CmpOp::Lt if self.nonneg(&negated) => Some(false),
            CmpOp::Le if self.nonneg(&d) => Some(true),
            CmpOp::Le if above(self, &negated) => Some(false),
            CmpOp::Gt if above(self, &negated) => Some(true),
            CmpOp::Gt if self.nonneg(&d) => Some(false),
            CmpOp::Ge if self.nonneg(&negated) => Some(true),
            CmpOp::Ge if above(self, &d) => Some(false),
            CmpOp::Eq | CmpOp::Ne => {
                let equal = if let Some(c) = d.as_const() {
                    c == 0
                } else if !self.sum_modular(&d).contains(0) || above(self, &d) || above(self, &negated) {
                    false
                } else if self.nonneg(&d) && self.nonneg(&negated) {
                    true
                } else {
                    return None;
                };
                Some(equal == (op == CmpOp::Eq))
            }
            _ => None,
        }
    }

    /// Whether a condition is proven, without the search for what contradicts it; false means "not known this way".
    pub(super) fn holds(&mut self, cond: &PrimExpr) -> bool {
        match cond.kind() {
            PrimKind::Int(v) => *v != 0,
            PrimKind::And(a, b) => self.holds(a) && self.holds(b),
            PrimKind::Cmp(op, a, b) if a.dtype().is_integer() && a.dtype().lanes == 1 => {
                let (a, b) = (self.simplify(a), self.simplify(b));
                if self.facts.known.iter().any(|k| k == cond) {
                    return true;
                }
                if !self.exact(&a) || !self.exact(&b) {
                    return self.decide(*op, &a, &b) == Some(true);
                }
                let (x, y) = (self.sum(&a, Mode::Prove), self.sum(&b, Mode::Prove));
                let Some(d) = y.sub(&x) else { return false };
                let Some(negated) = d.clone().scale(-1) else { return false };
                let above = |s: &mut Self, d: super::sum::Sum| d.offset(-1).is_some_and(|d| s.nonneg(&d));
                match op {
                    CmpOp::Lt => above(self, d),
                    CmpOp::Le => self.nonneg(&d),
                    CmpOp::Gt => above(self, negated),
                    CmpOp::Ge => self.nonneg(&negated),
                    CmpOp::Eq => d.as_const() == Some(0) || self.nonneg(&d) && self.nonneg(&negated),
                    CmpOp::Ne => !self.sum_modular(&d).contains(0) || above(self, d) || above(self, negated),
                }
            }
            _ => false,
        }
    }

    /// A comparison in simplest form: decided, or turned to `<`, `<=`, `==`, `!=` with common factors divided out and
    /// constants on one side.
    pub(super) fn simplify_cmp(&mut self, op: CmpOp, a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
        let (a, b) = (self.simplify(a), self.simplify(b));
        if a.dtype().is_bool() && a.dtype().lanes == 1 {
            let (x, c) = if let Some(c) = a.as_int() { (b.clone(), Some(c)) } else { (a.clone(), b.as_int()) };
            match (op, c) {
                (CmpOp::Eq, Some(1)) | (CmpOp::Ne, Some(0)) => return x,
                (CmpOp::Eq, Some(0)) | (CmpOp::Ne, Some(1)) => return self.simplify_not(&x),
                _ => return PrimExpr::cmp(op, a, b),
            }
        }
        if !a.dtype().is_integer() || a.dtype().lanes != 1 {
            return PrimExpr::cmp(op, a, b);
        }
        if let Some(known) = self.decide(op, &a, &b) {
            return PrimExpr::bool(known);
        }
        let (op, a, b) = match op {
            CmpOp::Gt | CmpOp::Ge => (swapped(op), b, a),
            _ => (op, a, b),
        };
        let reduced = if self.exact(&a) && self.exact(&b) { self.reduce_sides(op, &a, &b) } else { None };
        reduced.unwrap_or_else(|| PrimExpr::cmp(op, a, b))
    }

    /// Cancels what both sides have in common. `None` when nothing changes.
    fn reduce_sides(&mut self, op: CmpOp, a: &PrimExpr, b: &PrimExpr) -> Option<PrimExpr> {
        let (mut x, mut y) = (self.sum(a, Mode::Simplify), self.sum(b, Mode::Simplify));
        let signed = a.dtype().is_int();
        let mut changed = false;
        // Terms on both sides go; the constant goes to the right, or left of a lone negative side.
        if signed {
            let mut i = 0;
            while i < x.terms.len() {
                let t = x.terms[i].clone();
                let same = |u: &super::sum::Term| {
                    u.lower == t.lower && u.upper == t.upper && super::sum::same_index(&u.index, &t.index)
                };
                let Some(j) = y.terms.iter().position(same) else {
                    i += 1;
                    continue;
                };
                let rest = t.scale.checked_sub(y.terms[j].scale)?;
                y.terms.remove(j);
                x.terms.remove(i);
                changed = true;
                if rest != 0 {
                    x.terms.insert(i, super::sum::Term { scale: rest, ..t });
                    i += 1;
                }
            }
            if x.base != 0 && !x.terms.is_empty() {
                y.base = y.base.checked_sub(x.base)?;
                x.base = 0;
                changed = true;
            } else if x.terms.is_empty() && y.base != 0 {
                x.base = x.base.checked_sub(y.base)?;
                y.base = 0;
                changed = true;
            }
        }
        let g = super::modular::gcd(x.scale_gcd(), y.scale_gcd());
        if g > 1 && signed {
            // g*X + a < g*Y + b: round the constant the way the comparison allows.
            let c = y.base.checked_sub(x.base)?;
            let rounded = match op {
                CmpOp::Lt => c.checked_neg()?.div_euclid(g).checked_neg()?,
                CmpOp::Le => c.div_euclid(g),
                // Residues that differ were decided before.
                _ => c / g,
            };
            for t in x.terms.iter_mut().chain(&mut y.terms) {
                t.scale /= g;
            }
            (x.base, y.base) = if x.terms.is_empty() { (rounded.checked_neg()?, 0) } else { (0, rounded) };
            changed = true;
        }
        if !changed {
            return None;
        }
        let fits = |s: &super::sum::Sum| super::IntBound::of_type(s.dtype).contains(s.base);
        if !fits(&x) || !fits(&y) {
            return None;
        }
        let (a, b) = (x.to_expr(), y.to_expr());
        (self.exact(&a) && self.exact(&b)).then(|| PrimExpr::cmp(op, a, b))
    }
}
