//! `decompose_reduction`

use super::{BlockRV, LoopRV, Schedule};
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, Substitution, free_vars};
use tvm_ir::tir::{Block, For, IterKind, IterVar, Region, Stmt, access_regions, substitute_stmt};

impl Schedule {
    /// Takes the init out of a reduction block: it becomes a block `…_init` under copies of the spatial loops from
    /// `at` inwards, directly before the loop `at`. Errs when the block has no init, when a loop outside of `at`
    /// reduces, or when a spatial loop's extent depends on a reduction loop. Returns the new block.
    pub fn decompose_reduction(&mut self, block: &BlockRV, at: &LoopRV) -> Result<BlockRV, Diag> {
        let (b, loops) = self.block_and_loops(block)?;
        let Some(init) = b.init.clone() else {
            return Err(self.error(format!("block {block} has no init")));
        };
        let Some(start) = loops.iter().position(|l| l.var == at.0) else {
            return Err(self.error(format!("loop {at} is not around block {block}")));
        };
        let used = |l: &For, spatial: bool| {
            b.iters.iter().any(|i| (i.kind == IterKind::Spatial) == spatial && free_vars(&i.binding).contains(&l.var))
        };
        if let Some(l) = loops[..start].iter().find(|l| used(l, false)) {
            return Err(self.error(format!("loop {} reduces for block {block} outside of loop {at}", l.var.name())));
        }
        let copied: Vec<For> = loops[start..].iter().filter(|l| used(l, true)).map(|l| (*l).clone()).collect();
        let dropped: Vec<_> = loops[start..].iter().filter(|l| !used(l, true)).map(|l| l.var.clone()).collect();
        let depends = |e: &PrimExpr| free_vars(e).iter().any(|v| dropped.contains(v));
        let bad = copied.iter().find(|l| depends(&l.min) || depends(&l.extent));
        if let Some(l) = bad {
            return Err(self.error(format!("the range of loop {} depends on a reduction loop", l.var.name())));
        }
        if depends(&b.predicate) {
            return Err(self.error(format!("the predicate of block {block} depends on a reduction loop")));
        }
        let b = b.clone();
        let analyzer = self.analyzer();
        let name = self.names.fresh_underscore(&format!("{}_init", b.name));
        let mut loop_vars = Substitution::default();
        let fresh: Vec<_> = copied
            .iter()
            .map(|l| {
                let var = l.var.copy();
                loop_vars.vars.insert(l.var.clone(), var.expr());
                var
            })
            .collect();
        let mut iter_vars = Substitution::default();
        let iters = b.iters.iter().filter(|i| i.kind == IterKind::Spatial).map(|i| {
            let var = i.var.copy();
            iter_vars.vars.insert(i.var.clone(), var.expr());
            IterVar { var, dom: i.dom.clone(), kind: i.kind, binding: loop_vars.apply(&i.binding) }
        });
        let iters: Vec<_> = iters.collect();
        let body = substitute_stmt(crate::tir_tools::freshen(&init), &iter_vars);
        let (reads, writes) = access_regions(None, &body, &analyzer);
        let init_block = Block {
            name: name.clone(),
            iters,
            predicate: loop_vars.apply(&b.predicate),
            reads,
            writes,
            annotations: Default::default(),
            ..Block::root(Vec::new(), body)
        };
        let nest = copied.into_iter().zip(fresh).rev().fold(Stmt::Block(Box::new(init_block)), |body, (l, var)| {
            let (min, extent) = (loop_vars.apply(&l.min), loop_vars.apply(&l.extent));
            Stmt::For(Box::new(For { var, min, extent, body, ..l }))
        });
        self.replace_block(block, &mut |mut u| {
            u.init = None;
            // Without an init the accumulator is read like any other buffer.
            let accumulators: Vec<Region> =
                u.writes.iter().filter(|w| u.reads.iter().all(|r| r.buffer != w.buffer)).cloned().collect();
            u.reads.splice(0..0, accumulators);
            Ok(Stmt::Block(Box::new(u)))
        })?;
        self.replace_loop(at, &mut |l| Ok(Stmt::seq([nest.clone(), Stmt::For(Box::new(l))])))?;
        Ok(BlockRV(name))
    }
}
