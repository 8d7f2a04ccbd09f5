//! What is known of variables and conditions.

use super::bounds::IntBound;
use super::modular::Modular;
use crate::prim::{BinOp, CmpOp, PrimExpr, PrimKind, Range, Var};
use std::collections::BTreeMap;

/// What is known of one variable.
#[derive(Clone, Debug)]
pub(super) struct VarFact {
    /// Constant bounds.
    pub(super) bound: IntBound,
    /// Residue class.
    pub(super) modular: Modular,
    /// Symbolic range.
    pub(super) range: Option<Range>,
    /// The value it stands for.
    pub(super) value: Option<PrimExpr>,
}

/// Facts about variables and conditions taken for true.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    vars: BTreeMap<Var, VarFact>,
    /// Conditions known to hold, conjunctions taken apart.
    pub(super) known: Vec<PrimExpr>,
}

impl Facts {
    pub(super) fn var(&self, v: &Var) -> Option<&VarFact> {
        self.vars.get(v)
    }

    pub(super) fn var_bound(&self, v: &Var) -> IntBound {
        self.vars.get(v).map_or_else(|| IntBound::of_type(v.dtype()), |f| f.bound)
    }

    pub(super) fn var_modular(&self, v: &Var) -> Modular {
        self.vars.get(v).map_or(Modular::EVERYTHING, |f| f.modular)
    }

    pub(super) fn entry(&mut self, v: &Var) -> &mut VarFact {
        self.vars.entry(v.clone()).or_insert_with(|| VarFact {
            bound: IntBound::of_type(v.dtype()),
            modular: Modular::EVERYTHING,
            range: None,
            value: None,
        })
    }

    /// Forgets what was known of a variable.
    pub(super) fn reset(&mut self, v: &Var) {
        self.vars.remove(v);
    }

    /// Narrows the bounds of a variable.
    pub(super) fn set_bound(&mut self, v: &Var, bound: IntBound) {
        let fact = self.entry(v);
        fact.bound = fact.bound.intersect(bound);
    }

    /// Takes a condition for true.
    pub(super) fn assume(&mut self, cond: &PrimExpr) {
        match cond.kind() {
            PrimKind::And(a, b) => {
                self.assume(a);
                self.assume(b);
                return;
            }
            PrimKind::Call(crate::prim::Intrinsic::Likely, args) => {
                args.iter().for_each(|a| self.assume(a));
                return;
            }
            PrimKind::Not(c) => {
                if let PrimKind::Or(a, b) = c.kind() {
                    self.assume(&a.clone().logical_not());
                    self.assume(&b.clone().logical_not());
                    return;
                }
                if let Some(inverse) = super::compare::inverse(c) {
                    self.assume(&inverse);
                    return;
                }
            }
            PrimKind::Cmp(op, a, b) => self.assume_cmp(*op, a, b),
            _ => {}
        }
        if cond.as_int().is_none() {
            self.known.push(cond.clone());
        }
    }

    /// Bounds and residues of single variables that a comparison with a literal gives.
    fn assume_cmp(&mut self, op: CmpOp, a: &PrimExpr, b: &PrimExpr) {
        let (var, c, op) = match (a.as_var(), b.as_int(), a.as_int(), b.as_var()) {
            (Some(v), Some(c), _, _) => (v, c, op),
            (_, _, Some(c), Some(v)) => (v, c, super::compare::swapped(op)),
            _ => return self.assume_residue(op, a, b),
        };
        if !var.dtype().is_integer() || var.dtype().is_uint() && c < 0 {
            return;
        }
        let bound = match (op, self.var_bound(var)) {
            // Only at an end does this narrow an interval.
            (CmpOp::Ne, b) if b.min == c && b.max > c => IntBound { min: c.saturating_add(1), ..b },
            (CmpOp::Ne, b) if b.max == c && b.min < c => IntBound { max: c.saturating_sub(1), ..b },
            (op, _) => IntBound::of_comparison(op, c),
        };
        self.set_bound(var, bound);
    }

    /// `v % c == r`
    fn assume_residue(&mut self, op: CmpOp, a: &PrimExpr, b: &PrimExpr) {
        let (CmpOp::Eq, PrimKind::Binary(BinOp::FloorMod, v, c), Some(r)) = (op, a.kind(), b.as_int()) else { return };
        if let (Some(v), Some(c)) = (v.as_var(), c.as_int().filter(|c| *c > 0)) {
            self.entry(v).modular = Modular::new(c, r);
        }
    }
}
