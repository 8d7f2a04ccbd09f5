use super::*;
use crate::dtype::DType;
use crate::prim::{BinOp, Buffer, Intrinsic, PrimExpr, Range, Var};
use crate::tir::{Block, IterKind, IterVar, Param, Stmt};

fn func(params: &[&Buffer], body: Stmt) -> PrimFunc {
    PrimFunc {
        params: params.iter().map(|b| Param::Buffer((*b).clone())).collect(),
        attrs: Default::default(),
        body,
        span: Span::NONE,
    }
}

fn v(name: &str) -> Var {
    Var::new(name, DType::I64)
}

fn c(x: i64) -> PrimExpr {
    PrimExpr::i64(x)
}

fn iter(name: &str, extent: PrimExpr, kind: IterKind, binding: &Var) -> IterVar {
    IterVar { var: v(name), dom: Range::to(extent), kind, binding: binding.expr() }
}

/// `c[n, m] += a[n, k] * b[k, m]`, with an init, under loops n, m, k.
fn matmul(dtype: DType, n: PrimExpr, m: PrimExpr, k: PrimExpr) -> PrimFunc {
    let a = Buffer::new("a", vec![n.clone(), k.clone()], dtype);
    let b = Buffer::new("b", vec![k.clone(), m.clone()], dtype);
    let out = Buffer::new("c", vec![n.clone(), m.clone()], dtype);
    let (i, j, l) = (v("i"), v("j"), v("k"));
    let iters = vec![
        iter("vi", n.clone(), IterKind::Spatial, &i),
        iter("vj", m.clone(), IterKind::Spatial, &j),
        iter("vk", k.clone(), IterKind::Reduce, &l),
    ];
    let [vi, vj, vk] = [0, 1, 2].map(|x: usize| iters[x].var.expr());
    let at = vec![vi.clone(), vj.clone()];
    let product = PrimExpr::load(&a, vec![vi, vk.clone()]) * PrimExpr::load(&b, vec![vk, vj]);
    let block = Block {
        name: "matmul".into(),
        iters,
        init: Some(Stmt::store(&out, at.clone(), PrimExpr::zero(dtype))),
        ..Block::root(Vec::new(), Stmt::store(&out, at.clone(), PrimExpr::load(&out, at) + product))
    };
    let nest = Stmt::serial(i, n, Stmt::serial(j, m, Stmt::serial(l, k, Stmt::Block(Box::new(block)))));
    func(&[&a, &b, &out], Stmt::Block(Box::new(Block::root(Vec::new(), nest))))
}

fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919) % 1000) as f32 / 500.0 - 1.0).collect()
}

#[test]
fn matmul_symbolic() {
    let (n, m) = (v("n"), v("m"));
    let f = matmul(DType::F32, n.expr(), m.expr(), c(5));
    let (x, y) = (ramp(15), ramp(20));
    let mut args = [
        TensorBuf::from_f32(&[3, 5], &x).unwrap(),
        TensorBuf::from_f32(&[5, 4], &y).unwrap(),
        TensorBuf::zeros(DType::F32, &[3, 4]).unwrap(),
    ];
    // What the output held before does not matter.
    args[2].data.fill(0xff);
    run(&f, &mut args).unwrap();
    let got = args[2].to_f32();
    for i in 0..3 {
        for j in 0..4 {
            let want = (0..5).fold(0f32, |s, k| s + x[i * 5 + k] * y[k * 4 + j]);
            assert_eq!(got[i * 4 + j], want);
        }
    }
    args[1] = TensorBuf::zeros(DType::F32, &[6, 4]).unwrap();
    assert!(run(&f, &mut args).unwrap_err().message.contains("`b` has shape [6, 4], expected [5, 4]"));
}

/// The time of 51 million steps, printed with `--nocapture`.
#[test]
fn matmul_speed() {
    // Unoptimised builds run a tenth of it.
    let (n, k, m) = (if cfg!(debug_assertions) { 24 } else { 256 }, 784, 256);
    let f = matmul(DType::F32, c(n), c(m), c(k));
    let mut args = [
        TensorBuf::from_f32(&[n, k], &ramp(usize::try_from(n * k).unwrap())).unwrap(),
        TensorBuf::from_f32(&[k, m], &ramp(784 * 256)).unwrap(),
        TensorBuf::zeros(DType::F32, &[n, m]).unwrap(),
    ];
    let start = std::time::Instant::now();
    run(&f, &mut args).unwrap();
    println!("{n}x{k}x{m}: {:?}", start.elapsed());
    let (x, y, z) = (args[0].to_f32(), args[1].to_f32(), args[2].to_f32());
    let want = (0..784).fold(0f32, |s, k| s + x[3 * 784 + k] * y[k * 256 + 9]);
    assert_eq!(z[3 * 256 + 9], want);
}

