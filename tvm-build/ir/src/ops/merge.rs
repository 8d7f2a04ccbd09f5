//! The place of each element in order, in n · log² n steps: runs of 1, 2, 4, … elements in order are merged, where the
//! place of an element is its own in its run and the number of those before it in the other run, found by halving.

use crate::dtype::DType;
use crate::prim::{Buffer, PrimExpr, Var};
use crate::te::{Axes, Te};
use crate::tir::{IfStmt, Stmt, While};

/// Axes of fewer elements are compared each with each, which vector units like.
pub(super) const FEW: i64 = 64;

fn when(cond: PrimExpr, then: Stmt) -> Stmt {
    Stmt::If(Box::new(IfStmt { cond, then, otherwise: None }))
}

fn repeat(cond: PrimExpr, body: Stmt) -> Stmt {
    Stmt::While(Box::new(While { cond, body }))
}

fn each(name: &str, extent: &PrimExpr, body: impl FnOnce(PrimExpr) -> Stmt) -> Stmt {
    let var = Var::new(name, DType::I64);
    let body = body(var.expr());
    Stmt::serial(var, extent.clone(), body)
}

/// A stage `rank`, of the shape of `x`: the place of each element along the axis, where `before` says that its first
/// value comes before its second. Equal elements keep their order.
pub(super) fn rank(te: &mut Te, x: &Buffer, axis: usize, before: impl Fn(&PrimExpr, &PrimExpr) -> PrimExpr) -> Buffer {
    let n = x.shape[axis].clone();
    let mut outer = x.shape.clone();
    outer.remove(axis);
    let indices = |name: &str| Buffer::new(name, x.shape.clone(), DType::I64);
    // Each run of the block has its own, so that runs may go side by side.
    let own: Vec<PrimExpr> = outer.iter().cloned().chain([PrimExpr::i64(1)]).collect();
    let number = |name: &str| Buffer::new(name, own.clone(), DType::I64);
    let (rank, order, merged) = (indices("rank"), indices("order"), indices("merged"));
    let (width, low, high) = (number("width"), number("low"), number("high"));
    let written = [&rank, &order, &merged, &width, &low, &high].map(Clone::clone);
    let zero = PrimExpr::i64(0);
    let inside = |e: &PrimExpr| zero.clone().le(e.clone()).and(e.clone().lt(n.clone()));
    let clamp = |e: PrimExpr| e.max(0).min(n.clone() - 1);
    te.block("rank", Axes::Ax, &outer, &[], &written, |i, _| {
        let own = || i.iter().cloned().chain([zero.clone()]).collect::<Vec<_>>();
        let get = |b: &Buffer| PrimExpr::load(b, own());
        let set = |b: &Buffer, e: PrimExpr| Stmt::store(b, own(), e);
        let at = |k: PrimExpr| {
            let mut index = i.to_vec();
            index.insert(axis, k);
            index
        };
        let load = |b: &Buffer, k: PrimExpr| PrimExpr::load(b, at(k));
        let store = |b: &Buffer, k: &PrimExpr, e: PrimExpr| Stmt::store(b, at(k.clone()), e);
        let value = |k: PrimExpr| load(x, clamp(load(&order, k)));
        let start = each("k", &n, |k| store(&order, &k, k.clone()));
        let merge = each("k", &n, |k| {
            let w = get(&width);
            let base = k.clone().floordiv(w.clone() * 2) * (w.clone() * 2);
            let left = (k.clone() - base.clone()).lt(w.clone());
            // The other run, which may be short or empty.
            let from = PrimExpr::select(left.clone(), base.clone() + w.clone(), base.clone()).min(n.clone());
            let to = (from.clone() + w.clone()).min(n.clone());
            let middle = (get(&low) + get(&high)).floordiv(2);
            let (own, theirs) = (value(k.clone()), value(clamp(middle.clone())));
            // Of equal elements those of the left run come first.
            let passed = PrimExpr::select(left.clone(), before(&theirs, &own), before(&own, &theirs).logical_not());
            let halve = Stmt::If(Box::new(IfStmt {
                cond: passed,
                then: set(&low, middle.clone() + 1),
                otherwise: Some(set(&high, middle)),
            }));
            let search = repeat(get(&low).lt(get(&high)), halve);
            let own_place = PrimExpr::select(left, k.clone(), k.clone() - w);
            let place = own_place + get(&low) - from.clone();
            let write = when(inside(&place), store(&merged, &place, load(&order, k)));
            Stmt::seq([set(&low, from), set(&high, to), search, write])
        });
        let back = each("k", &n, |k| store(&order, &k, load(&merged, k.clone())));
        let step = Stmt::seq([merge, back, set(&width, get(&width) * 2)]);
        let runs = repeat(get(&width).lt(n.clone()), step);
        let places = each("k", &n, |k| {
            let to = load(&order, k.clone());
            when(inside(&to), store(&rank, &to, k))
        });
        (None, Stmt::seq([set(&width, PrimExpr::i64(1)), start, runs, places]))
    });
    rank
}
