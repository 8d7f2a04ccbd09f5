//! Canonical sums: `base + Σ scale * (index % upper // lower)`, the form in which integer expressions are compared.

use super::bounds::IntBound;
use super::canonical::Mode;
use super::modular::{Modular, gcd};
use super::session::Session;
use crate::dtype::DType;
use crate::prim::{BinOp, PrimExpr, PrimKind};

/// `scale * floordiv(floormod(index, upper), lower)`
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Term {
    pub(super) scale: i64,
    pub(super) index: PrimExpr,
    /// At least 1.
    pub(super) lower: i64,
    /// `None` when there is no modulus; else greater than `lower`.
    pub(super) upper: Option<i64>,
}

/// A sum of terms with different indices or splits, and a constant.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    pub(super) dtype: DType,
    pub(super) terms: Vec<Term>,
    pub(super) base: i64,
}

/// The factors of a product, a single one of anything else.
pub(super) fn factors(e: &PrimExpr) -> Vec<PrimExpr> {
    fn go(e: &PrimExpr, out: &mut Vec<PrimExpr>) {
        match e.kind() {
            PrimKind::Binary(BinOp::Mul, a, b) => {
                go(a, out);
                go(b, out);
            }
            _ => out.push(e.clone()),
        }
    }
    let mut out = Vec::new();
    go(e, &mut out);
    out
}

/// The product of factors; 1 of none.
pub(super) fn product(dtype: DType, factors: &[PrimExpr]) -> PrimExpr {
    factors.iter().cloned().reduce(|a, b| a * b).unwrap_or_else(|| PrimExpr::int(dtype, 1))
}

/// `all` without each of `taken`; `None` when one is missing.
pub(super) fn without(mut all: Vec<PrimExpr>, taken: &[PrimExpr]) -> Option<Vec<PrimExpr>> {
    for t in taken {
        let at = all.iter().position(|f| f == t)?;
        all.remove(at);
    }
    Some(all)
}

/// Equality of indices; products in any order.
pub(super) fn same_index(a: &PrimExpr, b: &PrimExpr) -> bool {
    if a == b {
        return true;
    }
    let product = |e: &PrimExpr| matches!(e.kind(), PrimKind::Binary(BinOp::Mul, ..));
    if !product(a) || !product(b) || a.dtype() != b.dtype() {
        return false;
    }
    without(factors(a), &factors(b)).is_some_and(|rest| rest.is_empty())
}

impl Term {
    pub(super) fn atom(scale: i64, index: PrimExpr) -> Term {
        Term { scale, index, lower: 1, upper: None }
    }

    /// Whether it is a multiple of its index, unsplit.
    pub(super) fn is_plain(&self) -> bool {
        self.lower == 1 && self.upper.is_none()
    }

    /// The term without its scale.
    pub(super) fn unscaled(&self) -> PrimExpr {
        let dtype = self.index.dtype();
        let mut e = self.index.clone();
        if let Some(upper) = self.upper {
            e = e.floormod(PrimExpr::int(dtype, upper));
        }
        if self.lower == 1 { e } else { e.floordiv(PrimExpr::int(dtype, self.lower)) }
    }

    fn to_expr(&self, scale: i64) -> PrimExpr {
        let e = self.unscaled();
        if scale == 1 {
            return e;
        }
        let scale = PrimExpr::int(e.dtype(), scale);
        e * scale
    }
}

impl Sum {
    pub(super) fn constant(dtype: DType, base: i64) -> Sum {
        Sum { dtype, terms: Vec::new(), base }
    }

    pub(super) fn atom(e: PrimExpr) -> Sum {
        Sum { dtype: e.dtype(), terms: vec![Term::atom(1, e)], base: 0 }
    }

    pub(super) fn of_term(dtype: DType, t: Term) -> Sum {
        let mut sum = Sum::constant(dtype, 0);
        if t.scale != 0 {
            sum.terms.push(t);
        }
        sum
    }

