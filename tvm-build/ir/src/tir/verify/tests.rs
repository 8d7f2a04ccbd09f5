use super::*;
use crate::attrs::Attrs;
use crate::diag::Severity;
use crate::dtype::DType;
use crate::prim::{Intrinsic, Range};
use crate::tir::{AssertStmt, IfStmt, IterVar, LetStmt, Region};

fn v(name: &str) -> Var {
    Var::new(name, DType::I64)
}

fn c(x: i64) -> PrimExpr {
    PrimExpr::i64(x)
}

fn buffer(name: &str, shape: &[PrimExpr]) -> Buffer {
    Buffer::new(name, shape.to_vec(), DType::F32)
}

fn func(params: &[&Buffer], body: Stmt) -> PrimFunc {
    PrimFunc {
        params: params.iter().map(|b| Param::Buffer((*b).clone())).collect(),
        attrs: Attrs::new(),
        body,
        span: Span::NONE,
    }
}

fn iter(name: &str, extent: PrimExpr, kind: IterKind, binding: PrimExpr) -> IterVar {
    IterVar { var: v(name), dom: Range::to(extent), kind, binding }
}

fn zero() -> PrimExpr {
    PrimExpr::zero(DType::F32)
}

fn point(b: &Buffer, at: &[PrimExpr]) -> Region {
    Region { buffer: b.clone(), ranges: at.iter().map(|e| Range::point(e.clone())).collect() }
}

fn rooted(allocs: Vec<Buffer>, body: Stmt) -> Stmt {
    Stmt::Block(Box::new(Block::root(allocs, body)))
}

/// The matmul of the tutorial, with symbolic `n`; `edit` spoils the block.
fn matmul(edit: impl FnOnce(&mut Block)) -> PrimFunc {
    let n = v("n");
    let (a, b) = (buffer("A", &[n.expr(), c(64)]), buffer("B", &[c(64), c(32)]));
    let out = buffer("C", &[n.expr(), c(32)]);
    let (i, j, k) = (v("i"), v("j"), v("k"));
    let iters = vec![
        iter("vi", n.expr(), IterKind::Spatial, i.expr()),
        iter("vj", c(32), IterKind::Spatial, j.expr()),
        iter("vk", c(64), IterKind::Reduce, k.expr()),
    ];
    let [vi, vj, vk] = [0, 1, 2].map(|x: usize| iters[x].var.expr());
    let (at, left, right) = ([vi.clone(), vj.clone()], [vi, vk.clone()], [vk, vj]);
    let sum =
        PrimExpr::load(&out, at.to_vec()) + PrimExpr::load(&a, left.to_vec()) * PrimExpr::load(&b, right.to_vec());
    let mut block = Block {
        name: "matmul".into(),
        iters,
        reads: vec![point(&a, &left), point(&b, &right)],
        writes: vec![point(&out, &at)],
        init: Some(Stmt::store(&out, at.to_vec(), zero())),
        ..Block::root(Vec::new(), Stmt::store(&out, at.to_vec(), sum))
    };
    edit(&mut block);
    let inner = Stmt::serial(k, c(64), Stmt::Block(Box::new(block)));
    let nest = Stmt::serial(i, n.expr(), Stmt::serial(j, c(32), inner));
    func(&[&a, &b, &out], rooted(Vec::new(), nest))
}

/// The rules broken, in the order reported.
fn broken(f: &PrimFunc) -> Vec<u32> {
    match verify(f) {
        Ok(()) => Vec::new(),
        Err(d) => d.0.iter().map(|d| d.notes[0].split(' ').nth(1).unwrap().parse().unwrap()).collect(),
    }
}

#[test]
fn a_good_function() {
    assert_eq!(verify(&matmul(|_| ())), Ok(()));
    assert_eq!(verify_bounds(&matmul(|_| ())), Diags::new());
}

