//! The functions of `prelude/approx.h` against the C library's in `double`, over a dense sweep of `float`.

use super::build::*;
use tvm_ir::dtype::DType;
use tvm_ir::prim::Intrinsic;

/// Every 4099th float of both signs, those around the limits, and the special values.
fn sweep() -> Vec<f32> {
    let mut v: Vec<f32> = (0..=u32::MAX / 4099).map(|k| f32::from_bits(k * 4099)).filter(|x| x.is_finite()).collect();
    for limit in [0.0f32, 0.625, 1.0, 2.0, 4.0, 88.72284, 89.0, -87.33655, -103.97208, -104.0, 0.707, 1.414] {
        for d in -200..=200i32 {
            v.push(f32::from_bits(limit.to_bits().wrapping_add_signed(d)));
        }
    }
    v.retain(|x| x.is_finite());
    v.extend([f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN, 1e-45, -1e-45]);
    while v.len() % 16 != 0 {
        v.push(0.5);
    }
    v
}

fn floats(b: &[u8]) -> Vec<f32> {
    b.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
}

fn ulp(x: f64) -> f64 {
    let x = x.abs().max(f64::from(f32::MIN_POSITIVE));
    let e = x.log2().floor().clamp(-126.0, 127.0);
    2f64.powf(e - 23.0)
}

fn worst(f: Intrinsic, bound: f64) {
    let x = sweep();
    let n = x.len() as i64;
    let exact = map(&[DType::F32], DType::F64, n, 1, |a| call(f, DType::F64, vec![cast(a[0].clone(), DType::F64)]));
    let reference: Vec<f64> = run(&exact, &[bytes!(x), vec![0; x.len() * 8]], &[])[0][1]
        .chunks(8)
        .map(|c| f64::from_le_bytes(c.try_into().unwrap()))
        .collect();
    for lanes in [1u16, 8] {
        let t = DType::F32.with_lanes(lanes);
        let k = map(&[DType::F32], DType::F32, n, lanes, |a| call(f, t, vec![a[0].clone()]));
        for result in run(&k, &[bytes!(x), vec![0; x.len() * 4]], &[]) {
            let (mut most, mut at) = (0.0, 0.0);
            for ((x, y), r) in x.iter().zip(floats(&result[1])).zip(&reference) {
                let rounded = *r as f32;
                if y == rounded || (y.is_nan() && r.is_nan()) {
                    continue;
                }
                let error = if rounded.is_infinite() != y.is_infinite() && (r.abs() > 3.4028235e38) {
                    f64::from(y.abs() < f32::MAX) * 1e9
                } else {
                    (f64::from(y) - r).abs() / ulp(*r)
                };
                if error > most || error.is_nan() {
                    (most, at) = (error, *x);
                }
            }
            assert!(most <= bound, "{f:?} of {at:e} with {lanes} lanes: {most} ulp");
        }
    }
}

#[test]
fn exp() {
    worst(Intrinsic::Exp, 2.0);
}

#[test]
fn log() {
    worst(Intrinsic::Log, 2.0);
}

#[test]
fn sigmoid() {
    worst(Intrinsic::Sigmoid, 3.0);
}

#[test]
fn tanh() {
    worst(Intrinsic::Tanh, 3.0);
}

#[test]
fn erf() {
    worst(Intrinsic::Erf, 3.0);
}
