//! Ops that move elements, against plain loops.

use super::eval::{Array, Random, check, eval, indices};
use super::samples::{call, ints, nothing, of, prim, prims, shape};
use crate::attrs::AttrValue;
use crate::dtype::DType;
use crate::relax::Leaf;

const F: DType = DType::F32;
const I: DType = DType::I64;

/// The linear place of an index.
fn place(i: &[i64], shape: &[i64]) -> i64 {
    i.iter().zip(shape).fold(0, |at, (i, d)| at * d + i)
}

fn one(name: &str, x: &Array, rest: Vec<Leaf>, attrs: &[(&str, AttrValue)], out: &[i64], want: impl Fn(&[i64]) -> f64) {
    let args = std::iter::once(of("x", &x.shape, F)).chain(rest).collect();
    check(&call(name, args, attrs), std::slice::from_ref(x), out, 0.0, want);
}

#[test]
fn reshapes_and_permutations() {
    let mut random = Random::new(21);
    for _ in 0..10 {
        let s = random.shape(3);
        let x = random.array(&s, F);
        let linear = |out: &[i64], i: &[i64]| x.data[usize::try_from(place(i, out)).unwrap()];
        let flat = [s.iter().product()];
        one("reshape", &x, vec![shape(&[-1, s[1]])], &[], &[s[0] * s[2], s[1]], |i| linear(&[s[0] * s[2], s[1]], i));
        one("flatten", &x, vec![], &[], &flat, |i| linear(&flat, i));
        one("nn.batch_flatten", &x, vec![], &[], &[s[0], s[1] * s[2]], |i| linear(&[s[0], s[1] * s[2]], i));
        one("expand_dims", &x, vec![], &[("axis", ints(&[1, -1]))], &[s[0], 1, s[1], s[2], 1], |i| {
            x.at(&[i[0], i[2], i[3]])
        });
        one("permute_dims", &x, vec![], &[("axes", ints(&[2, 0, 1]))], &[s[2], s[0], s[1]], |i| {
            x.at(&[i[1], i[2], i[0]])
        });
        one("flip", &x, vec![], &[("axis", 1.into())], &s, |i| x.at(&[i[0], s[1] - 1 - i[1], i[2]]));
        one("repeat", &x, vec![], &[("repeats", 3.into()), ("axis", 2.into())], &[s[0], s[1], 3 * s[2]], |i| {
            x.at(&[i[0], i[1], i[2] / 3])
        });
        let tiled = [2 * s[0], s[1], 3 * s[2]];
        one("tile", &x, vec![], &[("repeats", ints(&[2, 1, 3]))], &tiled, |i| x.at(&[i[0] % s[0], i[1], i[2] % s[2]]));
        let wide = [4, s[0], s[1], s[2]];
        one("broadcast_to", &x, vec![shape(&wide)], &[], &wide, |i| x.at(&i[1..]));
    }
    let x = random.array(&[1, 3, 1, 2], F);
    one("squeeze", &x, vec![], &[], &[3, 2], |i| x.at(&[0, i[0], 0, i[1]]));
    let row = random.array(&[1, 3], F);
    one("broadcast_to", &row, vec![shape(&[2, 3])], &[], &[2, 3], |i| row.at(&[0, i[1]]));
}

#[test]
fn joins_and_splits() {
    let mut random = Random::new(22);
    let parts: Vec<Array> = [2, 0, 1, 5].iter().map(|n| random.array(&[3, *n], F)).collect();
    let leaves = parts.iter().map(|p| of("p", &p.shape, F)).collect();
    let concat = call("concat", vec![Leaf::Tuple(leaves)], &[("axis", 1.into())]);
    check(&concat, &parts, &[3, 8], 0.0, |i| {
        let mut k = i[1];
        for p in &parts {
            if k < p.shape[1] {
                return p.at(&[i[0], k]);
            }
            k -= p.shape[1];
        }
        panic!()
    });
    let same: Vec<Array> = (0..3).map(|_| random.array(&[2, 4], F)).collect();
    let leaves = same.iter().map(|p| of("p", &p.shape, F)).collect();
    let stack = call("stack", vec![Leaf::Tuple(leaves)], &[("axis", 1.into())]);
    check(&stack, &same, &[2, 3, 4], 0.0, |i| same[usize::try_from(i[1]).unwrap()].at(&[i[0], i[2]]));
    let x = random.array(&[2, 7], F);
    let split =
        call("split", vec![of("x", &[2, 7], F)], &[("indices_or_sections", ints(&[3, -2])), ("axis", 1.into())]);
    let pieces = super::eval::eval_with(&split, std::slice::from_ref(&x), &std::collections::BTreeMap::new());
    let starts = [0, 3, 5, 7];
    for (n, p) in pieces.iter().enumerate() {
        assert_eq!(p.shape, [2, starts[n + 1] - starts[n]]);
        assert!(indices(&p.shape).iter().all(|i| p.at(i) == x.at(&[i[0], i[1] + starts[n]])));
    }
}