#[test]
fn scopes() {
    let (a, i) = (buffer("A", &[c(8)]), v("i"));
    let store = |e: PrimExpr| Stmt::store(&a, vec![e], zero());
    // 1: use after the loop; 2: the same variable again.
    let after = Stmt::seq([Stmt::serial(i.clone(), c(8), store(i.expr())), store(i.expr())]);
    assert_eq!(broken(&func(&[&a], after)), [1]);
    let again =
        Stmt::seq([Stmt::serial(i.clone(), c(8), store(i.expr())), Stmt::serial(i.clone(), c(8), store(i.expr()))]);
    assert_eq!(broken(&func(&[&a], again)), [2]);
    // 3
    let b = buffer("B", &[c(8)]);
    assert_eq!(broken(&func(&[&a], Stmt::store(&b, vec![c(0)], zero()))), [3]);
    assert_eq!(broken(&func(&[&a], rooted(vec![b.clone()], Stmt::store(&b, vec![c(0)], zero())))), []);
    assert_eq!(broken(&func(&[&a, &a], store(c(0)))), [3]);
    // 1: an extent that nothing binds.
    let n = v("n");
    assert_eq!(broken(&func(&[&buffer("D", &[n.expr() * 2])], store_none())), [1]);
    assert_eq!(broken(&func(&[&buffer("D", &[n.expr() * 2]), &buffer("E", &[n.expr()])], store_none())), []);
}

fn store_none() -> Stmt {
    Stmt::Seq(Vec::new())
}

#[test]
fn accesses_and_types() {
    let (a, i) = (buffer("A", &[c(8), c(8)]), v("i"));
    let body = |s: Stmt| func(&[&a], Stmt::serial(i.clone(), c(8), s));
    let at = || vec![i.expr(), c(0)];
    assert_eq!(broken(&body(Stmt::store(&a, vec![i.expr()], zero()))), [4]);
    let float_index = vec![i.expr(), PrimExpr::zero(DType::F32)];
    assert_eq!(broken(&body(Stmt::store(&a, float_index, zero()))), [4]);
    let ramp = PrimExpr::ramp(c(0), c(1), 4);
    assert_eq!(broken(&body(Stmt::store(&a, vec![ramp.clone(), c(0)], zero()))), [4]);
    assert_eq!(broken(&body(Stmt::store(&a, vec![i.expr(), ramp.clone()], zero()))), [5]);
    assert_eq!(broken(&body(Stmt::store(&a, vec![i.expr(), ramp], zero().broadcast(4)))), []);
    assert_eq!(broken(&body(Stmt::store(&a, at(), c(1)))), [5]);
    let mixed =
        PrimExpr::new(PrimKind::Binary(crate::prim::BinOp::Add, zero(), PrimExpr::zero(DType::F64)), DType::F32);
    assert_eq!(broken(&body(Stmt::store(&a, at(), mixed))), [6]);
    let pow = PrimExpr::new(PrimKind::Call(Intrinsic::Pow, vec![zero()]), DType::F32);
    assert_eq!(broken(&body(Stmt::store(&a, at(), pow))), [6]);
    let cond = Stmt::If(Box::new(IfStmt { cond: i.expr(), then: Stmt::store(&a, at(), zero()), otherwise: None }));
    assert_eq!(broken(&body(cond)), [7]);
    let assert = Stmt::Assert(Box::new(AssertStmt { cond: zero(), message: "".into() }));
    assert_eq!(broken(&body(assert)), [7]);
    let sync = PrimExpr::call(Intrinsic::StorageSync, vec![PrimExpr::str("shared")]);
    assert_eq!(broken(&body(Stmt::Evaluate(sync.clone()))), []);
    assert_eq!(broken(&body(Stmt::store(&a, at(), sync))), [16, 5]);
    assert_eq!(broken(&body(Stmt::Seq(vec![Stmt::Seq(Vec::new())]))), [17]);
    let value = Stmt::Let(Box::new(LetStmt { var: v("x"), value: zero(), body: store_none() }));
    assert_eq!(broken(&body(value)), [6]);
}

