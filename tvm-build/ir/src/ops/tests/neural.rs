//! Convolutions, pools, normalizations and matrix products against plain loops.

use super::eval::{Array, Random, check, eval_ops, eval_with, indices};
use super::samples::{call, ints, nothing, of};
use crate::dtype::DType;
use std::collections::BTreeMap;

const F: DType = DType::F32;

#[test]
fn matmul() {
    let mut random = Random::new(11);
    for (a, b) in [
        (vec![3, 4], vec![4, 5]),
        (vec![4], vec![4, 5]),
        (vec![3, 4], vec![4]),
        (vec![7], vec![7]),
        (vec![2, 1, 3, 4], vec![5, 4, 1]),
        (vec![3, 0], vec![0, 2]),
        (vec![0, 3], vec![3, 2]),
    ] {
        let (x, y) = (random.array(&a, F), random.array(&b, F));
        let (ra, rb) = (a.len(), b.len());
        let call = call("matmul", vec![of("x", &a, F), of("y", &b, F)], nothing());
        let k = a[ra - 1];
        let shape = crate::ops::infer(&call, &crate::arith::Analyzer::new()).unwrap();
        let shape = shape.as_tensor().unwrap().dims.fixed().unwrap();
        check(&call, &[x.clone(), y.clone()], &shape, 1e-6, |i| {
            let batch = i.len() - usize::from(ra > 1) - usize::from(rb > 1);
            let lead = |t: &Array, own: usize| -> Vec<i64> {
                let n = t.shape.len() - own;
                (0..n).map(|d| if t.shape[d] == 1 { 0 } else { i[batch - n + d] }).collect()
            };
            (0..k)
                .map(|k| {
                    let (mut p, mut q) = (lead(&x, ra.min(2)), lead(&y, rb.min(2)));
                    if ra > 1 {
                        p.push(i[batch]);
                    }
                    p.push(k);
                    q.push(k);
                    if rb > 1 {
                        q.push(i[i.len() - 1]);
                    }
                    x.at(&p) * y.at(&q)
                })
                .sum()
        });
    }
}

struct Conv {
    strides: Vec<i64>,
    pads: Vec<i64>,
    dilation: Vec<i64>,
    groups: i64,
}

/// One random convolution of `dims` spatial axes: its parameters, the shapes of data and weight.
fn random_conv(random: &mut Random, dims: usize) -> (Conv, Vec<i64>, Vec<i64>) {
    let groups = random.int(1, 4);
    let (per_group, out) = (random.int(1, 3), groups * random.int(1, 3));
    let conv = Conv {
        strides: (0..dims).map(|_| random.int(1, 4)).collect(),
        pads: (0..2 * dims).map(|_| random.int(0, 3)).collect(),
        dilation: (0..dims).map(|_| random.int(1, 3)).collect(),
        groups,
    };
    let mut data = vec![random.int(1, 3), groups * per_group];
    let mut weight = vec![out, per_group];
    for _ in 0..dims {
        data.push(random.int(5, 9));
        weight.push(random.int(1, 4));
    }
    (conv, data, weight)
}

fn conv_at(c: &Conv, x: &Array, w: &Array, i: &[i64]) -> f64 {
    let dims = c.strides.len();
    let (out, per_group) = (w.shape[0], w.shape[1]);
    let group = i[1] / (out / c.groups);
    let mut sum = 0.0;
    for r in indices(&w.shape[1..]) {
        let mut at = vec![i[0], group * per_group + r[0]];
        at.extend((0..dims).map(|d| i[d + 2] * c.strides[d] + r[d + 1] * c.dilation[d] - c.pads[d]));
        sum += x.padded_at(&at).unwrap_or(0.0) * w.at(&[&[i[1]], &r[..]].concat());
    }
    sum
}

fn attrs(c: &Conv) -> Vec<(&'static str, crate::attrs::AttrValue)> {
    vec![
        ("strides", ints(&c.strides)),
        ("padding", ints(&c.pads)),
        ("dilation", ints(&c.dilation)),
        ("groups", c.groups.into()),
    ]
}

