use super::build::*;
use tvm_ir::dtype::DType;
use tvm_ir::lowered::{Expr, ExprKind};
use tvm_ir::prim::{BinOp, CmpOp, Intrinsic, eval_int};

const OPS: &[BinOp] = &[
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

fn samples(dtype: DType) -> Vec<i64> {
    let bits = u32::from(dtype.bits);
    let mut v = vec![
        0,
        1,
        2,
        3,
        7,
        -1,
        -2,
        -7,
        100,
        1i64 << (bits - 2),
        1i64 << (bits - 1),
        (1i64 << (bits - 1)).wrapping_sub(1),
    ];
    v.push(0x1234_5678_9abc_def1);
    v
}

fn pack(dtype: DType, v: &[i64]) -> Vec<u8> {
    v.iter().flat_map(|x| x.to_le_bytes()[..usize::from(dtype.bits) / 8].to_vec()).collect()
}

/// Pairs of samples, as many as fill whole vectors.
fn pairs(dtype: DType, lanes: u16) -> (Vec<i64>, Vec<i64>) {
    let s: Vec<i64> = samples(dtype).into_iter().map(|v| tvm_ir::prim::wrap_int(dtype, v)).collect();
    let (mut a, mut b): (Vec<i64>, Vec<i64>) = s.iter().flat_map(|x| s.iter().map(move |y| (*x, *y))).unzip();
    while a.len() % usize::from(lanes) != 0 {
        a.push(1);
        b.push(1);
    }
    (a, b)
}

/// Applies every operator to every pair of samples.
fn operators(dtype: DType, lanes: u16) -> Job {
    let (a, b) = pairs(dtype, lanes);
    let n = a.len() as i64;
    let i = bin(BinOp::Mul, var("i", DType::I64), int(DType::I64, i64::from(lanes)));
    let body = OPS
        .iter()
        .enumerate()
        .map(|(k, op)| {
            let at = bin(BinOp::Add, int(DType::I64, k as i64 * n), i.clone());
            let x = load("x", dtype.with_lanes(lanes), i.clone());
            let y = load("y", dtype.with_lanes(lanes), i.clone());
            store("out", at, bin(*op, x, y))
        })
        .collect();
    let k = kernel(
        "ops",
        &[("x", dtype, false), ("y", dtype, false), ("out", dtype, true)],
        vec![for_loop("i", n / i64::from(lanes), body)],
    );
    let out = vec![0u8; pack(dtype, &a).len() * OPS.len()];
    Job::new(k, vec![pack(dtype, &a), pack(dtype, &b), out])
}

/// Scalars and vectors of every integer type agree with `eval_int`.
#[test]
fn integer_operators() {
    let types = [DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64];
    let all: Vec<(DType, u16)> = types.iter().flat_map(|d| [(*d, 1), (*d, 8)]).collect();
    let mut jobs: Vec<Job> = all.iter().map(|(d, lanes)| operators(*d, *lanes)).collect();
    for results in run_jobs(&mut jobs) {
        for ((dtype, lanes), result) in all.iter().zip(results) {
            let (a, b) = pairs(*dtype, *lanes);
            let width = usize::from(dtype.bits) / 8;
            for (k, op) in OPS.iter().enumerate() {
                for (i, (x, y)) in a.iter().zip(&b).enumerate() {
                    let got = &result[2][(k * a.len() + i) * width..][..width];
                    if let Some(expected) = eval_int(*op, *dtype, *x, *y) {
                        assert_eq!(got, &expected.to_le_bytes()[..width], "{op:?} {dtype}x{lanes} {x} {y}");
                    }
                }
            }
        }
    }
}

#[test]
fn float_to_integer_saturates() {
    let values: Vec<f32> = vec![
        0.0,
        -0.9,
        0.9,
        1.5,
        -1.5,
        127.5,
        128.0,
        -128.5,
        -129.0,
        255.9,
        256.0,
        1e9,
        -1e9,
        2147483648.0,
        -2147483648.0,
        9.3e18,
        -9.3e18,
        1.9e19,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        3e38,
    ];
    let types = [DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64];
    let all: Vec<(DType, u16)> = types.iter().flat_map(|d| [(*d, 1), (*d, 2)]).collect();
    let n = values.len() as i64;
    let job = |(to, lanes): &(DType, u16)| {
        let k = map(&[DType::F32], *to, n, *lanes, |a| cast(a[0].clone(), to.with_lanes(*lanes)));
        Job::new(k, vec![bytes!(values), vec![0; usize::from(to.bits) / 8 * values.len()]])
    };
    for results in run_jobs(&mut all.iter().map(job).collect::<Vec<_>>()) {
        for ((to, _), result) in all.iter().zip(results) {
            let width = usize::from(to.bits) / 8;
            for (i, v) in values.iter().enumerate() {
                let expected = match (to.is_int(), to.bits) {
                    (true, 8) => i64::from(*v as i8),
                    (true, 16) => i64::from(*v as i16),
                    (true, 32) => i64::from(*v as i32),
                    (true, _) => *v as i64,
                    (_, 8) => i64::from(*v as u8),
                    (_, 16) => i64::from(*v as u16),
                    (_, 32) => i64::from(*v as u32),
                    _ => *v as u64 as i64,
                };
                assert_eq!(&result[1][i * width..][..width], &expected.to_le_bytes()[..width], "{v} to {to}");
            }
        }
    }
}

/// Nearest value of a format by search: the reference for conversions.
fn all_half(bf: bool) -> Vec<(u16, f64)> {
    (0..=0xffffu16)
        .map(|h| {
            let (exp_bits, man) = if bf { (8, 7) } else { (5, 10) };
            let bias = (1 << (exp_bits - 1)) - 1;
            let e = i32::from(h >> man) & ((1 << exp_bits) - 1);
            let m = f64::from(h & ((1 << man) - 1));
            let scale = f64::from(1u32 << man);
            let v = if e == (1 << exp_bits) - 1 {
                if m == 0.0 { f64::INFINITY } else { f64::NAN }
            } else if e == 0 {
                m / scale * 2f64.powi(1 - bias)
            } else {
                (1.0 + m / scale) * 2f64.powi(e - bias)
            };
            (h, if h >> 15 == 1 { -v } else { v })
        })
        .collect()
}

#[test]
fn narrow_floats_round_to_nearest_even() {
    for (dtype, bf) in [(DType::F16, false), (DType::BF16, true)] {
        let table = all_half(bf);
        // Every value widens exactly and comes back; every midpoint goes to the even neighbour, a bit beside it to the nearer.
        let bits: Vec<u16> = table.iter().map(|(h, _)| *h).collect();
        let widen = map(&[dtype], DType::F32, 65536, 1, |a| cast(a[0].clone(), DType::F32));
        for result in run(&widen, &[bytes!(bits), vec![0; 4 * 65536]], &[]) {
            for (h, v) in &table {
                let got = f32::from_le_bytes(result[1][usize::from(*h) * 4..][..4].try_into().unwrap());
                assert!(f64::from(got).to_bits() == v.to_bits() || (got.is_nan() && v.is_nan()), "{h:04x} {got} {v}");
            }
        }
        let (mut inputs, mut expected) = (Vec::<f64>::new(), Vec::<u16>::new());
        let infinity = if bf { 0x7f80 } else { 0x7c00u16 };
        for h in 0..infinity {
            let (a, b) = (table[usize::from(h)].1, table[usize::from(h) + 1].1);
            let b = if b.is_infinite() { a + (a - table[usize::from(h) - 1].1) } else { b };
            let middle = a + (b - a) / 2.0;
            let even = if h % 2 == 0 { h } else { h + 1 };
            let (below, above) = (f64::from_bits(middle.to_bits() - 1), f64::from_bits(middle.to_bits() + 1));
            for (x, y) in [(a, h), (middle, even), (below, h), (above, h + 1)] {
                inputs.extend([x, -x]);
                expected.extend([y, y | 0x8000]);
            }
        }
        let n = inputs.len() as i64;
        let from64 = map(&[DType::F64], dtype, n, 1, |a| cast(a[0].clone(), dtype));
        for result in run(&from64, &[bytes!(inputs), vec![0; 2 * inputs.len()]], &[]) {
            assert!(result[1] == bytes!(expected), "{dtype} from float64");
        }
        let singles: Vec<f32> = inputs.iter().map(|x| *x as f32).collect();
        let from32 = map(&[DType::F32], dtype, n, 2, |a| cast(a[0].clone(), dtype.with_lanes(2)));
        for result in run(&from32, &[bytes!(singles), vec![0; 2 * inputs.len()]], &[]) {
            for (i, x) in singles.iter().enumerate() {
                if f64::from(*x) == inputs[i] {
                    let got = u16::from_le_bytes(result[1][2 * i..][..2].try_into().unwrap());
                    assert_eq!(got, expected[i], "{x} to {dtype}");
                }
            }
        }
    }
}

#[test]
fn float8_values_come_back() {
    use tvm_ir::dtype::TypeCode::*;
    for code in [Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ] {
        let dtype = DType::new(code, 8);
        let all: Vec<u8> = (0..=255).collect();
        let k = map(&[dtype], dtype, 256, 1, |a| {
            let two = float(dtype, 2.0);
            // x * 2 / 2 goes through float and back twice; exact unless it overflows.
            let doubled = bin(BinOp::Mul, a[0].clone(), two.clone());
            let same = bin(BinOp::Div, doubled.clone(), two);
            let fits = cmp(CmpOp::Lt, call(Intrinsic::Abs, dtype, vec![a[0].clone()]), float(dtype, 100.0));
            select(fits, same, a[0].clone())
        });
        for result in run(&k, &[all.clone(), vec![0; 256]], &[]) {
            assert_eq!(result[1], all, "{dtype}");
        }
    }
    let e4m3 = DType::new(Float8E4M3FN, 8);
    let values = [448.0f32, 464.0, 465.0, 0.001953125, 0.0009765625, f32::from_bits(0x3a80_0001), -0.3, f32::INFINITY];
    let k = map(&[DType::F32], e4m3, 8, 1, |a| cast(a[0].clone(), e4m3));
    for result in run(&k, &[bytes!(values), vec![0; 8]], &[]) {
        assert_eq!(result[1], [0x7e, 0x7e, 0x7e, 0x01, 0x00, 0x01, 0xaa, 0x7e]);
    }
}

#[test]
fn float8_widens_exactly() {
    use tvm_ir::dtype::TypeCode::*;
    let all: Vec<u8> = (0..=255).collect();
    for code in [Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ, Float8E8M0FNU] {
        let dtype = DType::new(code, 8);
        let k = map(&[dtype], DType::F32, 256, 1, |a| cast(a[0].clone(), DType::F32));
        for result in run(&k, &[all.clone(), vec![0; 1024]], &[]) {
            for (bits, got) in all.iter().zip(result[1].chunks_exact(4)) {
                let got = f64::from(f32::from_le_bytes(got.try_into().unwrap()));
                let wanted = tvm_ir::float::decode(dtype, u64::from(*bits));
                assert!(got == wanted || got.is_nan() && wanted.is_nan(), "{dtype} {bits:#x}: {got}, not {wanted}");
            }
        }
    }
}

#[test]
fn float8_casts_round_and_saturate_as_the_reference() {
    use tvm_ir::dtype::TypeCode::*;
    let mut values = vec![f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN, 0.0, -0.0, 1e-30];
    values.extend((0..248).map(|i| (f32::from(i as u16) - 120.0).signum() * (f32::from(i as u16) / 12.0 - 9.0).exp2()));
    for code in [Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ, Float8E8M0FNU] {
        let dtype = DType::new(code, 8);
        let k = map(&[DType::F32], dtype, 256, 1, |a| cast(a[0].clone(), dtype));
        for result in run(&k, &[bytes!(values), vec![0; 256]], &[]) {
            for (v, got) in values.iter().zip(&result[1]) {
                let wanted = tvm_ir::float::encode(dtype, f64::from(*v));
                let nan = |b: u64| tvm_ir::float::decode(dtype, b).is_nan();
                let got = u64::from(*got);
                assert!(got == wanted || nan(got) && nan(wanted), "{dtype} of {v}: {got:#x}, not {wanted:#x}");
            }
        }
    }
}

#[test]
fn nan_propagates_through_min_and_max() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let x = [nan, 1.0, nan, 1.0, 2.0, -inf, inf, -1.0];
    let y = [1.0, nan, nan, 2.0, 1.0, inf, -inf, 0.0];
    for lanes in [1, 4] {
        for (op, expected) in [
            (BinOp::Max, [nan, nan, nan, 2.0, 2.0, inf, inf, 0.0]),
            (BinOp::Min, [nan, nan, nan, 1.0, 1.0, -inf, -inf, -1.0]),
        ] {
            let k = map(&[DType::F32, DType::F32], DType::F32, 8, lanes, |a| bin(op, a[0].clone(), a[1].clone()));
            for result in run(&k, &[bytes!(x), bytes!(y), vec![0; 32]], &[]) {
                for (i, e) in expected.iter().enumerate() {
                    let got = f32::from_le_bytes(result[2][i * 4..][..4].try_into().unwrap());
                    assert!(got == *e || (got.is_nan() && e.is_nan()), "{op:?} {} {}: {got}", x[i], y[i]);
                }
            }
        }
        let relu = map(&[DType::F32], DType::F32, 8, lanes, |a| {
            let zero = float(DType::F32, 0.0);
            bin(BinOp::Max, a[0].clone(), if lanes > 1 { broadcast(zero, lanes) } else { zero })
        });
        for result in run(&relu, &[bytes!(x), vec![0; 32]], &[]) {
            let got = f32::from_le_bytes(result[1][..4].try_into().unwrap());
            assert!(got.is_nan());
            assert_eq!(result[1][28..], 0f32.to_le_bytes());
        }
    }
}

