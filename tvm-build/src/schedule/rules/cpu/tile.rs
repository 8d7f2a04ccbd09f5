//! Register tiles of reductions: the choice of their size, and the schedule that makes them.
//!
//! A tile is `rows` iterations of one spatial loop by `cols` of the loop along the vectors; its accumulators stay in
//! registers over all reduction loops.

use super::super::Plan;
use super::super::nest::{Nest, Step};
use super::epilogue::epilogue_of;
use super::sums::{plan_sums, sum_in_parts};
use crate::schedule::{BlockRV, LoopRV, Schedule, Tail};
use std::collections::BTreeSet;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, PrimKind, Scope, free_vars, visit};
use tvm_ir::target::Target;
use tvm_ir::tir::{IterKind, Stmt};

/// What is taken for a symbolic extent when sizes are weighed.
const SYMBOLIC: i64 = 1 << 10;

/// Steps of a reduction after which a tile's sums are added up: what that costs is little to as many multiply-adds.
const TILE_STEPS: i64 = 256;

/// Statements of an unrolled tile, over all unrolled loops.
const MAX_UNROLLED: i64 = 64;

/// The part of a tile along one loop.
#[derive(Clone, Copy)]
struct Side {
    axis: usize,
    extent: i64,
}

/// A plan for a reduction block in a perfect nest; `None` when there is no spatial loop or no reduction loop, or when
/// loops come in another order than spatial before reduction.
pub(super) fn plan_tile(rule: &'static str, sch: &Schedule, block: &BlockRV, target: &Target) -> Option<Plan> {
    let nest = Nest::of(sch, block)?;
    sch.block(block).ok()?.init.as_ref()?;
    let (spatial, reduce) = (nest.of_kind(IterKind::Spatial), nest.of_kind(IterKind::Reduce));
    let split = spatial.len() + reduce.len() == nest.axes.len() && spatial.last() < reduce.first();
    if spatial.is_empty() || reduce.is_empty() || !split {
        return None;
    }
    let lanes = lanes_of(&nest, target);
    let side = |axis: usize| Side { axis, extent: nest.axes[axis].extent.unwrap_or(SYMBOLIC) };
    let along = vector_axis(&nest, lanes).map(side);
    let model = Model { nest: &nest, lanes, registers: i64::from(target.vector_registers.max(16)) };
    let mut best = (Tile { row: None, r: 1, vector: None, c: 1 }, f64::INFINITY);
    for vector in [along, None] {
        // Of an unknown number of rows, those that a tile leaves over are slow.
        let most_rows = |axis: usize| if nest.axes[axis].extent.is_some() { 16 } else { 4 };
        let rows = spatial.iter().rev().copied().filter(|k| vector.is_none_or(|v| v.axis != *k)).map(side);
        for row in rows.map(Some).chain([None]) {
            for r in 1..=row.map_or(1, |r| r.extent.clamp(1, most_rows(r.axis))) {
                for c in columns(vector, lanes) {
                    let tile = Tile { row, r, vector, c };
                    let cost = model.cost(&tile);
                    if cost < best.1 {
                        best = (tile, cost);
                    }
                }
            }
        }
    }
    let Tile { row, r, vector, c } = best.0;
    let name = |axis: usize| nest.axes[axis].l.var().name().clone();
    let mut plan = Plan::new(rule, block);
    plan.tile.extend(row.map(|row| (name(row.axis), r)));
    plan.tile.extend(vector.map(|v| (name(v.axis), c)));
    plan.vector = vector.map(|v| name(v.axis));
    let mut statements = r * vectors(c, lanes);
    for k in reduce.iter().skip(1).rev() {
        let Some(extent) = nest.axes[*k].extent.filter(|e| statements.saturating_mul(*e) <= MAX_UNROLLED) else {
            break;
        };
        statements *= extent;
        plan.unroll.push(name(*k));
    }
    plan.epilogue = epilogue_of(sch, block);
    let steps: Vec<_> = reduce.iter().map(|k| (name(*k), nest.axes[*k].extent)).collect();
    plan.sums = plan_sums(sch.block(block).ok()?, &steps, TILE_STEPS);
    Some(plan)
}

/// The innermost spatial axis whose iterations can be lanes of vectors.
pub(super) fn vector_axis(nest: &Nest, lanes: i64) -> Option<usize> {
    let mut along = nest.of_kind(IterKind::Spatial);
    along.retain(|k| lanes > 1 && vectorizable(nest, *k));
    let long = along.iter().rfind(|k| nest.axes[**k].extent != Some(1));
    long.or(along.last()).copied()
}

