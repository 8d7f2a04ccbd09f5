//! UnrollLoop: see [`PASS`].

use super::each_prim_func;
use crate::pass::Pass;
use crate::tir_tools::freshen;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, Substitution};
use tvm_ir::target::Target;
use tvm_ir::tir::{For, ForKind, PrimFunc, Stmt, rewrite_stmt, substitute_stmt, visit_stmt};

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "UnrollLoop",
    doc: "loops marked unrolled are written out",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, unroll_loop),
};

/// A loop is written out when that gives no more statements than this; otherwise it stays marked for the C compiler.
const MAX_STATEMENTS: i64 = 1024;

/// Writes out the loops marked unrolled whose extent is a constant; of unknown extent they become serial.
pub(super) fn unroll_loop(mut f: PrimFunc, _target: &Target) -> Result<PrimFunc, Diag> {
    f.body = rewrite_stmt(f.body, &mut |s| match s {
        Stmt::For(l) if l.kind == ForKind::Unrolled => unroll(*l),
        other => other,
    });
    Ok(f)
}

fn unroll(l: For) -> Stmt {
    let Some(extent) = l.extent.as_int() else { return Stmt::For(Box::new(For { kind: ForKind::Serial, ..l })) };
    let mut size = 0i64;
    visit_stmt(&l.body, &mut |_| size += 1);
    if extent.saturating_mul(size) > MAX_STATEMENTS {
        return Stmt::For(Box::new(l));
    }
    Stmt::seq((0..extent.max(0)).map(|i| {
        let value = (&l.min + PrimExpr::int(l.min.dtype(), i)).cast(l.var.dtype());
        let copy = if i == 0 { l.body.clone() } else { freshen(&l.body) };
        substitute_stmt(copy, &Substitution::var(&l.var, value))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tvm_ir::dtype::DType;
    use tvm_ir::prim::{Buffer, Var};
    use tvm_ir::tir::Param;

    #[test]
    fn nested() {
        let a = Buffer::new("a", vec![PrimExpr::i64(2), PrimExpr::i64(3)], DType::F32);
        let (i, j) = (Var::new("i", DType::I64), Var::new("j", DType::I64));
        let body = Stmt::store(&a, vec![i.expr(), j.expr()], PrimExpr::float(DType::F32, 1.0));
        let unrolled = |v: &Var, n: i64, body: Stmt| {
            let Stmt::For(mut l) = Stmt::serial(v.clone(), PrimExpr::i64(n), body) else { panic!() };
            l.kind = ForKind::Unrolled;
            Stmt::For(l)
        };
        let body = unrolled(&i, 2, unrolled(&j, 3, body));
        let f = PrimFunc { params: vec![Param::Buffer(a)], attrs: Default::default(), body, span: Default::default() };
        let f = unroll_loop(f, &Target::default()).unwrap();
        let Stmt::Seq(stores) = f.body else { panic!("{:?}", f.body) };
        let at: Vec<_> = stores
            .iter()
            .map(|s| match s {
                Stmt::Store(s) => (s.indices[0].as_int().unwrap(), s.indices[1].as_int().unwrap()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(at, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
    }
}
