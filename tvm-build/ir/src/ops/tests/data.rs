//! Ops whose shapes depend on data, against plain loops, by the interpreter of Relax functions.

use super::eval::{Array, Random};
use super::samples::{Add, of, shape};
use crate::attrs::AttrValue;
use crate::dtype::DType;
use crate::interp::TensorBuf;
use crate::interp::relax::{Value, run_function};
use crate::module::{Func, IRModule};
use crate::relax::build::FnBuilder;
use crate::relax::{Leaf, StructInfo};

const F: DType = DType::F32;
const I: DType = DType::I64;

/// Samples of the rows of this family that give shapes which are known.
pub(super) fn samples(add: &mut Add<'_>) {
    let number = |name: &str, dtype| of(name, &[], dtype);
    add("dynamic_arange", vec![number("start", I), number("step", I), shape(&[5])], &[], &[5], I);
    add(
        "dynamic_arange",
        vec![number("start", DType::F16), number("step", DType::F16), shape(&[0])],
        &[],
        &[0],
        DType::F16,
    );
    add("nonzero_count", vec![of("x", &[2, 3], DType::BOOL)], &[], &[1], I);
    add("nonzero_count", vec![of("x", &[], F)], &[], &[1], I);
    add("nonzero_indices", vec![of("x", &[2, 3], F), shape(&[2, 4])], &[], &[2, 4], I);
    add("nonzero_indices", vec![of("x", &[], F), shape(&[0, 1])], &[], &[0, 1], I);
    for dtype in [F, I] {
        add("range_extent", ["start", "end", "step"].map(|n| number(n, dtype)).to_vec(), &[], &[1], I);
    }
    add("unique_rows", vec![of("x", &[4, 2], F)], &[], &[4], I);
    add("unique_rows", vec![of("x", &[0, 2], I)], &[("sorted", false.into())], &[0], I);
    add("argsort", vec![of("x", &[2, 70], F)], &[("axis", 1.into())], &[2, 70], DType::I32);
    for center in [false, true] {
        let mut args = vec![of("boxes", &[2, 5, 4], F), of("scores", &[2, 3, 5], F), number("most", I)];
        args.extend([number("iou", F), number("least", F)]);
        let attrs = [("center_point_box", AttrValue::from(center))];
        add("vision.all_class_non_max_suppression", args, &attrs, &[30, 3], I);
    }
}

fn buffer(a: &Array, dtype: DType) -> TensorBuf {
    let ints: Vec<i64> = a.data.iter().map(|v| *v as i64).collect();
    match dtype.is_float() {
        true => TensorBuf::from_f64(dtype, &a.shape, &a.data).unwrap(),
        false => TensorBuf::from_i64(dtype, &a.shape, &ints).unwrap(),
    }
}

/// The results of one call in a function.
fn results(op: &str, inputs: &[(Array, DType)], attrs: &[(&str, AttrValue)]) -> Result<Vec<Array>, String> {
    let mut f = FnBuilder::new();
    let params: Vec<Leaf> = inputs.iter().map(|(a, d)| f.param("x", StructInfo::tensor_fixed(&a.shape, *d))).collect();
    let out = f.call(op, params, attrs).map_err(|d| d.to_string())?;
    let mut module = IRModule::new();
    module.funcs.insert("main".into(), Func::Relax(f.finish_public("main", out).map_err(|d| d.to_string())?));
    crate::relax::verify::verify_module(&module).unwrap_or_else(|e| panic!("{e}"));
    let args: Vec<Value> = inputs.iter().map(|(a, d)| Value::tensor(buffer(a, *d))).collect();
    let value = run_function(&module, "main", &args).map_err(|d| d.to_string())?;
    let array = |t: TensorBuf| Array {
        shape: t.shape.clone(),
        data: (0..t.len()).map(|i| if t.dtype.is_float() { t.get_f64(i) } else { t.get_i64(i) as f64 }).collect(),
    };
    Ok(value.tensors().into_iter().map(array).collect())
}

fn array(shape: &[i64], data: &[f64]) -> Array {
    Array { shape: shape.to_vec(), data: data.to_vec() }
}

#[test]
fn nonzero_is_row_major() {
    let mut random = Random::new(3);
    for (round, dtype) in [F, DType::BOOL, DType::I32, DType::F16, I].into_iter().cycle().take(60).enumerate() {
        let mut shape = random.shape(round % 4);
        if round % 7 == 0 && !shape.is_empty() {
            shape[0] = 0;
        }
        let x = Array::new(&shape, |_| if random.int(0, 3) == 0 { random.value(dtype) } else { 0.0 });
        let out = results("nonzero", &[(x.clone(), dtype)], &[]).unwrap();
        let hits: Vec<Vec<i64>> = super::eval::indices(&shape).into_iter().filter(|i| x.at(i) != 0.0).collect();
        assert_eq!(out[0].shape, [shape.len() as i64, hits.len() as i64]);
        for (axis, row) in out[0].data.chunks(hits.len().max(1)).enumerate() {
            assert!(hits.iter().map(|h| h[axis] as f64).eq(row.iter().copied()), "{x:?} {out:?}");
        }
    }
    let nan = results("nonzero", &[(array(&[3], &[f64::NAN, -0.0, 0.0]), F)], &[]).unwrap();
    assert_eq!((nan[0].shape.as_slice(), nan[0].data.as_slice()), (&[1, 1][..], &[0.0][..]));
}

