//! `split`

use super::edit::leaf_blocks;
use super::{BlockRV, LoopRV, Schedule};
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, Substitution, Var, free_vars};
use tvm_ir::tir::{For, ForKind, IterKind, Stmt, substitute_stmt};

/// What becomes of the iterations that a split's factor leaves over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// The last inner loop is shorter: its extent is `min(factor, extent - outer * factor)`, without a predicate.
    Shrink,
    /// The last inner loop starts earlier, so that it is whole too: some iterations run twice. Only for an extent of
    /// at least the factor, over blocks that give the same when they run again.
    Shift,
}

impl Schedule {
    /// Splits a serial loop that starts at 0 into an outer loop and an inner one of `factor` iterations; `tail` says
    /// what happens when the factor does not divide the extent. Errs on a factor below 1, and where the tail is not
    /// possible.
    pub fn split(&mut self, l: &LoopRV, factor: i64, tail: Tail) -> Result<[LoopRV; 2], Diag> {
        if factor < 1 {
            return Err(self.error(format!("loop {l} cannot be split by {factor}")));
        }
        let f = self.get_loop(l)?;
        if f.kind != ForKind::Serial || !f.min.is_int(0) {
            return Err(self.error(format!("only a serial loop from 0 can be split, loop {l} is {:?}", f.kind)));
        }
        let analyzer = self.analyzer();
        let name = l.0.name().clone();
        let outer = Var::new(format!("{name}_0"), l.0.dtype());
        let inner = Var::new(format!("{name}_1"), l.0.dtype());
        let int = |v: i64| PrimExpr::int(l.0.dtype(), v);
        let by = int(factor);
        let extent = f.extent.clone();
        let outer_extent = analyzer.simplify(&(&extent + int(factor - 1)).floordiv(by.clone()));
        let divides = analyzer.prove(&extent.clone().floormod(by.clone()).eq(int(0)));
        let start = outer.expr() * &by;
        let (start, inner_extent) = match tail {
            _ if divides => (start, by),
            Tail::Shift => {
                self.check_repeatable(l, factor)?;
                (start.min(&extent - &by), by)
            }
            Tail::Shrink if outer_extent.is_int(1) => (start, extent),
            Tail::Shrink => (start.clone(), by.min(&extent - start)),
        };
        self.replace_loop(l, &mut |f| {
            let body = substitute_stmt(f.body, &Substitution::var(&l.0, &start + inner.expr()));
            let inner_loop = Stmt::For(Box::new(For { body, ..serial(&inner, inner_extent.clone()) }));
            let annotations = f.annotations;
            Ok(Stmt::For(Box::new(For { body: inner_loop, annotations, ..serial(&outer, outer_extent.clone()) })))
        })?;
        Ok([LoopRV(outer), LoopRV(inner)])
    }

    /// Iterations of the loop may run again in any later place: there is a whole inner loop, sums inside start anew,
    /// and no block reads what it or another block inside writes, sums aside.
    fn check_repeatable(&self, l: &LoopRV, factor: i64) -> Result<(), Diag> {
        let f = self.get_loop(l)?;
        let enough = self.analyzer().prove(&f.extent.clone().ge(PrimExpr::int(l.0.dtype(), factor)));
        if !enough {
            return Err(self.error(format!("loop {l} is not known to have {factor} iterations")));
        }
        let blocks = leaf_blocks(&f.body);
        for b in &blocks {
            let (_, loops) = self.block_and_loops(&BlockRV(b.name.clone()))?;
            let around: Vec<_> = loops.iter().map(|x| &x.var).take_while(|v| **v != l.0).chain([&l.0]).collect();
            let outside = b
                .iters
                .iter()
                .find(|i| i.kind != IterKind::Spatial && free_vars(&i.binding).iter().any(|v| around.contains(&v)));
            if let Some(i) = outside {
                return Err(self.error(format!("block {} sums over {} outside of loop {l}", b.name, i.var.name())));
            }
            let sums = b.iters.iter().any(|i| i.kind == IterKind::Reduce);
            if sums && b.init.is_none() {
                return Err(self.error(format!("block {} in loop {l} has no init to start anew with", b.name)));
            }
            let read = b.reads.iter().find(|r| blocks.iter().any(|o| o.writes.iter().any(|w| w.buffer == r.buffer)));
            if let Some(r) = read {
                return Err(self
                    .error(format!("block {} in loop {l} reads {}, which is written inside", b.name, r.buffer.name)));
            }
        }
        Ok(())
    }
}

/// A serial loop without a body.
pub(super) fn serial(var: &Var, extent: PrimExpr) -> For {
    For {
        var: var.clone(),
        min: PrimExpr::int(var.dtype(), 0),
        extent,
        kind: ForKind::Serial,
        annotations: Default::default(),
        body: Stmt::Seq(Vec::new()),
        span: Default::default(),
    }
}
