use super::build::*;
use tvm_ir::dtype::DType;
use tvm_ir::lowered::{Expr, ExprKind, Stmt};
use tvm_ir::prim::{BinOp, CmpOp, Intrinsic};
use tvm_ir::target::Target;

fn f32s(b: &[u8]) -> Vec<f32> {
    b.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
}

#[test]
fn lets_ramps_gathers_selects() {
    // out = gather(x, 15 - ramp) where out-of-order lanes below 8 are doubled
    for lanes in [4u16, 8, 16] {
        let n = i64::from(lanes);
        let at = e(
            DType::I32.with_lanes(lanes),
            ExprKind::Ramp(Box::new(int(DType::I32, n - 1)), Box::new(int(DType::I32, -1))),
        );
        let f = DType::F32.with_lanes(lanes);
        let g = e(f, ExprKind::Gather { pointer: local("x"), index: Box::new(var("at", at.dtype)) });
        let body = vec![
            Stmt::Let { var: local("at"), value: at.clone() },
            Stmt::Let { var: local("g"), value: g },
            store(
                "out",
                int(DType::I64, 0),
                select(
                    cmp(CmpOp::Lt, var("at", at.dtype), broadcast(int(DType::I32, 2), lanes)),
                    bin(BinOp::Add, var("g", f), var("g", f)),
                    var("g", f),
                ),
            ),
        ];
        let k = kernel("gather", &[("x", DType::F32, false), ("out", DType::F32, true)], body);
        let x: Vec<f32> = (0..lanes).map(f32::from).collect();
        let expected: Vec<f32> =
            (0..lanes).rev().map(|i| if i < 2 { 2.0 * f32::from(i) } else { f32::from(i) }).collect();
        for r in run_everywhere(&k, &[bytes!(x), vec![0; x.len() * 4]]) {
            assert_eq!(f32s(&r[1]), expected);
        }
    }
}

#[test]
fn one_condition_chooses_between_a_load_and_a_constant() {
    for lanes in [2u16, 4, 8] {
        let f = DType::F32.with_lanes(lanes);
        let load = load("x", f, int(DType::I64, 1));
        let body = vec![store(
            "out",
            int(DType::I64, 0),
            select(
                cmp(CmpOp::Lt, int(DType::I32, 1), int(DType::I32, 2)),
                load,
                broadcast(float(DType::F32, 0.0), lanes),
            ),
        )];
        let k = kernel("choose", &[("x", DType::F32, false), ("out", DType::F32, true)], body);
        let x: Vec<f32> = (0..=lanes).map(f32::from).collect();
        for r in run_everywhere(&k, &[bytes!(x), vec![0; usize::from(lanes) * 4]]) {
            assert_eq!(f32s(&r[1]), x[1..]);
        }
    }
}

#[test]
fn every_second_element() {
    for lanes in [2u16, 4, 8, 16] {
        let f = DType::F32.with_lanes(lanes);
        let index = Expr {
            dtype: DType::I32.with_lanes(lanes),
            kind: ExprKind::Ramp(Box::new(int(DType::I32, 1)), Box::new(int(DType::I32, 2))),
        };
        let g = e(f, ExprKind::Gather { pointer: local("x"), index: Box::new(index) });
        let body = vec![store("out", int(DType::I64, 0), g)];
        let k = kernel("every", &[("x", DType::F32, false), ("out", DType::F32, true)], body);
        // The last element read is the buffer's last.
        let x: Vec<f32> = (0..2 * lanes).map(f32::from).collect();
        let expected: Vec<f32> = (0..lanes).map(|i| f32::from(2 * i + 1)).collect();
        for r in run_everywhere(&k, &[bytes!(x), vec![0; expected.len() * 4]]) {
            assert_eq!(f32s(&r[1]), expected);
        }
    }
}

#[test]
fn odd_lanes_become_loops() {
    let k = map(&[DType::F32, DType::F32], DType::F32, 9, 3, |a| bin(BinOp::Mul, a[0].clone(), a[1].clone()));
    let x: Vec<f32> = (0..9u8).map(f32::from).collect();
    for r in run(&k, &[bytes!(x), bytes!(x), vec![0; 36]], &[]) {
        assert_eq!(f32s(&r[2]), x.iter().map(|v| v * v).collect::<Vec<_>>());
    }
}

