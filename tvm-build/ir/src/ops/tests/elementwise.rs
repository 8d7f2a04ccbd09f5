//! Element-wise ops and reductions against plain loops.

use super::eval::{Array, Random, check, eval, indices};
use super::samples::{call, ints, nothing, of};
use crate::dtype::DType;
use crate::prim::PrimExpr;
use crate::relax::Leaf;

const F: DType = DType::F32;

/// An op and what it computes of an element.
type Single<T> = (&'static str, fn(T) -> T);

fn floats() -> Vec<Single<f64>> {
    vec![
        ("abs", f64::abs),
        ("acos", f64::acos),
        ("acosh", f64::acosh),
        ("asin", f64::asin),
        ("asinh", f64::asinh),
        ("atan", f64::atan),
        ("atanh", f64::atanh),
        ("ceil", f64::ceil),
        ("cos", f64::cos),
        ("cosh", f64::cosh),
        ("exp", f64::exp),
        ("floor", f64::floor),
        ("isfinite", |x| f64::from(u8::from(x.is_finite()))),
        ("isinf", |x| f64::from(u8::from(x.is_infinite()))),
        ("isnan", |x| f64::from(u8::from(x.is_nan()))),
        ("log", f64::ln),
        ("negative", |x| -x),
        ("nn.gelu_tanh", |x| 0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x)).tanh())),
        ("nn.relu", |x| if x.is_nan() { x } else { x.max(0.0) }),
        ("nn.selu", |x| 1.050_700_987_355_480_5 * if x > 0.0 { x } else { 1.673_263_242_354_377_2 * (x.exp() - 1.0) }),
        ("nn.silu", |x| x / (1.0 + (-x).exp())),
        ("round", |x| x.round_ties_even()),
        ("rsqrt", |x| 1.0 / x.sqrt()),
        ("sigmoid", |x| 1.0 / (1.0 + (-x).exp())),
        ("sign", |x| {
            if x > 0.0 {
                1.0
            } else if x < 0.0 {
                -1.0
            } else {
                x * 0.0
            }
        }),
        ("sin", f64::sin),
        ("sinh", f64::sinh),
        ("sqrt", f64::sqrt),
        ("square", |x| x * x),
        ("tan", f64::tan),
        ("tanh", f64::tanh),
        ("trunc", f64::trunc),
    ]
}

#[test]
fn unary() {
    let special = [0.5, -0.5, 1.5, 2.5, -2.5, 0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.25, -3.75];
    let n = i64::try_from(special.len()).unwrap();
    let x = Array { shape: vec![n], data: special.to_vec() };
    for (name, f) in floats() {
        let finite_only = matches!(name, "nn.selu" | "nn.silu" | "nn.gelu_tanh");
        let mut x = x.clone();
        if finite_only {
            x.data.iter_mut().for_each(|v| *v = if v.is_finite() { *v } else { 3.0 });
        }
        check(&call(name, vec![of("x", &[n], F)], nothing()), std::slice::from_ref(&x), &[n], 1e-6, |i| f(x.at(i)));
    }
    let erf = eval(&call("erf", vec![of("x", &[n], F)], nothing()), std::slice::from_ref(&x));
    assert!((erf.data[0] - 0.520_499_877_813_046_5).abs() < 1e-6 && erf.data[8] == 1.0 && erf.data[10].is_nan());
    let gelu = eval(&call("nn.gelu", vec![of("x", &[n], F)], nothing()), std::slice::from_ref(&x));
    assert!((gelu.data[7] - 0.841_344_746_068_542_9).abs() < 1e-6, "{:?}", gelu.data);
}

#[test]
fn unary_of_integers() {
    let x = Array { shape: vec![4], data: vec![-128.0, -3.0, 0.0, 127.0] };
    let ints: [Single<i8>; 7] = [
        ("abs", i8::wrapping_abs),
        ("negative", i8::wrapping_neg),
        ("sign", i8::signum),
        ("bitwise_not", |x| !x),
        ("square", |x| x.wrapping_mul(x)),
        ("nn.relu", |x| x.max(0)),
        ("floor", |x| x),
    ];
    for (name, f) in ints {
        let call = call(name, vec![of("x", &[4], DType::I8)], nothing());
        check(&call, std::slice::from_ref(&x), &[4], 0.0, |i| f64::from(f(x.at(i) as i8)));
    }
}