#[test]
fn convolutions() {
    let mut random = Random::new(12);
    for dims in 1..=3 {
        for _ in 0..8 {
            let (c, xs, ws) = random_conv(&mut random, dims);
            let (x, w) = (random.array(&xs, F), random.array(&ws, F));
            let mut shape = vec![xs[0], ws[0]];
            shape.extend((0..dims).map(|d| {
                (xs[d + 2] + c.pads[d] + c.pads[dims + d] - c.dilation[d] * (ws[d + 2] - 1) - 1) / c.strides[d] + 1
            }));
            let name = format!("nn.conv{dims}d");
            let call = call(&name, vec![of("x", &xs, F), of("w", &ws, F)], &attrs(&c));
            check(&call, &[x.clone(), w.clone()], &shape, 1e-6, |i| conv_at(&c, &x, &w, i));
        }
    }
}

#[test]
fn channels_last() {
    let mut random = Random::new(13);
    let (c, xs, ws) = random_conv(&mut random, 2);
    let (x, w) = (random.array(&xs, F), random.array(&ws, F));
    let last = |s: &[i64]| vec![s[0], s[2], s[3], s[1]];
    let hwio = |s: &[i64]| vec![s[2], s[3], s[1], s[0]];
    let (xl, wl) = (last(&xs), hwio(&ws));
    let xt = Array::new(&xl, |i| x.at(&[i[0], i[3], i[1], i[2]]));
    let wt = Array::new(&wl, |i| w.at(&[i[3], i[2], i[0], i[1]]));
    let mut a = attrs(&c);
    a.extend([("data_layout", "NHWC".into()), ("kernel_layout", "HWIO".into())]);
    let call = call("nn.conv2d", vec![of("x", &xl, F), of("w", &wl, F)], &a);
    let shape = crate::ops::infer(&call, &crate::arith::Analyzer::new()).unwrap();
    let shape = shape.as_tensor().unwrap().dims.fixed().unwrap();
    check(&call, &[xt, wt], &shape, 1e-6, |i| conv_at(&c, &x, &w, &[i[0], i[3], i[1], i[2]]));
}

#[test]
fn transposed_convolutions() {
    let mut random = Random::new(14);
    for dims in 1..=3 {
        for _ in 0..8 {
            // The convolution whose gradient with respect to its input this is.
            let (c, ys, ws) = random_conv(&mut random, dims);
            let extra: Vec<i64> = (0..dims).map(|d| random.int(0, c.strides[d].max(c.dilation[d]))).collect();
            let mut xs = vec![ys[0], ws[0]];
            xs.extend(std::iter::repeat_with(|| random.int(1, 5)).take(dims));
            let mut shape = vec![ys[0], ys[1]];
            shape.extend((0..dims).map(|d| {
                (xs[d + 2] - 1) * c.strides[d] + c.dilation[d] * (ws[d + 2] - 1) + 1 + extra[d]
                    - c.pads[d]
                    - c.pads[dims + d]
            }));
            if shape.iter().any(|d| *d < 1) {
                continue;
            }
            let (x, w) = (random.array(&xs, F), random.array(&ws, F));
            let mut want = BTreeMap::new();
            for i in indices(&xs) {
                let group = i[1] / (ws[0] / c.groups);
                for r in indices(&ws[1..]) {
                    let mut at = vec![i[0], group * ws[1] + r[0]];
                    at.extend((0..dims).map(|d| i[d + 2] * c.strides[d] + r[d + 1] * c.dilation[d] - c.pads[d]));
                    *want.entry(at).or_insert(0.0) += x.at(&i) * w.at(&[&[i[1]], &r[..]].concat());
                }
            }
            let mut a = attrs(&c);
            a.push(("output_padding", ints(&extra)));
            let call = call(&format!("nn.conv{dims}d_transpose"), vec![of("x", &xs, F), of("w", &ws, F)], &a);
            check(&call, &[x, w], &shape, 1e-6, |i| want.get(i).copied().unwrap_or(0.0));
        }
    }
}

