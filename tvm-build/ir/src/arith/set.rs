//! Intervals with symbolic ends: what an index covers while loop variables run through their ranges.

use super::Analyzer;
use crate::prim::{BinOp, Intrinsic, PrimExpr, PrimKind, Range, Var, free_vars};
use std::collections::BTreeMap;

/// An interval whose ends are expressions; `None` is no bound known.
#[derive(Clone, Debug)]
pub struct IntSet {
    /// No value is less.
    pub min: Option<PrimExpr>,
    /// No value is greater.
    pub max: Option<PrimExpr>,
}

impl IntSet {
    /// Every integer.
    pub const EVERYTHING: IntSet = IntSet { min: None, max: None };

    /// One value.
    pub fn point(e: PrimExpr) -> IntSet {
        IntSet { min: Some(e.clone()), max: Some(e) }
    }

    /// The values of a range.
    pub fn of_range(r: &Range) -> IntSet {
        let one = PrimExpr::int(r.min.dtype(), 1);
        IntSet { min: Some(r.min.clone()), max: Some(r.min.clone() + r.extent.clone() - one) }
    }

    fn map2(self, o: IntSet, f: impl Fn(PrimExpr, PrimExpr) -> PrimExpr) -> IntSet {
        IntSet { min: self.min.zip(o.min).map(|(a, b)| f(a, b)), max: self.max.zip(o.max).map(|(a, b)| f(a, b)) }
    }

    fn negate(self) -> IntSet {
        let neg = |e: PrimExpr| PrimExpr::int(e.dtype(), 0) - e;
        IntSet { min: self.max.map(neg), max: self.min.map(neg) }
    }

    fn union(self, o: IntSet) -> IntSet {
        IntSet { min: self.min.zip(o.min).map(|(a, b)| a.min(b)), max: self.max.zip(o.max).map(|(a, b)| a.max(b)) }
    }
}

impl Analyzer {
    /// The interval of an integer expression while the variables of `dom` run through their ranges; its ends are over
    /// the other variables alone, simplified. It may be larger than need be, never smaller.
    pub fn interval(&self, e: &PrimExpr, dom: &BTreeMap<Var, Range>) -> IntSet {
        let mut inner = self.clone();
        for (v, r) in dom {
            inner.bind_range(v, r.clone());
        }
        let e = inner.simplify(e);
        // Ranges may be over other variables of the domain: put their ends in until none is left.
        let mut set = inner.set_of(&e, dom);
        for _ in 0..dom.len() {
            let inside =
                |e: &Option<PrimExpr>| e.as_ref().is_some_and(|e| free_vars(e).iter().any(|v| dom.contains_key(v)));
            if !inside(&set.min) && !inside(&set.max) {
                break;
            }
            set = IntSet {
                min: set.min.and_then(|e| inner.set_of(&e, dom).min),
                max: set.max.and_then(|e| inner.set_of(&e, dom).max),
            };
        }
        let outside = |e: &PrimExpr| !free_vars(e).iter().any(|v| dom.contains_key(v));
        IntSet {
            min: set.min.map(|e| self.simplify(&e)).filter(outside),
            max: set.max.map(|e| self.simplify(&e)).filter(outside),
        }
    }

    /// The range that covers an index while the variables of `dom` run; `None` when an end is unknown.
    pub fn cover(&self, e: &PrimExpr, dom: &BTreeMap<Var, Range>) -> Option<Range> {
        let set = self.interval(e, dom);
        let (min, max) = (set.min?, set.max?);
        let one = PrimExpr::int(min.dtype(), 1);
        let extent = self.simplify(&(max - min.clone() + one));
        Some(Range { min, extent })
    }

    /// The smallest range known to hold two ranges.
    pub fn union_range(&self, a: &Range, b: &Range) -> Range {
        let (x, y) = (IntSet::of_range(a), IntSet::of_range(b));
        let (x_end, y_end) = (a.min.clone() + a.extent.clone(), b.min.clone() + b.extent.clone());
        let min = match x.union(y).min {
            Some(min) => self.simplify(&min),
            None => a.min.clone(),
        };
        let extent = self.simplify(&(x_end.max(y_end) - min.clone()));
        Range { min, extent }
    }