/// `out[i] = value(i)` for `i < n`.
fn map(params: &[&Buffer], out: &Buffer, n: i64, value: impl Fn(PrimExpr) -> PrimExpr) -> PrimFunc {
    let i = v("i");
    let store = Stmt::store(out, vec![i.expr()], value(i.expr()));
    func(params, Stmt::serial(i, c(n), store))
}

fn buffer(name: &str, n: i64, dtype: DType) -> Buffer {
    Buffer::new(name, vec![c(n)], dtype)
}

/// Applies `f` to two vectors of values.
fn apply2(
    dtype: DType,
    to: DType,
    x: &TensorBuf,
    y: &TensorBuf,
    f: impl Fn(PrimExpr, PrimExpr) -> PrimExpr,
) -> Result<TensorBuf, Diag> {
    let n = x.shape[0];
    let (a, b, o) = (buffer("a", n, dtype), buffer("b", n, dtype), buffer("o", n, to));
    let f = map(&[&a, &b, &o], &o, n, |i| f(PrimExpr::load(&a, vec![i.clone()]), PrimExpr::load(&b, vec![i])));
    let mut args = [x.clone(), y.clone(), TensorBuf::zeros(to, &[n]).unwrap()];
    run(&f, &mut args)?;
    let [_, _, out] = args;
    Ok(out)
}

const INTS: [i64; 15] = [0, 1, -1, 2, 3, -7, 7, 100, 127, -128, 255, 1 << 31, (1 << 31) - 1, i64::MAX, i64::MIN];

#[test]
fn integer_operators_agree_with_constant_folding() {
    let ops = [
        BinOp::Add,
        BinOp::Sub,
        BinOp::Mul,
        BinOp::Div,
        BinOp::Mod,
        BinOp::FloorDiv,
        BinOp::FloorMod,
        BinOp::Min,
        BinOp::Max,
        BinOp::BitAnd,
        BinOp::BitOr,
        BinOp::BitXor,
        BinOp::Shl,
        BinOp::Shr,
    ];
    for name in ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "int4", "uint4", "int24"] {
        let d: DType = name.parse().unwrap();
        for op in ops {
            for x in INTS {
                for y in INTS {
                    let want = crate::prim::eval_int(op, d, crate::prim::wrap_int(d, x), crate::prim::wrap_int(d, y));
                    let [x, y] = [x, y].map(|v| TensorBuf::from_i64(d, &[1], &[v]).unwrap());
                    let got = apply2(d, d, &x, &y, |a, b| PrimExpr::binary(op, a, b));
                    match (want, got) {
                        (Some(want), Ok(got)) => assert_eq!(got.get_i64(0), want, "{x:?} {op:?} {y:?}"),
                        (None, Err(e)) => {
                            assert!(e.message.contains("zero") || e.message.contains("shift"), "{e}");
                        }
                        (want, got) => panic!("{x:?} {op:?} {y:?}: {want:?}, {got:?}"),
                    }
                }
            }
        }
    }
}

#[test]
fn float_operators_round_to_their_type() {
    let values = [0.0, -0.0, 1.0, -2.5, 0.1, 3.0, 1e-3, 60000.0, f64::INFINITY, f64::NAN, 1e-7];
    for name in ["float16", "bfloat16", "float32", "float64", "float8_e5m2", "float8_e4m3fn"] {
        let d: DType = name.parse().unwrap();
        type Case = (BinOp, fn(f64, f64) -> f64);
        let ops: [Case; 6] = [
            (BinOp::Add, |a, b| a + b),
            (BinOp::Sub, |a, b| a - b),
            (BinOp::Mul, |a, b| a * b),
            (BinOp::Div, |a, b| a / b),
            (BinOp::Min, scalar::min_f64),
            (BinOp::Max, scalar::max_f64),
        ];
        for (op, f) in ops {
            for x in values {
                for y in values {
                    let [a, b] = [x, y].map(|v| TensorBuf::from_f64(d, &[1], &[v]).unwrap());
                    let want = crate::float::round_to(d, f(a.get_f64(0), b.get_f64(0)));
                    let got = apply2(d, d, &a, &b, |a, b| PrimExpr::binary(op, a, b)).unwrap().get_f64(0);
                    assert!(got == want || got.is_nan() && want.is_nan(), "{d}: {x} {op:?} {y} is {got}, not {want}");
                }
            }
        }
    }
}