    pub(super) fn as_const(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.base)
    }

    pub(super) fn scale(mut self, k: i64) -> Option<Sum> {
        if k == 0 {
            return Some(Sum::constant(self.dtype, 0));
        }
        self.base = self.base.checked_mul(k)?;
        for t in &mut self.terms {
            t.scale = t.scale.checked_mul(k)?;
        }
        Some(self)
    }

    pub(super) fn add(mut self, other: &Sum) -> Option<Sum> {
        self.base = self.base.checked_add(other.base)?;
        for t in &other.terms {
            self.add_term(t.clone())?;
        }
        Some(self)
    }

    pub(super) fn sub(self, other: &Sum) -> Option<Sum> {
        self.add(&other.clone().scale(-1)?)
    }

    pub(super) fn offset(mut self, k: i64) -> Option<Sum> {
        self.base = self.base.checked_add(k)?;
        Some(self)
    }

    /// Adds a term, joining it with the terms of the same index where the splits fit. `None` on overflow.
    pub(super) fn add_term(&mut self, mut new: Term) -> Option<()> {
        // Each join takes a term away, so this ends.
        'again: loop {
            if new.scale == 0 {
                return Some(());
            }
            for i in 0..self.terms.len() {
                if !same_index(&self.terms[i].index, &new.index) {
                    let rest = remainder(&self.terms[i], &new).or_else(|| remainder(&new, &self.terms[i]));
                    if let Some(joined) = rest {
                        self.terms.remove(i);
                        new = joined;
                        continue 'again;
                    }
                    continue;
                }
                if let Some(joined) = join(&self.terms[i], &new).or_else(|| join(&new, &self.terms[i])) {
                    if joined.is_plain()
                        && joined.scale != 0
                        && self.terms.iter().skip(i + 1).all(|t| !same_index(&t.index, &joined.index))
                    {
                        self.terms[i] = joined;
                        return Some(());
                    }
                    self.terms.remove(i);
                    new = joined;
                    continue 'again;
                }
            }
            // Terms of one index stand together.
            let at =
                self.terms.iter().rposition(|t| same_index(&t.index, &new.index)).map_or(self.terms.len(), |p| p + 1);
            self.terms.insert(at, new);
            return Some(());
        }
    }

    /// The terms whose scale is a multiple of `c`, divided by it, and the rest (with the base when that does not divide).
    pub(super) fn split_divisible(&self, c: i64) -> (Sum, Sum) {
        let mut quotient = Sum::constant(self.dtype, 0);
        let mut rest = Sum::constant(self.dtype, 0);
        for t in &self.terms {
            if t.scale % c == 0 {
                quotient.terms.push(Term { scale: t.scale / c, ..t.clone() });
            } else {
                rest.terms.push(t.clone());
            }
        }
        if self.base % c == 0 {
            quotient.base = self.base / c;
        } else {
            rest.base = self.base;
        }
        (quotient, rest)
    }

    /// Greatest common divisor of the scales; 0 without terms.
    pub(super) fn scale_gcd(&self) -> i64 {
        self.terms.iter().fold(0, |g, t| gcd(g, t.scale))
    }

    /// The expression: positive terms by falling scale, then the constant, then what is subtracted.
    pub(super) fn to_expr(&self) -> PrimExpr {
        let mut terms: Vec<&Term> = self.terms.iter().collect();
        let key = |t: &Term| (t.scale, t.lower, t.upper.unwrap_or(i64::MAX));
        terms.sort_by_key(|t| std::cmp::Reverse(key(t)));
        let mut out: Option<PrimExpr> = None;
        for t in terms.iter().filter(|t| t.scale > 0) {
            let e = t.to_expr(t.scale);
            out = Some(match out {
                Some(o) => o + e,
                None => e,
            });
        }
        let literal = |v: i64| PrimExpr::int(self.dtype, v);
        // The least `i64` has no positive counterpart to subtract.
        let add_base = self.base > 0 || self.base == i64::MIN;
        let mut out = match out {
            Some(o) if add_base => o + literal(self.base),
            Some(o) => o,
            None if add_base => literal(self.base),
            None if self.base < 0 && terms.is_empty() => return literal(self.base),
            None => literal(0),
        };
        for t in terms.iter().filter(|t| t.scale < 0) {
            // A product with the least scale wraps to the same value.
            let e = match t.scale.checked_neg() {
                Some(s) => t.to_expr(s),
                None => t.to_expr(t.scale),
            };
            out = if t.scale == i64::MIN { out + e } else { out - e };
        }
        if self.base < 0 && !add_base { out - literal(-self.base) } else { out }
    }
}

/// `s*k * x - s*l * (k*x//l)  =>  s * (k*x % l)`
fn remainder(a: &Term, b: &Term) -> Option<Term> {
    if !a.is_plain() || b.lower == 1 || b.upper.is_some() {
        return None;
    }
    let mut k = 1i64;
    for factor in without(factors(&b.index), &factors(&a.index))? {
        let PrimKind::Int(v) = factor.kind() else { return None };
        k = k.checked_mul(*v)?;
    }
    let scale = a.scale.checked_div(k).filter(|s| s.checked_mul(k) == Some(a.scale))?;
    let taken = scale.checked_mul(b.lower)?.checked_neg()?;
    (taken == b.scale).then(|| Term { scale, index: b.index.clone(), lower: 1, upper: Some(b.lower) })
}

