//! Constant integer bounds: intervals whose ends may be infinite.

use super::session::Session;
use crate::dtype::DType;
use crate::prim::{BinOp, CmpOp, Intrinsic, PrimExpr, PrimKind};

/// A closed interval of integers; [`IntBound::NEG_INF`] and [`IntBound::POS_INF`] stand for no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntBound {
    /// No value is less.
    pub min: i64,
    /// No value is greater.
    pub max: i64,
}

impl IntBound {
    /// The lower end of an interval without one.
    pub const NEG_INF: i64 = i64::MIN;
    /// The upper end of an interval without one.
    pub const POS_INF: i64 = i64::MAX;
    /// Every integer.
    pub const EVERYTHING: IntBound = IntBound { min: Self::NEG_INF, max: Self::POS_INF };

    /// `min ..= max`
    pub const fn new(min: i64, max: i64) -> IntBound {
        IntBound { min, max }
    }

    /// One value.
    pub const fn point(v: i64) -> IntBound {
        IntBound { min: v, max: v }
    }

    /// Every value of a type (`uint64` values above `i64` count as infinite).
    pub fn of_type(dtype: DType) -> IntBound {
        IntBound { min: dtype.min_int().unwrap_or(Self::NEG_INF), max: dtype.max_int().unwrap_or(Self::POS_INF) }
    }

    /// The values that compare so with a number.
    pub(super) fn of_comparison(op: CmpOp, c: i64) -> IntBound {
        match op {
            CmpOp::Eq => IntBound::point(c),
            CmpOp::Lt => IntBound { max: c.saturating_sub(1), ..IntBound::EVERYTHING },
            CmpOp::Le => IntBound { max: c, ..IntBound::EVERYTHING },
            CmpOp::Gt => IntBound { min: c.saturating_add(1), ..IntBound::EVERYTHING },
            CmpOp::Ge => IntBound { min: c, ..IntBound::EVERYTHING },
            CmpOp::Ne => IntBound::EVERYTHING,
        }
    }

    /// Whether both ends are finite.
    pub fn is_finite(self) -> bool {
        self.min != Self::NEG_INF && self.max != Self::POS_INF
    }

    /// The value, when there is only one.
    pub fn as_point(self) -> Option<i64> {
        (self.min == self.max && self.is_finite()).then_some(self.min)
    }

    /// Whether a value lies in it.
    pub fn contains(self, v: i64) -> bool {
        self.min <= v && v <= self.max
    }

    /// Whether all of another interval lies in it.
    pub fn covers(self, other: IntBound) -> bool {
        self.min <= other.min && other.max <= self.max
    }

    /// What lies in both; when that is empty (a contradiction), `self`.
    #[must_use]
    pub fn intersect(self, other: IntBound) -> IntBound {
        let both = IntBound { min: self.min.max(other.min), max: self.max.min(other.max) };
        if both.min > both.max { self } else { both }
    }

