use super::*;
use crate::passes::tir::{flatten_buffer, simplify};
use tvm_ir::dtype::DType;
use tvm_ir::prim::Buffer;
use tvm_ir::tir::Param;

fn vectorized(extent: PrimExpr, buffers: &[&Buffer], body: impl FnOnce(PrimExpr) -> Stmt) -> PrimFunc {
    let i = Var::new("i", DType::I64);
    let body = body(i.expr());
    let Stmt::For(mut l) = Stmt::serial(i, extent, body) else { panic!() };
    l.kind = ForKind::Vectorized;
    let params = buffers.iter().map(|b| Param::Buffer((*b).clone())).collect();
    let f = PrimFunc { params, attrs: Default::default(), body: Stmt::For(l), span: Default::default() };
    let target = Target::named("x86-64-v3").unwrap();
    let f = flatten_buffer::flatten_buffer(f, &target).unwrap();
    simplify::simplify(vectorize_loop(f, &target).unwrap(), &target).unwrap()
}

fn store_lanes(f: &PrimFunc) -> Vec<u16> {
    let mut out = Vec::new();
    visit_stmt(&f.body, &mut |s| {
        if let Stmt::Store(s) = s {
            out.push(s.value.dtype().lanes);
        }
    });
    out
}

fn reason(f: &PrimFunc) -> Option<String> {
    let mut out = None;
    visit_stmt(&f.body, &mut |s| {
        if let Stmt::For(l) = s {
            out = l.annotations.get(NOT_VECTORIZED).and_then(|a| a.as_str()).map(Into::into);
        }
    });
    out
}

#[test]
fn lanes_follow_width_and_rest() {
    let a = Buffer::new("a", vec![PrimExpr::i64(1000)], DType::F32);
    let relu = |i: PrimExpr| {
        Stmt::store(&a, vec![i.clone()], PrimExpr::load(&a, vec![i]).max(PrimExpr::float(DType::F32, 0.0)))
    };
    assert_eq!(store_lanes(&vectorized(PrimExpr::i64(23), &[&a], relu)), [8, 8, 4, 2, 1]);
    assert_eq!(store_lanes(&vectorized(PrimExpr::i64(500), &[&a], relu)), [8, 4]);
    let n = Var::new("n", DType::I64);
    let f = vectorized(n.expr(), &[&a], relu);
    assert_eq!(store_lanes(&f), [8, 1]);
    assert_eq!(reason(&f), None);
}

#[test]
fn what_has_no_vector_form_says_why() {
    let a = Buffer::new("a", vec![PrimExpr::i64(8), PrimExpr::i64(8)], DType::F32);
    let one = || PrimExpr::float(DType::F32, 1.0);
    let f = vectorized(PrimExpr::i64(8), &[&a], |i| Stmt::store(&a, vec![i, PrimExpr::i64(0)], one()));
    assert_eq!(store_lanes(&f), [1]);
    assert!(reason(&f).unwrap().contains("not consecutive"));
    let f = vectorized(PrimExpr::i64(8), &[&a], |_| Stmt::store(&a, vec![PrimExpr::i64(0), PrimExpr::i64(0)], one()));
    assert!(reason(&f).unwrap().contains("same element"));
    let f = vectorized(PrimExpr::i64(8), &[&a], |i| {
        let at = vec![PrimExpr::i64(0), i.clone()];
        let inside = PrimExpr::load(&a, vec![PrimExpr::i64(1), i.clone() - 1]);
        Stmt::store(&a, at, PrimExpr::if_then_else(i.ge(1), inside, one()))
    });
    assert!(reason(&f).unwrap().contains("under a condition"));
}

#[test]
fn strided_reads_are_gathers_and_invariant_ones_broadcasts() {
    let a = Buffer::new("a", vec![PrimExpr::i64(8), PrimExpr::i64(8)], DType::F32);
    let f = vectorized(PrimExpr::i64(8), &[&a], |i| {
        let column = PrimExpr::load(&a, vec![i.clone(), PrimExpr::i64(3)]);
        let corner = PrimExpr::load(&a, vec![PrimExpr::i64(7), PrimExpr::i64(7)]);
        Stmt::store(&a, vec![PrimExpr::i64(0), i], column + corner)
    });
    let Stmt::Store(s) = &f.body else { panic!("{f:?}") };
    let PrimKind::Binary(_, column, corner) = s.value.kind() else { panic!("{s:?}") };
    let PrimKind::Load(_, index) = column.kind() else { panic!("{column:?}") };
    assert!(matches!(index[0].kind(), PrimKind::Ramp(base, stride) if base.is_int(3) && stride.is_int(8)));
    assert!(matches!(corner.kind(), PrimKind::Broadcast(_)));
}
