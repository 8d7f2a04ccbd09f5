//! Reductions along memory: sums of rows, softmax, norms, products of a matrix with a vector.

use super::super::nest::{Axis, Moves, Nest, Step, stride};
use super::super::{Plan, Rule};
use super::elementwise::fused_name;
use super::epilogue::epilogue_of;
use super::sums::{plan_sums, sum_in_parts};
use super::tile::{lanes_of, mark_epilogue, vector_axis};
use crate::schedule::{BlockRV, LoopRV, Schedule, Tail, Update};
use tvm_ir::arith::Analyzer;
use tvm_ir::diag::Diag;
use tvm_ir::dtype::DType;
use tvm_ir::name::Name;
use tvm_ir::prim::{Intrinsic, PrimExpr, PrimKind, Scope, visit};
use tvm_ir::target::Target;
use tvm_ir::tir::IterKind;

/// The shortest reduction that is worth several accumulators.
const MIN_EXTENT: i64 = 16;

/// The most vectors of accumulators: as many additions are under way at once.
const MAX_VECTORS: i64 = 4;

/// Additions to a lane one after the other.
const STEPS: i64 = 128;

/// A reduction whose operands lie in memory order along it: each lane of a few vectors reduces a part, then the lanes are
/// combined pairwise. It is faster than one element after the other, and a sum is nearer to the exact one.
pub(super) struct InnerReduction;

impl Rule for InnerReduction {
    fn name(&self) -> &'static str {
        "inner_reduction"
    }

    fn plan(&self, sch: &Schedule, block: &BlockRV, target: &Target) -> Option<Plan> {
        let nest = Nest::of(sch, block)?;
        let b = sch.block(block).ok()?;
        b.init.as_ref()?;
        let (spatial, reduce) = (nest.of_kind(IterKind::Spatial), nest.of_kind(IterKind::Reduce));
        let ordered = spatial.len() + reduce.len() == nest.axes.len() && spatial.last() < reduce.first();
        if !ordered || !in_vectors(&nest, Update::of(b)?.value) {
            return None;
        }
        let lanes = lanes_of(&nest, target);
        let across = vector_axis(&nest, lanes).map(|k| nest.axes[k].extent.unwrap_or(lanes));
        if across.is_some_and(|n| n > 1 && 2 * n >= lanes) {
            return None;
        }
        let reduce: Vec<&Axis> = reduce.iter().map(|k| &nest.axes[*k]).collect();
        let along = along(&nest, &reduce, &sch.analyzer());
        let extent = along.iter().try_fold(1i64, |n, a| n.checked_mul(a.extent?));
        // Without vectors, lanes are accumulators beside each other.
        let lanes = if lanes > 1 { lanes } else { 8 };
        if along.is_empty() || extent.is_some_and(|n| n < MIN_EXTENT.max(lanes)) {
            return None;
        }
        let mut width = lanes * MAX_VECTORS;
        while width > lanes && extent.is_some_and(|n| n < 2 * width) {
            width /= 2;
        }
        let names: Vec<Name> = along.iter().map(|a| a.l.var().name().clone()).collect();
        let name = fused_name(&names);
        let mut plan = Plan::new(self.name(), block);
        plan.fuse = if names.len() > 1 { names } else { Vec::new() };
        let outside = reduce[..reduce.len() - along.len()].iter().map(|a| (a.l.var().name().clone(), a.extent));
        let steps: Vec<_> = outside.chain([(steps_name(&name), extent.map(|n| n / width))]).collect();
        plan.sums = plan_sums(b, &steps, STEPS);
        plan.tile = vec![(name.clone(), width)];
        plan.vector = Some(name);
        plan.epilogue = epilogue_of(sch, block).filter(|_| !spatial.is_empty());
        Some(plan)
    }

    fn apply(&self, sch: &mut Schedule, plan: &Plan) -> Result<(), Diag> {
        let block = &plan.block;
        let span = sch.func().span;
        let no = |what: &str| Diag::error(span, format!("block {block} has no {what}"));
        let nest = Nest::of(sch, block).ok_or_else(|| no("perfect nest any longer"))?;
        let of_kind = |kind| nest.axes.iter().filter(move |a| a.kind == kind).map(|a| a.l.clone());
        let (_, width) = *plan.tile.first().ok_or_else(|| no("width"))?;
        let mut reduce: Vec<LoopRV> = of_kind(IterKind::Reduce).collect();
        let joint = reduce.split_off(reduce.len().saturating_sub(plan.fuse.len().max(1)));
        let mut joint = joint.into_iter();
        let mut along = joint.next().ok_or_else(|| no("reduction loop"))?;
        for l in joint {
            along = sch.fuse(&along, &l)?;
        }
        let moved = match (&plan.epilogue, of_kind(IterKind::Spatial).next_back()) {
            (Some(e), Some(at)) => sch.reverse_compute_at(e, &at)?,
            _ => Vec::new(),
        };
        let extent = sch.get_loop(&along)?.extent.clone();
        let [steps, lane] = sch.split(&along, width, Tail::Shrink)?;
        let [init, rf] = sch.rfactor(block, reduce.first().unwrap_or(&steps), Some(&lane))?;
        sch.vectorize(&lane)?;
        vectorize_last(sch, &init)?;
        sch.set_scope(&rf, 0, Scope::Local)?;
        combine_lanes(sch, block, width)?;
        // Outer loops first: a sum in parts needs all that is in a loop in one block.
        let (before, after) = match &plan.sums {
            Some(sums) if sums.0 == *steps.var().name() => (None, Some(sums)),
            sums => (sums.as_ref(), None),
        };
        sum_lanes_in_parts(sch, &rf, before)?;
        if sch.get_loop(&lane)?.extent.as_int() != Some(width) {
            // Whole vectors and the rest apart, so that the whole ones have constant bounds.
            sch.loop_partition(&steps, extent.floordiv(PrimExpr::int(steps.var().dtype(), width)))?;
        }
        sum_lanes_in_parts(sch, &rf, after)?;
        if let Some(e) = &plan.epilogue {
            sch.set_scope(block, 0, Scope::Local)?;
            mark_epilogue(sch, e, &moved, plan)?;
        }
        sch.plan_allocations()
    }
}

