//! RemoveNoOp: see [`PASS`].

use super::each_prim_func;
use crate::pass::Pass;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, PrimKind, visit};
use tvm_ir::target::Target;
use tvm_ir::tir::{PrimFunc, Stmt, rewrite_stmt, stmt_free_vars};

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "RemoveNoOp",
    doc: "statements without effect are removed",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, remove_no_op),
};

/// Removes loops without iterations or body, conditionals without branches, unused let variables, blocks that only
/// hold unused allocations and evaluations without effect.
pub(super) fn remove_no_op(mut f: PrimFunc, _target: &Target) -> Result<PrimFunc, Diag> {
    f.body = rewrite_stmt(f.body, &mut |s| if no_op(&s) { nothing() } else { shrink(s) });
    Ok(f)
}

fn nothing() -> Stmt {
    Stmt::Seq(Vec::new())
}

fn is_nothing(s: &Stmt) -> bool {
    matches!(s, Stmt::Seq(v) if v.is_empty())
}

fn no_op(s: &Stmt) -> bool {
    match s {
        Stmt::For(l) => l.extent.as_int().is_some_and(|e| e <= 0) || is_nothing(&l.body),
        Stmt::If(i) => is_nothing(&i.then) && i.otherwise.as_ref().is_none_or(is_nothing),
        Stmt::Evaluate(e) => !has_effect(e),
        Stmt::Let(l) => is_nothing(&l.body),
        Stmt::Block(b) => is_nothing(&b.body) && b.init.as_ref().is_none_or(is_nothing),
        _ => false,
    }
}

fn shrink(s: Stmt) -> Stmt {
    match s {
        Stmt::Seq(v) => Stmt::seq(v.into_iter().filter(|s| !is_nothing(s))),
        Stmt::If(mut i) => {
            i.otherwise = i.otherwise.filter(|s| !is_nothing(s));
            if is_nothing(&i.then) {
                if let Some(otherwise) = i.otherwise.take() {
                    i.cond = i.cond.logical_not();
                    i.then = otherwise;
                }
            }
            Stmt::If(i)
        }
        Stmt::Let(l) if !has_effect(&l.value) && !stmt_free_vars(&l.body).contains(&l.var) => l.body,
        other => other,
    }
}

fn has_effect(e: &PrimExpr) -> bool {
    let mut effect = false;
    visit(e, &mut |e| {
        effect |= match e.kind() {
            PrimKind::CallExtern(..) => true,
            PrimKind::Call(f, _) => *f == tvm_ir::prim::Intrinsic::StorageSync,
            _ => false,
        };
    });
    effect
}

#[cfg(test)]
mod tests {
    use super::*;
    use tvm_ir::dtype::DType;
    use tvm_ir::prim::{Buffer, Var};
    use tvm_ir::tir::{Block, IfStmt};

    #[test]
    fn empty_loops_go_and_else_branches_turn() {
        let a = Buffer::new("a", vec![PrimExpr::i64(4)], DType::F32);
        let i = Var::new("i", DType::I64);
        let store = |v: f64| Stmt::store(&a, vec![i.expr()], PrimExpr::float(DType::F32, v));
        let dead = Stmt::serial(Var::new("j", DType::I64), PrimExpr::i64(0), store(1.0));
        let cond = i.expr().lt(2);
        let branch = Stmt::If(Box::new(IfStmt { cond, then: dead, otherwise: Some(store(2.0)) }));
        let body = Stmt::serial(i.clone(), PrimExpr::i64(4), branch);
        let f = PrimFunc {
            params: Vec::new(),
            attrs: Default::default(),
            body: Stmt::Block(Box::new(Block::root(Vec::new(), body))),
            span: Default::default(),
        };
        let f = remove_no_op(f, &Target::default()).unwrap();
        let Stmt::For(l) = &f.root().unwrap().body else { panic!("{f:?}") };
        let Stmt::If(branch) = &l.body else { panic!("{f:?}") };
        assert!(matches!(branch.cond.kind(), PrimKind::Not(_)) && branch.otherwise.is_none());
    }
}