/// Order in which NaN is equal to itself and greater than every number.
fn compare(a: &[f64], b: &[f64]) -> std::cmp::Ordering {
    let key = |v: f64| (v.is_nan(), if v.is_nan() { 0.0 } else { v });
    a.iter().map(|v| key(*v)).partial_cmp(b.iter().map(|v| key(*v))).unwrap()
}

#[test]
fn unique_in_order_and_as_they_come() {
    let mut random = Random::new(11);
    for round in 0..60 {
        let sorted = round % 2 == 0;
        let dtype = [F, I, DType::BOOL][round % 3];
        let mut shape = random.shape(1 + round % 3);
        if round % 11 == 0 {
            shape[0] = 0;
        }
        let x = Array::new(&shape, |_| match (dtype.is_float() && random.int(0, 5) == 0, random.int(0, 3)) {
            (true, _) => f64::NAN,
            (_, v) => v as f64 % if dtype.is_bool() { 2.0 } else { 3.0 },
        });
        let axis = (round % 4 != 0).then(|| (round / 4) % shape.len());
        let n = axis.map_or(x.data.len() as i64, |a| shape[a]);
        let slice = |i: i64| -> Vec<f64> {
            match axis {
                None => vec![x.data[i as usize]],
                Some(a) => {
                    super::eval::indices(&shape).into_iter().filter(|at| at[a] == i).map(|at| x.at(&at)).collect()
                }
            }
        };
        let slices: Vec<Vec<f64>> = (0..n).map(slice).collect();
        let same = |a: &[f64], b: &[f64]| compare(a, b).is_eq();
        let mut firsts: Vec<usize> =
            (0..slices.len()).filter(|i| !slices[..*i].iter().any(|s| same(s, &slices[*i]))).collect();
        if sorted {
            firsts.sort_by(|a, b| compare(&slices[*a], &slices[*b]));
        }
        let place = |i: usize| firsts.iter().position(|f| same(&slices[*f], &slices[i])).unwrap() as f64;
        let inverse: Vec<f64> = (0..slices.len()).map(place).collect();
        let mut attrs: Vec<(&str, AttrValue)> =
            ["return_index", "return_inverse", "return_counts"].map(|n| (n, true.into())).to_vec();
        attrs.push(("sorted", sorted.into()));
        // An axis may count from the end.
        attrs.extend(
            axis.map(|a| ("axis", AttrValue::Int(a as i64 - if round % 3 == 0 { shape.len() as i64 } else { 0 }))),
        );
        let out = results("unique", &[(x.clone(), dtype)], &attrs).unwrap();
        assert_eq!(out[1].data, firsts.iter().map(|f| *f as f64).collect::<Vec<_>>(), "{x:?} {axis:?} {sorted}");
        assert_eq!(out[2].data, inverse);
        let counts: Vec<f64> =
            (0..firsts.len()).map(|k| inverse.iter().filter(|p| **p == k as f64).count() as f64).collect();
        assert_eq!(out[3].data, counts);
        let mut dims = axis.map_or(vec![0], |_| shape.clone());
        dims[axis.unwrap_or(0)] = firsts.len() as i64;
        assert_eq!(out[0].shape, dims);
        let one = |at: &[i64]| match axis {
            None => slices[firsts[at[0] as usize]][0],
            Some(a) => {
                let mut from = at.to_vec();
                from[a] = firsts[at[a] as usize] as i64;
                x.at(&from)
            }
        };
        let expected = Array::new(&dims, one);
        let bits = |a: &Array| a.data.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&out[0]), bits(&expected));
        let alone = results("unique", &[(x, dtype)], &attrs[3..]).unwrap();
        assert_eq!((alone.len(), bits(&alone[0])), (1, bits(&expected)));
    }
}

