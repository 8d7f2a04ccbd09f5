//! Integer arithmetic analysis: bounds, simplification, proofs.

use crate::prim::{PrimExpr, Range, Var};
use std::collections::BTreeMap;

/// Facts about variables, and what follows from them.
#[derive(Clone, Debug, Default)]
pub struct Analyzer {
    ranges: BTreeMap<Var, Range>,
}

impl Analyzer {
    /// Knows nothing.
    pub fn new() -> Analyzer {
        Analyzer::default()
    }

    /// A variable lies in a range.
    pub fn bind_range(&mut self, var: &Var, range: Range) {
        self.ranges.insert(var.clone(), range);
    }

    /// An equal expression in normal form.
    pub fn simplify(&self, e: &PrimExpr) -> PrimExpr {
        e.refold()
    }

    /// Whether a condition is proven; false means "not known".
    pub fn prove(&self, cond: &PrimExpr) -> bool {
        self.simplify(cond).is_int(1)
    }

    /// Whether two integer expressions are proven equal.
    pub fn prove_equal(&self, a: &PrimExpr, b: &PrimExpr) -> bool {
        a == b
    }
}
