//! Symbolic bounds of index expressions while some loops run over their whole ranges.

use std::collections::BTreeMap;
use tvm_ir::arith::Analyzer;
use tvm_ir::prim::{BinOp, PrimExpr, PrimKind, Range, Var, free_vars};
use tvm_ir::tir::{Stmt, visit_stmt};

/// Least and greatest value, over the variables that do not run.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Least value.
    pub min: PrimExpr,
    /// Greatest value.
    pub max: PrimExpr,
}

impl Bounds {
    fn point(e: &PrimExpr) -> Bounds {
        Bounds { min: e.clone(), max: e.clone() }
    }

    /// Both bounds simplified.
    #[must_use]
    pub fn simplify(&self, analyzer: &Analyzer) -> Bounds {
        Bounds { min: analyzer.simplify(&self.min), max: analyzer.simplify(&self.max) }
    }
}

/// The loops that run, with their ranges.
#[derive(Clone, Debug, Default)]
pub struct LoopRanges {
    ranges: BTreeMap<Var, Range>,
}

impl LoopRanges {
    /// No loop runs.
    pub fn new() -> LoopRanges {
        LoopRanges::default()
    }

    /// Adds a loop.
    pub fn insert(&mut self, var: &Var, range: Range) {
        self.ranges.insert(var.clone(), range);
    }

    /// Every loop of a statement.
    pub fn of_stmt(s: &Stmt) -> LoopRanges {
        let mut out = LoopRanges::new();
        visit_stmt(s, &mut |s| {
            if let Stmt::For(f) = s {
                out.insert(&f.var, Range { min: f.min.clone(), extent: f.extent.clone() });
            }
        });
        out
    }

    /// Whether an expression depends on a loop that runs.
    pub fn occur_in(&self, e: &PrimExpr) -> bool {
        free_vars(e).iter().any(|v| self.ranges.contains_key(v))
    }

    /// Bounds of an integer expression over the running loops, none of which occurs in them; sound, not always tight.
    /// `None` when nothing is known (loads, calls, products of running variables …).
    pub fn bounds(&self, e: &PrimExpr) -> Option<Bounds> {
        if !self.occur_in(e) {
            return Some(Bounds::point(e));
        }
        match e.kind() {
            PrimKind::Var(v) => {
                let r = self.ranges.get(v)?;
                let last = &r.min + &(&r.extent - PrimExpr::int(r.extent.dtype(), 1));
                Some(Bounds { min: self.bounds(&r.min)?.min, max: self.bounds(&last)?.max })
            }
            PrimKind::Binary(op, a, b) => {
                let (x, y) = (self.bounds(a)?, self.bounds(b)?);
                let map = |p: PrimExpr, q: PrimExpr| PrimExpr::binary(*op, p, q);
                match op {
                    BinOp::Add | BinOp::Min | BinOp::Max => {
                        Some(Bounds { min: map(x.min, y.min), max: map(x.max, y.max) })
                    }
                    BinOp::Sub => Some(Bounds { min: map(x.min, y.max), max: map(x.max, y.min) }),
                    BinOp::Mul => {
                        let (c, r) = match (a.as_int(), b.as_int()) {
                            (_, Some(c)) => (c, x),
                            (Some(c), _) => (c, y),
                            _ => return None,
                        };
                        let c_expr = PrimExpr::int(e.dtype(), c);
                        let (lo, hi) = if c >= 0 { (r.min, r.max) } else { (r.max, r.min) };
                        Some(Bounds { min: map(lo, c_expr.clone()), max: map(hi, c_expr) })
                    }
                    BinOp::FloorDiv if b.as_int().is_some_and(|c| c > 0) => {
                        Some(Bounds { min: map(x.min, b.clone()), max: map(x.max, b.clone()) })
                    }
                    BinOp::FloorMod if b.as_int().is_some_and(|c| c > 0) => {
                        let c = b.as_int()?;
                        let whole = Bounds { min: PrimExpr::int(e.dtype(), 0), max: PrimExpr::int(e.dtype(), c - 1) };
                        match (x.min.as_int(), x.max.as_int()) {
                            (Some(lo), Some(hi)) if lo.div_euclid(c) == hi.div_euclid(c) => Some(Bounds {
                                min: PrimExpr::int(e.dtype(), lo.rem_euclid(c)),
                                max: PrimExpr::int(e.dtype(), hi.rem_euclid(c)),
                            }),
                            _ => Some(whole),
                        }
                    }
                    _ => None,
                }
            }
            PrimKind::Cast(a) if e.dtype().is_int() && a.dtype().is_int() && e.dtype().bits >= a.dtype().bits => {
                let r = self.bounds(a)?;
                Some(Bounds { min: r.min.cast(e.dtype()), max: r.max.cast(e.dtype()) })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tvm_ir::dtype::DType;

    #[test]
    fn affine() {
        let (i, j) = (Var::new("i", DType::I64), Var::new("j", DType::I64));
        let mut l = LoopRanges::new();
        l.insert(&j, Range::to(PrimExpr::i64(6)));
        let e = i.expr() * 8 - j.expr() * 2;
        let b = l.bounds(&e).unwrap();
        assert!(!l.occur_in(&b.min) && !l.occur_in(&b.max));
        l.insert(&i, Range { min: PrimExpr::i64(1), extent: PrimExpr::i64(3) });
        let b = l.bounds(&e).unwrap();
        assert_eq!((b.min.as_int(), b.max.as_int()), (Some(-2), Some(24)));
        let m = l.bounds(&(i.expr() * 2).floormod(4)).unwrap();
        assert_eq!((m.min.as_int(), m.max.as_int()), (Some(0), Some(3)));
        let m = l.bounds(&(i.expr() + 7).floormod(16)).unwrap();
        assert_eq!((m.min.as_int(), m.max.as_int()), (Some(8), Some(10)));
    }

    #[test]
    fn extent_over_another_loop() {
        let (i, j) = (Var::new("i", DType::I64), Var::new("j", DType::I64));
        let mut l = LoopRanges::new();
        l.insert(&i, Range::to(PrimExpr::i64(4)));
        l.insert(&j, Range::to(i.expr() + 1));
        let b = l.bounds(&(i.expr() + j.expr())).unwrap();
        assert_eq!((b.min.as_int(), b.max.as_int()), (Some(0), Some(6)));
    }
}
