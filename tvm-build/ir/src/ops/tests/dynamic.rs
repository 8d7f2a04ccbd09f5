//! Ops whose parameters are tensors, against plain loops.

use super::eval::{Array, Random, check, eval, eval_with};
use super::samples::{Add, call, of, shape};
use crate::attrs::AttrValue;
use crate::dtype::DType;
use crate::relax::Leaf;
use std::collections::BTreeMap;

const F: DType = DType::F32;
const I: DType = DType::I64;

fn index(name: &str, n: i64) -> Leaf {
    of(name, &[n], I)
}

/// Samples of the rows of this family.
pub(super) fn samples(add: &mut Add<'_>) {
    let x = || of("x", &[3, 4], F);
    for reduction in ["sum", "prod", "max", "min", "mean", "log_sum_exp"] {
        let attrs = [("reduction", AttrValue::from(reduction))];
        add("collapse_to", vec![x(), shape(&[1, 4])], &attrs, &[1, 4], F);
    }
    add("collapse_to", vec![of("x", &[2, 0], F), shape(&[2, 1])], &[], &[2, 1], F);
    add("axis_parts", vec![index("e", 3), of("axis", &[], I)], &[], &[3], I);
    add("checked_index", vec![of("i", &[2, 3], DType::I32), of("n", &[3], I)], &[], &[2, 3], DType::I32);
    for name in ["dynamic_cumsum", "dynamic_cumprod"] {
        let axis = || of("axis", &[], I);
        add(name, vec![x(), axis()], &[], &[3, 4], F);
        add(name, vec![x(), axis()], &[("exclusive", true.into()), ("reverse", true.into())], &[3, 4], F);
    }
    for mode in ["constant", "reflect", "replicate", "circular"] {
        let args = vec![x(), index("before", 2), index("after", 2), of("value", &[], F), shape(&[4, 5])];
        add("dynamic_pad", args, &[("pad_mode", mode.into())], &[4, 5], F);
    }
    add("dynamic_slice", vec![x(), index("begin", 2), index("strides", 2), shape(&[2, 5])], &[], &[2, 5], F);
    let axes = [("axes", AttrValue::from(vec![-1]))];
    add("dynamic_slice", vec![x(), index("begin", 2), index("strides", 2), shape(&[3, 2])], &axes, &[3, 2], F);
    add("padded_extents", vec![index("e", 3), index("b", 3), index("a", 3)], &[], &[3], I);
    add("padded_extents", vec![index("e", 3), index("b", 1), index("a", 1), index("axes", 1)], &[], &[3], I);
    add("reduced_extents", vec![index("e", 4), index("axes", 1)], &[], &[4], I);
    add("reduced_extents", vec![index("e", 4), index("axes", 1)], &[("keepdims", false.into())], &[3], I);
    add("reduced_extents", vec![index("e", 4), index("axes", 0)], &[("keepdims", false.into())], &[0], I);
    add("expanded_extents", vec![index("e", 2), index("s", 3)], &[], &[3], I);
    add("reshaped_extents", vec![index("e", 2), index("s", 3)], &[], &[3], I);
    add("reshaped_extents", vec![index("e", 0), of("s", &[1], DType::I32)], &[("allow_zero", true.into())], &[1], I);
    add("slice_ranges", vec![index("e", 3), index("s", 2), index("t", 2)], &[], &[3], I);
    add("slice_ranges", vec![index("e", 3), index("s", 1), index("t", 1), of("axes", &[1], DType::I32)], &[], &[3], I);
    add("unsqueezed_extents", vec![index("e", 2), index("axes", 2)], &[], &[4], I);
    add("unsqueezed_extents", vec![index("e", 0), index("axes", 1)], &[], &[1], I);
}

fn vector(values: &[i64]) -> Array {
    Array { shape: vec![values.len() as i64], data: values.iter().map(|v| *v as f64).collect() }
}

fn list(a: &Array) -> Vec<i64> {
    a.data.iter().map(|v| *v as i64).collect()
}

/// Results of an op of vectors of integers.
fn vectors(name: &str, args: &[&[i64]], attrs: &[(&str, AttrValue)]) -> Vec<Vec<i64>> {
    let leaves = args.iter().map(|a| index("v", a.len() as i64)).collect();
    let inputs: Vec<Array> = args.iter().map(|a| vector(a)).collect();
    eval_with(&call(name, leaves, attrs), &inputs, &BTreeMap::new()).iter().map(list).collect()
}

