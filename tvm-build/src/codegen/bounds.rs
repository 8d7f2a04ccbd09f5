//! Intervals of integer expressions: what lets the printer write plain `+`, `/` and `%` instead of helpers that
//! define overflow and negative operands.

use std::collections::BTreeMap;
use tvm_ir::dtype::DType;
use tvm_ir::lowered::{Expr, ExprKind, Local};
use tvm_ir::prim::BinOp;

/// Inclusive bounds; far outside of every integer type where nothing is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interval {
    pub(crate) lo: i128,
    pub(crate) hi: i128,
}

impl Interval {
    /// All values of an integer type.
    pub(crate) fn of_type(dtype: DType) -> Interval {
        let bits = u32::from(if dtype.is_bool() { 1 } else { dtype.bits.clamp(1, 64) });
        if dtype.is_int() {
            Interval { lo: -(1i128 << (bits - 1)), hi: (1i128 << (bits - 1)) - 1 }
        } else {
            Interval { lo: 0, hi: (1i128 << bits) - 1 }
        }
    }

    fn point(v: i128) -> Interval {
        Interval { lo: v, hi: v }
    }

    fn hull(values: &[i128]) -> Option<Interval> {
        Some(Interval { lo: *values.iter().min()?, hi: *values.iter().max()? })
    }

    fn within(self, other: Interval) -> bool {
        other.lo <= self.lo && self.hi <= other.hi
    }
}

/// Intervals of the variables in scope.
#[derive(Default)]
pub(crate) struct Bounds {
    vars: BTreeMap<Local, Interval>,
}

impl Bounds {
    /// Declares a variable whose value lies in an interval.
    pub(crate) fn bind(&mut self, var: &Local, interval: Interval) {
        self.vars.insert(var.clone(), interval);
    }

    /// Bounds of a loop variable.
    pub(crate) fn loop_range(&self, min: &Expr, extent: &Expr) -> Interval {
        let (a, n) = (self.interval(min), self.interval(extent));
        Interval { lo: a.lo, hi: (a.hi + n.hi - 1).max(a.lo) }
    }

    /// Bounds of the value; those of its type when it may wrap or nothing is known.
    pub(crate) fn interval(&self, e: &Expr) -> Interval {
        let all = Interval::of_type(e.dtype);
        match self.exact(e) {
            Some(i) if i.within(all) => i,
            _ => all,
        }
    }

    /// Whether the mathematical result of an integer operation lies in its type, so that it cannot wrap.
    pub(crate) fn fits(&self, e: &Expr) -> bool {
        self.exact(e).is_some_and(|i| i.within(Interval::of_type(e.dtype)))
    }

    /// Bounds of the mathematical value of the outermost operation, its operands taken as they are.
    fn exact(&self, e: &Expr) -> Option<Interval> {
        if !(e.dtype.is_integer() || e.dtype.is_bool()) {
            return None;
        }
        Some(match &e.kind {
            ExprKind::Int(v) if e.dtype.is_uint() => Interval::point(i128::from(*v as u64)),
            ExprKind::Int(v) => Interval::point(i128::from(*v)),
            ExprKind::Var(v) => *self.vars.get(v)?,
            ExprKind::Broadcast(x) => self.interval(x),
            ExprKind::Cast(x) if x.dtype.is_integer() || x.dtype.is_bool() => self.interval(x),
            ExprKind::Select(_, a, b) => {
                let (a, b) = (self.interval(a), self.interval(b));
                Interval { lo: a.lo.min(b.lo), hi: a.hi.max(b.hi) }
            }
            ExprKind::Ramp(base, stride) => {
                let (b, s) = (self.interval(base), self.interval(stride));
                let last = i128::from(e.dtype.lanes) - 1;
                Interval { lo: b.lo + (s.lo * last).min(0), hi: b.hi + (s.hi * last).max(0) }
            }
            ExprKind::Binary(op, a, b) => binary(*op, self.interval(a), self.interval(b))?,
            _ => return None,
        })
    }
}

fn binary(op: BinOp, a: Interval, b: Interval) -> Option<Interval> {
    Some(match op {
        BinOp::Add => Interval { lo: a.lo + b.lo, hi: a.hi + b.hi },
        BinOp::Sub => Interval { lo: a.lo - b.hi, hi: a.hi - b.lo },
        BinOp::Mul => {
            let mut products = Vec::new();
            for x in [a.lo, a.hi] {
                for y in [b.lo, b.hi] {
                    products.push(x.checked_mul(y)?);
                }
            }
            Interval::hull(&products)?
        }
        BinOp::Div | BinOp::FloorDiv if b.lo > 0 && (op == BinOp::FloorDiv || a.lo >= 0) => {
            let q = |x: i128, y: i128| x.div_euclid(y);
            Interval::hull(&[q(a.lo, b.lo), q(a.lo, b.hi), q(a.hi, b.lo), q(a.hi, b.hi)])?
        }
        BinOp::Mod | BinOp::FloorMod if b.lo > 0 && (op == BinOp::FloorMod || a.lo >= 0) => {
            let hi = if a.lo >= 0 { a.hi.min(b.hi - 1) } else { b.hi - 1 };
            Interval { lo: 0, hi }
        }
        BinOp::Min => Interval { lo: a.lo.min(b.lo), hi: a.hi.min(b.hi) },
        BinOp::Max => Interval { lo: a.lo.max(b.lo), hi: a.hi.max(b.hi) },
        BinOp::BitAnd if a.lo >= 0 && b.lo >= 0 => Interval { lo: 0, hi: a.hi.min(b.hi) },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn e(dtype: DType, kind: ExprKind) -> Expr {
        Expr { dtype, kind }
    }

    #[test]
    fn proofs() {
        let i = Local("i".into());
        let mut b = Bounds::default();
        b.bind(&i, Interval { lo: 0, hi: 1000 });
        let var = e(DType::I32, ExprKind::Var(i));
        let int = |v| Box::new(e(DType::I32, ExprKind::Int(v)));
        let mul = |v| e(DType::I32, ExprKind::Binary(BinOp::Mul, Box::new(var.clone()), int(v)));
        assert!(b.fits(&mul(1000)));
        assert!(!b.fits(&mul(10_000_000)));
        assert_eq!(b.interval(&mul(10_000_000)), Interval::of_type(DType::I32));
        let fm = e(DType::I32, ExprKind::Binary(BinOp::FloorMod, Box::new(mul(-3)), int(7)));
        assert_eq!(b.interval(&fm), Interval { lo: 0, hi: 6 });
        let fd = e(DType::I32, ExprKind::Binary(BinOp::FloorDiv, Box::new(mul(-3)), int(7)));
        assert_eq!(b.interval(&fd), Interval { lo: -429, hi: 0 });
    }
}