    fn set_of(&self, e: &PrimExpr, dom: &BTreeMap<Var, Range>) -> IntSet {
        if !free_vars(e).iter().any(|v| dom.contains_key(v)) {
            return IntSet::point(e.clone());
        }
        let literal = |v: i64| PrimExpr::int(e.dtype(), v);
        match e.kind() {
            PrimKind::Var(v) => match dom.get(v) {
                Some(r) => IntSet::of_range(&Range { min: r.min.cast(v.dtype()), extent: r.extent.cast(v.dtype()) }),
                None => IntSet::point(e.clone()),
            },
            PrimKind::Binary(BinOp::Add, a, b) => self.set_of(a, dom).map2(self.set_of(b, dom), |x, y| x + y),
            PrimKind::Binary(BinOp::Sub, a, b) => self.set_of(a, dom).map2(self.set_of(b, dom).negate(), |x, y| x + y),
            PrimKind::Binary(BinOp::Mul, a, b) => {
                for (x, k) in [(a, b), (b, a)] {
                    if free_vars(k).iter().any(|v| dom.contains_key(v)) {
                        continue;
                    }
                    let times = |s: IntSet| s.map2(IntSet::point(k.clone()), |x, k| x * k);
                    let zero = PrimExpr::int(k.dtype(), 0);
                    if self.prove(&k.clone().ge(zero.clone())) {
                        return times(self.set_of(x, dom));
                    }
                    if self.prove(&k.clone().le(zero)) {
                        let s = self.set_of(x, dom);
                        return times(IntSet { min: s.max, max: s.min });
                    }
                }
                self.constant_set(e)
            }
            PrimKind::Binary(op @ (BinOp::FloorDiv | BinOp::Div), a, b) => {
                let varies = free_vars(b).iter().any(|v| dom.contains_key(v));
                if !varies && self.prove(&b.clone().gt(PrimExpr::int(b.dtype(), 0))) {
                    // Both roundings are monotonic in the dividend.
                    return self.set_of(a, dom).map2(IntSet::point(b.clone()), |x, y| PrimExpr::binary(*op, x, y));
                }
                self.constant_set(e)
            }
            PrimKind::Binary(BinOp::FloorMod, a, b) => {
                let varies = free_vars(b).iter().any(|v| dom.contains_key(v));
                if varies || !self.prove(&b.clone().gt(PrimExpr::int(b.dtype(), 0))) {
                    return self.constant_set(e);
                }
                let whole = IntSet { min: Some(literal(0)), max: Some(b.clone() - literal(1)) };
                let inner = self.set_of(a, dom);
                match (&inner.min, &inner.max) {
                    // In one period the remainder keeps the order.
                    (Some(low), Some(high))
                        if self.prove_equal(&low.clone().floordiv(b), &high.clone().floordiv(b)) =>
                    {
                        inner.map2(IntSet::point(b.clone()), |x, y| x.floormod(y))
                    }
                    _ => whole,
                }
            }
            PrimKind::Binary(BinOp::Min, a, b) => {
                let (x, y) = (self.set_of(a, dom), self.set_of(b, dom));
                let max = either(&x.max, &y.max, PrimExpr::min);
                IntSet { max, min: x.union(y).min }
            }
            PrimKind::Binary(BinOp::Max, a, b) => {
                let (x, y) = (self.set_of(a, dom), self.set_of(b, dom));
                let min = either(&x.min, &y.min, PrimExpr::max);
                IntSet { min, max: x.union(y).max }
            }
            PrimKind::Select(_, a, b) => self.set_of(a, dom).union(self.set_of(b, dom)),
            PrimKind::Call(Intrinsic::IfThenElse, args) => match args.as_slice() {
                [_, a, b] => self.set_of(a, dom).union(self.set_of(b, dom)),
                _ => IntSet::EVERYTHING,
            },
            PrimKind::Cast(a) if a.dtype().is_int() && e.dtype().is_int() && e.dtype().bits >= a.dtype().bits => {
                let s = self.set_of(a, dom);
                IntSet { min: s.min.map(|x| x.cast(e.dtype())), max: s.max.map(|x| x.cast(e.dtype())) }
            }
            _ => self.constant_set(e),
        }
    }

    /// What constant bounds say.
    fn constant_set(&self, e: &PrimExpr) -> IntSet {
        let b = self.bounds(e);
        let end = |v: i64| {
            (v != super::IntBound::NEG_INF && v != super::IntBound::POS_INF).then(|| PrimExpr::int(e.dtype(), v))
        };
        IntSet { min: end(b.min), max: end(b.max) }
    }
}

/// Both ends combined, or the one that is known.
fn either(a: &Option<PrimExpr>, b: &Option<PrimExpr>, f: impl Fn(PrimExpr, PrimExpr) -> PrimExpr) -> Option<PrimExpr> {
    match (a, b) {
        (Some(a), Some(b)) => Some(f(a.clone(), b.clone())),
        (a, b) => a.clone().or_else(|| b.clone()),
    }
}