/// The indices that Python's `range(n)[start:end:step]` has.
fn python(n: i64, start: i64, end: i64, step: i64) -> Vec<i64> {
    let (low, high) = if step < 0 { (-1, n - 1) } else { (0, n) };
    let bound = |v: i64, low: i64| (if v < 0 { v.saturating_add(n) } else { v }).max(low).min(high.max(-1));
    // Where it is not as Python has it: a start before the first element is the first.
    let (mut at, end) = (bound(start, 0), bound(end, low));
    let mut out = Vec::new();
    while if step > 0 { at < end } else { at > end } {
        out.push(at);
        at = at.saturating_add(step);
    }
    out
}

#[test]
fn slices_are_those_of_python() {
    let mut random = Random::new(61);
    let extreme = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX];
    for round in 0..300 {
        let (n, m) = (random.int(0, 6), random.int(1, 5));
        let mut pick = |low: i64, high: i64| {
            if random.int(0, 6) == 0 { extreme[random.int(0, 6) as usize] } else { random.int(low, high) }
        };
        let (start, end) = (pick(-7, 8), pick(-7, 8));
        let step = match pick(-3, 4) {
            0 => 1,
            step => step,
        };
        let want = python(n, start, end, step);
        let axis = if round % 2 == 0 { 0 } else { -2 };
        let got = vectors("slice_ranges", &[&[n, m], &[start], &[end], &[axis], &[step]], &[]);
        let count = want.len() as i64;
        assert_eq!(got[2], [count, m], "{n}[{start}:{end}:{step}]");
        let x = random.array(&[n, m], F);
        let args = vec![of("x", &[n, m], F), index("b", 2), index("s", 2), shape(&[count, m])];
        for attrs in [vec![], vec![("axes", AttrValue::from(vec![0]))]] {
            let inputs = [x.clone(), vector(&got[0]), vector(&got[1])];
            check(&call("dynamic_slice", args.clone(), &attrs), &inputs, &[count, m], 0.0, |i| {
                x.at(&[want[i[0] as usize], i[1]])
            });
        }
    }
    let plain = vectors("slice_ranges", &[&[5, 6, 7], &[1, -2], &[3, i64::MAX]], &[]);
    assert_eq!(plain, [[1, 4, 0], [1, 1, 1], [2, 2, 7]]);
}

#[test]
fn what_slices_never_read() {
    let args = vec![of("x", &[2], F), index("b", 1), index("s", 1), shape(&[3])];
    let x = vector(&[7, 8]);
    for (begin, stride, want) in [(-1, 1, [0., 7., 8.]), (1, 5, [8., 0., 0.]), (i64::MAX, 1, [0.; 3])] {
        let got = eval(&call("dynamic_slice", args.clone(), &[]), &[x.clone(), vector(&[begin]), vector(&[stride])]);
        assert_eq!(got.data, want);
    }
}

/// The element that numpy pads with, `None` for the value.
fn padded(n: i64, before: i64, after: i64, i: i64, mode: &str) -> Option<i64> {
    let (from, to) = ((-before).max(0), n - (-after).max(0));
    let (n, at) = (to - from, i - before.max(0));
    let at = match mode {
        "constant" => Some(at).filter(|at| (0..n).contains(at)),
        "replicate" => Some(at.clamp(0, n - 1)),
        "circular" => Some(at.rem_euclid(n)),
        _ if n == 1 => Some(0),
        _ => {
            let at = at.rem_euclid(2 * (n - 1));
            Some(if at < n { at } else { 2 * (n - 1) - at })
        }
    };
    at.map(|at| at + from)
}

#[test]
fn pads_of_every_mode() {
    let mut random = Random::new(62);
    for _ in 0..60 {
        let n = random.int(1, 6);
        let (before, after) = (random.int(-2, 6), random.int(-2, 6));
        let m = n + before + after;
        if n + before.min(0) + after.min(0) < 1 {
            continue;
        }
        let got = vectors("padded_extents", &[&[2, n], &[before], &[after], &[1]], &[]);
        assert_eq!(got, [[0, before], [0, after], [2, m]]);
        let x = random.array(&[2, n], F);
        for mode in ["constant", "reflect", "replicate", "circular"] {
            let args = vec![of("x", &[2, n], F), index("b", 2), index("a", 2), of("v", &[], F), shape(&[2, m])];
            let value = Array { shape: vec![], data: vec![9.0] };
            let inputs = [x.clone(), vector(&got[0]), vector(&got[1]), value];
            check(&call("dynamic_pad", args, &[("pad_mode", mode.into())]), &inputs, &[2, m], 0.0, |i| {
                padded(n, before, after, i[1], mode).map_or(9.0, |at| x.at(&[i[0], at]))
            });
        }
    }
}