/// Lanes of a vector of the widest element accessed; 1 without vectors.
pub(super) fn lanes_of(nest: &Nest, target: &Target) -> i64 {
    let bytes = nest.accesses.iter().map(|a| a.buffer.dtype.bytes()).max().unwrap_or(1).max(1);
    i64::try_from(u64::from(target.vector_bytes) / bytes).unwrap_or(1).max(1)
}

/// Whether the lanes of a vector can be iterations of an axis: stores go to consecutive elements, loads come from
/// elements at a small constant distance or are the same for all.
fn vectorizable(nest: &Nest, axis: usize) -> bool {
    nest.accesses.iter().all(|a| match a.steps[axis] {
        Step::Next => true,
        Step::Still | Step::Strided => !a.write,
        Step::Far => false,
    })
}

/// Sizes of a tile along the vectors: up to eight whole vectors, a part of one, or all of a short loop.
fn columns(vector: Option<Side>, lanes: i64) -> Vec<i64> {
    let Some(v) = vector else { return vec![1] };
    let parts = (1..=lanes.ilog2()).map(|s| lanes >> s).filter(|c| *c > 1);
    let mut out: Vec<i64> = (1..=8).map(|n| n * lanes).chain(parts).filter(|c| *c < v.extent).collect();
    out.push(v.extent.clamp(1, 8 * lanes));
    out
}

/// Vectors that hold `c` elements: whole ones, then halves, quarters ….
fn vectors(c: i64, lanes: i64) -> i64 {
    c / lanes + i64::from((c % lanes).count_ones())
}

/// A tile under consideration: `r` of `row` by `c` of `vector`.
#[derive(Clone, Copy)]
struct Tile {
    row: Option<Side>,
    r: i64,
    vector: Option<Side>,
    c: i64,
}

/// A model of a core with two multiply-adds and two loads a cycle and a latency of four.
struct Model<'a> {
    nest: &'a Nest,
    lanes: i64,
    registers: i64,
}

impl Model<'_> {
    /// Cycles of the whole nest for one step of the reduction; infinite when the tile does not fit the registers.
    fn cost(&self, t: &Tile) -> f64 {
        let v = vectors(t.c, self.lanes);
        // Operands of one use come from memory; what several rows use is kept, beside one broadcast.
        let kept = if t.r > 1 { v } else { 0 };
        if t.r * v + kept + 2 > self.registers {
            return f64::INFINITY;
        }
        let step = |axes: &[Step], s: Option<Side>| s.map_or(Step::Still, |s| axes[s.axis]);
        let mut loads = 0;
        for a in self.nest.operands() {
            let rows = if step(&a.steps, t.row) == Step::Still { 1 } else { t.r };
            loads += rows
                * match step(&a.steps, t.vector) {
                    Step::Still => 1,
                    Step::Next => v,
                    // Two vectors and a shuffle.
                    _ => 3 * v,
                };
        }
        let half = |n: i64| n as f64 / 2.0;
        // Of equals, the tile that loads less.
        let cycles = half(t.r * v).max(half(loads)).max(4.0) + 0.1 * loads as f64;
        let count = |s: Option<Side>, n: i64| s.map_or(1, |s| (s.extent + n - 1) / n) as f64;
        let others: f64 = self
            .nest
            .of_kind(IterKind::Spatial)
            .into_iter()
            .filter(|k| [t.row, t.vector].iter().flatten().all(|s| s.axis != *k))
            .map(|k| self.nest.axes[k].extent.unwrap_or(SYMBOLIC) as f64)
            .product();
        others * count(t.row, t.r) * count(t.vector, t.c) * cycles
    }
}

