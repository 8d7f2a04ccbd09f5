//! Which bytes of packed buffers an iteration writes.

use crate::tir_tools::bind_loops;
use tvm_ir::arith::Analyzer;
use tvm_ir::prim::{Buffer, PrimExpr, Range, Substitution, Var};
use tvm_ir::tir::{For, Stmt, Store};

/// Whether no two iterations of a loop write to the same byte of a packed buffer. The analyzer knows the loops around.
pub(super) fn owns_bytes(l: &For, analyzer: &Analyzer) -> bool {
    let (mut stores, mut inner, mut own): (Vec<&Store>, Vec<(Var, PrimExpr)>, Vec<&Buffer>) = Default::default();
    collect(&l.body, &mut stores, &mut inner, &mut own);
    let mut analyzer = analyzer.clone();
    analyzer.bind_range(&l.var, Range { min: l.min.clone(), extent: l.extent.clone() });
    bind_loops(&l.body, &mut analyzer);
    let packed = |s: &&Store| s.buffer.dtype.is_packed() && !own.contains(&&s.buffer);
    stores.into_iter().filter(packed).all(|s| owned(s, l, &inner, &analyzer))
}

fn collect<'a>(
    s: &'a Stmt,
    stores: &mut Vec<&'a Store>,
    loops: &mut Vec<(Var, PrimExpr)>,
    allocs: &mut Vec<&'a Buffer>,
) {
    match s {
        Stmt::Store(s) => stores.push(s),
        Stmt::For(l) => loops.push((l.var.clone(), l.min.clone())),
        Stmt::Block(b) => allocs.extend(&b.allocs),
        _ => {}
    }
    s.children().into_iter().for_each(|c| collect(c, stores, loops, allocs));
}

/// Whether iteration `i` writes elements `start + i * step ..+ step` alone, where `start` and `step` are whole bytes.
fn owned(s: &Store, l: &For, inner: &[(Var, PrimExpr)], analyzer: &Analyzer) -> bool {
    let [index] = &s.indices[..] else { return false };
    let dtype = l.var.dtype();
    let at = |e: PrimExpr| Substitution::var(&l.var, e).apply(index);
    // The range of the variable is forgotten: a range of one value would hide the step.
    let free = Var::new("i", dtype);
    let step = at(free.expr() + PrimExpr::int(dtype, 1)) - at(free.expr());
    let per = s.buffer.dtype.per_byte() as i64;
    let Some(step) = analyzer.simplify(&step).as_int().filter(|n| *n > 0 && n % per == 0) else { return false };
    let all = at(PrimExpr::int(dtype, 0));
    let start = inner.iter().rev().fold(all.clone(), |e, (v, min)| Substitution::var(v, min.clone()).apply(&e));
    let within = analyzer.bounds(&analyzer.simplify(&(all - start.clone())));
    let aligned = start.clone().floormod(PrimExpr::int(start.dtype(), per)).eq(PrimExpr::int(start.dtype(), 0));
    within.min >= 0 && within.max < step && analyzer.prove(&aligned)
}
