//! `reorder`

use super::edit::leaf_blocks;
use super::{LoopRV, Schedule};
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, free_vars};
use tvm_ir::tir::{For, IterKind, Stmt};

impl Schedule {
    /// Puts loops of one perfect nest in the given order; loops of the nest that are not named keep their places.
    /// Errs when the loops are not nested perfectly, hold other than one block of spatial and reduction iterators, or
    /// when the extent of a loop depends on one that would come to lie inside of it.
    pub fn reorder(&mut self, order: &[LoopRV]) -> Result<(), Diag> {
        let mut listed = order.to_vec();
        listed.sort();
        listed.dedup();
        if listed.len() != order.len() {
            return Err(self.error("a loop is named twice in reorder"));
        }
        let depth = |s: &Schedule, l: &LoopRV| s.get_loop(l).map(|f| leaf_depth(&f.body));
        let mut outermost: Option<(usize, LoopRV)> = None;
        for l in order {
            let d = depth(self, l)?;
            if outermost.as_ref().is_none_or(|(best, _)| d > *best) {
                outermost = Some((d, l.clone()));
            }
        }
        let Some((_, top)) = outermost else { return Ok(()) };
        let chain = self.chain(&top, order)?;
        let mut next = order.iter();
        let mut new_order = Vec::new();
        for l in &chain {
            let pick = if order.contains(l) { next.next() } else { Some(l) };
            new_order.extend(pick.cloned());
        }
        self.check_bounds(&new_order)?;
        let mut loops = Vec::new();
        for l in &new_order {
            loops.push(self.get_loop(l)?.clone());
        }
        let last = chain.last().cloned().unwrap_or_else(|| top.clone());
        let inner = self.get_loop(&last)?.body.clone();
        let nest = loops.into_iter().rev().fold(inner, |body, l| Stmt::For(Box::new(For { body, ..l })));
        self.replace_loop(&top, &mut |_| Ok(nest.clone()))
    }

    /// The loops from `top` down to the innermost of `wanted`, each alone in the one around.
    fn chain(&self, top: &LoopRV, wanted: &[LoopRV]) -> Result<Vec<LoopRV>, Diag> {
        let mut out = Vec::new();
        let mut left = wanted.len();
        let mut f = self.get_loop(top)?;
        loop {
            let l = LoopRV(f.var.clone());
            left -= usize::from(wanted.contains(&l));
            out.push(l);
            if left == 0 {
                break;
            }
            match &f.body {
                Stmt::For(inner) => f = inner,
                _ => {
                    let missing = wanted.iter().find(|w| !out.contains(w)).unwrap_or(top);
                    return Err(self.error(format!("loop {missing} is not perfectly nested in loop {top}")));
                }
            }
        }
        let blocks = leaf_blocks(&f.body);
        let [block] = blocks.as_slice() else {
            return Err(self.error(format!("loop {top} holds {} blocks; reorder needs one", blocks.len())));
        };
        let bad = block.iters.iter().find(|i| !matches!(i.kind, IterKind::Spatial | IterKind::Reduce));
        if let Some(i) = bad {
            return Err(self.error(format!("iterator {} of block {} is {:?}", i.var.name(), block.name, i.kind)));
        }
        Ok(out)
    }

    fn check_bounds(&self, order: &[LoopRV]) -> Result<(), Diag> {
        for (k, l) in order.iter().enumerate() {
            let f = self.get_loop(l)?;
            let uses = |e: &PrimExpr, v: &LoopRV| free_vars(e).contains(&v.0);
            if let Some(inner) = order[k + 1..].iter().find(|v| uses(&f.min, v) || uses(&f.extent, v)) {
                return Err(
                    self.error(format!("the range of loop {l} depends on loop {inner}, which would lie inside of it"))
                );
            }
        }
        Ok(())
    }
}

/// Number of loops on the longest way down.
fn leaf_depth(s: &Stmt) -> usize {
    let below = s.children().into_iter().map(leaf_depth).max().unwrap_or(0);
    below + usize::from(matches!(s, Stmt::For(_)))
}
