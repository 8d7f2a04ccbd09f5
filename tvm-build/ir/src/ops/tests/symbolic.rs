//! Lowering with symbolic shapes computes what lowering with fixed shapes does.

use super::eval::{Array, Random, eval_with, tensor_args};
use super::samples::samples;
use crate::arith::Analyzer;
use crate::ops::{infer, legalize};
use crate::prim::{PrimExpr, Var, substitute};
use crate::relax::{Call, Leaf, Legalized};
use std::collections::BTreeMap;

/// The call with every dimension above 1 of its tensor variables a symbolic variable, equal ones the same.
pub(super) fn made_symbolic(call: &Call) -> (Call, BTreeMap<Var, PrimExpr>) {
    let mut vars: BTreeMap<i64, Var> = BTreeMap::new();
    fn leaf(l: &Leaf, vars: &mut BTreeMap<i64, Var>) -> Leaf {
        match l {
            Leaf::Var(v) => {
                let info = v.info().map_exprs(&mut |e| match e.as_int() {
                    Some(n) if n > 1 => {
                        let fresh = || Var::new(format!("n{n}"), crate::dtype::DType::I64);
                        vars.entry(n).or_insert_with(fresh).expr()
                    }
                    _ => e.clone(),
                });
                Leaf::Var(crate::relax::Var::new(v.name().clone(), info))
            }
            Leaf::Tuple(items) => Leaf::Tuple(items.iter().map(|i| leaf(i, vars)).collect()),
            other => other.clone(),
        }
    }
    let args = call.args.iter().map(|l| leaf(l, &mut vars)).collect();
    let values = vars.into_iter().map(|(n, v)| (v, PrimExpr::i64(n))).collect();
    (Call { args, ..call.clone() }, values)
}

#[test]
fn symbolic_shapes_compute_the_same() {
    let mut random = Random::new(7);
    let (mut compared, mut skipped) = (0, Vec::new());
    for (call, ..) in samples() {
        let info = infer(&call, &Analyzer::new()).unwrap();
        if !matches!(legalize(&call, &info), Ok(Legalized::Tir { .. })) {
            continue;
        }
        // Their vectors have fixed lengths, and random extents do not fit; the last one never gives a value.
        if matches!(call.op.name(), "expanded_extents" | "reshaped_extents" | "unsqueezed_extents" | "fail") {
            continue;
        }
        let inputs: Vec<_> = tensor_args(&call)
            .iter()
            .enumerate()
            .map(|(i, (shape, dtype))| {
                // Integer tensors after the first are indices or shift counts: in range of everything.
                if dtype.is_integer() && i > 0 {
                    random.array(shape, crate::dtype::DType::BOOL)
                } else {
                    random.array(shape, *dtype)
                }
            })
            .collect();
        let inputs: Vec<_> =
            if call.op.name().contains("floor") || matches!(call.op.name(), "mod" | "divide" | "range_extent") {
                inputs
                    .into_iter()
                    .map(|mut a| {
                        a.data.iter_mut().for_each(|v| *v = if *v == 0.0 { 1.0 } else { *v });
                        a
                    })
                    .collect()
            } else {
                inputs
            };
        // Indices are below their extents.
        let inputs = if call.op.name() == "checked_index" {
            inputs.iter().zip([0.0, 1.0]).map(|(a, v)| Array::new(&a.shape, |_| v)).collect()
        } else {
            inputs
        };
        let fixed = eval_with(&call, &inputs, &BTreeMap::new());
        let (symbolic, values) = made_symbolic(&call);
        let known = infer(&symbolic, &Analyzer::new())
            .ok()
            .filter(|i| i.tensors().is_some_and(|t| t.iter().all(|t| t.dims.known().is_some())));
        let Some(info) = known else {
            skipped.push(call.op.name());
            continue;
        };
        if legalize(&symbolic, &info).is_err() {
            skipped.push(call.op.name());
            continue;
        }
        let negative = |e: &PrimExpr| Analyzer::new().simplify(&substitute(e, &values)).as_int().unwrap() < 0;
        let tensors = info.tensors().unwrap();
        if tensors.iter().any(|t| t.dims.known().unwrap().iter().any(negative)) {
            // Positions of a split past the end: a piece cannot be allocated, which is the run-time error.
            assert_eq!(call.op.name(), "split");
            continue;
        }
        let got = eval_with(&symbolic, &inputs, &values);
        assert_eq!(fixed.len(), got.len());
        for (a, b) in fixed.iter().zip(&got) {
            assert_eq!(a.shape, b.shape, "{}", call.op.name());
            let bits = |v: &[f64]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&a.data), bits(&b.data), "{}", call.op.name());
        }
        compared += 1;
    }
    assert!(compared > 100, "only {compared} samples compared");
    // What needs fixed extents says so; these alone may.
    let may = [
        "dft",
        "image.grid_sample",
        "gather_nd",
        "scatter_nd",
        "nn.conv1d_transpose",
        "nn.conv2d_transpose",
        "nn.conv3d_transpose",
        "nn.linear_attention",
        "split",
        "stft",
        "vision.all_class_non_max_suppression",
    ];
    skipped.retain(|n| !may.contains(n));
    assert!(skipped.is_empty(), "{skipped:?}");
}