#[test]
fn loops() {
    let a = buffer("A", &[c(8)]);
    let i32var = Var::new("i", DType::I32);
    let make = |edit: &dyn Fn(&mut For)| {
        let i = v("i");
        let Stmt::For(mut f) = Stmt::serial(i.clone(), c(8), Stmt::store(&a, vec![i.expr()], zero())) else {
            unreachable!()
        };
        edit(&mut f);
        func(&[&a], Stmt::For(f))
    };
    assert_eq!(broken(&make(&|f| f.kind = ForKind::ThreadBinding("threadIdx.x".into()))), []);
    assert_eq!(broken(&make(&|f| f.kind = ForKind::ThreadBinding("threadIdx.w".into()))), [8]);
    assert_eq!(broken(&make(&|f| f.extent = PrimExpr::i32(4))), [8]);
    assert_eq!(broken(&make(&|f| f.extent = c(-1))), [8]);
    assert_eq!(broken(&make(&|f| f.var = i32var.clone())), [8, 1]);
}

#[test]
fn blocks() {
    let first = |f: &PrimFunc| verify(f).unwrap_err().0[0].message.clone();
    // 9: a loop variable inside.
    let f = matmul(|b| {
        let Stmt::Store(s) = &mut b.body else { unreachable!() };
        s.indices[0] = b.iters[0].binding.clone();
    });
    assert!(broken(&f).contains(&9), "{:?}", broken(&f));
    assert!(verify(&f).unwrap_err().0.iter().any(|d| d.message == "loop variable `i` is used inside block `matmul`"));
    assert_eq!(broken(&matmul(|b| b.iters[0].dom.extent = PrimExpr::i32(4))), [9]);
    let f = matmul(|b| b.iters[0].binding = b.iters[1].var.expr());
    assert_eq!(broken(&f), [1]);
    // 10, 11
    let f = matmul(|b| {
        let vk = b.iters[2].var.expr();
        let Some(Stmt::Store(s)) = &mut b.init else { unreachable!() };
        s.value = vk.cast(DType::F32);
    });
    assert_eq!(broken(&f), [10]);
    let f = matmul(|b| {
        let vk = b.iters[2].var.expr();
        let Stmt::Store(s) = &mut b.body else { unreachable!() };
        s.indices[0] = vk;
    });
    assert!(broken(&f).contains(&11));
    // 12
    let f = matmul(|b| drop(b.reads.remove(1)));
    assert_eq!(first(&f), "block `matmul` reads buffer `B`, which it does not declare");
    let f = matmul(|b| b.reads[0].ranges[1] = Range::point(b.iters[2].var.expr() + 1));
    assert_eq!(broken(&f), [12]);
    let f = matmul(|b| b.reads[0].ranges[1] = Range::to(c(64)));
    assert_eq!(broken(&f), []);
    // 13, 15
    assert_eq!(broken(&matmul(|b| drop(b.reads[0].ranges.pop())))[0], 13);
    let bare = func(
        &[],
        Stmt::Block(Box::new(Block {
            iters: vec![iter("vi", c(1), IterKind::Spatial, c(0))],
            ..Block::root(Vec::new(), store_none())
        })),
    );
    assert_eq!(broken(&bare), [15]);
}

#[test]
fn every_violation_is_collected() {
    let f = matmul(|b| {
        b.reads.clear();
        b.iters[0].dom.extent = PrimExpr::i32(4);
        b.init = Some(Stmt::store(&b.writes[0].buffer.clone(), vec![c(0)], zero()));
    });
    let rules = broken(&f);
    for r in [4, 9, 12] {
        assert!(rules.contains(&r), "{rules:?}");
    }
}

/// Messages of [`verify_bounds`], errors first marked.
fn bounds(f: &PrimFunc) -> Vec<String> {
    let mark = |s| if s == Severity::Error { "error: " } else { "warning: " };
    verify_bounds(f).0.iter().map(|d| format!("{}{}", mark(d.severity), d.message)).collect()
}