fn wanted(i: i64, n: i64) -> i64 {
    if i < 0 { i + n } else { i }
}

#[test]
fn gathers() {
    let mut random = Random::new(23);
    let x = random.array(&[3, 5, 2], F);
    let at = Array::new(&[2, 2], |_| random.int(0, 5) as f64);
    let take = |mode: &str| {
        call("take", vec![of("x", &[3, 5, 2], F), of("i", &[2, 2], I)], &[("axis", 1.into()), ("mode", mode.into())])
    };
    check(&take("fast"), &[x.clone(), at.clone()], &[3, 2, 2, 2], 0.0, |i| x.at(&[i[0], at.at(&i[1..3]) as i64, i[3]]));
    let wild = Array { shape: vec![2, 2], data: vec![-7.0, 9.0, -1.0, 3.0] };
    check(&take("wrap"), &[x.clone(), wild.clone()], &[3, 2, 2, 2], 0.0, |i| {
        x.at(&[i[0], (wild.at(&i[1..3]) as i64).rem_euclid(5), i[3]])
    });
    check(&take("clip"), &[x.clone(), wild.clone()], &[3, 2, 2, 2], 0.0, |i| {
        x.at(&[i[0], (wild.at(&i[1..3]) as i64).clamp(0, 4), i[3]])
    });
    let fixed = call("take", vec![of("x", &[3, 5, 2], F), prim(2)], &[("axis", 0.into())]);
    check(&fixed, std::slice::from_ref(&x), &[5, 2], 0.0, |i| x.at(&[2, i[0], i[1]]));

    let negative = Array::new(&[3, 4, 2], |_| random.int(-5, 5) as f64);
    let elements = call("gather_elements", vec![of("x", &[3, 5, 2], F), of("i", &[3, 4, 2], I)], &[("axis", 1.into())]);
    check(&elements, &[x.clone(), negative.clone()], &[3, 4, 2], 0.0, |i| {
        x.at(&[i[0], wanted(negative.at(i) as i64, 5), i[2]])
    });
    let pairs = Array::new(&[4, 2], |i| random.int(if i[1] == 0 { -3 } else { -5 }, 3) as f64);
    let nd = call("gather_nd", vec![of("x", &[3, 5, 2], F), of("i", &[4, 2], I)], nothing());
    let pair = |k: i64| [wanted(pairs.at(&[k, 0]) as i64, 3), wanted(pairs.at(&[k, 1]) as i64, 5)];
    check(&nd, &[x.clone(), pairs.clone()], &[4, 2], 0.0, |i| x.at(&[pair(i[0])[0], pair(i[0])[1], i[1]]));
    let each = Array::new(&[3, 4, 1], |_| random.int(0, 5) as f64);
    let batched = call("gather_nd", vec![of("x", &[3, 5, 2], F), of("i", &[3, 4, 1], I)], &[("batch_dims", 1.into())]);
    check(&batched, &[x.clone(), each.clone()], &[3, 4, 2], 0.0, |i| {
        x.at(&[i[0], each.at(&[i[0], i[1], 0]) as i64, i[2]])
    });

    let classes = Array { shape: vec![3], data: vec![2.0, 0.0, 5.0] };
    let value = |v: f64| Leaf::Prim(crate::prim::PrimExpr::float(F, v));
    let hot = call("one_hot", vec![of("i", &[3], I), value(7.0), value(-1.0)], &[("depth", 4.into())]);
    check(&hot, std::slice::from_ref(&classes), &[3, 4], 0.0, |i| {
        if classes.at(&i[..1]) as i64 == i[1] { 7.0 } else { -1.0 }
    });
}