/// An op and what it computes of two elements.
type Pair<T> = (&'static str, fn(T, T) -> T);

fn truth(b: bool) -> f64 {
    f64::from(u8::from(b))
}

fn pairs() -> Vec<Pair<f64>> {
    vec![
        ("add", |a, b| a + b),
        ("atan2", f64::atan2),
        ("divide", |a, b| a / b),
        ("equal", |a, b| truth(a == b)),
        ("floor_divide", |a, b| (a / b).floor()),
        ("floor_mod", |a, b| a - (a / b).floor() * b),
        ("greater", |a, b| truth(a > b)),
        ("greater_equal", |a, b| truth(a >= b)),
        ("less", |a, b| truth(a < b)),
        ("less_equal", |a, b| truth(a <= b)),
        ("log_add_exp", |a, b| (a.exp() + b.exp()).ln()),
        ("maximum", |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }),
        ("minimum", |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }),
        ("mod", |a, b| a % b),
        ("multiply", |a, b| a * b),
        ("not_equal", |a, b| truth(a != b)),
        ("power", f64::powf),
        ("subtract", |a, b| a - b),
    ]
}

#[test]
fn binary_broadcasts() {
    let mut random = Random::new(1);
    for (name, f) in pairs() {
        for _ in 0..6 {
            let out = random.shape(3);
            let skip = usize::try_from(random.int(0, 3)).unwrap();
            let a = out.clone();
            let b: Vec<i64> = out[skip..].iter().map(|d| if random.int(0, 2) == 0 { 1 } else { *d }).collect();
            let (x, mut y) = (random.array(&a, F), random.array(&b, F));
            if name.contains("mod") || name.contains("divide") {
                y.data.iter_mut().for_each(|v| *v = if *v == 0.0 { 2.0 } else { *v });
            }
            let call = call(name, vec![of("x", &a, F), of("y", &b, F)], nothing());
            check(&call, &[x.clone(), y.clone()], &out, 1e-5, |i| f(x.at(i), y.broadcast_at(i)));
        }
    }
    let nan = Array { shape: vec![3], data: vec![f64::NAN, 1.0, f64::NEG_INFINITY] };
    let other = Array { shape: vec![3], data: vec![1.0, f64::NAN, f64::NEG_INFINITY] };
    for (name, f) in pairs().into_iter().filter(|(n, _)| matches!(*n, "maximum" | "minimum" | "not_equal" | "less")) {
        let call = call(name, vec![of("x", &[3], F), of("y", &[3], F)], nothing());
        check(&call, &[nan.clone(), other.clone()], &[3], 0.0, |i| f(nan.at(i), other.at(i)));
    }
    let log = call("log_add_exp", vec![of("x", &[3], F), of("y", &[3], F)], nothing());
    assert_eq!(eval(&log, &[nan, other]).data[2], f64::NEG_INFINITY);
}

#[test]
fn binary_of_integers() {
    let mut random = Random::new(2);
    let ops: [Pair<i64>; 11] = [
        ("add", |a, b| a + b),
        ("bitwise_and", |a, b| a & b),
        ("bitwise_or", |a, b| a | b),
        ("bitwise_xor", |a, b| a ^ b),
        ("divide", |a, b| a / b),
        ("floor_divide", |a, b| a.div_euclid(b) - i64::from(b < 0 && a.rem_euclid(b) != 0)),
        ("floor_mod", |a, b| ((a % b) + b) % b),
        ("mod", |a, b| a % b),
        ("maximum", i64::max),
        ("left_shift", |a, b| a << b.unsigned_abs()),
        ("right_shift", |a, b| a >> b.unsigned_abs()),
    ];
    for (name, f) in ops {
        let x = random.array(&[40], DType::I32);
        let mut y = random.array(&[40], DType::I32);
        for v in &mut y.data {
            *v = match *v {
                v if name.contains("shift") => v.abs(),
                v if v == 0.0 && !name.contains("bit") => -3.0,
                v => v,
            };
        }
        let call = call(name, vec![of("x", &[40], DType::I32), of("y", &[40], DType::I32)], nothing());
        check(&call, &[x.clone(), y.clone()], &[40], 0.0, |i| f(x.at(i) as i64, y.at(i) as i64) as f64);
    }
    let x = Array { shape: vec![3], data: vec![-2.0, 3.0, 10.0] };
    let power = call("power", vec![of("x", &[3], DType::I64), Leaf::Prim(PrimExpr::i64(3))], nothing());
    check(&power, std::slice::from_ref(&x), &[3], 0.0, |i| x.at(i).powi(3));
}

