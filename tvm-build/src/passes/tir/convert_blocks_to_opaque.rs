//! ConvertBlocksToOpaque: see [`PASS`].

use super::each_prim_func;
use crate::pass::Pass;
use tvm_ir::diag::Diag;
use tvm_ir::prim::Substitution;
use tvm_ir::target::Target;
use tvm_ir::tir::{Block, PrimFunc, Stmt, rewrite_stmt, substitute_stmt};

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "ConvertBlocksToOpaque",
    doc: "block iterators are replaced by their bindings",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, convert_blocks_to_opaque),
};

/// Puts the binding of every block iterator in its place and drops the iterators. Init must be lowered before.
pub(super) fn convert_blocks_to_opaque(mut f: PrimFunc, _target: &Target) -> Result<PrimFunc, Diag> {
    let mut error = None;
    f.body = rewrite_stmt(f.body, &mut |s| match s {
        Stmt::Block(b) => {
            if b.init.is_some() {
                error.get_or_insert_with(|| {
                    Diag::error(b.span, format!("block {} still has an init", b.name)).help("run LowerInitBlock before")
                });
            }
            Stmt::Block(Box::new(opaque(*b)))
        }
        other => other,
    });
    error.map_or(Ok(f), Err)
}

fn opaque(mut b: Block) -> Block {
    let mut sub = Substitution::default();
    for i in std::mem::take(&mut b.iters) {
        sub.vars.insert(i.var, i.binding);
    }
    b.body = substitute_stmt(b.body, &sub);
    for r in b.reads.iter_mut().chain(&mut b.writes) {
        for range in &mut r.ranges {
            range.min = sub.apply(&range.min);
            range.extent = sub.apply(&range.extent);
        }
    }
    b
}
