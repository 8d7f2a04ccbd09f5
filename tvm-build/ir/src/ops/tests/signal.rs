//! Fourier transforms, determinants, counts and reads at places from data, against plain loops.

use super::eval::{Array, Random, check, eval};
use super::samples::{Add, call, ints, of, prim, shape};
use crate::attrs::AttrValue;
use crate::dtype::DType;
use crate::relax::Leaf;

const F: DType = DType::F32;

/// Samples of the rows of these families.
pub(super) fn samples(add: &mut Add<'_>) {
    let x = |dims: &[i64]| of("x", dims, F);
    let flags = |inverse: bool, onesided: bool| {
        vec![("inverse", AttrValue::from(inverse)), ("onesided", onesided.into()), ("axis", 1.into())]
    };
    add("dft", vec![x(&[2, 5, 1]), prim(5)], &flags(false, false), &[2, 5, 2], F);
    add("dft", vec![x(&[2, 5, 2]), prim(7)], &flags(true, false), &[2, 7, 2], F);
    add("dft", vec![x(&[2, 5, 1]), prim(4)], &flags(false, true), &[2, 3, 2], F);
    add("dft", vec![x(&[2, 5, 2]), prim(9)], &flags(true, true), &[2, 9, 1], F);
    add("dft", vec![of("x", &[4, 2], DType::F16), prim(4)], &[], &[4, 2], DType::F16);
    add("stft", vec![x(&[2, 11, 1]), of("w", &[4], F), prim(4), prim(3)], &[], &[2, 3, 3, 2], F);
    add("stft", vec![x(&[2, 11, 2]), Leaf::Absent, prim(5), prim(2)], &[("onesided", false.into())], &[2, 4, 5, 2], F);
    add("linalg.det", vec![x(&[2, 3, 3])], &[], &[2], F);
    add("linalg.det", vec![of("x", &[4, 4], DType::F64)], &[], &[], DType::F64);
    for name in ["random.normal", "random.uniform"] {
        add(name, vec![shape(&[3, 4])], &[("seed", 7.into())], &[3, 4], F);
        add(name, vec![shape(&[5])], &[("seed", (-1).into()), ("dtype", DType::F16.into())], &[5], DType::F16);
    }
    let why = [("message", AttrValue::from("it has no \"shape\"")), ("dtype", DType::I32.into())];
    add("fail", vec![shape(&[2, 3])], &why, &[2, 3], DType::I32);
    let heads = |q: i64| vec![of("q", &[1, 5, q, 3], F), of("k", &[1, 5, 2, 3], F), of("v", &[1, 5, 2, 4], F)];
    add("nn.linear_attention", heads(2), &[], &[1, 5, 2, 4], F);
    let gates = [of("p", &[1, 2, 3, 4], F), of("d", &[1, 5, 2, 1], F), of("b", &[1, 5, 1], F)];
    add("nn.linear_attention", heads(4).into_iter().chain(gates).collect(), &[("scale", 0.5.into())], &[1, 5, 4, 4], F);
    let i = |name: &str, dims: &[i64]| of(name, dims, DType::I64);
    add("ngram_count", vec![i("x", &[2, 6]), i("g", &[3, 1])], &[("max_skip", 2.into())], &[2, 3], F);
    let deformable = [
        ("strides", ints(&[2, 1])),
        ("padding", ints(&[1, 0, 1, 1])),
        ("dilation", ints(&[1, 2])),
        ("deformable_groups", 2.into()),
        ("groups", 2.into()),
    ];
    let data = || x(&[1, 4, 5, 6]);
    let (offset, mask) = (|| of("o", &[1, 24, 3, 5], F), || of("m", &[1, 12, 3, 5], F));
    let weight = || of("w", &[2, 2, 3, 2], F);
    add("nn.deformable_conv2d", vec![data(), offset(), weight(), mask()], &deformable, &[1, 2, 3, 5], F);
    add("nn.deformable_conv2d", vec![data(), offset(), weight()], &deformable, &[1, 2, 3, 5], F);
    let table = |name: &str, n: i64| of(name, &[n], DType::I64);
    let nodes = ["f", "m"].map(|name| table(name, 3)).into_iter().chain([of("s", &[3], F)]);
    let nodes = nodes.chain(["n", "t", "e"].map(|name| table(name, 3)));
    let trees = [x(&[4, 2]), table("r", 2)].into_iter().chain(nodes).chain([table("l", 4), of("w", &[4], F)]);
    add("tree_ensemble", trees.collect(), &[("n_targets", 2.into()), ("depth", 3.into())], &[4, 2], F);
    for mode in ["avg", "max"] {
        let attrs = [("pooled_size", ints(&[2, 3])), ("spatial_scale", 0.5.into()), ("mode", mode.into())];
        add("vision.roi_align", vec![x(&[1, 3, 5, 6]), of("r", &[0, 5], F)], &attrs, &[0, 3, 2, 3], F);
    }
}