#[test]
fn pools() {
    let mut random = Random::new(15);
    for dims in 1..=3 {
        for round in 0..12 {
            let (mut c, _, ws) = random_conv(&mut random, dims);
            let kernel = &ws[2..];
            for d in 0..2 * dims {
                c.pads[d] = c.pads[d].min((kernel[d % dims] - 1) * c.dilation[d % dims]);
            }
            let mut xs = vec![random.int(1, 3), random.int(1, 3)];
            xs.extend(std::iter::repeat_with(|| random.int(6, 9)).take(dims));
            let x = random.array(&xs, F);
            let (ceil, include) = (round % 2 == 1, round % 4 >= 2);
            let mut shape = vec![xs[0], xs[1]];
            shape.extend((0..dims).map(|d| {
                let room = xs[d + 2] + c.pads[d] + c.pads[dims + d] - c.dilation[d] * (kernel[d] - 1) - 1;
                (room + if ceil { c.strides[d] - 1 } else { 0 }) / c.strides[d] + 1
            }));
            let mut a = attrs(&c);
            a.pop();
            a.extend([("pool_size", ints(kernel)), ("ceil_mode", ceil.into()), ("count_include_pad", include.into())]);
            let window = |i: &[i64]| -> Vec<Vec<i64>> {
                let place = |r: &Vec<i64>| {
                    let mut at = i[..2].to_vec();
                    at.extend((0..dims).map(|d| i[d + 2] * c.strides[d] + r[d] * c.dilation[d] - c.pads[d]));
                    at
                };
                indices(kernel).iter().map(place).collect()
            };
            let args = || vec![of("x", &xs, F)];
            let max = call(&format!("nn.max_pool{dims}d"), args(), &a);
            check(&max, std::slice::from_ref(&x), &shape, 0.0, |i| {
                window(i).iter().filter_map(|at| x.padded_at(at)).fold(f64::from(f32::MIN), f64::max)
            });
            let avg = call(&format!("nn.avg_pool{dims}d"), args(), &a);
            check(&avg, std::slice::from_ref(&x), &shape, 1e-5, |i| {
                let all = window(i);
                let inside: Vec<f64> = all.iter().filter_map(|at| x.padded_at(at)).collect();
                // With padding counted, what lies past the padding (in ceil mode past one more stride) is not.
                let counted = all.iter().filter(|at| {
                    (0..dims).all(|d| {
                        let slack = if ceil { c.strides[d] - 1 } else { 0 };
                        at[d + 2] < xs[d + 2] + c.pads[dims + d] + slack
                    })
                });
                let n = if include { counted.count() } else { inside.len() };
                inside.iter().sum::<f64>() / n.max(1) as f64
            });
        }
    }
}

#[test]
fn adaptive_pools() {
    let mut random = Random::new(16);
    for _ in 0..10 {
        let xs = vec![2, 2, random.int(1, 9), random.int(1, 9)];
        let out = [random.int(1, 6), random.int(1, 6)];
        let x = random.array(&xs, F);
        let call = call("nn.adaptive_avg_pool2d", vec![of("x", &xs, F)], &[("output_size", ints(&out))]);
        check(&call, std::slice::from_ref(&x), &[2, 2, out[0], out[1]], 1e-5, |i| {
            let range = |d: usize| {
                let (n, o, k) = (xs[d + 2], out[d], i[d + 2]);
                k * n / o..((k + 1) * n + o - 1) / o
            };
            let all: Vec<f64> =
                range(0).flat_map(|a| range(1).map(move |b| (a, b))).map(|(a, b)| x.at(&[i[0], i[1], a, b])).collect();
            all.iter().sum::<f64>() / all.len() as f64
        });
    }
}

fn mean(v: &[f64]) -> f64 {
    v.iter().sum::<f64>() / v.len() as f64
}

/// `(x - mean) / sqrt(variance + 1e-5)` of the elements in one group.
fn normal(x: f64, group: &[f64]) -> f64 {
    let m = mean(group);
    let var = mean(&group.iter().map(|v| (v - m).powi(2)).collect::<Vec<_>>());
    (x - m) / (var + 1e-5).sqrt()
}

