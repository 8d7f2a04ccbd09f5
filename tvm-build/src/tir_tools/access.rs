//! Which buffers a statement reads and writes.

use tvm_ir::prim::{Buffer, PrimExpr, PrimKind, visit};
use tvm_ir::tir::{Stmt, visit_exprs, visit_stmt};

/// One access of an element (or vector) of a buffer.
#[derive(Clone, Debug)]
pub struct Access {
    /// The buffer.
    pub buffer: Buffer,
    /// One index a dimension.
    pub indices: Vec<PrimExpr>,
    /// A store, not a load.
    pub write: bool,
}

/// Every load and store of a statement in program order of the statements (a store's loads come before it).
/// Regions declared by blocks are not accesses.
pub fn accesses(s: &Stmt) -> Vec<Access> {
    let mut out = Vec::new();
    visit_stmt(s, &mut |s| {
        let exprs = match s {
            Stmt::Block(b) => b.iters.iter().map(|i| &i.binding).chain(std::iter::once(&b.predicate)).collect(),
            other => other.exprs(),
        };
        for e in exprs {
            visit(e, &mut |e| {
                if let PrimKind::Load(b, i) = e.kind() {
                    out.push(Access { buffer: b.clone(), indices: i.clone(), write: false });
                }
            });
        }
        if let Stmt::Store(s) = s {
            out.push(Access { buffer: s.buffer.clone(), indices: s.indices.clone(), write: true });
        }
    });
    out
}

/// Whether a statement loads or stores a buffer.
pub fn touches(s: &Stmt, buffer: &Buffer) -> bool {
    let mut found = false;
    visit_stmt(s, &mut |s| found |= matches!(s, Stmt::Store(s) if s.buffer == *buffer));
    found || reads_buffer(s, buffer)
}

/// Whether a statement loads a buffer.
pub fn reads_buffer(s: &Stmt, buffer: &Buffer) -> bool {
    let mut found = false;
    visit_exprs(s, &mut |e| found |= matches!(e.kind(), PrimKind::Load(b, _) if b == buffer));
    found
}

/// The buffers a statement loads or stores, each once, in order of first access.
pub fn buffers_accessed(s: &Stmt) -> Vec<Buffer> {
    let mut out: Vec<Buffer> = Vec::new();
    for a in accesses(s) {
        if !out.contains(&a.buffer) {
            out.push(a.buffer);
        }
    }
    out
}