#[test]
fn attention_to_a_state() {
    let mut random = Random::new(75);
    let (q, k, v) = (random.array(&[1, 4, 4, 3], F), random.array(&[1, 4, 2, 3], F), random.array(&[1, 4, 2, 2], F));
    let past = random.array(&[1, 2, 3, 2], F);
    let decay = Array::new(&[1, 4, 2, 3], |i| -0.1 * (i[1] + i[3]) as f64);
    let beta = Array::new(&[1, 4, 1], |i| 0.25 * (i[1] + 1) as f64);
    let inputs = [q, k, v, past, decay, beta];
    let args = inputs.iter().map(|a| of("t", &a.shape, F)).collect();
    let c = call("nn.linear_attention", args, &[("scale", 0.5.into())]);
    let [q, k, v, past, decay, beta] = &inputs;
    check(&c, &inputs, &[1, 4, 4, 2], 1e-4, |i| {
        let (head, m) = (i[2] / 2, i[3]);
        let mut state: Vec<f64> = (0..3).map(|d| past.at(&[0, head, d, m])).collect();
        for t in 0..=i[1] {
            let key = |d: usize| k.at(&[0, t, head, d as i64]);
            for (d, s) in state.iter_mut().enumerate() {
                *s *= decay.at(&[0, t, head, d as i64]).exp();
            }
            let recalled: f64 = state.iter().enumerate().map(|(d, s)| s * key(d)).sum();
            let own = beta.at(&[0, t, 0]) * (v.at(&[0, t, head, m]) - recalled);
            for (d, s) in state.iter_mut().enumerate() {
                *s += key(d) * own;
            }
        }
        state.iter().enumerate().map(|(d, s)| 0.5 * s * q.at(&[0, i[1], i[2], d as i64])).sum()
    });
}

#[test]
fn random_numbers() {
    let draw = |name: &str, seed: i64, dtype: DType| {
        let attrs = [("seed", AttrValue::from(seed)), ("dtype", dtype.into())];
        eval(&call(name, vec![shape(&[64, 64])], &attrs), &[]).data
    };
    for dtype in [F, DType::F64] {
        for seed in [0, 1, -5] {
            let uniform = draw("random.uniform", seed, dtype);
            assert!(uniform.iter().all(|v| (0.0..1.0).contains(v)));
            let mut counts = [0; 8];
            uniform.iter().for_each(|v| counts[(v * 8.0) as usize] += 1);
            assert!(counts.iter().all(|n| (420..604).contains(n)), "{counts:?}");
            let normal = draw("random.normal", seed, dtype);
            let mean = normal.iter().sum::<f64>() / 4096.0;
            let variance = normal.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 4096.0;
            assert!(mean.abs() < 0.06 && (variance - 1.0).abs() < 0.1, "{mean} {variance}");
            // Neighbours have nothing to do with each other.
            let product: f64 = normal.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / 4095.0;
            assert!(product.abs() < 0.07, "{product}");
        }
    }
    assert_eq!(draw("random.uniform", 3, F), draw("random.uniform", 3, F));
    assert_ne!(draw("random.uniform", 3, F), draw("random.uniform", 4, F));
    let attrs = [("seed", AttrValue::from(3)), ("low", 2.0.into()), ("high", 4.0.into())];
    let scaled = eval(&call("random.uniform", vec![shape(&[64, 64])], &attrs), &[]).data;
    let same = scaled.iter().zip(draw("random.uniform", 3, F)).all(|(a, b)| (a - 2.0 - 2.0 * b).abs() < 1e-6);
    assert!(same);
}

fn array(shape: &[i64], data: &[f64]) -> Array {
    Array { shape: shape.to_vec(), data: data.to_vec() }
}

/// `sum over k of x[k] · e^(sign · 2πi·f·k / n)`, real and imaginary.
fn transform(x: &[(f64, f64)], f: i64, n: i64, sign: f64) -> (f64, f64) {
    x.iter().enumerate().fold((0.0, 0.0), |(re, im), (k, (a, b))| {
        let (sin, cos) = (sign * std::f64::consts::TAU * (f * k as i64) as f64 / n as f64).sin_cos();
        (re + a * cos - b * sin, im + a * sin + b * cos)
    })
}