#[test]
fn conversions() {
    let x = Array { shape: vec![6], data: vec![-1.5, 2.9, 300.0, f64::NAN, 0.0, -0.25] };
    let to = |dtype: DType| {
        eval(&call("astype", vec![of("x", &[6], F)], &[("dtype", dtype.into())]), std::slice::from_ref(&x)).data
    };
    assert_eq!(to(DType::I32), [-1.0, 2.0, 300.0, 0.0, 0.0, 0.0]);
    assert_eq!(to(DType::BOOL), [1.0, 1.0, 1.0, 1.0, 0.0, 1.0]);
    let clip = call(
        "clip",
        vec![of("x", &[6], F), Leaf::Prim(PrimExpr::i64(-1)), Leaf::Prim(PrimExpr::float(F, 2.5))],
        nothing(),
    );
    let got = eval(&clip, std::slice::from_ref(&x)).data;
    assert!(got[3].is_nan());
    assert_eq!([got[0], got[1], got[2]], [-1.0, 2.5, 2.5]);
    let y = call("where", vec![of("c", &[2, 1], DType::BOOL), of("x", &[3], F), of("y", &[], F)], nothing());
    let c = Array { shape: vec![2, 1], data: vec![0.0, 1.0] };
    let (a, b) = (Random::new(3).array(&[3], F), Array { shape: vec![], data: vec![9.0] });
    check(&y, &[c.clone(), a.clone(), b], &[2, 3], 0.0, |i| if i[0] == 1 { a.at(&i[1..]) } else { 9.0 });
}

/// The values that a result reduces over.
fn slice(x: &Array, axes: &[usize], keep: bool, index: &[i64]) -> Vec<f64> {
    let own: Vec<i64> = if keep {
        index.iter().enumerate().filter(|(a, _)| !axes.contains(a)).map(|(_, i)| *i).collect()
    } else {
        index.to_vec()
    };
    let fits =
        |i: &[i64]| i.iter().enumerate().filter(|(a, _)| !axes.contains(a)).map(|(_, v)| *v).eq(own.iter().copied());
    indices(&x.shape).iter().filter(|i| fits(i)).map(|i| x.at(i)).collect()
}

#[test]
fn reductions() {
    let mut random = Random::new(4);
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let variance = move |v: &[f64]| v.iter().map(|x| (x - mean(v)).powi(2)).sum::<f64>() / v.len() as f64;
    for axes in [vec![], vec![0], vec![2], vec![0, 1], vec![0, 1, 2]] {
        for keep in [false, true] {
            for round in 0..4 {
                let mut shape = random.shape(3);
                if round == 3 && axes.contains(&1) {
                    shape[1] = 0;
                }
                let x = random.array(&shape, F);
                let out: Vec<i64> = (0..3)
                    .filter(|a| keep || !axes.contains(a))
                    .map(|a| if axes.contains(&a) { 1 } else { shape[a] })
                    .collect();
                let list: Vec<i64> = axes.iter().map(|a| i64::try_from(*a).unwrap() - 3).collect();
                let run = |name: &str, f: &dyn Fn(&[f64]) -> f64| {
                    let call =
                        call(name, vec![of("x", &shape, F)], &[("axis", ints(&list)), ("keepdims", keep.into())]);
                    check(&call, std::slice::from_ref(&x), &out, 1e-5, |i| f(&slice(&x, &axes, keep, i)));
                };
                run("sum", &|v| v.iter().sum());
                run("prod", &|v| v.iter().map(|x| *x as f32).product::<f32>().into());
                run("max", &|v| v.iter().copied().fold(f64::NEG_INFINITY, f64::max));
                run("min", &|v| v.iter().copied().fold(f64::INFINITY, f64::min));
                if shape.iter().all(|d| *d > 0) {
                    run("mean", &mean);
                    run("variance", &variance);
                    run("std", &|v| variance(v).sqrt());
                }
            }
        }
    }
}

#[test]
fn extremes_of_special_values() {
    let one = |name: &str, data: &[f64]| {
        let n = i64::try_from(data.len()).unwrap();
        let x = Array { shape: vec![n], data: data.to_vec() };
        eval(&call(name, vec![of("x", &[n], F)], nothing()), &[x]).data[0]
    };
    assert!(one("max", &[1.0, f64::NAN, 2.0]).is_nan() && one("min", &[f64::NAN, 1.0]).is_nan());
    assert_eq!(one("max", &[f64::NEG_INFINITY; 3]), f64::NEG_INFINITY);
    assert_eq!(one("argmax", &[f64::NEG_INFINITY; 3]), 0.0);
    assert_eq!(one("argmax", &[1.0, 3.0, 3.0]), 1.0);
    assert_eq!(one("argmin", &[2.0, 0.0, 0.0]), 1.0);
    let mut random = Random::new(5);
    let x = random.array(&[3, 4, 5], F);
    let arg = call("argmax", vec![of("x", &[3, 4, 5], F)], &[("axis", 1.into())]);
    check(&arg, std::slice::from_ref(&x), &[3, 5], 0.0, |i| {
        let v: Vec<f64> = (0..4).map(|k| x.at(&[i[0], k, i[1]])).collect();
        let best = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        v.iter().position(|x| *x == best).unwrap() as f64
    });
}