/// The name that `split` gives the loop over the steps of all lanes.
fn steps_name(l: &Name) -> Name {
    format!("{l}_0").into()
}

/// Whether a value of a reduction can be computed for several iterations at once.
fn in_vectors(nest: &Nest, value: &PrimExpr) -> bool {
    let element = |d: DType| !d.is_bool() && !d.is_packed() && (d.is_integer() || (d.is_float() && d.bits >= 32));
    let mut plain = true;
    visit(value, &mut |e| {
        let branches = matches!(e.kind(), PrimKind::Call(Intrinsic::IfThenElse, _) | PrimKind::CallExtern(..));
        plain &= !branches && !matches!(e.kind(), PrimKind::Let(..));
    });
    plain && nest.accesses.iter().all(|a| element(a.buffer.dtype))
}

/// The innermost reduction axes over which, taken as one, every operand moves to the next element or stays; none when
/// the innermost is not so, or when all operands stay.
fn along<'a>(nest: &Nest, reduce: &[&'a Axis], analyzer: &Analyzer) -> Vec<&'a Axis> {
    let place = |axis: &Axis| nest.axes.iter().position(|a| a.l == axis.l);
    let step = |m: &Moves, axis: &Axis| place(axis).map_or(Step::Far, |k| m.steps[k]);
    let Some((last, outer)) = reduce.split_last() else { return Vec::new() };
    let operands: Vec<&Moves> = nest.operands().collect();
    let in_order = |m: &&Moves| matches!(step(m, last), Step::Next | Step::Still);
    if !operands.iter().all(in_order) || operands.iter().all(|m| step(m, last) == Step::Still) {
        return Vec::new();
    }
    let mut out = vec![*last];
    for axis in outer.iter().rev() {
        let inner = out[0];
        let go_on = |m: &&Moves| {
            if step(m, last) == Step::Still {
                return step(m, axis) == Step::Still;
            }
            let by = |a: &Axis| stride(&m.buffer, &m.indices, &a.iter, analyzer);
            let (Some(far), Some(near)) = (by(axis), by(inner)) else { return false };
            analyzer.prove_equal(&far, &(near * inner.size.clone()))
        };
        if axis.extent != Some(1) && !operands.iter().all(go_on) {
            break;
        }
        out.insert(0, axis);
    }
    out
}

/// Combines the two halves of the lanes, and so on down to four, which follow each other.
fn combine_lanes(sch: &mut Schedule, block: &BlockRV, mut width: i64) -> Result<(), Diag> {
    while width > 4 {
        width /= 2;
        let l = last_loop(sch, block)?;
        let [halves, lane] = sch.split(&l, width, Tail::Shrink)?;
        let [init, rf] = sch.rfactor(block, &halves, Some(&lane))?;
        sch.vectorize(&lane)?;
        vectorize_last(sch, &init)?;
        sch.unroll(&halves)?;
        sch.set_scope(&rf, 0, Scope::Local)?;
    }
    let l = last_loop(sch, block)?;
    sch.decompose_reduction(block, &l)?;
    sch.unroll(&l)
}

fn sum_lanes_in_parts(sch: &mut Schedule, rf: &BlockRV, sums: Option<&(Name, i64)>) -> Result<(), Diag> {
    let Some(sums) = sums else { return Ok(()) };
    let parts = sum_in_parts(sch, rf, sums)?;
    for l in parts.loops.iter().filter_map(|loops| loops.last()) {
        sch.vectorize(l)?;
    }
    sch.set_scope(&parts.block, 0, Scope::Local)
}

fn last_loop(sch: &Schedule, block: &BlockRV) -> Result<LoopRV, Diag> {
    let last = sch.get_loops(block)?.pop();
    last.ok_or_else(|| Diag::error(sch.func().span, format!("block {block} has no loops")))
}

fn vectorize_last(sch: &mut Schedule, block: &BlockRV) -> Result<(), Diag> {
    let l = last_loop(sch, block)?;
    sch.vectorize(&l)
}