#[test]
fn fourier_transforms() {
    let mut random = Random::new(71);
    for (given, n) in [(5, 5), (5, 8), (7, 4), (1, 1)] {
        let x = random.array(&[given, 3, 2], F);
        for inverse in [false, true] {
            let attrs = [("axis", AttrValue::from(0)), ("inverse", inverse.into())];
            let c = call("dft", vec![of("x", &x.shape, F), prim(n)], &attrs);
            check(&c, std::slice::from_ref(&x), &[n, 3, 2], 1e-4, |i| {
                let column: Vec<_> = (0..given.min(n)).map(|k| (x.at(&[k, i[1], 0]), x.at(&[k, i[1], 1]))).collect();
                let (re, im) = transform(&column, i[0], n, if inverse { 1.0 } else { -1.0 });
                let value = if i[2] == 0 { re } else { im };
                if inverse { value / n as f64 } else { value }
            });
        }
    }
    // A real signal comes back from its own frequencies, of an even and an odd number.
    for n in [6, 7] {
        let x = random.array(&[n, 1], F);
        let onesided = |inverse: bool| [("onesided", AttrValue::from(true)), ("inverse", inverse.into())];
        let there = eval(&call("dft", vec![of("x", &[n, 1], F), prim(n)], &onesided(false)), std::slice::from_ref(&x));
        assert_eq!(there.shape, [n / 2 + 1, 2]);
        let back = call("dft", vec![of("x", &there.shape, F), prim(n)], &onesided(true));
        check(&back, &[there], &[n, 1], 1e-5, |i| x.at(i));
    }
}

#[test]
fn short_time_transforms() {
    let mut random = Random::new(72);
    let (x, w) = (random.array(&[2, 11, 1], F), random.array(&[4], F));
    let c = call("stft", vec![of("x", &x.shape, F), of("w", &[4], F), prim(4), prim(3)], &[]);
    check(&c, &[x.clone(), w.clone()], &[2, 3, 3, 2], 1e-4, |i| {
        let frame: Vec<_> = (0..4).map(|k| (x.at(&[i[0], i[1] * 3 + k, 0]) * w.at(&[k]), 0.0)).collect();
        let (re, im) = transform(&frame, i[2], 4, -1.0);
        if i[3] == 0 { re } else { im }
    });
}

/// The sum over the first row.
fn determinant(m: &[Vec<f64>]) -> f64 {
    if m.is_empty() {
        return 1.0;
    }
    (0..m.len())
        .map(|j| {
            let minor: Vec<Vec<f64>> = m[1..].iter().map(|r| [&r[..j], &r[j + 1..]].concat()).collect();
            (if j % 2 == 0 { 1.0 } else { -1.0 }) * m[0][j] * determinant(&minor)
        })
        .sum()
}

#[test]
fn determinants() {
    let mut random = Random::new(73);
    for n in 0..5 {
        let x = random.array(&[3, n, n], F);
        let c = call("linalg.det", vec![of("x", &x.shape, F)], &[]);
        check(&c, std::slice::from_ref(&x), &[3], 1e-4, |b| {
            let rows: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| x.at(&[b[0], i, j])).collect()).collect();
            determinant(&rows)
        });
    }
    let singular = array(&[2, 2], &[0.0, 2.0, 0.0, 3.0]);
    assert_eq!(eval(&call("linalg.det", vec![of("x", &[2, 2], F)], &[]), &[singular]).data, [0.0]);
    let swapped = array(&[2, 2], &[0.0, 2.0, 3.0, 0.0]);
    assert_eq!(eval(&call("linalg.det", vec![of("x", &[2, 2], F)], &[]), &[swapped]).data, [-6.0]);
}

#[test]
fn counted_sequences() {
    let count = |x: &[f64], grams: &[f64], length: i64, skip: i64| {
        let (width, rows) = (x.len() as i64, grams.len() as i64 / length);
        let args = vec![of("x", &[1, width], DType::I32), of("g", &[rows, length], DType::I32)];
        let c = call("ngram_count", args, &[("max_skip", skip.into())]);
        eval(&c, &[array(&[1, width], x), array(&[rows, length], grams)]).data
    };
    let x = [1.0, 1.0, 3.0, 3.0, 3.0, 7.0, 8.0, 6.0];
    assert_eq!(count(&x, &[1.0, 3.0, 9.0], 1, 5), [2.0, 3.0, 0.0]);
    assert_eq!(count(&x, &[1.0, 3.0, 3.0, 3.0, 7.0, 6.0], 2, 0), [1.0, 2.0, 0.0]);
    assert_eq!(count(&x, &[1.0, 3.0, 3.0, 3.0, 7.0, 6.0], 2, 1), [3.0, 3.0, 1.0]);
    assert_eq!(count(&[1.0, 2.0], &[1.0, 2.0, 1.0], 3, 4), [0.0]);
}

