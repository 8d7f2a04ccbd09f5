//! LowerInitBlock: see [`PASS`].

use super::each_prim_func;
use crate::pass::Pass;
use tvm_ir::diag::Diag;
use tvm_ir::prim::PrimExpr;
use tvm_ir::target::Target;
use tvm_ir::tir::{Block, IfStmt, IterKind, PrimFunc, Stmt, rewrite_stmt};

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "LowerInitBlock",
    doc: "a block's init becomes an if in its body",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, lower_init_block),
};

/// Puts the init of every block before its body, under the condition that every reduction iterator is at the start of
/// its domain.
pub(super) fn lower_init_block(mut f: PrimFunc, _target: &Target) -> Result<PrimFunc, Diag> {
    f.body = rewrite_stmt(f.body, &mut |s| match s {
        Stmt::Block(b) => Stmt::Block(Box::new(lower_block(*b))),
        other => other,
    });
    Ok(f)
}

fn lower_block(mut b: Block) -> Block {
    let Some(init) = b.init.take() else { return b };
    let first = b
        .iters
        .iter()
        .filter(|i| i.kind == IterKind::Reduce)
        .map(|i| i.var.expr().eq(&i.dom.min))
        .fold(PrimExpr::bool(true), PrimExpr::and);
    let init =
        if first.is_int(1) { init } else { Stmt::If(Box::new(IfStmt { cond: first, then: init, otherwise: None })) };
    Block { body: Stmt::seq([init, b.body]), ..b }
}
