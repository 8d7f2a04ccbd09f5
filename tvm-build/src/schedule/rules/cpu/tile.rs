//! Register tiles of reductions: the choice of their size, and the schedule that makes them.
//!
//! A tile is `rows` iterations of one spatial loop by `cols` of the loop along the vectors; its accumulators stay in
//! registers over all reduction loops.

use super::super::Plan;
use super::super::nest::{Nest, Step};
use super::epilogue::epilogue_of;
use crate::schedule::{BlockRV, LoopRV, Schedule};
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, Scope};
use tvm_ir::target::Target;
use tvm_ir::tir::{IterKind, Stmt};

/// What is taken for a symbolic extent when sizes are weighed.
const SYMBOLIC: i64 = 1 << 10;

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
    let vector = spatial.iter().copied().filter(|_| lanes > 1).rfind(|k| vectorizable(&nest, *k)).map(side);
    let rows = spatial.iter().copied().filter(|k| vector.is_none_or(|v| v.axis != *k)).map(side);
    let (mut best, mut best_cost) = ((None, 1, 1), f64::INFINITY);
    for row in rows.map(Some).chain([None]) {
        for r in 1..=row.map_or(1, |r| r.extent.clamp(1, 16)) {
            for c in columns(vector, lanes) {
                let cost = cost(&nest, row, vector, r, c, lanes, target);
                if cost < best_cost {
                    (best, best_cost) = ((row, r, c), cost);
                }
            }
        }
    }
    let (row, r, c) = best;
    let name = |axis: usize| nest.axes[axis].l.var().name().clone();
    let mut plan = Plan::new(rule, block);
    plan.tile.extend(row.map(|row| (name(row.axis), r)));
    plan.tile.extend(vector.map(|v| (name(v.axis), c)));
    plan.vector = vector.map(|v| name(v.axis));
    let mut statements = r * vectors(c, lanes);
    for k in reduce.iter().skip(1).rev() {
        let Some(extent) = nest.axes[*k].extent.filter(|e| statements.saturating_mul(*e) <= MAX_UNROLLED) else { break };
        statements *= extent;
        plan.unroll.push(name(*k));
    }
    plan.epilogue = epilogue_of(sch, block);
    Some(plan)
}

/// Lanes of a vector of the widest element accessed; 1 without vectors.
fn lanes_of(nest: &Nest, target: &Target) -> i64 {
    let bytes = nest.accesses.iter().map(|a| a.buffer.dtype.bytes()).max().unwrap_or(1).max(1);
    i64::try_from(u64::from(target.vector_bytes) / bytes).unwrap_or(1).max(1)
}

/// Whether the lanes of a vector can be iterations of an axis: stores go to consecutive elements, loads come from
/// consecutive elements or are the same for all.
fn vectorizable(nest: &Nest, axis: usize) -> bool {
    nest.accesses.iter().all(|a| match a.steps[axis] {
        Step::Next => true,
        Step::Still => !a.write,
        Step::Far => false,
    })
}

/// Sizes of a tile along the vectors.
fn columns(vector: Option<Side>, lanes: i64) -> Vec<i64> {
    match vector {
        None => vec![1],
        Some(v) => {
            let mut out: Vec<i64> = (1..=8).map(|n| n * lanes).filter(|c| *c < v.extent).collect();
            out.push(v.extent.clamp(1, 8 * lanes));
            out
        }
    }
}

/// Vectors that hold `c` elements: whole ones, then halves, quarters ….
fn vectors(c: i64, lanes: i64) -> i64 {
    c / lanes + i64::from((c % lanes).count_ones())
}