#[test]
fn scatters() {
    let mut random = Random::new(24);
    type Mode = (&'static str, fn(f64, f64) -> f64);
    let modes: [Mode; 5] =
        [("update", |_, b| b), ("add", |a, b| a + b), ("mul", |a, b| a * b), ("min", f64::min), ("max", f64::max)];
    let (x, up) = (random.array(&[4, 3], F), random.array(&[6, 3], F));
    let at = Array::new(&[6, 3], |_| random.int(-4, 4) as f64);
    let args = || vec![of("x", &[4, 3], F), of("i", &[6, 3], I), of("u", &[6, 3], F)];
    for (mode, f) in modes {
        let mut want = x.clone();
        for i in indices(&up.shape) {
            let k = usize::try_from(wanted(at.at(&i) as i64, 4) * 3 + i[1]).unwrap();
            want.data[k] = f(want.data[k], up.at(&i));
        }
        let elements = call("scatter_elements", args(), &[("reduction", mode.into())]);
        check(&elements, &[x.clone(), at.clone(), up.clone()], &[4, 3], 1e-6, |i| want.at(i));

        let rows = Array::new(&[6, 1], |_| random.int(-4, 4) as f64);
        let mut want = x.clone();
        for i in indices(&up.shape) {
            let k = usize::try_from(wanted(rows.at(&[i[0], 0]) as i64, 4) * 3 + i[1]).unwrap();
            want.data[k] = f(want.data[k], up.at(&i));
        }
        let nd = vec![of("x", &[4, 3], F), of("i", &[6, 1], I), of("u", &[6, 3], F)];
        check(
            &call("scatter_nd", nd, &[("reduction", mode.into())]),
            &[x.clone(), rows, up.clone()],
            &[4, 3],
            1e-6,
            |i| want.at(i),
        );
    }
    let (mut sum, mut n) = (x.clone(), vec![1.0; 12]);
    for i in indices(&up.shape) {
        let k = usize::try_from(wanted(at.at(&i) as i64, 4) * 3 + i[1]).unwrap();
        sum.data[k] += up.at(&i);
        n[k] += 1.0;
    }
    let mean = call("scatter_elements", args(), &[("reduction", "mean".into())]);
    check(&mean, &[x, at, up], &[4, 3], 1e-6, |i| sum.at(i) / n[usize::try_from(place(i, &[4, 3])).unwrap()]);
}

#[test]
fn slices() {
    let mut random = Random::new(25);
    let bounds = [i64::MIN, -11, -7, -3, -1, 0, 1, 4, 6, 7, 8, 100, i64::MAX];
    for n in [0, 1, 7] {
        let x = random.array(&[n], F);
        for begin in bounds {
            for end in bounds {
                for stride in [1, 2, 5, -1, -3] {
                    // Python's rules.
                    let (low, high) = if stride > 0 { (0, n) } else { (-1, n - 1) };
                    let fix = |v: i64| if v < 0 { v.saturating_add(n).max(low) } else { v.min(high) };
                    let (from, to) = (fix(begin), fix(end));
                    let mut want = Vec::new();
                    let mut i = from;
                    while if stride > 0 { i < to } else { i > to } {
                        want.push(x.at(&[i]));
                        i += stride;
                    }
                    let out = [i64::try_from(want.len()).unwrap()];
                    let rest = vec![prims(&[0]), prims(&[begin]), prims(&[end]), prims(&[stride])];
                    one("strided_slice", &x, rest, &[], &out, |i| want[usize::try_from(i[0]).unwrap()]);
                }
            }
        }
    }
}

#[test]
fn borders() {
    let mut random = Random::new(26);
    let x = random.array(&[3, 5], F);
    let pad = |mode: &str, f: &dyn Fn(i64, i64) -> i64| {
        let attrs = [("pad_width", ints(&[1, 2, 3, 0])), ("pad_mode", mode.into()), ("pad_value", 2.5.into())];
        one("nn.pad", &x, vec![], &attrs, &[6, 8], |i| {
            let at = [f(i[0] - 1, 3), f(i[1] - 3, 5)];
            x.padded_at(&at).unwrap_or(2.5)
        });
    };
    pad("constant", &|i, _| i);
    pad("replicate", &|i, n| i.clamp(0, n - 1));
    pad("circular", &|i, n| i.rem_euclid(n));
    pad("reflect", &|i, n| {
        if i < 0 {
            -i
        } else if i >= n {
            2 * (n - 1) - i
        } else {
            i
        }
    });
    let cut = [("pad_width", ints(&[-1, 0, 0, -2]))];
    one("nn.pad", &x, vec![], &cut, &[2, 3], |i| x.at(&[i[0] + 1, i[1]]));
}

#[test]
fn scans() {
    let mut random = Random::new(27);
    let x = random.array(&[2, 4, 3], F);
    for exclusive in [false, true] {
        let attrs = [("axis", AttrValue::from(1)), ("exclusive", exclusive.into())];
        let upto = |i: &[i64]| -> Vec<f64> {
            let end = if exclusive { i[1] } else { i[1] + 1 };
            (0..end).map(|k| x.at(&[i[0], k, i[2]])).collect()
        };
        one("cumsum", &x, vec![], &attrs, &[2, 4, 3], |i| upto(i).iter().sum());
        one("cumprod", &x, vec![], &attrs, &[2, 4, 3], |i| upto(i).iter().product());
    }
    one("cumsum", &x, vec![], &[], &[24], |i| x.data[..=usize::try_from(i[0]).unwrap()].iter().sum());
}

#[test]
fn created() {
    let range = |args: Vec<Leaf>, dtype: DType| eval(&call("arange", args, &[("dtype", dtype.into())]), &[]).data;
    assert_eq!(range(vec![prim(4)], I), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(range(vec![prim(5), prim(0), prim(-2)], DType::I32), [5.0, 3.0, 1.0]);
    assert_eq!(range(vec![prim(3), prim(1)], F), Vec::<f64>::new());
    check(&call("eye", vec![prim(3), prim(4), prim(1)], nothing()), &[], &[3, 4], 0.0, |i| {
        f64::from(u8::from(i[1] - i[0] == 1))
    });
    let x = Random::new(28).array(&[2, 3, 4], F);
    one("tril", &x, vec![prim(-1)], &[], &[2, 3, 4], |i| if i[2] - i[1] <= -1 { x.at(i) } else { 0.0 });
    one("triu", &x, vec![], &[], &[2, 3, 4], |i| if i[2] >= i[1] { x.at(i) } else { 0.0 });
    one("zeros_like", &x, vec![], &[("dtype", DType::I8.into())], &[2, 3, 4], |_| 0.0);
    let full = call("full", vec![shape(&[2]), of("v", &[], F)], nothing());
    check(&full, &[Array { shape: vec![], data: vec![1.5] }], &[2], 0.0, |_| 1.5);
}

#[test]
fn orders() {
    let mut random = Random::new(29);
    let mut x = random.array(&[2, 9, 3], F);
    (x.data[4], x.data[13], x.data[20]) = (f64::NAN, f64::NAN, f64::INFINITY);
    let line = |i: &[i64], down: bool| -> Vec<(f64, i64)> {
        let mut all: Vec<(f64, i64)> = (0..9).map(|k| (x.at(&[i[0], k, i[2]]), k)).collect();
        let key = |v: f64| if v.is_nan() { (1, 0.0) } else { (0, v) };
        all.sort_by(|a, b| {
            let order = key(a.0).partial_cmp(&key(b.0)).unwrap();
            if down { order.reverse() } else { order }
        });
        all
    };
    let at = |i: &[i64]| usize::try_from(i[1]).unwrap();
    let axis = || ("axis", AttrValue::from(1));
    for down in [false, true] {
        let attrs = [axis(), ("descending", down.into())];
        one("sort", &x, vec![], &attrs, &[2, 9, 3], |i| line(i, down)[at(i)].0);
        one("argsort", &x, vec![], &attrs, &[2, 9, 3], |i| line(i, down)[at(i)].1 as f64);
        let attrs = [axis(), ("largest", down.into()), ("k", 4.into()), ("ret_type", "indices".into())];
        one("topk", &x, vec![], &attrs, &[2, 4, 3], |i| line(i, down)[at(i)].1 as f64);
        one("topk", &x, vec![], &[axis(), ("largest", down.into()), ("k", 4.into())], &[2, 4, 3], |i| {
            line(i, down)[at(i)].0
        });
    }
}
