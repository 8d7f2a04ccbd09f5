//! Proofs that a sum is not negative, with symbolic bounds.

use super::bounds::IntBound;
use super::canonical::Mode;
use super::session::Session;
use super::sum::{Sum, Term, factors, product, without};
use crate::prim::{BinOp, CmpOp, PrimExpr, PrimKind, free_vars};

/// Steps of a proof, of a proof within it, and of one within that.
const FUEL: [u32; 3] = [80, 20, 6];

impl Session<'_> {
    /// Whether a sum is proven to be at least 0; false means "not known".
    pub(super) fn nonneg(&mut self, s: &Sum) -> bool {
        if self.sum_bounds(s).min >= 0 {
            return true;
        }
        let depth = usize::try_from(self.proof_depth).unwrap_or(usize::MAX);
        let Some(fuel) = FUEL.get(depth) else { return false };
        let outer_fuel = std::mem::replace(&mut self.fuel, *fuel);
        self.proof_depth += 1;
        // A proof within a proof may use what the outer one does.
        let outer = self.scope.len();
        let proven = self.expand(s).is_some_and(|s| {
            let found = self.assumptions(&s);
            self.scope.extend(found);
            let assumed = self.scope.clone();
            self.search(&s, &assumed, 7)
        });
        self.scope.truncate(outer);
        self.proof_depth -= 1;
        self.fuel = outer_fuel;
        proven
    }

    /// The sum with products multiplied out.
    fn expand(&mut self, s: &Sum) -> Option<Sum> {
        let mut out = Sum::constant(s.dtype, s.base);
        for t in &s.terms {
            if t.is_plain() && self.exact(&t.index) {
                let inner = self.sum(&t.index, Mode::Prove).scale(t.scale)?;
                out = out.add(&inner)?;
            } else {
                out.add_term(t.clone())?;
            }
        }
        Some(out)
    }

    /// What is known not to be negative: the conditions in force, and that loops around run at all.
    fn assumptions(&mut self, s: &Sum) -> Vec<Sum> {
        if self.assumed.is_none() {
            self.assumed = Some(Vec::new());
            let conditions = self.facts.known.clone();
            let sums = conditions.iter().flat_map(|c| self.condition_sums(c)).collect();
            self.assumed = Some(sums);
        }
        let mut out = if self.scope.is_empty() { self.assumed.clone().unwrap_or_default() } else { Vec::new() };
        let mut vars = std::collections::BTreeSet::new();
        for t in &s.terms {
            vars.extend(free_vars(&t.index));
        }
        for v in vars {
            let Some(range) = self.facts.var(&v).and_then(|f| f.range.clone()) else { continue };
            if range.extent.as_int().is_none() && self.exact(&range.extent) {
                out.extend(self.sum(&range.extent, Mode::Prove).offset(-1));
            }
        }
        out
    }

    fn condition_sums(&mut self, cond: &PrimExpr) -> Vec<Sum> {
        let PrimKind::Cmp(op, a, b) = cond.kind() else { return Vec::new() };
        if !a.dtype().is_integer() || a.dtype().lanes != 1 || !self.exact(a) || !self.exact(b) {
            return Vec::new();
        }
        let (x, y) = (self.sum(a, Mode::Prove), self.sum(b, Mode::Prove));
        let Some(d) = y.sub(&x) else { return Vec::new() };
        let negated = d.clone().scale(-1);
        match op {
            CmpOp::Lt => d.offset(-1).into_iter().collect(),
            CmpOp::Le => vec![d],
            CmpOp::Gt => negated.and_then(|d| d.offset(-1)).into_iter().collect(),
            CmpOp::Ge => negated.into_iter().collect(),
            CmpOp::Eq => negated.into_iter().chain([d]).collect(),
            CmpOp::Ne => Vec::new(),
        }
    }

    fn search(&mut self, s: &Sum, assumed: &[Sum], depth: u32) -> bool {
        if self.sum_bounds(s).min >= 0 {
            return true;
        }
        if depth == 0 || self.fuel == 0 {
            return false;
        }
        self.fuel -= 1;
        let cost = u32::try_from(s.terms.len()).unwrap_or(u32::MAX);
        let Some(work) = self.work.get().checked_sub(cost) else { return false };
        self.work.set(work);
        for known in assumed {
            if s.clone().sub(known).is_some_and(|rest| self.sum_bounds(&rest).min >= 0) {
                return true;
            }
        }
        // What most often leads on comes first: the steps are limited.
        let (symbolic, constant) = self.removable(s);
        if symbolic.iter().any(|f| self.goes_on_without(s, f, assumed, depth)) {
            return true;
        }
        for i in 0..s.terms.len() {
            if let Some(next) = self.without_division(s, i) {
                if self.search(&next, assumed, depth - 1) {
                    return true;
                }
            }
        }
        for known in assumed {
            let Some(rest) = s.clone().sub(known) else { continue };
            if rest.terms.len() < s.terms.len() && self.search(&rest, assumed, depth - 1) {
                return true;
            }
        }
        constant.iter().any(|f| self.goes_on_without(s, f, assumed, depth))
    }

    fn goes_on_without(&mut self, s: &Sum, f: &PrimExpr, assumed: &[Sum], depth: u32) -> bool {
        match self.without_factor(s, f) {
            Some(End::Any(sums)) => sums.iter().any(|next| self.search(next, assumed, depth - 1)),
            Some(End::All(sums)) => sums.iter().all(|next| self.search(next, assumed, depth - 1)),
            None => false,
        }
    }

    /// A sum that is not negative only if `s` is not, without the division of term `i`:
    /// `c * floordiv(x, c) == x - floormod(x, c)`, and `s >= 0` where `c * (s + 1) - 1 >= 0`.
    fn without_division(&mut self, s: &Sum, i: usize) -> Option<Sum> {
        let t = s.terms.get(i)?.clone();
        let mut rest = s.clone();
        rest.terms.remove(i);
        if t.lower > 1 && t.upper.is_none() {
            let c = t.lower;
            let x = self.sum(&t.index, Mode::Prove);
            // The remainder as bad as it may be.
            let remainder = self.floormod_const(x.clone(), c)?;
            let worst = self.sum_bounds(&remainder);
            let exact = x.offset(if t.scale > 0 { worst.max } else { worst.min }.checked_neg()?)?;
            if t.scale % c == 0 {
                return rest.add(&exact.scale(t.scale / c)?);
            }
            return rest.offset(1)?.scale(c)?.add(&exact.scale(t.scale)?)?.offset(-1);
        }
        if !t.is_plain() {
            return None;
        }
        let all = self.exact_factors(&t.index);
        for f in &all {
            let PrimKind::Binary(BinOp::FloorDiv, x, d) = f.kind() else { continue };
            if d.as_int().is_some() || !self.exact(x) || !self.exact(d) {
                continue;
            }
            let others = without(all.clone(), std::slice::from_ref(f))?;
            let x_sum = self.sum(x, Mode::Prove);
            let remainder = Sum::atom(x.clone().floormod(d.clone()));
            let exact = x_sum.sub(&remainder)?;
            if let Some(left) = without(others.clone(), &factors(d)) {
                let scale = self.sum(&product(s.dtype, &left), Mode::Prove).scale(t.scale)?;
                return rest.add(&self.mul_sums(&exact, &scale, Mode::Prove)?);
            }
            if !self.proves_positive(d) {
                continue;
            }
            let scale = self.sum(&product(s.dtype, &others), Mode::Prove).scale(t.scale)?;
            let divisor = self.sum(d, Mode::Prove);
            let grown = self.mul_sums(&rest.offset(1)?, &divisor, Mode::Prove)?;
            return grown.add(&self.mul_sums(&exact, &scale, Mode::Prove)?)?.offset(-1);
        }
        None
    }

    fn proves_positive(&mut self, d: &PrimExpr) -> bool {
        if self.bounds(d).min > 0 {
            return true;
        }
        if !self.exact(d) {
            return false;
        }
        let s = self.sum(d, Mode::Prove).offset(-1);
        s.is_some_and(|s| self.nonneg(&s))
    }

    /// The factors that may be put at an end: those with symbolic bounds, those first that bound no other, and those
    /// with constant ones.
    fn removable(&mut self, s: &Sum) -> (Vec<PrimExpr>, Vec<PrimExpr>) {
        let (mut out, mut constant): (Vec<PrimExpr>, Vec<PrimExpr>) = (Vec::new(), Vec::new());
        for t in s.terms.iter().filter(|t| t.is_plain()) {
            let all = self.exact_factors(&t.index);
            let alone = all.len() == 1;
            for f in all {
                let symbolic = match f.kind() {
                    PrimKind::Var(v) => {
                        let range = self.facts.var(v).and_then(|fact| fact.range.as_ref());
                        range.is_some_and(|r| r.extent.as_int().is_none() || r.min.as_int().is_none())
                    }
                    PrimKind::Binary(BinOp::FloorMod, _, d) => d.as_int().is_none(),
                    PrimKind::Binary(BinOp::Min | BinOp::Max, ..) | PrimKind::Select(..) => true,
                    _ => false,
                };
                let b = self.bounds(&f);
                let bounded = b.min != IntBound::NEG_INF || b.max != IntBound::POS_INF;
                if symbolic && !out.contains(&f) {
                    out.push(f);
                } else if !symbolic && !alone && bounded && !constant.contains(&f) {
                    constant.push(f);
                }
            }
        }
        let bounding = |f: &PrimExpr, g: &PrimExpr| -> bool {
            let (Some(v), Some(w)) = (f.as_var(), g.as_var()) else { return false };
            let range = self.facts.var(w).and_then(|fact| fact.range.as_ref());
            range.is_some_and(|r| free_vars(&r.min).contains(v) || free_vars(&r.extent).contains(v))
        };
        let last: Vec<bool> = out.iter().map(|f| out.iter().any(|g| bounding(f, g))).collect();
        let mut order: Vec<usize> = (0..out.len()).collect();
        order.sort_by_key(|i| last.get(*i).copied().unwrap_or(false));
        (order.into_iter().filter_map(|i| out.get(i).cloned()).collect(), constant)
    }

    /// `s` with a factor at its worst end, where all of its products agree on which that is.
    fn without_factor(&mut self, s: &Sum, f: &PrimExpr) -> Option<End> {
        let mut coefficient = Sum::constant(s.dtype, 0);
        let mut rest = Sum::constant(s.dtype, s.base);
        for t in &s.terms {
            let left = if t.is_plain() { without(self.exact_factors(&t.index), std::slice::from_ref(f)) } else { None };
            match left {
                Some(left) if left.contains(f) => return None,
                Some(left) if left.is_empty() => coefficient = coefficient.offset(t.scale)?,
                Some(left) => coefficient.add_term(Term::atom(t.scale, product(s.dtype, &left)))?,
                None => rest.add_term(t.clone())?,
            }
        }
        let negated = coefficient.clone().scale(-1)?;
        let low = if let Some(k) = coefficient.as_const() {
            k >= 0
        } else if self.nonneg(&coefficient) {
            true
        } else if self.nonneg(&negated) {
            false
        } else {
            return None;
        };
        let end = self.end_of(f, low)?;
        let mut put = |end: &Sum| {
            let moved = self.mul_sums(&coefficient, end, Mode::Prove)?;
            rest.clone().add(&moved)
        };
        match end {
            End::Any(sums) => Some(End::Any(sums.iter().filter_map(put).collect())),
            End::All(sums) => sums.iter().map(&mut put).collect::<Option<Vec<_>>>().map(End::All),
        }
    }

    /// What a factor is at least or at most.
    fn end_of(&mut self, f: &PrimExpr, low: bool) -> Option<End> {
        let dtype = f.dtype();
        match f.kind() {
            PrimKind::Var(v) => {
                if let Some(range) = self.facts.var(v).and_then(|fact| fact.range.clone()) {
                    let exact = self.exact(&range.min) && (low || self.exact(&range.extent));
                    let min = self.sum(&range.min, Mode::Prove);
                    let end = if low {
                        Some(min)
                    } else {
                        min.add(&self.sum(&range.extent, Mode::Prove)).and_then(|s| s.offset(-1))
                    };
                    if let Some(end) = end.filter(|_| exact) {
                        return Some(End::Any(vec![end]));
                    }
                }
            }
            PrimKind::Binary(BinOp::FloorMod, _, d) if d.as_int().is_none() && self.proves_positive(d) => {
                let end = if low { Sum::constant(dtype, 0) } else { self.sum(d, Mode::Prove).offset(-1)? };
                return Some(End::Any(vec![end]));
            }
            PrimKind::Binary(BinOp::Min | BinOp::Max, a, b) | PrimKind::Select(_, a, b) => {
                // A greatest is at least either side, and at most what bounds both.
                let either = matches!(f.kind(), PrimKind::Binary(op, ..) if (*op == BinOp::Max) == low);
                if self.exact(a) && self.exact(b) {
                    let sides = vec![self.sum(a, Mode::Prove), self.sum(b, Mode::Prove)];
                    return Some(if either { End::Any(sides) } else { End::All(sides) });
                }
            }
            _ => {}
        }
        let b = self.bounds(f);
        let end = if low { b.min } else { b.max };
        let finite = end != IntBound::NEG_INF && end != IntBound::POS_INF;
        finite.then(|| End::Any(vec![Sum::constant(dtype, end)]))
    }
}

/// Sums to go on with in a proof.
enum End {
    /// One that is not negative proves it.
    Any(Vec<Sum>),
    /// All must not be negative.
    All(Vec<Sum>),
}
