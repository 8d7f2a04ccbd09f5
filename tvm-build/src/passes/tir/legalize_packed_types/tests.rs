use super::*;
use crate::passes::tir::{flatten_buffer, simplify};
use tvm_ir::interp::{TensorBuf, run};
use tvm_ir::prim::{CmpOp, Intrinsic};

const PACKED: [&str; 5] = ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"];

fn dtype(name: &str) -> DType {
    name.parse().unwrap()
}

fn legal(f: &PrimFunc) -> Result<PrimFunc, Diag> {
    let target = Target::default();
    let f = flatten_buffer::flatten_buffer(f.clone(), &target)?;
    simplify::simplify(legalize_packed_types(f, &target)?, &target)
}

/// Runs a function and its legal form, which must leave the same bytes; gives them by buffer.
fn same(f: &PrimFunc, bufs: &[TensorBuf]) -> Vec<Vec<u8>> {
    let mut want = bufs.to_vec();
    run(f, &mut want).unwrap();
    let legal = legal(f).unwrap();
    let as_bytes = |b: &TensorBuf| match b.dtype.is_packed() {
        true => TensorBuf::from_bytes(DType::U8, &[b.data.len() as i64], b.data.clone()).unwrap(),
        false => TensorBuf::from_bytes(b.dtype, &[b.len() as i64], b.data.clone()).unwrap(),
    };
    let mut got: Vec<TensorBuf> = bufs.iter().map(as_bytes).collect();
    run(&legal, &mut got).unwrap();
    let bytes = |b: Vec<TensorBuf>| b.into_iter().map(|b| b.data).collect::<Vec<_>>();
    let (want, got) = (bytes(want), bytes(got));
    assert_eq!(want, got, "{legal:?}");
    got
}

/// `b[i] = f(a[i])` for all elements.
fn map(a: DType, b: DType, n: i64, f: impl Fn(PrimExpr) -> PrimExpr) -> PrimFunc {
    let [a, b] = [("a", a), ("b", b)].map(|(name, d)| Buffer::new(name, vec![PrimExpr::i64(n)], d));
    let i = Var::new("i", DType::I64);
    let value = f(PrimExpr::load(&a, vec![i.expr()]));
    let body = Stmt::serial(i.clone(), PrimExpr::i64(n), Stmt::store(&b, vec![i.expr()], value));
    PrimFunc {
        params: vec![Param::Buffer(a), Param::Buffer(b)],
        attrs: Default::default(),
        body,
        span: Default::default(),
    }
}

/// Every bit pattern of a packed type, and a few more elements so that the last byte is not full.
fn patterns(d: DType) -> TensorBuf {
    let n = (1 << d.bits) + 3;
    let mut b = TensorBuf::zeros(d, &[n]).unwrap();
    (0..n).for_each(|i| b.set_bits(i as usize, i as u64));
    b
}

fn ones(d: DType, n: i64) -> TensorBuf {
    let zeros = TensorBuf::zeros(d, &[n]).unwrap();
    TensorBuf { data: vec![0xff; zeros.data.len()], ..zeros }
}