/// Carries a plan out. `vector_outer` puts the outer loop along the vectors outside of the others, so that what is
/// read along them stays in the cache.
pub(super) fn apply_tile(sch: &mut Schedule, plan: &Plan, vector_outer: bool) -> Result<(), Diag> {
    let block = &plan.block;
    let nest = Nest::of(sch, block)
        .ok_or_else(|| Diag::error(sch.func().span, format!("block {block} is no longer in a perfect nest")))?;
    let epilogue = match &plan.epilogue {
        Some(e) => e.clone(),
        None => sch.cache_write(block, 0, Scope::Local)?,
    };
    let mut outer = Vec::new();
    let mut inner = Vec::new();
    let mut cuts = Vec::new();
    for axis in nest.axes.iter().filter(|a| a.kind == IterKind::Spatial) {
        let name = axis.l.var().name();
        match plan.tile.iter().find(|(l, _)| l == name) {
            Some((_, factor)) => {
                let is_vector = plan.vector.as_ref() == Some(name);
                let tail = if axis.extent.is_some_and(|e| e >= *factor) { Tail::Shift } else { Tail::Shrink };
                let extent = sch.get_loop(&axis.l)?.extent.clone();
                let [o, i] = sch.split(&axis.l, *factor, tail)?;
                if axis.extent.is_none() {
                    // Whole tiles and the rest apart, so that the whole ones have constant bounds.
                    cuts.push((o.clone(), extent.floordiv(PrimExpr::int(o.var().dtype(), *factor))));
                }
                if is_vector && vector_outer {
                    outer.insert(0, o)
                } else {
                    outer.push(o)
                }
                if is_vector { inner.push(i) } else { inner.insert(0, i) }
            }
            None => outer.push(axis.l.clone()),
        }
    }
    let reduce: Vec<LoopRV> = nest.axes.iter().filter(|a| a.kind == IterKind::Reduce).map(|a| a.l.clone()).collect();
    let order: Vec<LoopRV> = outer.iter().chain(&reduce).chain(&inner).cloned().collect();
    sch.reorder(&order)?;
    let (Some(at), Some(first)) = (outer.last().cloned(), reduce.first().cloned()) else {
        return Err(Diag::error(sch.func().span, format!("block {block} has no loops to tile")));
    };
    let moved = sch.reverse_compute_at(&epilogue, &at)?;
    let parts = match &plan.sums {
        Some(sums) => Some(sum_in_parts(sch, block, sums)?),
        None => None,
    };
    let cut = plan.sums.as_ref().is_some_and(|(l, _)| l == first.var().name());
    let first = parts.as_ref().filter(|_| cut).map_or(&first, |p| &p.outer);
    let init = sch.decompose_reduction(block, first)?;
    let init_loops = sch.get_loops(&init)?;
    let init_inner = init_loops.get(outer.len()..).unwrap_or_default().to_vec();
    let vector = plan.vector.is_some();
    for loops in [&inner, &init_inner].into_iter().chain(parts.iter().flat_map(|p| &p.loops)) {
        mark(sch, loops, vector)?;
    }
    if let Some(p) = &parts {
        sch.set_scope(&p.block, 0, Scope::Local)?;
    }
    mark_epilogue(sch, &epilogue, &moved, plan)?;
    for l in reduce.iter().filter(|l| plan.unroll.contains(l.var().name())) {
        sch.unroll(l)?;
    }
    sch.set_scope(block, 0, Scope::Local)?;
    sch.plan_allocations()?;
    // Inner loops first: cutting an outer loop copies what is inside.
    cuts.sort_by_key(|(l, _)| std::cmp::Reverse(order.iter().position(|o| o == l)));
    for (l, cut) in cuts {
        sch.loop_partition(&l, cut)?;
    }
    Ok(())
}

/// The last loop becomes vectors (when there are any), the others are written out.
fn mark(sch: &mut Schedule, loops: &[LoopRV], vector: bool) -> Result<(), Diag> {
    for (k, l) in loops.iter().enumerate() {
        if vector && k + 1 == loops.len() { sch.vectorize(l)? } else { sch.unroll(l)? }
    }
    Ok(())
}

/// Vectors along the last index of the epilogue's store; the loops over the tile's rows written out, so that
/// accumulators are at known places. Other loops, over what one element of the tile is used for many times, stay.
pub(super) fn mark_epilogue(sch: &mut Schedule, epilogue: &BlockRV, loops: &[LoopRV], plan: &Plan) -> Result<(), Diag> {
    let accumulators = sch.block(&plan.block)?.writes.first().map(|w| w.buffer.clone());
    let b = sch.block(epilogue)?;
    let Stmt::Store(store) = &b.body else { return Ok(()) };
    let last = store.indices.last().and_then(PrimExpr::as_var).cloned();
    let along = b.iters.iter().position(|i| Some(&i.var) == last.as_ref());
    let mut rows = BTreeSet::new();
    visit(&store.value, &mut |e| match e.kind() {
        PrimKind::Load(buffer, indices) if Some(buffer) == accumulators.as_ref() => {
            rows.extend(indices.iter().flat_map(free_vars));
        }
        _ => {}
    });
    let of_rows: Vec<bool> = b.iters.iter().map(|i| rows.contains(&i.var)).collect();
    let limit = plan.tile.iter().map(|(_, n)| *n).max().unwrap_or(1);
    for (k, l) in loops.iter().enumerate() {
        let bound = sch.analyzer().bounds(&sch.get_loop(l)?.extent).max;
        if along == Some(k) && (plan.vector.is_some() || bound > limit) {
            sch.vectorize(l)?;
        } else if bound <= limit && of_rows.get(k) == Some(&true) {
            sch.unroll(l)?;
        }
    }
    Ok(())
}