#[test]
fn casts() {
    let cast = |from: DType, v: f64, to: DType| {
        let x = TensorBuf::from_f64(from, &[1], &[v]).unwrap();
        apply2(from, to, &x, &x, |a, _| a.cast(to)).unwrap().get_f64(0)
    };
    assert_eq!(cast(DType::F32, 3.99, DType::I32), 3.0);
    assert_eq!(cast(DType::F32, -1e30, DType::I32), f64::from(i32::MIN));
    assert_eq!(cast(DType::F32, f64::NAN, DType::I8), 0.0);
    assert_eq!(cast(DType::F64, 300.0, DType::U8), 255.0);
    assert_eq!(cast(DType::I32, 300.0, DType::U8), 44.0);
    assert_eq!(cast(DType::I32, -1.0, DType::U64), 18446744073709551615.0);
    assert_eq!(cast(DType::I32, 7.0, DType::BOOL), 1.0);
    assert_eq!(cast(DType::F32, 0.5, DType::BOOL), 1.0);
    assert_eq!(cast(DType::F64, 0.1, DType::F16), 0.0999755859375);
    assert_eq!(cast(DType::I32, 2049.0, DType::F16), 2048.0);
    assert_eq!(cast(DType::F16, 65504.0, DType::BF16), 65536.0);
    assert_eq!(cast(DType::F32, 1e9, "float8_e4m3fn".parse().unwrap()), 448.0);
    assert_eq!(cast(DType::F32, -3.0, DType::I4), -3.0);
}

#[test]
fn intrinsics() {
    let unary = |f: Intrinsic, d: DType, v: f64| {
        let x = TensorBuf::from_f64(d, &[1], &[v]).unwrap();
        let to = f.result_type(&[PrimExpr::zero(d)]);
        apply2(d, to, &x, &x, |a, _| PrimExpr::call(f, vec![a])).unwrap().get_f64(0)
    };
    assert_eq!(unary(Intrinsic::Exp, DType::F32, 1.0), f64::from(std::f32::consts::E));
    assert_eq!(unary(Intrinsic::Erf, DType::F32, 0.5), f64::from(0.520_499_9f32));
    assert_eq!(unary(Intrinsic::Round, DType::F32, 2.5), 2.0);
    assert_eq!(unary(Intrinsic::Sigmoid, DType::F16, 0.0), 0.5);
    assert_eq!(unary(Intrinsic::IsNan, DType::F32, f64::NAN), 1.0);
    assert_eq!(unary(Intrinsic::Popcount, DType::U8, 255.0), 8.0);
    assert_eq!(unary(Intrinsic::Abs, DType::I32, -5.0), 5.0);
    assert_eq!(unary(Intrinsic::Rsqrt, DType::F32, 4.0), 0.5);
    let two = |f: Intrinsic, x: f64, y: f64| {
        let [x, y] = [x, y].map(|v| TensorBuf::from_f64(DType::F32, &[1], &[v]).unwrap());
        apply2(DType::F32, DType::F32, &x, &y, |a, b| PrimExpr::call(f, vec![a, b])).unwrap().get_f64(0)
    };
    assert_eq!(two(Intrinsic::Pow, 2.0, 10.0), 1024.0);
    assert_eq!(two(Intrinsic::Fmod, -7.0, 3.0), -1.0);
    assert_eq!(two(Intrinsic::Copysign, 7.0, -0.0), -7.0);
    let x = TensorBuf::from_f32(&[1], &[1.0]).unwrap();
    let bits = apply2(DType::F32, DType::I32, &x, &x, |a, _| {
        PrimExpr::new(crate::prim::PrimKind::Call(Intrinsic::Reinterpret, vec![a]), DType::I32)
    });
    assert_eq!(bits.unwrap().get_i64(0), 0x3f80_0000);
    let x = TensorBuf::from_f64(DType::I32, &[1], &[1.0]).unwrap();
    let wrong = apply2(DType::I32, DType::I32, &x, &x, |a, _| PrimExpr::call(Intrinsic::Exp, vec![a]));
    assert!(wrong.unwrap_err().message.contains("`exp` is not defined for int32"));
}