#[test]
fn literals() {
    let values = [i64::MIN, i64::MAX, -1, 0, i64::from(i32::MIN), i64::from(i32::MIN) - 1, 4294967296];
    let body =
        values.iter().enumerate().map(|(i, v)| store("out", int(DType::I64, i as i64), int(DType::I64, *v))).collect();
    let k = kernel("ints", &[("out", DType::I64, true)], body);
    for r in run(&k, &[vec![0; 56]], &[]) {
        assert_eq!(r[0], bytes!(values));
    }
    let values = [f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, f32::MAX, -0.0, 1e-45, 0.1, 16777216.0];
    let body = values
        .iter()
        .enumerate()
        .map(|(i, v)| store("out", int(DType::I64, i as i64), float(DType::F32, f64::from(*v))))
        .collect();
    let k = kernel("floats", &[("out", DType::F32, true)], body);
    for r in run(&k, &[vec![0; 32]], &[]) {
        assert_eq!(r[0], bytes!(values));
    }
    // Literals that C would add in `int`.
    let big = |v| int(DType::I64, v);
    let k = kernel(
        "sums",
        &[("out", DType::I64, true)],
        vec![store("out", big(0), bin(BinOp::Mul, big(2_000_000_000), big(2_000_000_000)))],
    );
    for r in run(&k, &[vec![0; 8]], &[]) {
        assert_eq!(r[0], 4_000_000_000_000_000_000i64.to_le_bytes());
    }
}