/// One term for the sum of two of the same index.
fn join(a: &Term, b: &Term) -> Option<Term> {
    let make = |scale, lower, upper| Some(Term { scale, index: a.index.clone(), lower, upper });
    if a.lower == b.lower && a.upper == b.upper {
        return make(a.scale.checked_add(b.scale)?, a.lower, a.upper);
    }
    // s*(m/l) * (x%u//m) + s * (x%m//l)  =>  s * (x%u//l)
    if b.upper == Some(a.lower) && a.lower % b.lower == 0 && b.scale.checked_mul(a.lower / b.lower) == Some(a.scale) {
        return make(b.scale, b.lower, a.upper);
    }
    let divides = |inner: i64, outer: Option<i64>| outer.is_none_or(|o| o % inner == 0);
    // s * (x%u//l) - s * (x%m//l)  =>  s*(m/l) * (x%u//m)
    if let Some(m) = b.upper {
        if a.lower == b.lower && a.scale.checked_neg() == Some(b.scale) && m % a.lower == 0 && divides(m, a.upper) {
            return make(a.scale.checked_mul(m / a.lower)?, m, a.upper);
        }
    }
    // s * (x%u//l) - s*(m/l) * (x%u//m)  =>  s * (x%m//l)
    if a.upper == b.upper && b.lower > a.lower && b.lower % a.lower == 0 && divides(b.lower, a.upper) {
        let expected = a.scale.checked_mul(b.lower / a.lower).and_then(i64::checked_neg);
        if expected == Some(b.scale) {
            return make(a.scale, a.lower, Some(b.lower));
        }
    }
    None
}

impl Session<'_> {
    pub(super) fn term_bounds(&mut self, t: &Term) -> IntBound {
        let mut b = self.bounds(&t.index);
        if let Some(u) = t.upper {
            let m = self.modular(&t.index);
            b = if m.coeff % u == 0 { IntBound::point(m.base.rem_euclid(u)) } else { b.floormod(IntBound::point(u)) };
        }
        if t.lower != 1 {
            b = b.floordiv(IntBound::point(t.lower));
        }
        b.scale(t.scale)
    }

    pub(super) fn sum_bounds(&mut self, s: &Sum) -> IntBound {
        let mut out = IntBound::point(s.base);
        for t in &s.terms {
            out = out.plus(self.term_bounds(t));
        }
        if s.terms.len() > 1 {
            for i in 0..s.terms.len() {
                if let Some(b) = self.remainder_bounds(s, i) {
                    return IntBound { min: out.min.max(b.min), max: out.max.min(b.max) };
                }
            }
        }
        out
    }

    /// Bounds of a sum in which term `i` is `k * c * floordiv(x, c)` and others hold `-k * x`: together they are
    /// `-k * floormod(x, c)`.
    fn remainder_bounds(&mut self, s: &Sum, i: usize) -> Option<IntBound> {
        let t = s.terms.get(i)?;
        let c = t.lower;
        if c < 2 || t.upper.is_some() || t.scale % c != 0 || !self.exact(&t.index) {
            return None;
        }
        let (k, index) = (t.scale / c, t.index.clone());
        let mut rest = s.clone();
        rest.terms.remove(i);
        let rest = rest.add(&self.sum(&index, Mode::Prove).scale(k)?)?;
        if rest.terms.len() + 1 >= s.terms.len() {
            return None;
        }
        let remainder = IntBound { min: 0, max: c - 1 }.scale(k.checked_neg()?);
        Some(self.sum_bounds(&rest).plus(remainder))
    }

    /// The residues of a sum, from those of its terms.
    pub(super) fn sum_modular(&mut self, s: &Sum) -> Modular {
        let mut coeff = 0;
        let mut base = s.base;
        for t in &s.terms {
            let m = if t.is_plain() {
                self.modular(&t.index)
            } else {
                let e = t.unscaled();
                self.modular(&e)
            };
            let (Some(step), Some(b)) = (m.coeff.checked_mul(t.scale), m.base.checked_mul(t.scale)) else {
                return Modular::EVERYTHING;
            };
            let Some(next) = base.checked_add(b) else { return Modular::EVERYTHING };
            coeff = gcd(coeff, step);
            base = next;
        }
        Modular::new(coeff, base)
    }
}
