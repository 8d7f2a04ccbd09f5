//! Padding and other values under conditions on one iterator each.

use super::super::nest::{Axis, Nest, Step};
use super::super::{Plan, Rule};
use crate::schedule::{BlockRV, LoopRV, Schedule};
use std::collections::BTreeSet;
use tvm_ir::arith::Analyzer;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{CmpOp, Intrinsic, PrimExpr, PrimKind, Substitution, Var, free_vars, visit};
use tvm_ir::target::Target;
use tvm_ir::tir::{IterKind, Stmt};

/// Most nests that a block is cut into.
const MAX_PARTS: usize = 27;

/// A spatial block with `if_then_else` on comparisons of an iterator with a constant: its loops are cut where a
/// comparison changes, so that none is left inside: the middle is a plain copy in vectors, the borders are constants.
pub(super) struct Padding;

impl Rule for Padding {
    fn name(&self) -> &'static str {
        "padding"
    }

    fn plan(&self, sch: &Schedule, block: &BlockRV, _target: &Target) -> Option<Plan> {
        let nest = Nest::of(sch, block)?;
        if nest.axes.iter().any(|a| a.kind != IterKind::Spatial) {
            return None;
        }
        let Stmt::Store(store) = &sch.block(block).ok()?.body else { return None };
        let analyzer = sch.analyzer();
        let mut plan = Plan::new(self.name(), block);
        let mut parts = 1usize;
        for axis in &nest.axes {
            let cuts = cuts_of(&store.value, axis, &analyzer);
            parts = parts.saturating_mul(cuts.len() + 1);
            if !cuts.is_empty() {
                plan.cut.push((axis.l.var().name().clone(), cuts.into_iter().collect()));
            }
        }
        let last = nest.axes.len().checked_sub(1)?;
        if nest.accesses.iter().all(|a| !a.write || a.steps[last] == Step::Next) {
            plan.vector = Some(nest.axes[last].l.var().name().clone());
        }
        (!plan.cut.is_empty() && parts <= MAX_PARTS).then_some(plan)
    }

    fn apply(&self, sch: &mut Schedule, plan: &Plan) -> Result<(), Diag> {
        // Inner loops first: cutting an outer loop copies what is inside.
        for l in sch.get_loops(&plan.block)?.into_iter().rev() {
            let name = l.var().name().clone();
            let mut parts: Vec<LoopRV> = vec![l.clone()];
            let mut done = 0;
            for at in plan.cut.iter().filter(|(n, _)| *n == name).flat_map(|(_, cuts)| cuts) {
                if let Some(rest) = parts.pop() {
                    parts.extend(sch.loop_partition(&rest, PrimExpr::int(l.var().dtype(), at - done))?);
                    done = *at;
                }
            }
            if plan.vector.as_ref() == Some(&name) {
                parts.iter().try_for_each(|p| sch.vectorize(p))?;
            }
        }
        Ok(())
    }
}

/// Where, inside of the axis, the truth of a condition of the value changes.
fn cuts_of(value: &PrimExpr, axis: &Axis, analyzer: &Analyzer) -> BTreeSet<i64> {
    let mut out = BTreeSet::new();
    let Some(extent) = axis.extent else { return out };
    visit(value, &mut |e| {
        if let PrimKind::Call(Intrinsic::IfThenElse, args) = e.kind() {
            if let Some(cond) = args.first() {
                visit(cond, &mut |c| {
                    if let PrimKind::Cmp(op, a, b) = c.kind() {
                        out.extend(changes(*op, a, b, &axis.iter, analyzer));
                    }
                });
            }
        }
    });
    out.retain(|c| *c > 0 && *c < extent);
    out
}

/// The values of an iterator from which on a comparison has another result than before; none when it is not of the
/// form `x + constant op constant`.
fn changes(op: CmpOp, a: &PrimExpr, b: &PrimExpr, iter: &Var, analyzer: &Analyzer) -> Vec<i64> {
    if !a.dtype().is_int() || !free_vars(&(a - b)).iter().eq([iter]) {
        return Vec::new();
    }
    let at = |e: PrimExpr| analyzer.simplify(&Substitution::var(iter, e).apply(&(a - b)));
    let free = Var::new("x", iter.dtype());
    let step = analyzer.simplify(&(at(free.expr() + PrimExpr::int(iter.dtype(), 1)) - at(free.expr())));
    let Some(start) = at(PrimExpr::int(iter.dtype(), 0)).as_int() else { return Vec::new() };
    // Where the difference is zero.
    let zero = match step.as_int() {
        Some(1) => -start,
        Some(-1) => start,
        _ => return Vec::new(),
    };
    let rising = step.is_int(1);
    match op {
        CmpOp::Eq | CmpOp::Ne => vec![zero, zero.saturating_add(1)],
        CmpOp::Lt | CmpOp::Ge if rising => vec![zero],
        CmpOp::Le | CmpOp::Gt if rising => vec![zero.saturating_add(1)],
        CmpOp::Lt | CmpOp::Ge => vec![zero.saturating_add(1)],
        CmpOp::Le | CmpOp::Gt => vec![zero],
    }
}
