//! `reverse_compute_at`

use super::edit::leaf_blocks;
use super::split::serial;
use super::{BlockRV, LoopRV, Schedule};
use crate::tir_tools::{RunningLoops, accesses};
use tvm_ir::diag::Diag;
use tvm_ir::prim::{Buffer, PrimExpr, Range, Substitution, Var, free_vars};
use tvm_ir::tir::{Block, For, IterKind, Stmt, visit_stmt};

impl Schedule {
    /// Moves a block to the end of the body of a loop around its producer, over new loops that cover just what an
    /// iteration of that loop produces. Returns the new loops, one an iterator of the block.
    ///
    /// Errs unless the block is spatial, reads one buffer written inside of the loop at plain iterators, each
    /// iteration of the loop completes its elements, and no statement in between touches what the block accesses.
    pub fn reverse_compute_at(&mut self, block: &BlockRV, at: &LoopRV) -> Result<Vec<LoopRV>, Diag> {
        let b = self.block(block)?.clone();
        let analyzer = self.analyzer();
        let no = |why: String| self.error(format!("block {block} cannot be moved into loop {at}: {why}"));
        if b.init.is_some() || b.iters.iter().any(|i| i.kind != IterKind::Spatial) || !b.predicate.is_int(1) {
            return Err(no("it reduces or has a predicate".into()));
        }
        let target = self.get_loop(at)?;
        let producers: Vec<&Block> = leaf_blocks(&target.body)
            .into_iter()
            .filter(|p| p.writes.iter().any(|w| b.reads.iter().any(|r| r.buffer == w.buffer)))
            .collect();
        let [producer] = producers.as_slice() else {
            return Err(no(format!("it reads from {} blocks inside of the loop", producers.len())));
        };
        let buffer = producer.writes.iter().find(|w| b.reads.iter().any(|r| r.buffer == w.buffer));
        let Some(buffer) = buffer.map(|w| w.buffer.clone()) else { return Err(no("it reads nothing".into())) };
        self.check_complete(producer, at, &no)?;
        self.check_between(block, producer, &no)?;
        let written = written_region(producer, &buffer, &RunningLoops::of_stmt(&target.body, &analyzer))
            .ok_or_else(|| no(format!("what an iteration writes of {} is not known", buffer.name)))?;
        let dims = read_dims(&b, &buffer)
            .ok_or_else(|| no(format!("it does not read {} at plain iterators over all of it", buffer.name)))?;
        let mut moved = b;
        let mut loops = Vec::new();
        for i in &mut moved.iters {
            let range = match dims.iter().position(|d| d.as_ref() == Some(&i.var)) {
                Some(d) => written[d].clone(),
                None => i.dom.clone(),
            };
            let var = Var::new(i.var.name().strip_prefix("v_").unwrap_or(i.var.name()), i.var.dtype());
            i.binding = analyzer.simplify(&(&range.min + var.expr()));
            loops.push((var, range.extent));
        }
        let vars = loops.iter().map(|(v, _)| LoopRV(v.clone())).collect();
        let nest = loops.into_iter().rev().fold(Stmt::Block(Box::new(moved)), |body, (var, extent)| {
            Stmt::For(Box::new(For { body, ..serial(&var, extent) }))
        });
        self.func.body = self.removed_nest(block)?;
        self.replace_loop(at, &mut |mut l| {
            let body = std::mem::replace(&mut l.body, Stmt::Seq(Vec::new()));
            l.body = Stmt::seq([body, nest.clone()]);
            Ok(Stmt::For(Box::new(l)))
        })?;
        Ok(vars)
    }

    /// No loop from `at` outwards reduces for the producer.
    fn check_complete(&self, producer: &Block, at: &LoopRV, no: &dyn Fn(String) -> Diag) -> Result<(), Diag> {
        let (_, loops) = self.block_and_loops(&BlockRV(producer.name.clone()))?;
        for l in loops {
            let reduces =
                producer.iters.iter().find(|i| i.kind != IterKind::Spatial && free_vars(&i.binding).contains(&l.var));
            if let Some(i) = reduces {
                return Err(no(format!(
                    "loop {} reduces for {} of block {}, whose elements are not complete inside of it",
                    l.var.name(),
                    i.var.name(),
                    producer.name
                )));
            }
            if l.var == at.0 {
                break;
            }
        }
        Ok(())
    }

    /// Nothing after the producer and before the block touches what the block accesses, other than to read what it
    /// reads, and nothing around or beside writes the producer's buffer.
    fn check_between(&self, block: &BlockRV, producer: &Block, no: &dyn Fn(String) -> Diag) -> Result<(), Diag> {
        let moved = self.block(block)?;
        let writes: Vec<&Buffer> = moved.writes.iter().map(|r| &r.buffer).collect();
        let reads: Vec<&Buffer> = moved.reads.iter().map(|r| &r.buffer).collect();
        let mut plain = true;
        visit_stmt(&self.func.body, &mut |s| plain &= !matches!(s, Stmt::While(_) | Stmt::If(_)));
        if !plain {
            return Err(no("the function branches".into()));
        }
        let mut between = false;
        for other in leaf_blocks(&self.func.body) {
            if other.name == producer.name {
                between = true;
            } else if other.name == moved.name {
                return if between { Ok(()) } else { Err(no(format!("it stands before {}", producer.name))) };
            } else if between {
                let conflict = other
                    .writes
                    .iter()
                    .find(|w| writes.contains(&&w.buffer) || reads.contains(&&w.buffer))
                    .or_else(|| other.reads.iter().find(|r| writes.contains(&&r.buffer)));
                if let Some(r) = conflict {
                    return Err(no(format!("block {} in between accesses {}", other.name, r.buffer.name)));
                }
            }
        }
        Err(no("it is gone".into()))
    }
}

/// What the block writes of a buffer while the loops run, a range a dimension.
fn written_region(b: &Block, buffer: &Buffer, loops: &RunningLoops) -> Option<Vec<Range>> {
    let bind = Substitution {
        vars: b.iters.iter().map(|i| (i.var.clone(), i.binding.clone())).collect(),
        ..Default::default()
    };
    let mut store: Option<Vec<PrimExpr>> = None;
    for a in accesses(&b.body).into_iter().filter(|a| a.write && a.buffer == *buffer) {
        match &store {
            Some(first) if *first != a.indices => return None,
            _ => store = Some(a.indices),
        }
    }
    store?.iter().map(|i| loops.cover(&bind.apply(i))).collect()
}

/// The iterator that indexes each dimension where the block reads the buffer; `None` inside for dimensions of extent 1.
/// `None` when reads differ or are not at iterators over the whole dimension.
fn read_dims(b: &Block, buffer: &Buffer) -> Option<Vec<Option<Var>>> {
    let mut found: Option<Vec<Option<Var>>> = None;
    for a in accesses(&b.body).into_iter().filter(|a| !a.write && a.buffer == *buffer) {
        let mut dims: Vec<Option<Var>> = Vec::new();
        for (i, extent) in a.indices.iter().zip(&buffer.shape) {
            let iter = b.iters.iter().find(|v| i.as_var() == Some(&v.var));
            match iter {
                Some(v) if v.dom.min.is_int(0) && v.dom.extent == *extent && !dims.contains(&Some(v.var.clone())) => {
                    dims.push(Some(v.var.clone()));
                }
                None if i.is_int(0) && extent.is_int(1) => dims.push(None),
                _ => return None,
            }
        }
        match &found {
            Some(first) if *first != dims => return None,
            _ => found = Some(dims),
        }
    }
    found
}