#[test]
fn convolutions_at_moved_places() {
    let mut random = Random::new(74);
    let (x, w) = (random.array(&[1, 1, 4, 5], F), random.array(&[1, 1, 2, 2], F));
    let args = || vec![of("x", &x.shape, F), of("o", &[1, 8, 3, 4], F), of("w", &w.shape, F)];
    let c = call("nn.deformable_conv2d", args(), &[]);
    // Moved by one element down and half an element to the left.
    let offset = Array::new(&[1, 8, 3, 4], |i| if i[1] % 2 == 0 { 1.0 } else { -0.5 });
    check(&c, &[x.clone(), offset, w.clone()], &[1, 1, 3, 4], 1e-5, |i| {
        let at = |y: i64, c: i64| x.padded_at(&[0, 0, y, c]).unwrap_or(0.0);
        let read = |y: i64, c: i64| (at(y + 1, c) + at(y + 1, c - 1)) / 2.0;
        let taps = [(0, 0), (0, 1), (1, 0), (1, 1)];
        taps.iter().map(|(p, q)| w.at(&[0, 0, *p, *q]) * read(i[2] + p, i[3] + q)).sum()
    });
    let far = Array::new(&[1, 8, 3, 4], |_| 1e30);
    assert!(eval(&c, &[x, far, w]).data.iter().all(|v| *v == 0.0));
}

#[test]
fn decision_trees() {
    // x[0] <= 2 ? leaf 0 : (x[1] > 5, or missing ? leaf 1 : leaf 2), and a tree of leaf 2 alone.
    let column = |v: &[f64]| array(&[v.len() as i64], v);
    let tables = [
        column(&[0.0, -3.0]),
        column(&[0.0, 1.0]),
        column(&[0.0, 3.0]),
        column(&[2.0, 5.0]),
        column(&[0.0, 1.0]),
        column(&[-1.0, -2.0]),
        column(&[1.0, -3.0]),
        column(&[0.0, 1.0, 1.0]),
        column(&[10.0, 20.0, 40.0]),
    ];
    let x = array(&[4, 2], &[2.0, 0.0, 3.0, 6.0, 3.0, f64::NAN, 3.0, 5.0]);
    let run = |aggregate: &str| {
        let leaf = |(i, a): (usize, &Array)| of("t", &a.shape, if [3, 8].contains(&i) { F } else { DType::I64 });
        let args = std::iter::once(of("x", &[4, 2], F)).chain(tables.iter().enumerate().map(leaf)).collect();
        let attrs = [("n_targets", AttrValue::from(2)), ("depth", 2.into()), ("aggregate", aggregate.into())];
        let inputs: Vec<Array> = std::iter::once(x.clone()).chain(tables.clone()).collect();
        eval(&call("tree_ensemble", args, &attrs), &inputs).data
    };
    assert_eq!(run("sum"), [10.0, 40.0, 0.0, 60.0, 0.0, 60.0, 0.0, 80.0]);
    assert_eq!(run("average"), [5.0, 20.0, 0.0, 30.0, 0.0, 30.0, 0.0, 40.0]);
    assert_eq!(run("max")[3..8], [40.0, run("max")[4], 40.0, run("max")[6], 40.0]);
    assert_eq!(run("min")[1], 40.0);
    assert_eq!(run("min")[3], 20.0);
}

fn regions(x: &Array, rois: &[f64], mode: &str, ratio: i64, aligned: bool) -> Array {
    let rows = rois.len() as i64 / 5;
    let attrs = [
        ("pooled_size", ints(&[2, 2])),
        ("spatial_scale", 1.0.into()),
        ("sample_ratio", ratio.into()),
        ("mode", mode.into()),
        ("aligned", aligned.into()),
    ];
    let c = call("vision.roi_align", vec![of("x", &x.shape, F), of("r", &[rows, 5], F)], &attrs);
    eval(&c, &[x.clone(), array(&[rows, 5], rois)])
}

#[test]
fn regions_of_a_ramp() {
    // Averages of a ramp are its values in the middle.
    let x = Array::new(&[2, 1, 8, 8], |i| (i[0] * 100 + i[2] * 10 + i[3]) as f64);
    let got = regions(&x, &[1.0, 1.0, 2.0, 5.0, 6.0], "avg", 2, false);
    assert_eq!(got.data, [132.0, 134.0, 152.0, 154.0]);
    let moved = regions(&x, &[0.0, 1.5, 2.5, 5.5, 6.5], "avg", -1, true);
    assert_eq!(moved.data, [32.0, 34.0, 52.0, 54.0]);
    // One sample in the middle of each cell, at an element.
    let most = regions(&x, &[0.0, 1.0, 2.0, 5.0, 6.0], "max", 1, false);
    assert_eq!(most.data, [32.0, 34.0, 52.0, 54.0]);
    let outside = regions(&x, &[0.0, -50.0, -50.0, -40.0, -40.0], "avg", 2, false);
    assert_eq!(outside.data, [0.0; 4]);
}

#[test]
#[should_panic(expected = "the batch index of a region is out of range")]
fn a_region_of_no_image() {
    regions(&Array::new(&[1, 1, 2, 2], |_| 0.0), &[1.0, 0.0, 0.0, 1.0, 1.0], "avg", 1, false);
}