#[test]
fn accesses_out_of_bounds_are_errors() {
    let (a, o) = (buffer("a", 4, DType::F32), buffer("o", 8, DType::F32));
    let args = || [TensorBuf::from_f32(&[4], &ramp(4)).unwrap(), TensorBuf::zeros(DType::F32, &[8]).unwrap()];
    let at = |i: PrimExpr| PrimExpr::load(&a, vec![i]);
    let plain = map(&[&a, &o], &o, 8, at);
    let e = run(&plain, &mut args()).unwrap_err();
    assert_eq!(e.message, "index 4 of dimension 0 of buffer `a` is out of bounds (extent 4)");
    let negative = map(&[&a, &o], &o, 8, |i| at(i - 1));
    assert!(run(&negative, &mut args()).unwrap_err().message.starts_with("index -1 "));
    // Guards keep the access from happening.
    let zero = || PrimExpr::zero(DType::F32);
    for f in [PrimExpr::if_then_else, PrimExpr::select] {
        let guarded = map(&[&a, &o], &o, 8, |i| f(i.clone().lt(4), at(i), zero()));
        let mut args = args();
        run(&guarded, &mut args).unwrap();
        assert_eq!(args[1].to_f32()[..5], [&ramp(4)[..], &[0.0]].concat());
    }
    let both = map(&[&a, &o], &o, 8, |i| {
        PrimExpr::select(i.clone().lt(4).and(at(i).gt(zero())), PrimExpr::float(DType::F32, 1.0), zero())
    });
    run(&both, &mut args()).unwrap();
}

#[test]
fn reductions_over_two_loops_initialise_once() {
    let a = Buffer::new("a", vec![c(2), c(3), c(4)], DType::I32);
    let o = buffer("o", 2, DType::I32);
    let (i, j, k) = (v("i"), v("j"), v("k"));
    let iters = vec![
        iter("vi", c(2), IterKind::Spatial, &i),
        iter("vj", c(3), IterKind::Reduce, &j),
        iter("vk", c(4), IterKind::Reduce, &k),
    ];
    let [vi, vj, vk] = [0, 1, 2].map(|x: usize| iters[x].var.expr());
    let acc = PrimExpr::load(&o, vec![vi.clone()]);
    let block = Block {
        iters,
        predicate: k.expr().lt(3),
        init: Some(Stmt::store(&o, vec![vi.clone()], PrimExpr::int(DType::I32, 100))),
        ..Block::root(Vec::new(), Stmt::store(&o, vec![vi.clone()], acc + PrimExpr::load(&a, vec![vi, vj, vk])))
    };
    let nest = Stmt::serial(i, c(2), Stmt::serial(j, c(3), Stmt::serial(k, c(4), Stmt::Block(Box::new(block)))));
    let values: Vec<i64> = (0..24).collect();
    let mut args =
        [TensorBuf::from_i64(DType::I32, &[2, 3, 4], &values).unwrap(), TensorBuf::zeros(DType::I32, &[2]).unwrap()];
    run(&func(&[&a, &o], nest), &mut args).unwrap();
    let sum = |base: i64| 100 + (0..3).flat_map(|j| (0..3).map(move |k| base + j * 4 + k)).sum::<i64>();
    assert_eq!(args[1].to_i64(), [sum(0), sum(12)]);
}

#[test]
fn while_assert_let_and_scalars() {
    let o = buffer("o", 1, DType::I64);
    let n = Var::new("n", DType::I64);
    let limit = Var::new("limit", DType::I64);
    let at = || PrimExpr::load(&o, vec![c(0)]);
    let body = Stmt::seq([
        Stmt::Assert(Box::new(crate::tir::AssertStmt { cond: n.expr().gt(0), message: "n must be positive".into() })),
        Stmt::store(&o, vec![c(0)], c(1)),
        Stmt::Let(Box::new(crate::tir::LetStmt {
            var: limit.clone(),
            value: n.expr() * 10,
            body: Stmt::While(Box::new(crate::tir::While {
                cond: at().lt(&limit),
                body: Stmt::store(&o, vec![c(0)], at() * 2),
            })),
        })),
    ]);
    let f = PrimFunc { params: vec![Param::Scalar(n), Param::Buffer(o.clone())], ..func(&[], body) };
    let call = |n| {
        let mut args = [TensorBuf::scalar_i64(DType::I64, n).unwrap(), TensorBuf::zeros(DType::I64, &[1]).unwrap()];
        run(&f, &mut args).map(|()| args[1].get_i64(0))
    };
    assert_eq!(call(5).unwrap(), 64);
    assert_eq!(call(0).unwrap_err().message, "assertion failed: n must be positive");
    // A loop without an end is given up on request.
    let forever = func(
        &[&o],
        Stmt::While(Box::new(crate::tir::While { cond: at().ge(0), body: Stmt::store(&o, vec![c(0)], c(1)) })),
    );
    let mut args = [TensorBuf::zeros(DType::I64, &[1]).unwrap()];
    let e = run_with(&forever, &mut args, &Options { max_iterations: 1000, ..Options::default() }).unwrap_err();
    assert!(e.message.contains("1000 loop iterations"));
}

