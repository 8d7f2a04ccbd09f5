//! `set_scope`

use super::{BlockRV, Schedule};
use tvm_ir::diag::Diag;
use tvm_ir::prim::{Buffer, BufferNode, Scope, Substitution};
use tvm_ir::tir::substitute_stmt;

impl Schedule {
    /// Sets the storage scope of the buffer that a block writes at `index` of its written regions. Errs when the
    /// buffer is a parameter.
    pub fn set_scope(&mut self, block: &BlockRV, index: usize, scope: Scope) -> Result<(), Diag> {
        let old = self.written_buffer(block, index)?;
        if self.func.buffers().any(|b| *b == old) {
            return Err(self.error(format!("buffer {} of block {block} is a parameter", old.name)));
        }
        let new = Buffer::from_node(BufferNode { scope, ..old.node().clone() });
        let sub = Substitution { buffers: vec![(old, new)], ..Default::default() };
        self.func.body = substitute_stmt(self.func.body.clone(), &sub);
        Ok(())
    }

    /// The buffer of a written region of a block.
    pub(super) fn written_buffer(&self, block: &BlockRV, index: usize) -> Result<Buffer, Diag> {
        let b = self.block(block)?;
        b.writes
            .get(index)
            .map(|r| r.buffer.clone())
            .ok_or_else(|| self.error(format!("block {block} writes {} buffers, not {}", b.writes.len(), index + 1)))
    }
}
