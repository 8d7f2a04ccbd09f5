//! Copies of statements with binders of their own.

use tvm_ir::prim::{Buffer, PrimExpr, PrimKind, Substitution, rewrite};
use tvm_ir::tir::{Stmt, map_exprs, substitute_stmt};

/// The same statement with fresh loop variables, let variables, block iterators and allocated buffers, so that it may
/// stand beside the original: every variable and buffer of a function is bound in one place.
pub fn freshen(s: &Stmt) -> Stmt {
    fresh_stmt(s.clone())
}

fn fresh_stmt(s: Stmt) -> Stmt {
    let s = map_exprs(s, &mut fresh_lets);
    match s {
        Stmt::For(mut f) => {
            let var = f.var.copy();
            f.body = substitute_stmt(fresh_stmt(f.body), &Substitution::var(&f.var, var.expr()));
            f.var = var;
            Stmt::For(f)
        }
        Stmt::Let(mut l) => {
            let var = l.var.copy();
            l.body = substitute_stmt(fresh_stmt(l.body), &Substitution::var(&l.var, var.expr()));
            l.var = var;
            Stmt::Let(l)
        }
        Stmt::Block(mut b) => {
            let mut sub = Substitution::default();
            for i in &mut b.iters {
                let var = i.var.copy();
                sub.vars.insert(i.var.clone(), var.expr());
                i.var = var;
            }
            for a in &mut b.allocs {
                let copy = Buffer::from_node(a.node().clone());
                sub.buffers.push((a.clone(), copy.clone()));
                *a = copy;
            }
            b.body = substitute_stmt(fresh_stmt(b.body), &sub);
            b.init = b.init.map(|i| substitute_stmt(fresh_stmt(i), &sub));
            for r in b.reads.iter_mut().chain(&mut b.writes) {
                r.buffer = sub.buffer(&r.buffer);
                for range in &mut r.ranges {
                    range.min = sub.apply(&range.min);
                    range.extent = sub.apply(&range.extent);
                }
            }
            Stmt::Block(b)
        }
        other => other.map_children(&mut fresh_stmt),
    }
}

/// An expression with fresh let variables.
fn fresh_lets(e: &PrimExpr) -> PrimExpr {
    rewrite(e, &mut |n| match n.kind() {
        PrimKind::Let(v, value, body) => {
            let var = v.copy();
            let body = Substitution::var(v, var.expr()).apply(body);
            Some(PrimExpr::new(PrimKind::Let(var, value.clone(), body), n.dtype()))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tvm_ir::dtype::DType;
    use tvm_ir::prim::Var;
    use tvm_ir::tir::{Block, stmt_free_vars, visit_stmt};

    #[test]
    fn copies_share_no_binder() {
        let out = Buffer::new("out", vec![PrimExpr::i64(4)], DType::F32);
        let tmp = Buffer::new("tmp", vec![PrimExpr::i64(4)], DType::F32);
        let i = Var::new("i", DType::I64);
        let body = Stmt::seq([
            Stmt::store(&tmp, vec![i.expr()], PrimExpr::float(DType::F32, 1.0)),
            Stmt::store(&out, vec![i.expr()], PrimExpr::load(&tmp, vec![i.expr()])),
        ]);
        let body = Stmt::serial(i.clone(), PrimExpr::i64(4), body);
        let s = Stmt::Block(Box::new(Block::root(vec![tmp.clone()], body)));
        let copy = freshen(&s);
        assert!(stmt_free_vars(&copy).is_empty());
        visit_stmt(&copy, &mut |s| match s {
            Stmt::For(f) => assert_ne!(f.var, i),
            Stmt::Block(b) => assert_ne!(b.allocs[0], tmp),
            Stmt::Store(s) => assert_ne!(s.buffer, tmp),
            _ => {}
        });
    }
}
