//! A PrimFunc's body over new variables and buffers (TVM's `RenewDefs`).

use std::collections::BTreeMap;
use tvm_ir::arith::Analyzer;
use tvm_ir::prim::{Buffer, BufferNode, PrimExpr, PrimKind, Substitution, Var, rewrite, visit};
use tvm_ir::tir::{Block, Stmt, map_exprs, merge_region, rewrite_stmt, visit_exprs, visit_stmt};

/// The statement with every variable it binds and every buffer it allocates replaced by a new one, and `sub` applied to
/// the others. Afterwards `sub` knows the new ones too.
pub(crate) fn renew(s: Stmt, sub: &mut Substitution) -> Stmt {
    let mut fresh: BTreeMap<Var, Var> = BTreeMap::new();
    let mut allocs = Vec::new();
    visit_stmt(&s, &mut |s| match s {
        Stmt::For(f) => {
            fresh.insert(f.var.clone(), f.var.copy());
        }
        Stmt::Let(l) => {
            fresh.insert(l.var.clone(), l.var.copy());
        }
        Stmt::Block(b) => {
            fresh.extend(b.iters.iter().map(|i| (i.var.clone(), i.var.copy())));
            allocs.extend(b.allocs.iter().cloned());
        }
        _ => {}
    });
    visit_exprs(&s, &mut |e| {
        visit(e, &mut |e| {
            if let PrimKind::Let(v, ..) = e.kind() {
                fresh.entry(v.clone()).or_insert_with(|| v.copy());
            }
        });
    });
    sub.vars.extend(fresh.iter().map(|(old, new)| (old.clone(), new.expr())));
    for old in allocs {
        let new = renew_buffer(&old, sub);
        sub.buffers.push((old, new));
    }
    let sub = &*sub;
    let expr = |e: &PrimExpr| {
        rewrite(&sub.apply(e), &mut |e| match e.kind() {
            PrimKind::Let(v, value, body) => {
                let new = fresh.get(v)?;
                Some(PrimExpr::new(PrimKind::Let(new.clone(), value.clone(), body.clone()), e.dtype()))
            }
            _ => None,
        })
    };
    let name = |v: &Var| fresh.get(v).unwrap_or(v).clone();
    rewrite_stmt(s, &mut |s| match map_exprs(s, &mut |e| expr(e)) {
        Stmt::For(mut f) => {
            f.var = name(&f.var);
            Stmt::For(f)
        }
        Stmt::Let(mut l) => {
            l.var = name(&l.var);
            Stmt::Let(l)
        }
        Stmt::Store(mut s) => {
            s.buffer = sub.buffer(&s.buffer);
            Stmt::Store(s)
        }
        Stmt::Block(mut b) => {
            b.iters.iter_mut().for_each(|i| i.var = name(&i.var));
            b.allocs.iter_mut().for_each(|a| *a = sub.buffer(a));
            b.reads.iter_mut().chain(&mut b.writes).for_each(|r| r.buffer = sub.buffer(&r.buffer));
            Stmt::Block(Box::new(with_one_region_a_buffer(*b)))
        }
        other => other,
    })
}

/// Two parameters that became one buffer leave two regions of it: one that covers both takes their place.
fn with_one_region_a_buffer(mut b: Block) -> Block {
    let mut analyzer = Analyzer::new();
    for i in &b.iters {
        analyzer.bind_range(&i.var, i.dom.clone());
    }
    for regions in [&mut b.reads, &mut b.writes] {
        let mut kept = Vec::with_capacity(regions.len());
        for r in std::mem::take(regions) {
            merge_region(&mut kept, r, &analyzer);
        }
        *regions = kept;
    }
    b
}

/// A new buffer whose shape, strides and offset are substituted.
pub(crate) fn renew_buffer(b: &Buffer, sub: &Substitution) -> Buffer {
    let map = |es: &[PrimExpr]| es.iter().map(|e| sub.apply(e)).collect();
    Buffer::from_node(BufferNode {
        shape: map(&b.shape),
        strides: map(&b.strides),
        elem_offset: b.elem_offset.as_ref().map(|e| sub.apply(e)),
        ..b.node().clone()
    })
}
