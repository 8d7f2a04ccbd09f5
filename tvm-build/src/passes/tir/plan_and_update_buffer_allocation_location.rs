//! PlanAndUpdateBufferAllocationLocation: see [`PASS`].

use super::each_prim_func;
use crate::pass::Pass;
use crate::tir_tools::touches;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{Buffer, free_vars};
use tvm_ir::target::Target;
use tvm_ir::tir::{Block, For, ForKind, IterKind, PrimFunc, Stmt};

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "PlanAndUpdateBufferAllocationLocation",
    doc: "allocations move to the innermost place that covers every access",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, plan_allocation),
};

/// Moves each allocation to the innermost loop body or block that covers every access of the buffer. It stays outside
/// of loops that carry its content from one iteration to the next (loops bound to reduction iterators of a writer,
/// loops whose first access reads, writers that are not blocks) and outside of vectorized loops.
/// Needs blocks with their iterators.
pub(crate) fn plan_allocation(mut f: PrimFunc, _target: &Target) -> Result<PrimFunc, Diag> {
    place(&mut f.body);
    Ok(f)
}

fn place(s: &mut Stmt) {
    if let Stmt::Block(b) = s {
        let allocs = std::mem::take(&mut b.allocs);
        for buffer in allocs {
            let in_init = b.init.as_ref().is_some_and(|i| touches(i, &buffer));
            if in_init || !sink(&mut b.body, &buffer) {
                b.allocs.push(buffer);
            }
        }
    }
    match s {
        Stmt::Seq(stmts) => stmts.iter_mut().for_each(place),
        Stmt::For(f) => place(&mut f.body),
        Stmt::Block(b) => place(&mut b.body),
        Stmt::Let(l) => place(&mut l.body),
        Stmt::If(i) => {
            place(&mut i.then);
            i.otherwise.iter_mut().for_each(place);
        }
        Stmt::While(w) => place(&mut w.body),
        Stmt::Store(_) | Stmt::Assert(_) | Stmt::Evaluate(_) => {}
    }
}

/// Allocates the buffer somewhere inside a statement that holds every access of it; false when it has to stay outside.
fn sink(s: &mut Stmt, buffer: &Buffer) -> bool {
    match s {
        Stmt::Seq(stmts) => {
            let mut users = stmts.iter_mut().filter(|s| touches(s, buffer));
            match (users.next(), users.next()) {
                (Some(only), None) => sink(only, buffer),
                _ => false,
            }
        }
        Stmt::For(l) => {
            if l.kind == ForKind::Vectorized || carries(l, buffer) {
                return false;
            }
            if !sink(&mut l.body, buffer) {
                allocate_at(&mut l.body, buffer);
            }
            true
        }
        Stmt::Block(b) => {
            let declared = b.reads.iter().chain(&b.writes).any(|r| r.buffer == *buffer);
            if declared || !b.iters.is_empty() || b.init.is_some() {
                return false;
            }
            if !sink(&mut b.body, buffer) {
                b.allocs.push(buffer.clone());
            }
            true
        }
        Stmt::Let(l) => sink(&mut l.body, buffer),
        _ => false,
    }
}

fn allocate_at(body: &mut Stmt, buffer: &Buffer) {
    match body {
        Stmt::Block(b) if b.iters.is_empty() && b.predicate.is_int(1) => b.allocs.push(buffer.clone()),
        other => {
            let inner = std::mem::replace(other, Stmt::Seq(Vec::new()));
            *other = Stmt::Block(Box::new(Block { name: "alloc".into(), ..Block::root(vec![buffer.clone()], inner) }));
        }
    }
}

/// Whether the buffer's content may outlive an iteration of a loop.
fn carries(l: &For, buffer: &Buffer) -> bool {
    let mut first = true;
    carries_stmt(&l.body, l, buffer, &mut first)
}

fn carries_stmt(s: &Stmt, l: &For, buffer: &Buffer, first: &mut bool) -> bool {
    if !touches(s, buffer) {
        return false;
    }
    match s {
        Stmt::Block(b) if !b.iters.is_empty() => {
            let writes = b.writes.iter().any(|r| r.buffer == *buffer);
            let reads = b.reads.iter().any(|r| r.buffer == *buffer)
                || (b.init.is_none() && crate::tir_tools::reads_buffer(&b.body, buffer));
            if std::mem::take(first) && (reads || !writes) {
                return true;
            }
            writes && b.iters.iter().any(|i| i.kind != IterKind::Spatial && free_vars(&i.binding).contains(&l.var))
        }
        Stmt::Seq(_) | Stmt::For(_) | Stmt::Block(_) | Stmt::Let(_) => {
            s.children().into_iter().any(|c| carries_stmt(c, l, buffer, first))
        }
        // An access outside of a block with iterators, or under a condition: nothing is known.
        _ => true,
    }
}
