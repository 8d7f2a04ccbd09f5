//! Inlining of injective producers, before the rules look at blocks.

use crate::schedule::{BlockRV, Schedule};
use tvm_ir::prim::{Buffer, Intrinsic, PrimExpr, PrimKind, visit};
use tvm_ir::tir::{Block, Stmt, Store};

/// Inlines every block that stores one injective value into elementwise consumers: whatever it computes when there is
/// one consumer that reads it once, cheap arithmetic otherwise. Consumers that reduce keep their inputs in memory,
/// unless these are copies.
pub(super) fn inline_injective(sch: &mut Schedule) {
    for block in sch.blocks() {
        if worth_it(sch, &block) {
            // What cannot be inlined stays as it is.
            let mut attempt = sch.clone();
            if attempt.compute_inline(&block).is_ok() {
                *sch = attempt;
            }
        }
    }
}

fn worth_it(sch: &Schedule, block: &BlockRV) -> bool {
    let Ok(b) = sch.block(block) else { return false };
    let Stmt::Store(store) = &b.body else { return false };
    let mut readers = 0;
    let mut reads = 0;
    for other in sch.blocks() {
        let Ok(o) = sch.block(&other) else { return false };
        let n = loads(o, &store.buffer);
        if n > 0 {
            if (o.init.is_some() && !is_copy(store)) || o.writes.iter().any(|w| w.buffer == store.buffer) {
                return false;
            }
            readers += 1;
            reads += n;
        }
    }
    readers > 0 && ((readers == 1 && reads == 1) || is_cheap(&store.value))
}

/// Whether a store copies the element of the same place.
fn is_copy(store: &Store) -> bool {
    matches!(store.value.kind(), PrimKind::Load(_, indices) if *indices == store.indices)
}

fn loads(b: &Block, buffer: &Buffer) -> usize {
    let mut n = 0;
    tvm_ir::tir::visit_exprs(&b.body, &mut |e| {
        n += usize::from(matches!(e.kind(), PrimKind::Load(x, _) if x == buffer))
    });
    n
}

/// A few operations without function calls, divisions and lookups by loaded indices.
fn is_cheap(e: &PrimExpr) -> bool {
    let mut cost = 0;
    visit(e, &mut |e| {
        cost += match e.kind() {
            PrimKind::Call(Intrinsic::IfThenElse | Intrinsic::Likely | Intrinsic::Abs, _) => 1,
            PrimKind::Call(..) | PrimKind::CallExtern(..) => 100,
            PrimKind::Binary(op, ..) if is_division(*op) && e.dtype().is_float() => 10,
            PrimKind::Binary(..) if e.dtype().is_float() => 1,
            PrimKind::Load(..) => 1,
            _ => 0,
        }
    });
    cost <= 8
}

fn is_division(op: tvm_ir::prim::BinOp) -> bool {
    use tvm_ir::prim::BinOp;
    matches!(op, BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod)
}
