//! `cache_write`

use super::split::serial;
use super::{BlockRV, Schedule};
use crate::tir_tools::accesses;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{Buffer, BufferNode, PrimExpr, Range, Scope, Substitution, Var};
use tvm_ir::tir::{Block, For, IterKind, IterVar, Region, Stmt, substitute_stmt};

impl Schedule {
    /// Lets a block write a new buffer of the given scope; a copy block after the block's nest writes the original.
    /// Errs unless the block is the buffer's only writer and writes every element, at plain iterators. Returns the
    /// copy block.
    pub fn cache_write(&mut self, block: &BlockRV, index: usize, scope: Scope) -> Result<BlockRV, Diag> {
        let old = self.written_buffer(block, index)?;
        let b = self.block(block)?;
        for a in accesses(&Stmt::Block(Box::new(b.clone()))).iter().filter(|a| a.write && a.buffer == old) {
            let whole = a.indices.iter().zip(&old.shape).all(|(i, extent)| {
                let iter = b.iters.iter().find(|v| i.as_var() == Some(&v.var));
                iter.is_some_and(|v| v.dom.min.is_int(0) && v.dom.extent == *extent)
                    || (i.is_int(0) && extent.is_int(1))
            });
            if !whole {
                return Err(self.error(format!("block {block} does not write all of {}", old.name)));
            }
        }
        let others = self.blocks().into_iter().filter(|o| o != block);
        for other in others {
            if self.block(&other)?.writes.iter().any(|w| w.buffer == old) {
                return Err(self.error(format!("block {other} writes {} too", old.name)));
            }
        }
        let new = Buffer::from_node(BufferNode {
            name: format!("{}_{}", old.name, scope.as_str()).into(),
            scope,
            strides: Vec::new(),
            elem_offset: None,
            ..old.node().clone()
        });
        let copy_name = self.names.fresh_underscore(&new.name);
        let copy = copy_nest(&copy_name, &new, &old);
        let sub = Substitution { buffers: vec![(old.clone(), new.clone())], ..Default::default() };
        self.replace_block(block, &mut |b| Ok(substitute_stmt(Stmt::Block(Box::new(b)), &sub)))?;
        self.insert_after_nest(block, copy)?;
        self.allocate(new)?;
        Ok(BlockRV(copy_name))
    }

    /// Allocates a buffer in the root block.
    pub(super) fn allocate(&mut self, buffer: Buffer) -> Result<(), Diag> {
        match &mut self.func.body {
            Stmt::Block(b) if b.iters.is_empty() => b.allocs.push(buffer),
            _ => return Err(self.error("the function has no root block")),
        }
        Ok(())
    }

    /// Puts a statement after the outermost loop around a block.
    pub(super) fn insert_after_nest(&mut self, block: &BlockRV, s: Stmt) -> Result<(), Diag> {
        match self.get_loops(block)?.first().cloned() {
            Some(top) => self.replace_loop(&top, &mut |l| Ok(Stmt::seq([Stmt::For(Box::new(l)), s.clone()]))),
            None => self.replace_block(block, &mut |b| Ok(Stmt::seq([Stmt::Block(Box::new(b)), s.clone()]))),
        }
    }
}

/// `to[v] = from[v]` over all elements.
fn copy_nest(name: &tvm_ir::name::Name, from: &Buffer, to: &Buffer) -> Stmt {
    let axes: Vec<(Var, Var)> = (to.shape.iter().enumerate())
        .map(|(k, e)| (Var::new(format!("ax{k}"), e.dtype()), Var::new(format!("v{k}"), e.dtype())))
        .collect();
    let at: Vec<PrimExpr> = axes.iter().map(|(_, v)| v.expr()).collect();
    let region = |b: &Buffer| Region { buffer: b.clone(), ranges: at.iter().cloned().map(Range::point).collect() };
    let iters = axes.iter().zip(&to.shape).map(|((l, v), extent)| IterVar {
        var: v.clone(),
        dom: Range::to(extent.clone()),
        kind: IterKind::Spatial,
        binding: l.expr(),
    });
    let block = Block {
        name: name.clone(),
        iters: iters.collect(),
        reads: vec![region(from)],
        writes: vec![region(to)],
        ..Block::root(Vec::new(), Stmt::store(to, at.clone(), PrimExpr::load(from, at.clone())))
    };
    axes.iter().zip(&to.shape).rev().fold(Stmt::Block(Box::new(block)), |body, ((l, _), extent)| {
        Stmt::For(Box::new(For { body, ..serial(l, extent.clone()) }))
    })
}
