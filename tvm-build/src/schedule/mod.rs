//! Schedules: a PrimFunc under transformation, with handles for its blocks and loops (TVM's `tir.Schedule`).
//!
//! Every primitive checks its preconditions and keeps what the function computes; an error names the block and the
//! loop and leaves the function as it was. One file a primitive.

mod cache_write;
mod compute_inline;
mod decompose_reduction;
mod edit;
mod fuse;
mod loop_kind;
mod loop_partition;
mod reorder;
mod reverse_compute_at;
mod rfactor;
pub mod rules;
mod set_scope;
mod split;

pub(crate) use rfactor::Update;
pub use split::Tail;

use crate::passes::tir::plan_allocation;
use crate::tir_tools::analyzer_of;
use std::fmt;
use tvm_ir::arith::Analyzer;
use tvm_ir::diag::Diag;
use tvm_ir::name::{Name, NameSupply};
use tvm_ir::prim::Var;
use tvm_ir::target::Target;
use tvm_ir::tir::{Block, For, PrimFunc, Stmt, rewrite_stmt};

/// A block of a scheduled function, by its name, which is unique there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BlockRV(Name);

impl fmt::Display for BlockRV {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A loop of a scheduled function, by its variable.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LoopRV(Var);

impl LoopRV {
    /// The loop's variable.
    pub fn var(&self) -> &Var {
        &self.0
    }
}

impl fmt::Display for LoopRV {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.name().fmt(f)
    }
}

/// A function under transformation.
#[derive(Clone, Debug)]
pub struct Schedule {
    func: PrimFunc,
    names: NameSupply,
}

impl Schedule {
    /// Starts on a function; blocks whose name is taken by an earlier one get `_1`, `_2`, …
    pub fn new(mut func: PrimFunc) -> Schedule {
        let mut names = NameSupply::new();
        names.reserve("root");
        func.body = unique_block_names(func.body, &mut names);
        Schedule { func, names }
    }

    /// The function as it is now.
    pub fn func(&self) -> &PrimFunc {
        &self.func
    }

    /// The scheduled function.
    pub fn into_func(self) -> PrimFunc {
        self.func
    }

    /// The blocks that compute, in program order.
    pub fn blocks(&self) -> Vec<BlockRV> {
        edit::leaf_blocks(&self.func.body).into_iter().map(|b| BlockRV(b.name.clone())).collect()
    }

    /// The block of a name. Errs when there is none.
    pub fn get_block(&self, name: &str) -> Result<BlockRV, Diag> {
        let found = edit::find_block(&self.func.body, name);
        found.map(|(b, _)| BlockRV(b.name.clone())).ok_or_else(|| self.error(format!("there is no block {name}")))
    }

    /// A block as it is now.
    pub fn block(&self, block: &BlockRV) -> Result<&Block, Diag> {
        self.block_and_loops(block).map(|(b, _)| b)
    }

    /// The loops around a block, outermost first.
    pub fn get_loops(&self, block: &BlockRV) -> Result<Vec<LoopRV>, Diag> {
        Ok(self.block_and_loops(block)?.1.into_iter().map(|l| LoopRV(l.var.clone())).collect())
    }

    /// A loop as it is now.
    pub fn get_loop(&self, l: &LoopRV) -> Result<&For, Diag> {
        edit::find_loop(&self.func.body, &l.0).ok_or_else(|| self.error(format!("there is no loop {l} any more")))
    }

    /// Moves every allocation to the innermost place that covers its accesses (`PlanAndUpdateBufferAllocationLocation`).
    pub fn plan_allocations(&mut self) -> Result<(), Diag> {
        self.func = plan_allocation(self.func.clone(), &Target::default())?;
        Ok(())
    }

    fn block_and_loops(&self, block: &BlockRV) -> Result<(&Block, Vec<&For>), Diag> {
        edit::find_block(&self.func.body, &block.0)
            .ok_or_else(|| self.error(format!("there is no block {block} any more")))
    }

    /// An analyzer that knows the ranges of all loops and block iterators.
    pub(crate) fn analyzer(&self) -> Analyzer {
        analyzer_of(&self.func)
    }

    fn error(&self, message: impl Into<String>) -> Diag {
        Diag::error(self.func.span, message)
    }

    /// Replaces the loop of a variable.
    fn replace_loop(&mut self, l: &LoopRV, edit: &mut dyn FnMut(For) -> Result<Stmt, Diag>) -> Result<(), Diag> {
        self.get_loop(l)?;
        let body = self.func.body.clone();
        self.func.body = edit::replace(body, &|s| edit::is_loop(s, &l.0), &mut |s| match s {
            Stmt::For(f) => edit(*f),
            other => Ok(other),
        })?;
        Ok(())
    }

    /// Replaces a block.
    fn replace_block(&mut self, b: &BlockRV, edit: &mut dyn FnMut(Block) -> Result<Stmt, Diag>) -> Result<(), Diag> {
        self.block(b)?;
        let body = self.func.body.clone();
        self.func.body = edit::replace(body, &|s| matches!(s, Stmt::Block(x) if x.name == b.0), &mut |s| match s {
            Stmt::Block(b) => edit(*b),
            other => Ok(other),
        })?;
        Ok(())
    }

    /// A copy of a statement with binders and block names of its own.
    fn copy_stmt(&mut self, s: &Stmt) -> Stmt {
        unique_block_names(crate::tir_tools::freshen(s), &mut self.names)
    }
}

/// Gives every block but the root and mere allocation blocks a name that the supply has not given.
fn unique_block_names(s: Stmt, names: &mut NameSupply) -> Stmt {
    rewrite_stmt(s, &mut |s| match s {
        Stmt::Block(mut b) if edit::is_leaf(&b) => {
            b.name = names.fresh_underscore(&b.name);
            Stmt::Block(b)
        }
        other => other,
    })
}

#[cfg(test)]
mod tests;
