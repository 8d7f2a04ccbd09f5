//! Canonical simplification: `+ - * // %` over integers as [`Sum`]s, after TVM's `CanonicalSimplify`.

use super::session::Session;
use super::sum::{Sum, Term, factors, product, without};
use crate::prim::{BinOp, PrimExpr, PrimKind};

/// Products of sums are multiplied out up to this many terms.
const EXPAND_LIMIT: usize = 32;

/// How far to take an expression apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// For an expression to look at: products of sums stay.
    Simplify,
    /// For a proof: products are multiplied out, casts moved inward, constants moved out of divisions.
    Prove,
}

impl Session<'_> {
    /// The sum of a scalar integer expression. Modulo two to the bits of its type it always has the expression's
    /// value; it is the value itself when the expression is [exact](Session::exact).
    pub(super) fn sum(&mut self, e: &PrimExpr, mode: Mode) -> Sum {
        if let PrimKind::Int(_) = e.kind() {
            return as_atom(e.clone());
        }
        if let Some(s) = self.sum_memo(mode).get(e) {
            return s;
        }
        let s = self.try_sum(e, mode).unwrap_or_else(|| Sum::atom(e.clone()));
        self.sum_memo(mode).put(e, s.clone());
        s
    }

    fn try_sum(&mut self, e: &PrimExpr, mode: Mode) -> Option<Sum> {
        let dtype = e.dtype();
        match e.kind() {
            PrimKind::Var(v) => match self.facts.var(v).and_then(|f| f.value.clone()) {
                // A value never mentions its own variable, see `Analyzer::bind`.
                Some(value) => Some(self.sum(&value, mode)),
                None => Some(match self.facts.var_bound(v).as_point() {
                    Some(c) => Sum::constant(dtype, c),
                    None => Sum::atom(e.clone()),
                }),
            },
            PrimKind::Binary(BinOp::Add, a, b) => {
                let (x, y) = (self.sum(a, mode), self.sum(b, mode));
                x.add(&y)
            }
            PrimKind::Binary(BinOp::Sub, a, b) => {
                let (x, y) = (self.sum(a, mode), self.sum(b, mode));
                x.sub(&y)
            }
            PrimKind::Binary(BinOp::Mul, a, b) => {
                let (x, y) = (self.sum(a, mode), self.sum(b, mode));
                self.mul_sums(&x, &y, mode)
            }
            PrimKind::Binary(op @ (BinOp::FloorDiv | BinOp::FloorMod), a, b) => self.floor_node(*op, a, b, mode),
            PrimKind::Binary(op @ (BinOp::Div | BinOp::Mod), a, b) => {
                // Of operands that are not negative both roundings agree.
                let (x, y) = (self.sum(a, mode), self.sum(b, mode));
                let same =
                    self.exact(a) && self.exact(b) && self.sum_bounds(&x).min >= 0 && self.sum_bounds(&y).min >= 0;
                let op = if *op == BinOp::Div { BinOp::FloorDiv } else { BinOp::FloorMod };
                if same { self.floor_node(op, a, b, mode) } else { self.opaque(e) }
            }
            PrimKind::Cast(a)
                if mode == Mode::Prove && a.dtype().is_int() && dtype.is_int() && dtype.bits > a.dtype().bits =>
            {
                if !self.exact(a) {
                    return self.opaque(e);
                }
                let inner = self.sum(a, mode);
                let terms = inner.terms.into_iter().map(|t| Term { index: t.index.cast(dtype), ..t }).collect();
                Some(Sum { dtype, terms, base: inner.base })
            }
            _ => self.opaque(e),
        }
    }

    /// An expression that is no sum: simplified in itself, and looked at again if it became one.
    fn opaque(&mut self, e: &PrimExpr) -> Option<Sum> {
        let s = self.simplify_node(e);
        match s.kind() {
            PrimKind::Int(_) => Some(as_atom(s)),
            PrimKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::FloorDiv | BinOp::FloorMod, ..)
                if !matches!(
                    e.kind(),
                    PrimKind::Binary(BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod, ..)
                ) && self.exact(&s) =>
            {
                self.try_sum(&s, Mode::Simplify)
            }
            _ => Some(Sum::atom(s)),
        }
    }

    pub(super) fn mul_sums(&mut self, x: &Sum, y: &Sum, mode: Mode) -> Option<Sum> {
        if let Some(k) = y.as_const() {
            return x.clone().scale(k);
        }
        if let Some(k) = x.as_const() {
            return y.clone().scale(k);
        }
        let count = (x.terms.len() + 1).saturating_mul(y.terms.len() + 1);
        if mode == Mode::Prove && count <= EXPAND_LIMIT {
            let mut out = x.clone().scale(y.base)?;
            for t in &y.terms {
                if x.base != 0 {
                    out.add_term(Term { scale: t.scale.checked_mul(x.base)?, ..t.clone() })?;
                }
                for u in &x.terms {
                    let mut all = factors(&u.unscaled());
                    all.extend(factors(&t.unscaled()));
                    out.add_term(Term::atom(t.scale.checked_mul(u.scale)?, product(x.dtype, &all)))?;
                }
            }
            return Some(out);
        }
        let (k, mut left) = split_scale(x);
        let (l, right) = split_scale(y);
        left.extend(right);
        Some(Sum::of_term(x.dtype, Term::atom(k.checked_mul(l)?, product(x.dtype, &left))))
    }

    fn floor_node(&mut self, op: BinOp, a: &PrimExpr, b: &PrimExpr, mode: Mode) -> Option<Sum> {
        let (x, y) = (self.sum(a, mode), self.sum(b, mode));
        if !self.exact(a) || !self.exact(b) {
            let e = PrimExpr::binary(op, x.to_expr(), y.to_expr());
            return Some(as_atom(e));
        }
        let split = match y.as_const() {
            Some(c) if c > 0 && op == BinOp::FloorDiv => self.floordiv_const(x.clone(), c, mode),
            Some(c) if c > 0 => self.floormod_const(x.clone(), c),
            Some(_) => None,
            None => self.floor_symbolic(op, &x, &y),
        };
        Some(split.unwrap_or_else(|| as_atom(PrimExpr::binary(op, x.to_expr(), y.to_expr()))))
    }

    /// `floordiv(x, c)` for `c > 0`
    pub(super) fn floordiv_const(&mut self, x: Sum, c: i64, mode: Mode) -> Option<Sum> {
        if c == 1 {
            return Some(x);
        }
        let (mut quotient, mut rest) = x.split_divisible(c);
        if rest.terms.is_empty() {
            return quotient.offset(rest.base.div_euclid(c));
        }
        // floordiv(g*y + r, g*d) => floordiv(y + r//g, d)
        let g = super::modular::gcd(rest.scale_gcd(), c);
        let c = c / g;
        if g > 1 {
            rest.terms.iter_mut().for_each(|t| t.scale /= g);
            rest.base = rest.base.div_euclid(g);
            if c == 1 {
                return quotient.add(&rest);
            }
        }
        // What is left within one period is constant.
        let whole = rest.base.div_euclid(c);
        let moved = rest.clone().offset(whole.checked_mul(c)?.checked_neg()?)?;
        let b = self.sum_bounds(&moved);
        if b.is_finite() && b.min.div_euclid(c) == b.max.div_euclid(c) {
            return quotient.offset(whole.checked_add(b.min.div_euclid(c))?);
        }
        if mode == Mode::Prove {
            quotient = quotient.offset(whole)?;
            rest = moved;
        }
        let dtype = quotient.dtype;
        let term = match (rest.terms.as_slice(), rest.base) {
            ([t], 0) if t.scale == 1 && t.lower.checked_mul(c).is_some_and(|l| fits(dtype, l)) => {
                let lower = t.lower.checked_mul(c)?;
                match t.upper {
                    Some(u) if u <= lower => return Some(quotient),
                    Some(u) if u % lower != 0 => {
                        let index = Term { scale: 1, lower: 1, ..t.clone() }.unscaled();
                        Term { scale: 1, index, lower, upper: None }
                    }
                    upper => Term { scale: 1, index: t.index.clone(), lower, upper },
                }
            }
            _ => Term { scale: 1, index: self.index_expr(&rest)?, lower: c, upper: None },
        };
        quotient.add(&Sum::of_term(dtype, term))
    }

    /// `floormod(x, c)` for `c > 0`
    pub(super) fn floormod_const(&mut self, x: Sum, c: i64) -> Option<Sum> {
        let dtype = x.dtype;
        let m = self.sum_modular(&x);
        if c == 1 || m.coeff % c == 0 {
            return Some(Sum::constant(dtype, m.base.rem_euclid(c)));
        }
        let (_, mut rest) = x.split_divisible(c);
        rest.terms.iter_mut().for_each(|t| t.scale %= c);
        rest.base = rest.base.rem_euclid(c);
        // floormod(g*y + g*q + r, g*d) => g*floormod(y + q, d) + r
        let g = super::modular::gcd(rest.scale_gcd(), c);
        let remainder = rest.base.rem_euclid(g);
        let d = c / g;
        rest.terms.iter_mut().for_each(|t| t.scale /= g);
        rest.base = rest.base.div_euclid(g);
        let reduced = if d == 1 { Sum::constant(dtype, 0) } else { self.floormod_reduced(rest, d)? };
        reduced.scale(g)?.offset(remainder)
    }

    fn floormod_reduced(&mut self, rest: Sum, c: i64) -> Option<Sum> {
        let dtype = rest.dtype;
        let b = self.sum_bounds(&rest);
        if b.is_finite() && b.min.div_euclid(c) == b.max.div_euclid(c) {
            return rest.offset(b.min.div_euclid(c).checked_mul(c)?.checked_neg()?);
        }
        let term = match (rest.terms.as_slice(), rest.base) {
            ([t], 0) if t.scale == 1 && t.lower.checked_mul(c).is_some_and(|l| fits(dtype, l)) => {
                let span = t.lower.checked_mul(c)?;
                match t.upper {
                    Some(u) if u <= span => t.clone(),
                    Some(u) if u % span != 0 => Term { scale: 1, index: t.unscaled(), lower: 1, upper: Some(c) },
                    _ => Term { upper: Some(span), ..t.clone() },
                }
            }
            _ => Term { scale: 1, index: self.index_expr(&rest)?, lower: 1, upper: Some(c) },
        };
        Some(Sum::of_term(dtype, term))
    }

    /// The expression of a sum that is to be divided: `None` when its own operators may wrap.
    fn index_expr(&mut self, s: &Sum) -> Option<PrimExpr> {
        let e = if fits(s.dtype, s.base) { s.to_expr() } else { return None };
        self.exact(&e).then_some(e)
    }

    /// The factors of an expression; one that may wrap is a single factor.
    pub(super) fn exact_factors(&mut self, e: &PrimExpr) -> Vec<PrimExpr> {
        if self.exact(e) { factors(e) } else { vec![e.clone()] }
    }

    /// Division by what is not constant: multiples of the divisor leave.
    fn floor_symbolic(&mut self, op: BinOp, x: &Sum, y: &Sum) -> Option<Sum> {
        let dtype = x.dtype;
        let divisor = y.to_expr();
        let (k, taken) = match (y.terms.as_slice(), y.base) {
            ([t], 0) => (t.scale, self.exact_factors(&t.unscaled())),
            _ => (1, vec![divisor.clone()]),
        };
        let mut quotient = Sum::constant(dtype, 0);
        let mut rest = Sum::constant(dtype, x.base);
        for t in &x.terms {
            let all = self.exact_factors(&t.unscaled());
            match without(all, &taken).filter(|_| k != 0 && t.scale.checked_rem(k) == Some(0)) {
                Some(left) if left.is_empty() => quotient = quotient.offset(t.scale / k)?,
                Some(left) => quotient.add_term(Term::atom(t.scale / k, product(dtype, &left)))?,
                None => rest.add_term(t.clone())?,
            }
        }
        // A divisor of several terms may divide as a whole: x == y.
        if y.terms.len() > 1 || y.base != 0 {
            if let Some(zero) = x.clone().sub(y).and_then(|d| d.as_const()) {
                if zero == 0 {
                    return Some(Sum::constant(dtype, i64::from(op == BinOp::FloorDiv)));
                }
            }
        }
        let fits = rest.as_const() == Some(0) || {
            let below = y.clone().sub(&rest)?.offset(-1)?;
            self.nonneg(&rest) && self.nonneg(&below)
        };
        if fits {
            return Some(if op == BinOp::FloorDiv { quotient } else { rest });
        }
        // What stays keeps the divisor, so that a division by 0 stays one.
        let index = self.index_expr(&rest)?;
        let atom = as_atom(PrimExpr::binary(op, index, divisor));
        if op == BinOp::FloorDiv { quotient.add(&atom) } else { Some(atom) }
    }
}

/// Whether a literal of a type can be this number.
fn fits(dtype: crate::dtype::DType, v: i64) -> bool {
    super::bounds::IntBound::of_type(dtype).contains(v)
}

/// A sum as a scale and factors.
fn split_scale(s: &Sum) -> (i64, Vec<PrimExpr>) {
    if let ([t], 0) = (s.terms.as_slice(), s.base) {
        return (t.scale, factors(&t.unscaled()));
    }
    (1, vec![s.to_expr()])
}

/// The sum of an expression that is not to be taken apart.
fn as_atom(e: PrimExpr) -> Sum {
    match e.kind() {
        PrimKind::Int(v) if !(e.dtype().is_uint() && *v < 0) => Sum::constant(e.dtype(), *v),
        _ => Sum::atom(e),
    }
}