#[test]
fn poisoned_memory() {
    let (o, t) = (buffer("o", 4, DType::F32), buffer("t", 4, DType::F32));
    let (i, j) = (v("i"), v("j"));
    let program = |n: i64| {
        let fill = Stmt::serial(i.clone(), c(n), Stmt::store(&t, vec![i.expr()], PrimExpr::float(DType::F32, 2.0)));
        let copy = Stmt::serial(j.clone(), c(4), Stmt::store(&o, vec![j.expr()], PrimExpr::load(&t, vec![j.expr()])));
        func(&[&o], Stmt::Block(Box::new(Block::root(vec![t.clone()], Stmt::seq([fill, copy])))))
    };
    let options = Options { poison: true, ..Options::default() };
    let mut args = [TensorBuf::zeros(DType::F32, &[4]).unwrap()];
    run_with(&program(4), &mut args, &options).unwrap();
    assert_eq!(args[0].to_f32(), [2.0; 4]);
    let e = run_with(&program(3), &mut args, &options).unwrap_err();
    assert_eq!(e.message, "element 3 of buffer `t` is read before it is written");
    run(&program(3), &mut args).unwrap();
}

#[test]
fn vectors() {
    let (a, o) = (buffer("a", 16, DType::F32), buffer("o", 16, DType::F32));
    let i = v("i");
    let at = |stride: i64| PrimExpr::ramp(i.expr() * 4, c(stride), 4);
    let value = PrimExpr::load(&a, vec![at(1)]) * PrimExpr::float(DType::F32, 2.0);
    let f = func(&[&a, &o], Stmt::serial(i.clone(), c(4), Stmt::store(&o, vec![at(1)], value)));
    let x = ramp(16);
    let mut args = [TensorBuf::from_f32(&[16], &x).unwrap(), TensorBuf::zeros(DType::F32, &[16]).unwrap()];
    run(&f, &mut args).unwrap();
    assert_eq!(args[1].to_f32(), x.iter().map(|v| v * 2.0).collect::<Vec<_>>());
    let beyond =
        func(&[&a, &o], Stmt::serial(i.clone(), c(4), Stmt::store(&o, vec![at(3)], PrimExpr::load(&a, vec![at(1)]))));
    assert!(run(&beyond, &mut args).unwrap_err().message.contains("index 17 of dimension 0 of buffer `o`"));
}

/// A product that a `let` names is read twice, also where a sum could have taken it in.
#[test]
fn named_products_stay() {
    let (a, b, o) = (buffer("a", 8, DType::F32), buffer("b", 8, DType::F32), buffer("o", 8, DType::F32));
    let (i, t) = (v("i"), Var::new("t", DType::F32));
    let (x, y) = (PrimExpr::load(&a, vec![i.expr()]), PrimExpr::load(&b, vec![i.expr()]));
    let sum = (t.expr() + y.clone()) * t.expr();
    let body =
        Stmt::Let(Box::new(crate::tir::LetStmt { var: t, value: x * y, body: Stmt::store(&o, vec![i.expr()], sum) }));
    let f = func(&[&a, &b, &o], Stmt::serial(i, c(8), body));
    let (x, y) = (ramp(8), ramp(16)[8..].to_vec());
    let mut args = [&x, &y, &x].map(|v| TensorBuf::from_f32(&[8], v).unwrap());
    run(&f, &mut args).unwrap();
    let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| (x * y + y) * (x * y)).collect();
    assert_eq!(args[2].to_f32(), want);
}

