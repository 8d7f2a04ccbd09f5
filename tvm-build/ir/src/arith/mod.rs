//! Integer arithmetic analysis: bounds, residues, simplification, proofs.
//!
//! **Contract.** Results agree with evaluating the expression, with one assumption, TVM's: index arithmetic does not
//! overflow, that is, operators of signed 32-bit or wider integers over variables and literals alone. All other
//! integers (narrow or unsigned types, loaded values, results of calls) wrap as [`crate::prim::BinOp`] says. Where
//! evaluation fails (division by 0) the result is any. Nothing here panics or overflows.

mod bounds;
mod canonical;
mod compare;
mod facts;
mod modular;
mod prove;
mod rewrite;
mod session;
mod set;
mod sum;
#[cfg(test)]
mod tests;

pub use bounds::IntBound;
pub use modular::Modular;
pub use set::IntSet;

use crate::prim::{CmpOp, PrimExpr, Range, Var, free_vars};
use facts::Facts;
use session::Session;

/// Facts about variables, and what follows from them. Cheap to clone for an inner scope.
#[derive(Clone, Debug, Default)]
pub struct Analyzer {
    facts: Facts,
}

impl Analyzer {
    /// Knows nothing.
    pub fn new() -> Analyzer {
        Analyzer::default()
    }

    /// A variable lies in a range (`min .. min + extent`), whatever was known of it before. Of an extent of 1 the
    /// variable stands for the minimum, and simplification puts that in its place.
    pub fn bind_range(&mut self, var: &Var, range: Range) {
        let dtype = var.dtype();
        let range = Range { min: range.min.cast(dtype), extent: range.extent.cast(dtype) };
        self.facts.reset(var);
        if range.extent.is_int(1) {
            self.bind(var, range.min);
            return;
        }
        let last = range.min.clone() + range.extent.clone() - PrimExpr::int(dtype, 1);
        let (low, high) = (self.bounds(&range.min), self.bounds(&last));
        let cyclic = [&range.min, &range.extent].iter().any(|e| free_vars(e).contains(var));
        let fact = self.facts.entry(var);
        fact.bound = fact.bound.intersect(IntBound { min: low.min, max: high.max });
        fact.range = (!cyclic).then_some(range);
    }

    /// A variable stands for a value, which simplification puts in its place. A value that mentions the variable
    /// itself says nothing.
    pub fn bind(&mut self, var: &Var, value: PrimExpr) {
        let value = self.simplify(&value.cast(var.dtype()));
        self.facts.reset(var);
        if free_vars(&value).contains(var) {
            return;
        }
        let (bound, modular) = (self.bounds(&value), self.modular(&value));
        let fact = self.facts.entry(var);
        fact.bound = fact.bound.intersect(bound);
        fact.modular = modular;
        fact.value = Some(value);
    }

    /// A variable is at least 1, as an extent of something that is not empty.
    pub fn assume_positive(&mut self, var: &Var) {
        self.facts.set_bound(var, IntBound { min: 1, max: IntBound::POS_INF });
    }

    /// A variable is at least 0, as every dimension.
    pub fn assume_nonnegative(&mut self, var: &Var) {
        self.facts.set_bound(var, IntBound { min: 0, max: IntBound::POS_INF });
    }

    /// A variable lies between constants, beside what is known of it.
    pub fn assume_bounds(&mut self, var: &Var, bound: IntBound) {
        self.facts.set_bound(var, bound);
    }

    /// A condition holds from here on.
    pub fn assume(&mut self, cond: &PrimExpr) {
        let simple = self.simplify(cond);
        if simple != *cond {
            self.facts.assume(&simple);
        }
        self.facts.assume(cond);
    }

    /// What is known where a condition holds as well.
    #[must_use]
    pub fn with_constraint(&self, cond: &PrimExpr) -> Analyzer {
        let mut inner = self.clone();
        inner.assume(cond);
        inner
    }

    /// An equal expression in normal form.
    pub fn simplify(&self, e: &PrimExpr) -> PrimExpr {
        let mut current = e.clone();
        // One rule may open the way for another; a few rounds reach a fixed point or as good as one.
        for _ in 0..3 {
            let next = Session::new(&self.facts).simplify(&current);
            if next == current {
                break;
            }
            current = next;
        }
        current
    }

    /// Whether a condition is proven; false means "not known".
    pub fn prove(&self, cond: &PrimExpr) -> bool {
        Session::new(&self.facts).holds(cond) || self.simplify(cond).is_int(1)
    }

    /// Whether two integer expressions are proven equal.
    pub fn prove_equal(&self, a: &PrimExpr, b: &PrimExpr) -> bool {
        a == b || (a.dtype().lanes == b.dtype().lanes && self.prove(&PrimExpr::cmp(CmpOp::Eq, a.clone(), b.clone())))
    }

    /// Constants no value of an integer expression is below or above.
    pub fn bounds(&self, e: &PrimExpr) -> IntBound {
        let mut session = Session::new(&self.facts);
        let direct = session.bounds(e);
        if direct.as_point().is_some() || e.dtype().lanes != 1 || !e.dtype().is_integer() {
            return direct;
        }
        let simple = session.simplify(e);
        let both = direct.intersect(session.bounds(&simple));
        if !session.exact(e) {
            return both;
        }
        let sum = session.sum(e, canonical::Mode::Prove);
        both.intersect(session.sum_bounds(&sum))
    }

    /// A residue class that holds every value of an integer expression.
    pub fn modular(&self, e: &PrimExpr) -> Modular {
        let mut session = Session::new(&self.facts);
        if !e.dtype().is_integer() || e.dtype().lanes != 1 {
            return Modular::EVERYTHING;
        }
        let simple = session.simplify(e);
        session.modular(&simple)
    }
}