#[test]
fn out_of_bounds_with_a_counterexample() {
    let n = v("n");
    let (a, o) = (buffer("A", &[n.expr()]), buffer("O", &[n.expr()]));
    let copy = |index: &dyn Fn(PrimExpr) -> PrimExpr| {
        let i = v("i");
        let value = PrimExpr::load(&a, vec![index(i.expr())]);
        func(&[&a, &o], Stmt::serial(i.clone(), n.expr(), Stmt::store(&o, vec![i.expr()], value)))
    };
    assert_eq!(bounds(&copy(&|i| i)), [""; 0]);
    let found = bounds(&copy(&|i| i + 1));
    assert_eq!(
        found,
        [
            "error: index `i + 1` of buffer `A` is out of bounds: it is 1 where n = 1, i = 0, and dimension 0 has extent n = 1"
        ]
    );
    assert_eq!(bounds(&copy(&|i| i - 1)).len(), 1);
    assert_eq!(bounds(&copy(&|i| n.expr() - 1 - i)), [""; 0]);
    // Data decides.
    let gather = bounds(&copy(&|i| PrimExpr::load(&a, vec![i]).cast(DType::I64)));
    assert!(
        gather.len() == 1
            && gather[0]
                == "warning: index `T.Cast(\"int64\", A[i])` of buffer `A` depends on data: dimension 0 has extent n",
        "{gather:?}"
    );
}

#[test]
fn guards_and_tails() {
    let n = v("n");
    let (a, o) = (buffer("A", &[n.expr()]), buffer("O", &[n.expr()]));
    let tiles = || (n.expr() + 7).floordiv(8);
    let build = |guard: bool| {
        let (i, j) = (v("i"), v("j"));
        let at = i.expr() * 8 + &j;
        let vi = iter("vi", n.expr(), IterKind::Spatial, at.clone());
        let read = PrimExpr::load(&a, vec![vi.var.expr()]);
        let mut block = Block {
            body: Stmt::store(&o, vec![vi.var.expr()], read),
            iters: vec![vi],
            ..Block::root(Vec::new(), store_none())
        };
        if guard {
            block.predicate = at.lt(&n);
        }
        let nest = Stmt::serial(i, tiles(), Stmt::serial(j, c(8), Stmt::Block(Box::new(block))));
        func(&[&a, &o], rooted(Vec::new(), nest))
    };
    assert_eq!(bounds(&build(true)), [""; 0]);
    let found = bounds(&build(false));
    assert!(found.len() == 1 && found[0].starts_with("error: iterator `vi`"), "{found:?}");
    // A padded read.
    let i = v("i");
    let inside = i.expr().ge(1).and(i.expr().lt(n.expr() + 1));
    let padded = PrimExpr::if_then_else(inside.clone(), PrimExpr::load(&a, vec![i.expr() - 1]), zero());
    let p = buffer("P", &[n.expr() + 2]);
    let f = func(&[&a, &p], Stmt::serial(i.clone(), n.expr() + 2, Stmt::store(&p, vec![i.expr()], padded)));
    assert_eq!(bounds(&f), [""; 0]);
    let strict = PrimExpr::select(inside, PrimExpr::load(&a, vec![i.expr() - 1]), zero());
    let f = func(&[&a, &p], Stmt::serial(i.clone(), n.expr() + 2, Stmt::store(&p, vec![i.expr()], strict)));
    assert_eq!(bounds(&f).len(), 1);
    // A vector store, the last of whose lanes leaves.
    let lanes = PrimExpr::ramp(i.expr() * 4, c(1), 4);
    let store = Stmt::store(&o, vec![lanes], zero().broadcast(4));
    let whole = func(&[&o], Stmt::serial(i.clone(), n.expr().floordiv(4), store.clone()));
    assert_eq!(bounds(&whole), [""; 0]);
    let beyond = func(&[&o], Stmt::serial(i, (n.expr() + 3).floordiv(4), store));
    assert!(bounds(&beyond)[0].contains("out of bounds"), "{:?}", bounds(&beyond));
}