#[test]
fn extents_of_reductions() {
    let keep = |v: bool| [("keepdims", AttrValue::from(v))];
    let e: &[i64] = &[5, 6, 7, 8];
    assert_eq!(vectors("reduced_extents", &[e, &[-1, 1]], &keep(true)), [[5, 1, 7, 1]]);
    assert_eq!(vectors("reduced_extents", &[e, &[-1, 1]], &keep(false)), [[5, 7]]);
    assert_eq!(vectors("reduced_extents", &[e, &[]], &keep(true)), [[1, 1, 1, 1]]);
    let noop = |keep: bool| [("keepdims", AttrValue::from(keep)), ("noop_with_empty_axes", true.into())];
    assert_eq!(vectors("reduced_extents", &[e, &[]], &noop(true)), [e]);
    assert_eq!(vectors("reduced_extents", &[e, &[]], &noop(false)), [e]);
    assert_eq!(vectors("reduced_extents", &[e, &[0]], &noop(false)), [[6, 7, 8]]);
}

#[test]
#[should_panic(expected = "an axis is given twice")]
fn an_axis_given_twice() {
    vectors("reduced_extents", &[&[2, 3, 4], &[1, -2]], &[]);
}

#[test]
#[should_panic(expected = "an axis is out of range")]
fn an_axis_out_of_range() {
    vectors("padded_extents", &[&[2, 3], &[1], &[1], &[-3]], &[]);
}

#[test]
#[should_panic(expected = "a step is 0")]
fn a_step_of_zero() {
    vectors("slice_ranges", &[&[2], &[0], &[1], &[0], &[0]], &[]);
}

#[test]
fn parts_around_an_axis() {
    for (axis, want) in [(0, [1, 5, 42]), (1, [5, 6, 7]), (-1, [30, 7, 1])] {
        let axis_ = Array { shape: vec![], data: vec![axis as f64] };
        let c = call("axis_parts", vec![index("e", 3), of("axis", &[], I)], &[]);
        assert_eq!(list(&eval(&c, &[vector(&[5, 6, 7]), axis_])), want);
    }
}

fn checked(at: &[i64], n: i64) -> Vec<i64> {
    let c = call("checked_index", vec![index("i", at.len() as i64), of("n", &[], I)], &[]);
    list(&eval(&c, &[vector(at), Array { shape: vec![], data: vec![n as f64] }]))
}

#[test]
fn indices_from_either_end() {
    assert_eq!(checked(&[0, -1, 4, -5], 5), [0, 4, 4, 0]);
    assert!(checked(&[], 0).is_empty());
    let pairs = call("checked_index", vec![of("i", &[2, 2], I), index("n", 2)], &[]);
    let at = Array { shape: vec![2, 2], data: vec![-1.0, -1.0, 1.0, 6.0] };
    assert_eq!(list(&eval(&pairs, &[at, vector(&[2, 7])])), [1, 6, 1, 6]);
}

#[test]
#[should_panic(expected = "an index is out of range")]
fn an_index_past_the_end() {
    checked(&[0, 5], 5);
}

#[test]
#[should_panic(expected = "an index is out of range")]
fn an_index_before_the_start() {
    checked(&[-6], 5);
}

#[test]
fn collapsed_axes() {
    let x = Random::new(63).array(&[2, 3, 4], F);
    let sum = |reduction: &str, to: &[i64], want: &dyn Fn(&[i64]) -> f64| {
        let c = call("collapse_to", vec![of("x", &x.shape, F), shape(to)], &[("reduction", reduction.into())]);
        check(&c, std::slice::from_ref(&x), to, 1e-6, want);
    };
    sum("sum", &[2, 1, 4], &|i| (0..3).map(|k| x.at(&[i[0], k, i[2]])).sum());
    sum("mean", &[1, 1, 4], &|i| (0..6).map(|k| x.at(&[k / 3, k % 3, i[2]])).sum::<f64>() / 6.0);
    sum("max", &[2, 3, 1], &|i| (0..4).map(|k| x.at(&[i[0], i[1], k])).fold(f64::MIN, f64::max));
    sum("min", &[2, 3, 4], &|i| x.at(i));
    sum("log_sum_exp", &[2, 1, 4], &|i| (0..3).map(|k| x.at(&[i[0], k, i[2]]).exp()).sum::<f64>().ln());
    let infinite = Array { shape: vec![2, 2], data: vec![f64::INFINITY, 1.0, f64::NEG_INFINITY, f64::NEG_INFINITY] };
    let c = call("collapse_to", vec![of("x", &[2, 2], F), shape(&[2, 1])], &[("reduction", "log_sum_exp".into())]);
    assert_eq!(eval(&c, &[infinite]).data, [f64::INFINITY, f64::NEG_INFINITY]);
}