    /// The least interval with all of both.
    #[must_use]
    pub fn union(self, other: IntBound) -> IntBound {
        IntBound { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// Bounds of `-x`.
    #[must_use]
    pub fn negate(self) -> IntBound {
        IntBound { min: inf_neg(self.max), max: inf_neg(self.min) }
    }

    /// Bounds of `x + y`.
    #[must_use]
    pub fn plus(self, o: IntBound) -> IntBound {
        let min = if self.min == Self::NEG_INF || o.min == Self::NEG_INF {
            Self::NEG_INF
        } else {
            self.min.saturating_add(o.min)
        };
        let max = if self.max == Self::POS_INF || o.max == Self::POS_INF {
            Self::POS_INF
        } else {
            self.max.saturating_add(o.max)
        };
        IntBound { min, max }
    }

    /// Bounds of `x * y`.
    #[must_use]
    pub fn times(self, o: IntBound) -> IntBound {
        hull([inf_mul(self.min, o.min), inf_mul(self.min, o.max), inf_mul(self.max, o.min), inf_mul(self.max, o.max)])
    }

    /// Bounds of `x * k`.
    #[must_use]
    pub fn scale(self, k: i64) -> IntBound {
        if k == 0 { IntBound::point(0) } else { self.times(IntBound::point(k)) }
    }

    /// Bounds of `floordiv(x, y)`; a divisor of 0 is left out, since there is no value then.
    #[must_use]
    pub fn floordiv(self, o: IntBound) -> IntBound {
        self.div_by(o, |a, b| {
            let q = a.wrapping_div(b);
            if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) { q - 1 } else { q }
        })
    }

    /// Bounds of `truncdiv(x, y)`.
    #[must_use]
    pub fn truncdiv(self, o: IntBound) -> IntBound {
        self.div_by(o, i64::wrapping_div)
    }

    fn div_by(self, o: IntBound, div: fn(i64, i64) -> i64) -> IntBound {
        let mut out: Option<IntBound> = None;
        let positive = IntBound { min: o.min.max(1), max: o.max };
        let negative = IntBound { min: o.min, max: o.max.min(-1) };
        for part in [positive, negative] {
            if part.min > part.max {
                continue;
            }
            let ends = |d: i64| [inf_div(self.min, d, div), inf_div(self.max, d, div)];
            let [a, b] = ends(part.min);
            let [c, d] = ends(part.max);
            let h = hull([a, b, c, d]);
            out = Some(out.map_or(h, |u| u.union(h)));
        }
        out.unwrap_or(IntBound::EVERYTHING)
    }

    /// Bounds of `floormod(x, y)`.
    #[must_use]
    pub fn floormod(self, o: IntBound) -> IntBound {
        if let Some(c) = o.as_point().filter(|c| *c > 0) {
            // All values in one period keep their order.
            if self.is_finite() && self.min.div_euclid(c) == self.max.div_euclid(c) {
                return IntBound { min: self.min.rem_euclid(c), max: self.max.rem_euclid(c) };
            }
        }
        if o.min > 0 {
            if self.min >= 0 && self.max < o.min {
                return self;
            }
            let max = if o.max == Self::POS_INF { Self::POS_INF } else { o.max - 1 };
            let max = if self.min >= 0 { max.min(self.max) } else { max };
            return IntBound { min: 0, max };
        }
        let min = if o.min == Self::NEG_INF { Self::NEG_INF } else { o.min.saturating_add(1).min(0) };
        let max = if o.max == Self::POS_INF { Self::POS_INF } else { o.max.saturating_sub(1).max(0) };
        IntBound { min, max }
    }

    /// Bounds of `truncmod(x, y)`.
    #[must_use]
    pub fn truncmod(self, o: IntBound) -> IntBound {
        let magnitude = match (o.min, o.max) {
            (Self::NEG_INF, _) | (_, Self::POS_INF) => Self::POS_INF,
            (a, b) => inf_neg(a).max(b).max(1) - 1,
        };
        let min = if self.min >= 0 { 0 } else { inf_neg(magnitude).max(self.min) };
        let max = if self.max <= 0 { 0 } else { magnitude.min(self.max) };
        IntBound { min, max }
    }

    /// Bounds of the lesser.
    #[must_use]
    pub fn min_of(self, o: IntBound) -> IntBound {
        IntBound { min: self.min.min(o.min), max: self.max.min(o.max) }
    }

    /// Bounds of the greater.
    #[must_use]
    pub fn max_of(self, o: IntBound) -> IntBound {
        IntBound { min: self.min.max(o.min), max: self.max.max(o.max) }
    }
}

fn inf_neg(v: i64) -> i64 {
    match v {
        IntBound::NEG_INF => IntBound::POS_INF,
        IntBound::POS_INF => IntBound::NEG_INF,
        v => -v,
    }
}

fn inf_mul(a: i64, b: i64) -> i64 {
    if a == 0 || b == 0 { 0 } else { a.saturating_mul(b) }
}

fn inf_div(a: i64, d: i64, div: fn(i64, i64) -> i64) -> i64 {
    let infinite = a == IntBound::NEG_INF || a == IntBound::POS_INF;
    match (infinite, d) {
        (true, IntBound::NEG_INF | IntBound::POS_INF) => {
            if (a > 0) == (d > 0) {
                0
            } else {
                -1
            }
        }
        (true, d) if d < 0 => inf_neg(a),
        (true, _) => a,
        (false, d) => div(a, d),
    }
}

fn hull(values: [i64; 4]) -> IntBound {
    let mut out = IntBound::point(values[0]);
    for v in values {
        out = out.union(IntBound::point(v));
    }
    out
}

impl Session<'_> {
    /// Bounds of an integer expression of one lane or more, by its structure.
    pub(super) fn bounds(&mut self, e: &PrimExpr) -> IntBound {
        match e.kind() {
            PrimKind::Int(v) if !(e.dtype().is_uint() && *v < 0) => return IntBound::point(*v),
            PrimKind::Var(v) => return self.facts.var_bound(v),
            _ => {}
        }
        if let Some(b) = self.bound_memo.get(e) {
            return b;
        }
        let mut computed = self.bounds_of_node(e);
        // What conditions say of the expression as it stands.
        let facts = self.facts;
        for known in &facts.known {
            if let PrimKind::Cmp(op, a, b) = known.kind() {
                for (op, x, c) in [(*op, a, b), (super::compare::swapped(*op), b, a)] {
                    if let Some(c) = c.as_int().filter(|_| x == e) {
                        computed = computed.intersect(IntBound::of_comparison(op, c));
                    }
                }
            }
        }
        self.bound_memo.put(e, computed);
        computed
    }