#[test]
fn every_math_function_exists_for_every_float() {
    use Intrinsic::*;
    let unary = [
        Abs, Acos, Acosh, Asin, Asinh, Atan, Atanh, Ceil, Cos, Cosh, Erf, Exp, Exp10, Exp2, Floor, Log, Log10, Log1p,
        Log2, Nearbyint, Round, Rsqrt, Sigmoid, Sin, Sinh, Sqrt, Tan, Tanh, Trunc,
    ];
    let binary = [Atan2, Copysign, Fmod, Hypot, Ldexp, Nextafter, Pow];
    let reference = |f: Intrinsic, x: f64, y: f64| -> Option<f64> {
        Some(match f {
            Abs => x.abs(),
            Acos => x.acos(),
            Asin => x.asin(),
            Asinh => x.asinh(),
            Atan => x.atan(),
            Atanh => x.atanh(),
            Ceil => x.ceil(),
            Cos => x.cos(),
            Cosh => x.cosh(),
            Exp => x.exp(),
            Exp10 => 10f64.powf(x),
            Exp2 => x.exp2(),
            Floor => x.floor(),
            Log => x.ln(),
            Log10 => x.log10(),
            Log1p => x.ln_1p(),
            Log2 => x.log2(),
            Nearbyint | Round => x.round_ties_even(),
            Rsqrt => 1.0 / x.sqrt(),
            Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Sin => x.sin(),
            Sinh => x.sinh(),
            Sqrt => x.sqrt(),
            Tan => x.tan(),
            Tanh => x.tanh(),
            Trunc => x.trunc(),
            Atan2 => x.atan2(y),
            Copysign => x.copysign(y),
            Fmod => x % y,
            Hypot => x.hypot(y),
            Pow => x.powf(y),
            _ => return None,
        })
    };
    let x: [f64; 4] = [0.25, 0.5, 0.75, 0.875];
    let y: [f64; 4] = [2.0, 0.5, -0.25, 1.0];
    let to_half = |v: f64| -> u16 { ((v as f32).to_bits() >> 16) as u16 };
    for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F64, 1e-14), (DType::BF16, 1e-2)] {
        for lanes in [1u16, 4] {
            let t = dtype.with_lanes(lanes);
            let width = usize::from(dtype.bits) / 8;
            let encode = |v: &[f64; 4]| -> Vec<u8> {
                match width {
                    8 => bytes!(v),
                    4 => bytes!(v.map(|x| x as f32)),
                    _ => bytes!(v.map(to_half)),
                }
            };
            let mut body = Vec::new();
            let all: Vec<Intrinsic> = unary.iter().chain(&binary).copied().collect();
            for (k, f) in all.iter().enumerate() {
                for i in (0..4).step_by(usize::from(lanes)) {
                    let at = int(DType::I64, i as i64);
                    let mut args = vec![load("x", t, at.clone())];
                    if binary.contains(f) {
                        args.push(load("y", t, at));
                    }
                    body.push(store("out", int(DType::I64, (4 * k + i) as i64), call(*f, t, args)));
                }
            }
            let k = kernel("math", &[("x", dtype, false), ("y", dtype, false), ("out", dtype, true)], body);
            for r in run(&k, &[encode(&x), encode(&y), vec![0; all.len() * 4 * width]], &[]) {
                for (k, f) in all.iter().enumerate() {
                    for i in 0..4 {
                        let Some(expected) = reference(*f, x[i], y[i]) else { continue };
                        let at = &r[2][(4 * k + i) * width..][..width];
                        let got = match width {
                            8 => f64::from_le_bytes(at.try_into().unwrap()),
                            4 => f64::from(f32::from_le_bytes(at.try_into().unwrap())),
                            _ => f64::from(f32::from_bits(u32::from(u16::from_le_bytes(at.try_into().unwrap())) << 16)),
                        };
                        let close = (got - expected).abs() <= tolerance * expected.abs().max(1.0);
                        assert!(
                            close || (got.is_nan() && expected.is_nan()),
                            "{f:?} {dtype} {}: {got} {expected}",
                            x[i]
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn unaligned_access_is_one_instruction() {
    let k = map(&[DType::F32], DType::F32, 64, 8, |a| bin(BinOp::Add, a[0].clone(), a[0].clone()));
    let text = source(&k, &Target::named("x86-64-v3").unwrap());
    assert!(text.contains("*(const tvm_f32x8u *)&x[i * 8]"), "{text}");
    assert!(!text.contains("memcpy"));
    let generic = source(&k, &Target::default());
    assert!(!generic.contains("vector_size"), "{generic}");
}
