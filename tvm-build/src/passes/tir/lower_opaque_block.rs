//! LowerOpaqueBlock: see [`PASS`].

use super::each_prim_func;
use crate::pass::Pass;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, Substitution};
use tvm_ir::target::Target;
use tvm_ir::tir::{Block, For, ForKind, IfStmt, PrimFunc, Stmt, rewrite_stmt, substitute_stmt, visit_stmt};

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "LowerOpaqueBlock",
    doc: "blocks become predicates; only blocks that hold allocations stay",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, lower_opaque_block),
};

/// A block's predicate becomes an `if`; the block itself goes, unless it holds allocations: then a block named
/// `alloc` with nothing but these and the body stays. Loops of one iteration without annotations are replaced by
/// their only value. Block iterators must be converted before.
pub(super) fn lower_opaque_block(mut f: PrimFunc, _target: &Target) -> Result<PrimFunc, Diag> {
    let mut error = None;
    f.body = rewrite_stmt(f.body, &mut |s| match s {
        Stmt::Block(b) => {
            if !b.iters.is_empty() {
                error.get_or_insert_with(|| {
                    Diag::error(b.span, format!("block {} still has iterators", b.name))
                        .help("run ConvertBlocksToOpaque before")
                });
            }
            lower_block(*b)
        }
        Stmt::For(l) => lower_unit_loop(*l),
        other => other,
    });
    let mut blocks = false;
    visit_stmt(&f.body, &mut |s| blocks |= matches!(s, Stmt::Block(_)));
    if blocks && f.root().is_none() {
        f.body = Stmt::Block(Box::new(Block::root(Vec::new(), f.body)));
    }
    error.map_or(Ok(f), Err)
}

fn lower_block(b: Block) -> Stmt {
    let body = if b.allocs.is_empty() {
        b.body
    } else {
        let name = if b.name == "root" { b.name } else { "alloc".into() };
        Stmt::Block(Box::new(Block { name, ..Block::root(b.allocs, b.body) }))
    };
    if b.predicate.is_int(1) {
        body
    } else {
        Stmt::If(Box::new(IfStmt { cond: b.predicate, then: body, otherwise: None }))
    }
}

fn lower_unit_loop(l: For) -> Stmt {
    let unit = l.extent.is_int(1) && l.annotations.is_empty() && !matches!(l.kind, ForKind::ThreadBinding(_));
    if unit {
        let value: PrimExpr = l.min.cast(l.var.dtype());
        substitute_stmt(l.body, &Substitution::var(&l.var, value))
    } else {
        Stmt::For(Box::new(l))
    }
}