    fn bounds_of_node(&mut self, e: &PrimExpr) -> IntBound {
        let everything = IntBound::of_type(e.dtype());
        if !(e.dtype().is_integer() || e.dtype().is_bool()) {
            return IntBound::EVERYTHING;
        }
        let raw = match e.kind() {
            PrimKind::Binary(op, a, b) => match self.binary_bounds(*op, a, b) {
                Some(raw) if self.can_overflow(*op, b) => raw,
                Some(raw) => return everything.intersect(raw),
                None => return everything,
            },
            PrimKind::Select(c, a, b) => return self.choice_bounds(c, a, b),
            PrimKind::Call(Intrinsic::IfThenElse, args) => match args.as_slice() {
                [c, a, b] => return self.choice_bounds(c, a, b),
                _ => return everything,
            },
            PrimKind::Call(Intrinsic::Likely, args) => return args.first().map_or(everything, |a| self.bounds(a)),
            PrimKind::Call(Intrinsic::Clz | Intrinsic::Popcount, args) => {
                return IntBound::new(0, args.first().map_or(64, |a| i64::from(a.dtype().bits)));
            }
            PrimKind::Cast(a) if a.dtype().is_integer() || a.dtype().is_bool() => {
                let inner = self.bounds(a);
                // Bounds that reach infinity say nothing of a narrower type.
                let known = everything.covers(inner) && (inner.is_finite() || !a.dtype().is_uint());
                return if known { inner } else { everything };
            }
            PrimKind::Broadcast(a) => return self.bounds(a),
            PrimKind::Ramp(base, stride) => {
                let last = i64::from(e.dtype().lanes) - 1;
                let span = self.bounds(stride).times(IntBound::new(0, last));
                self.bounds(base).plus(span)
            }
            PrimKind::Let(v, value, body) => {
                let bound = self.bounds(value);
                let mut inner = self.facts.clone();
                inner.set_bound(v, bound);
                return self.inner(&inner).bounds(body);
            }
            _ => return everything,
        };
        self.settle(e, raw, everything)
    }

    /// Bounds of one of two values, each where the condition chooses it.
    fn choice_bounds(&mut self, c: &PrimExpr, a: &PrimExpr, b: &PrimExpr) -> IntBound {
        // Each level computes its sides anew: a few are enough.
        if c.dtype().lanes != 1 || self.nesting >= 3 {
            return self.bounds(a).union(self.bounds(b));
        }
        let mut under = |cond: &PrimExpr, e: &PrimExpr| {
            if e.as_int().is_some() {
                return self.bounds(e);
            }
            let mut facts = self.facts.clone();
            facts.assume(cond);
            self.inner(&facts).bounds(e)
        };
        under(c, a).union(under(&c.clone().logical_not(), b))
    }

    fn can_overflow(&mut self, op: BinOp, b: &PrimExpr) -> bool {
        match op {
            BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Shl => true,
            BinOp::Div | BinOp::FloorDiv => self.bounds(b).contains(-1),
            _ => false,
        }
    }

    /// What a computed interval says of the wrapped value.
    fn settle(&mut self, e: &PrimExpr, raw: IntBound, everything: IntBound) -> IntBound {
        let inside = everything.covers(raw) && (raw.is_finite() || e.dtype().bits < 64);
        if inside {
            raw
        } else if self.trusted(e) {
            everything.intersect(raw)
        } else {
            everything
        }
    }

    fn binary_bounds(&mut self, op: BinOp, a: &PrimExpr, b: &PrimExpr) -> Option<IntBound> {
        let (x, y) = (self.bounds(a), self.bounds(b));
        Some(match op {
            BinOp::Add => x.plus(y),
            BinOp::Sub => x.plus(y.negate()),
            BinOp::Mul => x.times(y),
            // Unsigned values above `i64` show as infinite.
            BinOp::Div => x.truncdiv(y),
            BinOp::FloorDiv => x.floordiv(y),
            BinOp::Mod => x.truncmod(y),
            BinOp::FloorMod => x.floormod(y),
            BinOp::Min => x.min_of(y),
            BinOp::Max => x.max_of(y),
            BinOp::BitAnd if x.min >= 0 && y.min >= 0 => IntBound::new(0, x.max.min(y.max)),
            BinOp::BitAnd if y.min >= 0 => IntBound::new(0, y.max),
            BinOp::BitAnd if x.min >= 0 => IntBound::new(0, x.max),
            BinOp::BitOr | BinOp::BitXor if x.min >= 0 && y.min >= 0 && x.is_finite() && y.is_finite() => {
                let top = x.max.max(y.max);
                IntBound::new(0, if top == 0 { 0 } else { i64::MAX >> (top.leading_zeros() - 1) })
            }
            BinOp::Shr if x.min >= 0 && y.min >= 0 => {
                let shift = u32::try_from(y.min.min(63)).unwrap_or(63);
                IntBound::new(0, if x.max == IntBound::POS_INF { x.max } else { x.max >> shift })
            }
            BinOp::Shl => {
                let k = y.as_point().filter(|k| (0..62).contains(k))?;
                x.scale(1i64 << k)
            }
            BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::Shr => return None,
        })
    }
}
