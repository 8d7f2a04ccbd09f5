//! The elementwise block that can be computed on a reduction's tile.

use crate::schedule::{BlockRV, Schedule};
use tvm_ir::prim::Buffer;
use tvm_ir::tir::IterKind;

/// The only block that reads the reduction's allocated output, when it is spatial and stands after it; whether it can
/// be moved is for `reverse_compute_at` to say. `None`: the output is a parameter or is read otherwise.
pub(super) fn epilogue_of(sch: &Schedule, block: &BlockRV) -> Option<BlockRV> {
    let output: Buffer = sch.block(block).ok()?.writes.first()?.buffer.clone();
    if sch.func().buffers().any(|b| *b == output) {
        return None;
    }
    let mut readers = sch
        .blocks()
        .into_iter()
        .filter(|other| other != block && sch.block(other).is_ok_and(|o| o.reads.iter().any(|r| r.buffer == output)));
    let only = readers.next()?;
    if readers.next().is_some() {
        return None;
    }
    let e = sch.block(&only).ok()?;
    let spatial = e.init.is_none() && e.iters.iter().all(|i| i.kind == IterKind::Spatial);
    // A trial on a copy: the move itself knows best whether it is legal.
    let outer = sch.get_loops(block).ok()?.first()?.clone();
    (spatial && sch.clone().reverse_compute_at(&only, &outer).is_ok()).then_some(only)
}