#[test]
fn casts_of_every_value_and_of_many() {
    let numbers = [
        0.0,
        -0.0,
        0.25,
        0.26,
        0.5,
        0.75,
        0.76,
        1.0,
        1.25,
        1.5,
        1.75,
        2.0,
        2.5,
        2.51,
        3.0,
        3.5,
        4.0,
        4.99,
        5.0,
        5.01,
        6.0,
        7.0,
        8.0,
        15.0,
        16.0,
        200.0,
        1e9,
        -0.3,
        -0.75,
        -1.0,
        -1.9,
        -2.0,
        -3.0,
        -7.9,
        -8.0,
        -9.0,
        -100.0,
        -1e30,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    for name in PACKED {
        let d = dtype(name);
        for other in ["float32", "float64", "float16", "int8", "uint8", "int32", "bool"].map(dtype) {
            let x = patterns(d);
            let n = x.len() as i64;
            same(&map(d, other, n, |a| a.cast(other)), &[x, ones(other, n)]);
            let x = TensorBuf::from_f64(other, &[numbers.len() as i64], &numbers).unwrap();
            let n = x.len() as i64;
            same(&map(other, d, n, |a| a.cast(d)), &[x, ones(d, n)]);
        }
        for other in PACKED {
            let (x, to) = (patterns(d), dtype(other));
            let n = x.len() as i64;
            same(&map(d, to, n, |a| a.cast(to)), &[x, ones(to, n)]);
        }
    }
}

#[test]
fn neighbours_and_the_rest_of_the_last_byte_stay() {
    for (name, n, want) in [("int4", 3, vec![0x21, 0xf3]), ("uint2", 5, vec![0b_00_11_10_01, 0b_11_11_11_01])] {
        let d = dtype(name);
        let mut x = TensorBuf::zeros(d, &[n]).unwrap();
        (0..n).for_each(|i| x.set_bits(i as usize, i as u64 + 1));
        let out = same(&map(d, d, n, |a| a), &[x, ones(d, n)]);
        assert_eq!(out[1], want);
    }
}

#[test]
fn arithmetic_wraps_and_rounds_as_the_type_does() {
    let ops = [
        BinOp::Add,
        BinOp::Sub,
        BinOp::Mul,
        BinOp::Min,
        BinOp::Max,
        BinOp::BitAnd,
        BinOp::BitOr,
        BinOp::BitXor,
        BinOp::FloorDiv,
        BinOp::FloorMod,
        BinOp::Div,
    ];
    for name in PACKED {
        let d = dtype(name);
        let bits =
            |op: &BinOp| matches!(op, BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::FloorDiv | BinOp::FloorMod);
        for op in ops.into_iter().filter(|op| !d.is_float() || !bits(op)) {
            for k in -2..3 {
                let divides = matches!(op, BinOp::FloorDiv | BinOp::FloorMod | BinOp::Div);
                if divides && (k == 0 || d.is_uint() && k < 0 || d.is_float()) || d == DType::I2 && k == 2 {
                    continue;
                }
                let x = patterns(d);
                let n = x.len() as i64;
                let y = PrimExpr::number(d, k as f64);
                same(&map(d, d, n, |a| PrimExpr::binary(op, a, y.clone())), &[x, ones(d, n)]);
            }
        }
        let x = patterns(d);
        let n = x.len() as i64;
        let two = PrimExpr::number(d, 1.0);
        same(&map(d, DType::BOOL, n, |a| PrimExpr::cmp(CmpOp::Lt, a, two.clone())), &[x.clone(), ones(DType::BOOL, n)]);
        same(
            &map(d, d, n, |a| PrimExpr::if_then_else(a.clone().lt(two.clone()), two.clone(), a)),
            &[x.clone(), ones(d, n)],
        );
        same(&map(d, d, n, |a| PrimExpr::call(Intrinsic::Abs, vec![a])), &[x, ones(d, n)]);
    }
}

#[test]
fn transposed_with_odd_extents_through_a_temporary() {
    for name in PACKED {
        let d = dtype(name);
        let dims = |a, b| vec![PrimExpr::i64(a), PrimExpr::i64(b)];
        let [a, t, b] = [("a", dims(3, 5)), ("t", dims(5, 3)), ("b", dims(5, 3))].map(|(n, s)| Buffer::new(n, s, d));
        let copy = |from: &Buffer, to: &Buffer, flip: bool| {
            let (i, j) = (Var::new("i", DType::I64), Var::new("j", DType::I64));
            let at = if flip { vec![j.expr(), i.expr()] } else { vec![i.expr(), j.expr()] };
            let s = Stmt::store(to, vec![i.expr(), j.expr()], PrimExpr::load(from, at));
            Stmt::serial(i, PrimExpr::i64(5), Stmt::serial(j, PrimExpr::i64(3), s))
        };
        let body = Stmt::seq([copy(&a, &t, true), copy(&t, &b, false)]);
        let body = Stmt::Block(Box::new(tvm_ir::tir::Block::root(vec![t], body)));
        let params = vec![Param::Buffer(a), Param::Buffer(b)];
        let f = PrimFunc { params, attrs: Default::default(), body, span: Default::default() };
        let mut x = TensorBuf::zeros(d, &[3, 5]).unwrap();
        (0..15).for_each(|i| x.set_bits(i, i as u64 * 7 + 1));
        same(&f, &[x, TensorBuf::zeros(d, &[5, 3]).unwrap()]);
    }
}

/// A parallel loop of 6 iterations over 3 elements each, and the element they begin with.
fn parallel(name: &str, step: i64, start: i64, inner: i64) -> PrimFunc {
    let b = Buffer::new("b", vec![PrimExpr::i64(40)], dtype(name));
    let (i, j) = (Var::new("i", DType::I64), Var::new("j", DType::I64));
    let store = Stmt::store(&b, vec![i.expr() * step + j.expr() + start], PrimExpr::number(b.dtype, 1.0));
    let Stmt::For(mut l) = Stmt::serial(i, PrimExpr::i64(6), Stmt::serial(j, PrimExpr::i64(inner), store)) else {
        panic!()
    };
    l.kind = ForKind::Parallel;
    PrimFunc { params: vec![Param::Buffer(b)], attrs: Default::default(), body: Stmt::For(l), span: Default::default() }
}

#[test]
fn only_loops_that_own_their_bytes_are_parallel() {
    for (name, step, start, inner, stays) in [
        ("int4", 2, 0, 2, true),
        ("int4", 4, 2, 3, true),
        ("int4", 2, 1, 2, false),
        ("int4", 3, 0, 3, false),
        ("int4", 2, 0, 3, false),
        ("int4", 1, 0, 1, false),
        ("int2", 4, 0, 4, true),
        ("int2", 2, 0, 2, false),
        ("int2", 4, 2, 2, false),
        ("int8", 1, 0, 1, true),
    ] {
        let f = legal(&parallel(name, step, start, inner)).unwrap();
        let mut kinds = Vec::new();
        visit_stmt(&f.body, &mut |s| {
            if let Stmt::For(l) = s {
                kinds.push((l.kind == ForKind::Parallel, l.annotations.contains_key(NOT_PARALLEL)));
            }
        });
        assert_eq!(kinds[0], (stays, !stays), "{name}: {step} * i + {start} + 0..{inner}");
    }
}

#[test]
fn what_has_no_form_is_said() {
    let popcount = map(DType::I4, DType::I32, 4, |a| PrimExpr::call(Intrinsic::Popcount, vec![a]));
    assert!(legal(&popcount).unwrap_err().message.contains("T.popcount of int4"));
    let f = PrimFunc { params: vec![Param::Scalar(Var::new("k", DType::U4))], ..popcount };
    assert!(legal(&f).unwrap_err().message.contains("k is a scalar of uint4"));
}
