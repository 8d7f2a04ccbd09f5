//! Simplify: see [`PASS`].

use super::each_prim_func;
use crate::pass::Pass;
use crate::tir_tools::analyzer_of;
use tvm_ir::diag::Diag;
use tvm_ir::target::Target;
use tvm_ir::tir::{PrimFunc, Stmt, map_exprs, rewrite_stmt};

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "Simplify",
    doc: "expressions are simplified under the ranges of the loops around",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, simplify),
};

/// Simplifies every expression under the ranges of the loops around it; conditionals with a known condition are
/// replaced by their branch.
pub(super) fn simplify(mut f: PrimFunc, _target: &Target) -> Result<PrimFunc, Diag> {
    let analyzer = analyzer_of(&f);
    f.body = rewrite_stmt(f.body, &mut |s| match map_exprs(s, &mut |e| analyzer.simplify(e)) {
        Stmt::If(i) if i.cond.is_int(1) => i.then,
        Stmt::If(i) if i.cond.is_int(0) => i.otherwise.unwrap_or(Stmt::Seq(Vec::new())),
        other => other,
    });
    Ok(f)
}