#[test]
fn normalizations() {
    let mut random = Random::new(17);
    let xs = [2, 4, 3, 5];
    let mut x = random.array(&xs, F);
    // Far from zero: the variance must not be the difference of two large numbers.
    x.data.iter_mut().for_each(|v| *v += 4096.0);
    let (g, b) = (random.array(&[4], F), random.array(&[4], F));
    let group = |same: &dyn Fn(&[i64]) -> bool| -> Vec<f64> {
        indices(&xs).iter().filter(|i| same(i)).map(|i| x.at(i)).collect()
    };
    let args = || vec![of("x", &xs, F), of("g", &[4], F), of("b", &[4], F)];
    let inputs = [x.clone(), g.clone(), b.clone()];
    let channel = [("channel_axis", crate::attrs::AttrValue::from(1)), ("axes", ints(&[2, 3]))];
    check(&call("nn.instance_norm", args(), &channel), &inputs, &xs, 1e-3, |i| {
        let own = group(&|j| j[0] == i[0] && j[1] == i[1]);
        normal(x.at(i), &own) * g.at(&[i[1]]) + b.at(&[i[1]])
    });
    let mut grouped = channel.to_vec();
    grouped.push(("num_groups", 2.into()));
    check(&call("nn.group_norm", args(), &grouped), &inputs, &xs, 1e-3, |i| {
        let own = group(&|j| j[0] == i[0] && j[1] / 2 == i[1] / 2);
        normal(x.at(i), &own) * g.at(&[i[1]]) + b.at(&[i[1]])
    });
    let (g2, b2) = (random.array(&[3, 5], F), random.array(&[3, 5], F));
    let layer = vec![of("x", &xs, F), of("g", &[3, 5], F), of("b", &[3, 5], F)];
    check(
        &call("nn.layer_norm", layer, &[("axes", ints(&[2, -1]))]),
        &[x.clone(), g2.clone(), b2.clone()],
        &xs,
        1e-3,
        |i| {
            let own = group(&|j| j[..2] == i[..2]);
            normal(x.at(i), &own) * g2.at(&i[2..]) + b2.at(&i[2..])
        },
    );
    let rms = vec![of("x", &xs, F), of("g", &[4], F)];
    check(&call("nn.rms_norm", rms, &[("axes", ints(&[1]))]), &inputs[..2], &xs, 1e-5, |i| {
        let own = group(&|j| j[0] == i[0] && j[2..] == i[2..]);
        x.at(i) / (mean(&own.iter().map(|v| v * v).collect::<Vec<_>>()) + 1e-5).sqrt() * g.at(&[i[1]])
    });
}

#[test]
fn batch_norm() {
    let mut random = Random::new(18);
    let xs = [2, 3, 4];
    let x = random.array(&xs, F);
    let p: Vec<Array> = (0..3).map(|_| random.array(&[3], F)).collect();
    let var = Array::new(&[3], |i| 0.5 + i[0] as f64);
    let names = ["gamma", "beta", "mean", "var"];
    let args: Vec<_> = std::iter::once(of("x", &xs, F)).chain(names.map(|n| of(n, &[3], F))).collect();
    let inputs = [x.clone(), p[0].clone(), p[1].clone(), p[2].clone(), var.clone()];
    let infer = call("nn.batch_norm", args.clone(), &[("axis", 1.into()), ("training", false.into())]);
    check(&infer, &inputs, &xs, 1e-5, |i| {
        let c = [i[1]];
        (x.at(i) - p[2].at(&c)) / (var.at(&c) + 1e-5).sqrt() * p[0].at(&c) + p[1].at(&c)
    });
    let outputs = eval_with(&infer, &inputs, &BTreeMap::new());
    assert_eq!((&outputs[1].data, &outputs[2].data), (&p[2].data, &var.data));

    let train = call("nn.batch_norm", args, &[("axis", 1.into()), ("momentum", 0.25.into())]);
    let own = |c: i64| -> Vec<f64> { indices(&xs).iter().filter(|j| j[1] == c).map(|j| x.at(j)).collect() };
    check(&train, &inputs, &xs, 1e-4, |i| normal(x.at(i), &own(i[1])) * p[0].at(&[i[1]]) + p[1].at(&[i[1]]));
    let outputs = eval_with(&train, &inputs, &BTreeMap::new());
    for c in 0..3i64 {
        let want = 0.75 * p[2].at(&[c]) + 0.25 * mean(&own(c));
        assert!((outputs[1].at(&[c]) - want).abs() < 1e-5);
    }
}