#[test]
fn scans_along_any_axis() {
    let x = Random::new(64).array(&[2, 3, 4], F);
    for (axis, at) in [(0i64, 0usize), (1, 1), (2, 2), (-1, 2), (-3, 0)] {
        for (exclusive, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
            let attrs = [("exclusive", AttrValue::from(exclusive)), ("reverse", reverse.into())];
            for (name, product) in [("dynamic_cumsum", false), ("dynamic_cumprod", true)] {
                let c = call(name, vec![of("x", &x.shape, F), of("axis", &[], I)], &attrs);
                let inputs = [x.clone(), Array { shape: vec![], data: vec![axis as f64] }];
                check(&c, &inputs, &x.shape, 1e-6, |i| {
                    let n = x.shape[at];
                    let own = |k: i64| {
                        let earlier = if reverse { k > i[at] } else { k < i[at] };
                        earlier || (k == i[at] && !exclusive)
                    };
                    let values = (0..n).filter(|k| own(*k)).map(|k| {
                        let mut place = i.to_vec();
                        place[at] = k;
                        x.at(&place)
                    });
                    if product { values.product() } else { values.sum() }
                });
            }
        }
    }
}

#[test]
fn extents_of_views() {
    let expanded = |e: &[i64], s: &[i64]| vectors("expanded_extents", &[e, s], &[]).remove(0);
    assert_eq!(expanded(&[3, 1], &[2, 1, 6]), [2, 3, 6]);
    assert_eq!(expanded(&[2, 3, 6], &[3, 1]), [2, 3, 6]);
    assert_eq!(expanded(&[1], &[0]), [0]);
    assert_eq!(expanded(&[], &[]), [0i64; 0]);
    let reshaped = |e: &[i64], s: &[i64], zero: bool| {
        vectors("reshaped_extents", &[e, s], &[("allow_zero", zero.into())]).remove(0)
    };
    assert_eq!(reshaped(&[2, 3, 4], &[0, -1], false), [2, 12]);
    assert_eq!(reshaped(&[2, 3, 4], &[4, 6], false), [4, 6]);
    assert_eq!(reshaped(&[0, 3, 4], &[3, 4, 0], true), [3, 4, 0]);
    assert_eq!(reshaped(&[0, 3], &[-1, 3], false), [0, 3]);
    assert_eq!(reshaped(&[0, 3], &[0, -1], false), [0, 0]);
    assert_eq!(reshaped(&[], &[1, -1], false), [1, 1]);
    assert_eq!(reshaped(&[1], &[], false), [0i64; 0]);
    let unsqueezed = |e: &[i64], a: &[i64]| vectors("unsqueezed_extents", &[e, a], &[]).remove(0);
    assert_eq!(unsqueezed(&[3, 4], &[0, -2]), [1, 3, 1, 4]);
    assert_eq!(unsqueezed(&[3, 4], &[3, 2]), [3, 4, 1, 1]);
    assert_eq!(unsqueezed(&[], &[1, 0]), [1, 1]);
}

#[test]
fn views_that_do_not_fit() {
    let cases: [(&str, &[i64], &[i64], &str); 6] = [
        ("expanded_extents", &[2, 3], &[2, 4], "do not broadcast"),
        ("reshaped_extents", &[2, 3], &[4, -1], "does not fill"),
        ("reshaped_extents", &[2, 3], &[-1, -1], "more than one"),
        ("reshaped_extents", &[2, 3], &[-2, 3], "negative"),
        ("reshaped_extents", &[6], &[6, 0], "no extent to keep"),
        ("unsqueezed_extents", &[2], &[0, 3], "out of range"),
    ];
    for (name, e, parameters, want) in cases {
        let run = std::panic::catch_unwind(|| vectors(name, &[e, parameters], &[]));
        let message = run.unwrap_err().downcast::<String>().map(|m| *m).unwrap_or_default();
        assert!(message.contains(want), "{name} {parameters:?}: {message}");
    }
}
