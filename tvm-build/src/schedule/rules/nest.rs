//! What rules look at: the loops of one block, and how its accesses move with each of them.

use crate::schedule::{BlockRV, LoopRV, Schedule};
use crate::tir_tools::accesses;
use tvm_ir::arith::Analyzer;
use tvm_ir::name::Name;
use tvm_ir::prim::{Buffer, PrimExpr, Substitution, Var, free_vars};
use tvm_ir::tir::{Block, ForKind, IterKind, Stmt};

/// A loop and the block iterator that it alone drives.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) l: LoopRV,
    pub(super) iter: Var,
    pub(super) kind: IterKind,
    /// Iterations, when constant.
    pub(super) extent: Option<i64>,
    /// Iterations.
    pub(super) size: PrimExpr,
}

/// A block alone in a perfect nest of serial loops from 0, one loop an iterator, without predicate.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    pub(super) axes: Vec<Axis>,
    pub(super) accesses: Vec<Moves>,
}

/// How an access moves when one iterator steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Not at all.
    Still,
    /// To the next element in memory.
    Next,
    /// A few elements on, always as many.
    Strided,
    /// Elsewhere.
    Far,
}

/// An access and its movement with each axis.
#[derive(Clone, Debug)]
pub(super) struct Moves {
    pub(super) buffer: Buffer,
    pub(super) write: bool,
    /// One a dimension, over the block's iterators.
    pub(super) indices: Vec<PrimExpr>,
    /// In the order of the axes.
    pub(super) steps: Vec<Step>,
    /// One plain iterator a dimension, in the order of the axes, over all of a compact buffer.
    pub(super) whole: bool,
}

impl Nest {
    /// The nest of a block; `None` when it is not of this form.
    pub(super) fn of(sch: &Schedule, block: &BlockRV) -> Option<Nest> {
        let b = sch.block(block).ok()?;
        if !b.predicate.is_int(1) || !b.allocs.is_empty() {
            return None;
        }
        let loops = sch.get_loops(block).ok()?;
        let mut axes = Vec::new();
        for (k, l) in loops.iter().enumerate() {
            let f = sch.get_loop(l).ok()?;
            let inside = match &f.body {
                Stmt::For(inner) => loops.get(k + 1).is_some_and(|n| *n.var() == inner.var),
                Stmt::Block(inner) => k + 1 == loops.len() && inner.name == b.name,
                _ => false,
            };
            let plain = f.kind == ForKind::Serial && f.min.is_int(0) && inside;
            let mut driven = b.iters.iter().filter(|i| free_vars(&i.binding).contains(l.var()));
            let iter = driven.next()?;
            let same = iter.binding.as_var() == Some(l.var()) && iter.dom.min.is_int(0) && iter.dom.extent == f.extent;
            if !plain || !same || driven.next().is_some() {
                return None;
            }
            let extent = f.extent.as_int();
            axes.push(Axis { l: l.clone(), iter: iter.var.clone(), kind: iter.kind, extent, size: f.extent.clone() });
        }
        let rest = b.iters.iter().filter(|i| axes.iter().all(|a| a.iter != i.var)).count();
        if rest > 0 {
            return None;
        }
        let analyzer = sch.analyzer();
        let accesses = movements(b, &axes, &analyzer);
        Some(Nest { axes, accesses })
    }

    /// The buffer that the block writes.
    pub(super) fn output(&self) -> Option<&Buffer> {
        self.accesses.iter().find(|a| a.write).map(|a| &a.buffer)
    }

    /// The loads of other buffers than the output.
    pub(super) fn operands(&self) -> impl Iterator<Item = &Moves> {
        let output = self.output().cloned();
        self.accesses.iter().filter(move |a| !a.write && Some(&a.buffer) != output.as_ref())
    }

    /// Whether, along the axis of a loop's name, one operand moves to the next element and another stays.
    pub(super) fn streams_one_operand(&self, name: &Name) -> bool {
        let axis = self.axes.iter().position(|a| a.l.var().name() == name);
        let moves = |s: Step| axis.is_some_and(|k| self.operands().any(|a| a.steps[k] == s));
        moves(Step::Next) && moves(Step::Still)
    }

    /// Positions of the axes of a kind.
    pub(super) fn of_kind(&self, kind: IterKind) -> Vec<usize> {
        (0..self.axes.len()).filter(|k| self.axes[*k].kind == kind).collect()
    }
}

fn movements(b: &Block, axes: &[Axis], analyzer: &Analyzer) -> Vec<Moves> {
    accesses(&b.body)
        .into_iter()
        .map(|a| {
            let steps = axes.iter().map(|x| step(&a.buffer, &a.indices, &x.iter, analyzer)).collect();
            let compact = a.buffer.strides.is_empty() && a.buffer.elem_offset.is_none();
            let plain =
                a.indices.len() == axes.len() && a.indices.iter().zip(axes).all(|(i, x)| i.as_var() == Some(&x.iter));
            let full = a.buffer.shape.iter().zip(&b.iters).all(|(s, i)| *s == i.dom.extent);
            Moves { buffer: a.buffer, write: a.write, indices: a.indices, steps, whole: compact && plain && full }
        })
        .collect()
}

fn step(buffer: &Buffer, indices: &[PrimExpr], iter: &Var, analyzer: &Analyzer) -> Step {
    if indices.iter().all(|i| !free_vars(i).contains(iter)) {
        return Step::Still;
    }
    let Some((last, outer)) = indices.split_last() else { return Step::Still };
    let unit = buffer.strides.last().is_none_or(|s| s.is_int(1));
    if !unit || outer.iter().any(|i| free_vars(i).contains(iter)) {
        return if stride(buffer, indices, iter, analyzer).is_some_and(|s| s.is_int(1)) {
            Step::Next
        } else {
            Step::Far
        };
    }
    // The iterator's range is forgotten: a range of one value would hide the step.
    let free = Var::new("x", iter.dtype());
    let at = |e: PrimExpr| Substitution::var(iter, e).apply(last);
    let next = at(free.expr() + PrimExpr::int(iter.dtype(), 1)) - at(free.expr());
    match analyzer.simplify(&next).as_int() {
        Some(1) => Step::Next,
        Some(2..=4) => Step::Strided,
        _ => Step::Far,
    }
}

/// Elements from one value of an iterator to the next, where that does not depend on its value.
pub(super) fn stride(buffer: &Buffer, indices: &[PrimExpr], iter: &Var, analyzer: &Analyzer) -> Option<PrimExpr> {
    let mut sum: Option<PrimExpr> = None;
    let mut size: Option<PrimExpr> = None;
    let free = Var::new("x", iter.dtype());
    for (k, index) in indices.iter().enumerate().rev() {
        let by = match buffer.strides.get(k) {
            Some(s) => Some(s.clone()),
            None => size.clone(),
        };
        if free_vars(index).contains(iter) {
            let at = |e: PrimExpr| Substitution::var(iter, e).apply(index);
            let step = analyzer.simplify(&(at(free.expr() + PrimExpr::int(iter.dtype(), 1)) - at(free.expr())));
            if free_vars(&step).contains(&free) {
                return None;
            }
            let step = by.map_or(step.clone(), |by| step * by.cast(index.dtype()));
            sum = Some(sum.map_or(step.clone(), |s| s + step));
        }
        let extent = buffer.shape.get(k)?;
        size = Some(size.map_or(extent.clone(), |s| s * extent));
    }
    sum.map(|s| analyzer.simplify(&s))
}