#[test]
fn softmax() {
    let mut random = Random::new(19);
    let xs = [2, 5, 3];
    let mut x = random.array(&xs, F);
    x.data[0] = 1e30;
    let log = call("nn.log_softmax", vec![of("x", &xs, F)], &[("axis", 1.into())]);
    let soft = call("nn.softmax", vec![of("x", &xs, F)], &[("axis", (-2).into())]);
    let terms = |i: &[i64]| -> (f64, f64) {
        let line: Vec<f64> = (0..5).map(|k| x.at(&[i[0], k, i[2]])).collect();
        let top = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (x.at(i) - top, line.iter().map(|v| (v - top).exp()).sum())
    };
    check(&soft, std::slice::from_ref(&x), &xs, 1e-6, |i| terms(i).0.exp() / terms(i).1);
    check(&log, std::slice::from_ref(&x), &xs, 1e-5, |i| terms(i).0 - terms(i).1.ln());
}

#[test]
fn linear() {
    let mut random = Random::new(30);
    let (x, w, b) = (random.array(&[2, 3], F), random.array(&[4, 3], F), random.array(&[4], F));
    let call = call("linear", vec![of("x", &[2, 3], F), of("w", &[4, 3], F), of("b", &[4], F)], nothing());
    let got = eval_ops(&call, &[x.clone(), w.clone(), b.clone()]);
    for i in indices(&[2, 4]) {
        let want: f64 = (0..3).map(|k| x.at(&[i[0], k]) * w.at(&[i[1], k])).sum::<f64>() + b.at(&i[1..]);
        assert!((got.at(&i) - want).abs() < 1e-5);
    }
}

#[test]
fn attention() {
    let mut random = Random::new(31);
    let (q, k) = (random.array(&[2, 3, 4, 5], F), random.array(&[2, 6, 2, 5], F));
    let (v, bias) = (random.array(&[2, 6, 2, 7], F), random.array(&[4, 1, 6], F));
    let leaves = || vec![of("q", &q.shape, F), of("k", &k.shape, F), of("v", &v.shape, F), of("b", &bias.shape, F)];
    for (causal, window, shift) in [(None, None, 0), (Some("TopLeft"), None, 0), (Some("BottomRight"), Some(2i64), 3)] {
        let mut attrs = vec![];
        if let Some(c) = causal {
            attrs.push(("causal_mask", c.into()));
        }
        if let Some(w) = window {
            attrs.push(("window_size", w.into()));
        }
        let call = call("nn.attention_bias", leaves(), &attrs);
        let got = eval_ops(&call, &[q.clone(), k.clone(), v.clone(), bias.clone()]);
        assert_eq!(got.shape, [2, 3, 4, 7]);
        for i in indices(&got.shape) {
            let weight = |j: i64| {
                let own = i[1] + shift;
                if (causal.is_some() && j > own) || window.is_some_and(|w| j <= own - w) {
                    return 0.0;
                }
                let dot: f64 = (0..5).map(|d| q.at(&[i[0], i[1], i[2], d]) * k.at(&[i[0], j, i[2] / 2, d])).sum();
                (dot / 5f64.sqrt() + bias.at(&[i[2], 0, j])).exp()
            };
            let total: f64 = (0..6).map(weight).sum();
            let want: f64 = (0..6).map(|j| weight(j) / total * v.at(&[i[0], j, i[2] / 2, i[3]])).sum();
            assert!((got.at(&i) - want).abs() < 1e-4, "{} not {want}", got.at(&i));
        }
    }
}