#[test]
fn ranges() {
    let mut random = Random::new(5);
    for round in 0..80 {
        let dtype = [F, I, DType::I32, DType::F64, DType::I16][round % 5];
        let scale = if dtype.is_float() { 8.0 } else { 1.0 };
        let mut value = |low, high| random.int(low, high) as f64 / scale;
        let (start, end, mut step) = (value(-40, 40), value(-40, 40), value(-9, 9));
        if step == 0.0 {
            step = 1.0;
        }
        let n = ((end - start) / step).ceil().max(0.0);
        let args = [start, end, step].map(|v| (array(&[], &[v]), dtype));
        assert_eq!(results("range_extent", &args, &[]).unwrap()[0].data, [n], "{start} {end} {step} {dtype}");
    }
    let limits = |v: [f64; 3], dtype| results("range_extent", &v.map(|v| (array(&[], &[v]), dtype)), &[]);
    assert!(limits([0.0, 1.0, 0.0], I).unwrap_err().contains("step of a range is 0"));
    assert!(limits([0.0, 1.0, 0.0], F).unwrap_err().contains("step of a range is 0"));
    assert!(limits([0.0, 1e15, 1.0], I).unwrap_err().contains("too long"));
    assert!(limits([0.0, f64::INFINITY, 1.0], F).unwrap_err().contains("too long"));
    assert!(limits([0.0, f64::NAN, 1.0], F).is_err());
}

fn overlap(a: &[f64], b: &[f64], center: bool) -> f64 {
    let corners = |c: &[f64]| match center {
        true => [c[0] - c[2] / 2.0, c[1] - c[3] / 2.0, c[0] + c[2] / 2.0, c[1] + c[3] / 2.0],
        false => [c[0].min(c[2]), c[1].min(c[3]), c[0].max(c[2]), c[1].max(c[3])],
    };
    let (a, b) = (corners(a), corners(b));
    let side = |i: usize| (a[i + 2].min(b[i + 2]) - a[i].max(b[i])).max(0.0);
    let area = |c: &[f64; 4]| (c[2] - c[0]) * (c[3] - c[1]);
    let common = side(0) * side(1);
    if common <= 0.0 { 0.0 } else { common / (area(&a) + area(&b) - common) }
}

#[test]
fn suppression_keeps_the_best() {
    let mut random = Random::new(17);
    for round in 0..60 {
        let (batches, classes, n) = (random.int(1, 3), random.int(1, 3), [0, 1, 2, 6, 9][round % 5]);
        let center = round % 2 == 0;
        let low = if center { 1 } else { 0 };
        let boxes = Array::new(&[batches, n, 4], |_| random.int(low, 6) as f64 / 4.0);
        // Few values: many ties.
        let scores = Array::new(&[batches, classes, n], |_| random.int(-1, 4) as f64 / 4.0);
        let (most, iou, least) = (random.int(0, 4), random.int(0, 4) as f64 / 4.0, random.int(-2, 2) as f64 / 4.0);
        let mut expected = Vec::new();
        for b in 0..batches {
            for c in 0..classes {
                let mut order: Vec<i64> = (0..n).filter(|i| scores.at(&[b, c, *i]) > least).collect();
                order.sort_by(|i, j| scores.at(&[b, c, *j]).partial_cmp(&scores.at(&[b, c, *i])).unwrap());
                let corner = |i: i64| &boxes.data[((b * n + i) * 4) as usize..][..4];
                let mut kept: Vec<i64> = Vec::new();
                for i in order {
                    let free = kept.iter().all(|k| overlap(corner(*k), corner(i), center) <= iou);
                    if free && (kept.len() as i64) < most {
                        kept.push(i);
                    }
                }
                expected.extend(kept.iter().flat_map(|k| [b as f64, c as f64, *k as f64]));
            }
        }
        let number = |v: f64, d| (array(&[], &[v]), d);
        let args = [(boxes, F), (scores, F), number(most as f64, I), number(iou, F), number(least, F)];
        let attrs = [("center_point_box", AttrValue::from(center))];
        let out = results("vision.all_class_non_max_suppression", &args, &attrs).unwrap();
        assert_eq!(out[1].data, [(expected.len() / 3) as f64]);
        assert_eq!(out[0].data[..expected.len()], expected, "{most} {iou} {least}");
        assert!(out[0].data[expected.len()..].iter().all(|v| *v == 0.0));
    }
}

#[test]
fn many_elements_are_sorted_by_merging() {
    let mut random = Random::new(23);
    for (round, n) in [65, 100, 128, 129, 200].into_iter().enumerate() {
        let dtype = [F, I, DType::I8][round % 3];
        let x = Array::new(&[2, n, 2], |_| match (dtype.is_float(), random.int(0, 9)) {
            (true, 0) => f64::NAN,
            (_, v) => v as f64,
        });
        for down in [false, true] {
            let attrs = [("axis", AttrValue::from(1)), ("descending", down.into()), ("dtype", AttrValue::DType(I))];
            let out = results("argsort", &[(x.clone(), dtype)], &attrs).unwrap().remove(0);
            for (a, c) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let mut order: Vec<i64> = (0..n).collect();
                let of = |k: i64| [x.at(&[a, k, c])];
                order.sort_by(|i, j| if down { compare(&of(*j), &of(*i)) } else { compare(&of(*i), &of(*j)) });
                assert!((0..n).all(|k| out.at(&[a, k, c]) == order[k as usize] as f64), "{n} {dtype} {down}");
            }
        }
    }
}