/// Cycles of the whole nest for one step of the reduction, by a model of two multiply-adds and two loads a cycle and
/// a latency of four; infinite when the tile does not fit the registers.
fn cost(
    nest: &Nest,
    row: Option<Side>,
    vector: Option<Side>,
    r: i64,
    c: i64,
    lanes: i64,
    target: &Target,
) -> f64 {
    let registers = i64::from(target.vector_registers.max(16));
    let (v, row_axis, col_axis) = (vectors(c, lanes), row.map(|s| s.axis), vector.map(|s| s.axis));
    if r * v + v + 1 > registers {
        return f64::INFINITY;
    }
    let tile = |r: i64, v: i64| {
        let mut loads = 0;
        for a in nest.operands() {
            let moves = |axis: Option<usize>| axis.is_some_and(|k| a.steps[k] != Step::Still);
            loads += if moves(row_axis) { r } else { 1 } * if moves(col_axis) { v } else { 1 };
        }
        let half = |n: i64| n as f64 / 2.0;
        // Of equals, the tile that loads less.
        half(r * v).max(half(loads)).max(4.0) + 0.01 * loads as f64
    };
    let whole = |s: Option<Side>, t: i64| s.map_or((1, 0), |s| (s.extent / t, s.extent % t));
    let ((rn, rr), (cn, cr)) = (whole(row, r), whole(vector, c));
    let others: f64 = nest
        .of_kind(IterKind::Spatial)
        .into_iter()
        .filter(|k| Some(*k) != row_axis && Some(*k) != col_axis)
        .map(|k| nest.axes[k].extent.unwrap_or(SYMBOLIC) as f64)
        .product();
    let rest = vectors(cr, lanes);
    let part = |count: i64, r: i64, v: i64| if count * r * v == 0 { 0.0 } else { count as f64 * tile(r, v) };
    let rows_of = |n: i64, r: i64| {
        if r == 0 { 0.0 } else { n as f64 * (part(cn, r, v) + part(i64::from(cr > 0), r, rest)) }
    };
    others * (rows_of(rn, r) + rows_of(1, rr))
}

/// Carries a plan out. `vector_outer` puts the outer loop along the vectors outside of the others, so that what is
/// read along them stays in the cache.
pub(super) fn apply_tile(sch: &mut Schedule, plan: &Plan, vector_outer: bool) -> Result<(), Diag> {
    let block = &plan.block;
    let nest = Nest::of(sch, block).ok_or_else(|| {
        Diag::error(sch.func().span, format!("block {block} is no longer in a perfect nest"))
    })?;
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
                let extent = sch.get_loop(&axis.l)?.extent.clone();
                let [o, i] = sch.split(&axis.l, *factor)?;
                let divides = extent.as_int().is_some_and(|e| e % factor == 0 || e < *factor);
                let is_vector = plan.vector.as_ref() == Some(name);
                if !divides {
                    cuts.push((o.clone(), extent.floordiv(PrimExpr::int(o.var().dtype(), *factor))));
                }
                if is_vector && vector_outer { outer.insert(0, o) } else { outer.push(o) }
                if is_vector { inner.push(i) } else { inner.insert(0, i) }
            }
            None => outer.push(axis.l.clone()),
        }
    }
    let reduce: Vec<LoopRV> =
        nest.axes.iter().filter(|a| a.kind == IterKind::Reduce).map(|a| a.l.clone()).collect();
    let order: Vec<LoopRV> = outer.iter().chain(&reduce).chain(&inner).cloned().collect();
    sch.reorder(&order)?;
    let (Some(at), Some(first)) = (outer.last().cloned(), reduce.first().cloned()) else {
        return Err(Diag::error(sch.func().span, format!("block {block} has no loops to tile")));
    };
    let moved = sch.reverse_compute_at(&epilogue, &at)?;
    let init = sch.decompose_reduction(block, &first)?;
    let init_loops = sch.get_loops(&init)?;
    let init_inner = init_loops.get(outer.len()..).unwrap_or_default().to_vec();
    let vector = plan.vector.is_some();
    for loops in [&inner, &init_inner] {
        mark(sch, loops, vector)?;
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

/// Vectors along the last index of the epilogue's store; the loops over the tile's rows written out.
fn mark_epilogue(sch: &mut Schedule, epilogue: &BlockRV, loops: &[LoopRV], plan: &Plan) -> Result<(), Diag> {
    let b = sch.block(epilogue)?;
    let Stmt::Store(store) = &b.body else { return Ok(()) };
    let last = store.indices.last().and_then(PrimExpr::as_var).cloned();
    let along = b.iters.iter().position(|i| Some(&i.var) == last.as_ref());
    let limit = plan.tile.iter().map(|(_, n)| *n).max().unwrap_or(1);
    for (k, l) in loops.iter().enumerate() {
        let bound = sch.analyzer().bounds(&sch.get_loop(l)?.extent).max;
        if along == Some(k) && (plan.vector.is_some() || bound > limit) {
            sch.vectorize(l)?;
        } else if bound <= limit {
            sch.unroll(l)?;
        }
    }
    Ok(())
}
