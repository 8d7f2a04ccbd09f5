//! CompactBufferAllocation: see [`PASS`].

use super::each_prim_func;
use crate::pass::Pass;
use crate::tir_tools::{RunningLoops, accesses, analyzer_of, symbolic_vars};
use tvm_ir::arith::{Analyzer, IntBound};
use tvm_ir::diag::Diag;
use tvm_ir::prim::{Buffer, BufferNode, PrimExpr, PrimKind, Range, Var, free_vars, rewrite};
use tvm_ir::target::Target;
use tvm_ir::tir::{Block, PrimFunc, Stmt, map_exprs, rewrite_stmt};

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "CompactBufferAllocation",
    doc: "allocated buffers shrink to the region that is accessed",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, compact_buffer_allocation),
};

/// Shrinks every allocated buffer, a dimension at a time, to the region that is accessed while the loops inside of the
/// allocating block run. A dimension whose bounds are not known stays. Block iterators must be converted before.
pub(super) fn compact_buffer_allocation(mut f: PrimFunc, _target: &Target) -> Result<PrimFunc, Diag> {
    let analyzer = analyzer_of(&f);
    let symbols: Vec<Var> = symbolic_vars(&f).into_iter().map(|s| s.var).collect();
    f.body = rewrite_stmt(f.body, &mut |s| match s {
        Stmt::Block(b) => Stmt::Block(Box::new(compact_block(*b, &analyzer, &symbols))),
        other => other,
    });
    Ok(f)
}

fn compact_block(mut b: Block, analyzer: &Analyzer, symbols: &[Var]) -> Block {
    let loops = RunningLoops::of_stmt(&b.body, analyzer);
    for slot in &mut b.allocs {
        let old = slot.clone();
        if !old.strides.is_empty() || old.elem_offset.is_some() {
            continue;
        }
        let region: Vec<_> =
            (0..old.shape.len()).map(|d| dim_region(&b.body, &old, d, &loops, analyzer, symbols)).collect();
        if region.iter().all(Option::is_none) {
            continue;
        }
        let shape = old.shape.iter().zip(&region).map(|(s, r)| r.as_ref().map_or(s, |r| &r.extent).clone()).collect();
        let new = Buffer::from_node(BufferNode { shape, ..old.node().clone() });
        let base: Vec<_> = region.into_iter().map(|r| r.map(|r| r.min)).collect();
        let body = std::mem::replace(&mut b.body, Stmt::Seq(Vec::new()));
        b.body = rebase(body, &old, &new, &base, analyzer);
        *slot = new;
    }
    b
}

/// The union of what is accessed in a dimension; `None` when it is not known or not smaller.
fn dim_region(
    body: &Stmt,
    buffer: &Buffer,
    dim: usize,
    loops: &RunningLoops,
    analyzer: &Analyzer,
    symbols: &[Var],
) -> Option<Range> {
    let mut union: Option<Range> = None;
    for access in accesses(body).into_iter().filter(|a| a.buffer == *buffer) {
        let index = access.indices.get(dim)?;
        if index.dtype().lanes > 1 {
            return None;
        }
        let range = loops.cover(index)?;
        union = Some(match union {
            None => range,
            Some(old) => join(old, &range, analyzer)?,
        });
    }
    let mut region = union?;
    if region.extent.as_int().is_none() {
        // The shape may not depend on a loop: the most that it may be.
        let most = analyzer.bounds(&region.extent).max;
        if most != IntBound::POS_INF {
            region.extent = PrimExpr::int(region.extent.dtype(), most);
        } else if free_vars(&region.extent).iter().any(|v| !symbols.contains(v)) {
            return None;
        }
    }
    let whole = &buffer.shape[dim];
    let smaller = match (region.extent.as_int(), whole.as_int()) {
        (Some(e), Some(w)) => e < w,
        _ => !analyzer.prove(&region.extent.clone().ge(whole.clone())),
    };
    smaller.then_some(region)
}

/// The range of both, where their ends lie a constant apart.
fn join(a: Range, b: &Range, analyzer: &Analyzer) -> Option<Range> {
    let below = analyzer.simplify(&(&b.min - &a.min)).as_int()?;
    let above = analyzer.simplify(&((&b.min + &b.extent) - (&a.min + &a.extent))).as_int()?;
    let min = if below < 0 { b.min.clone() } else { a.min.clone() };
    let end = if above > 0 { &b.min + &b.extent } else { &a.min + &a.extent };
    let extent = analyzer.simplify(&(end - &min));
    Some(Range { min, extent })
}

/// Puts the new buffer in the old one's place, indices less the region's start.
fn rebase(s: Stmt, old: &Buffer, new: &Buffer, base: &[Option<PrimExpr>], analyzer: &Analyzer) -> Stmt {
    let shift = |indices: &[PrimExpr]| -> Vec<PrimExpr> {
        let less = |i: &PrimExpr, b: &Option<PrimExpr>| b.as_ref().map_or(i.clone(), |b| analyzer.simplify(&(i - b)));
        indices.iter().zip(base).map(|(i, b)| less(i, b)).collect()
    };
    let mut loads = |e: &PrimExpr| {
        rewrite(e, &mut |n| match n.kind() {
            PrimKind::Load(b, i) if b == old => Some(PrimExpr::load(new, shift(i)).with_span(n.span())),
            _ => None,
        })
    };
    rewrite_stmt(s, &mut |s| match map_exprs(s, &mut loads) {
        Stmt::Store(mut s) if s.buffer == *old => {
            s.buffer = new.clone();
            s.indices = shift(&s.indices);
            Stmt::Store(s)
        }
        Stmt::Block(mut b) => {
            for r in b.reads.iter_mut().chain(&mut b.writes).filter(|r| r.buffer == *old) {
                r.buffer = new.clone();
                for (range, base) in r.ranges.iter_mut().zip(base) {
                    if let Some(base) = base {
                        range.min = analyzer.simplify(&(&range.min - base));
                    }
                }
            }
            Stmt::Block(b)
        }
        other => other,
    })
}