#[test]
fn barriers_between_threads_are_refused() {
    let o = buffer("o", 4, DType::F32);
    let i = v("i");
    let sync = Stmt::Evaluate(PrimExpr::call(Intrinsic::StorageSync, vec![PrimExpr::str("shared")]));
    let store = Stmt::store(&o, vec![i.expr()], PrimExpr::float(DType::F32, 1.0));
    let bound = |body: Stmt| {
        let crate::tir::Stmt::For(mut l) = Stmt::serial(i.clone(), c(4), body) else { unreachable!() };
        l.kind = crate::tir::ForKind::ThreadBinding("threadIdx.x".into());
        func(&[&o], Stmt::For(l))
    };
    let mut args = [TensorBuf::zeros(DType::F32, &[4]).unwrap()];
    run(&bound(store.clone()), &mut args).unwrap();
    assert_eq!(args[0].to_f32(), [1.0; 4]);
    assert!(run(&bound(Stmt::seq([store, sync])), &mut args).unwrap_err().message.contains("barrier"));
}

#[test]
fn wrong_arguments_are_errors() {
    let f = matmul(DType::F32, c(2), c(2), c(2));
    let good = || TensorBuf::zeros(DType::F32, &[2, 2]).unwrap();
    let fails = |args: &mut [TensorBuf], text: &str| {
        let e = run(&f, args).unwrap_err();
        assert!(e.message.contains(text), "{e}");
    };
    fails(&mut [good(), good()], "2 arguments for a function of 3 parameters");
    fails(
        &mut [good(), good(), TensorBuf::zeros(DType::F64, &[2, 2]).unwrap()],
        "is of type float64, expected float32",
    );
    fails(&mut [good(), good(), TensorBuf::zeros(DType::F32, &[4]).unwrap()], "has rank 1, expected 2");
    fails(&mut [good(), TensorBuf { data: vec![0; 3], ..good() }, good()], "holds 3 bytes");
}

#[test]
fn external_functions_cannot_be_run() {
    let text = "@R.function\ndef main(x: R.Tensor((2,), \"float32\")):\n    y = R.call_dps_packed(\"f\", (x,), out_sinfo=R.Tensor((2,), \"float32\"))\n    return y\n";
    let mut sources = crate::span::SourceMap::default();
    let module = crate::syntax::parse_module(&mut sources, "m.py", text, Default::default()).unwrap();
    let x = relax::Value::tensor(TensorBuf::zeros(DType::F32, &[2]).unwrap());
    let error = relax::run_function(&module, "main", &[x]).unwrap_err();
    let shown = crate::render::render(&error, &sources);
    assert!(shown.contains("f is external: the interpreter cannot call it") && shown.contains("m.py:3:9"), "{shown}");
}

/// The same with constants that are read where they lie; one that is stored to is copied before.
#[test]
fn constants_are_read_where_they_lie() {
    use crate::constant::{Bytes, Constant};
    let (from, to, k, i) =
        (Buffer::new("a", vec![c(4)], DType::F32), Buffer::new("b", vec![c(4)], DType::F32), v("k"), v("i"));
    let at = || vec![i.expr()];
    let twice = PrimExpr::load(&from, at()) + PrimExpr::load(&from, at());
    let body = Stmt::Seq(vec![Stmt::store(&to, at(), twice), Stmt::store(&from, at(), PrimExpr::zero(DType::F32))]);
    let mut f = func(&[&from, &to], Stmt::serial(i.clone(), c(4), body));
    f.params.push(Param::Scalar(k));
    let bytes: Vec<u8> = [1f32, 2.0, 3.0, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let a = Constant::new(DType::F32, vec![4], Bytes::new(bytes.clone())).unwrap();
    let rest = || vec![TensorBuf::zeros(DType::F32, &[4]).unwrap(), TensorBuf::scalar_i64(DType::I64, 1).unwrap()];
    let results = run_on_constants(&f, &[&a], rest(), &Options::default()).unwrap();
    assert_eq!(results[0].to_f32(), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(results.len(), 2);
    assert_eq!(a.data()[..], bytes[..]);
    let short = Constant::new(DType::F32, vec![3], Bytes::new(bytes[..12].to_vec())).unwrap();
    assert!(run_on_constants(&f, &[&short], rest(), &Options::default()).is_err());
    assert!(run_on_constants(&f, &[&a, &a, &a, &a], Vec::new(), &Options::default()).is_err());
    let mut cut = rest();
    cut[0].data.pop();
    let error = run_on_constants(&f, &[&a], cut, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("holds 15 bytes"), "{error}");
}