#[test]
fn bits() {
    let v: Vec<u32> = vec![0, 1, 0x8000_0000, 0x00ff_0000, u32::MAX, 12345];
    let clz = map(&[DType::U32], DType::I32, 6, 1, |a| call(Intrinsic::Clz, DType::I32, vec![a[0].clone()]));
    let pop = map(&[DType::U32], DType::U32, 6, 1, |a| call(Intrinsic::Popcount, DType::U32, vec![a[0].clone()]));
    let not = map(&[DType::U32], DType::U32, 6, 1, |a| call(Intrinsic::BitNot, DType::U32, vec![a[0].clone()]));
    let expected: [Vec<u32>; 3] = [
        v.iter().map(|x| x.leading_zeros()).collect(),
        v.iter().map(|x| x.count_ones()).collect(),
        v.iter().map(|x| !x).collect(),
    ];
    for (k, expected) in [clz, pop, not].iter().zip(expected) {
        for r in run(k, &[bytes!(v), vec![0; 24]], &[]) {
            assert_eq!(r[1], bytes!(expected));
        }
    }
}

#[test]
fn bools() {
    let v: Vec<i32> = vec![-1, 0, 1, 2, 3, 4, 5, 6];
    for lanes in [1, 8] {
        let lit = |x: i64| if lanes > 1 { broadcast(int(DType::I32, x), lanes) } else { int(DType::I32, x) };
        let b = DType::BOOL.with_lanes(lanes);
        let k = map(&[DType::I32], DType::BOOL, 8, lanes, |a| {
            let x = a[0].clone();
            let both = ExprKind::And(
                Box::new(cmp(CmpOp::Gt, x.clone(), lit(0))),
                Box::new(e(b, ExprKind::Not(Box::new(cmp(CmpOp::Eq, x.clone(), lit(3)))))),
            );
            e(b, ExprKind::Or(Box::new(e(b, both)), Box::new(cast(cmp(CmpOp::Lt, x, lit(0)), b))))
        });
        for r in run(&k, &[bytes!(v), vec![9; 8]], &[]) {
            assert_eq!(r[1], [1, 0, 1, 1, 0, 1, 1, 1]);
        }
        // A float chosen by a stored bool.
        let k = map(&[DType::BOOL, DType::F64], DType::F64, 8, lanes, |a: Vec<Expr>| {
            let zero = float(DType::F64, 0.5);
            select(a[0].clone(), a[1].clone(), if lanes > 1 { broadcast(zero, lanes) } else { zero })
        });
        let x: Vec<f64> = (0..8).map(f64::from).collect();
        for r in run(&k, &[vec![1, 0, 1, 1, 0, 1, 1, 0], bytes!(x), vec![0; 64]], &[]) {
            assert_eq!(r[2], bytes!([0.0, 0.5, 2.0, 3.0, 0.5, 5.0, 6.0, 0.5f64]));
        }
    }
}
