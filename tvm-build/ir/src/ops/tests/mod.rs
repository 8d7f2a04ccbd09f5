//! Properties of every row.

mod data;
mod dynamic;
mod elementwise;
mod eval;
mod indexing;
mod neural;
#[cfg(feature = "rust")]
mod rust_spelling;
mod samples;
mod signal;
mod symbolic;
mod verified;

use super::*;
use crate::dtype::DType;
use crate::prim::PrimExpr;
use crate::relax::{Leaf, Legalized, Var};
use crate::span::Span;

fn tensor(name: &str, dims: &[i64]) -> Leaf {
    Leaf::Var(Var::new(name, StructInfo::tensor_fixed(dims, DType::F32)))
}

fn call(name: &str, args: Vec<Leaf>) -> Call {
    make_call(lookup(name).unwrap(), args, &[], Span::NONE).unwrap()
}

#[test]
fn rows_are_sorted_documented_and_unique() {
    let mut seen = std::collections::BTreeSet::new();
    for file in FILES {
        let names: Vec<&str> = file.iter().map(|d| d.name).collect();
        assert!(names.is_sorted(), "{names:?}");
        for d in *file {
            assert!(seen.insert(d.name), "{} twice", d.name);
            assert!(!d.doc.is_empty(), "{} has no doc", d.name);
            for a in d.attrs {
                if let Some(v) = a.default {
                    assert!(check::legal(a.kind, &v.value()), "{}.{}", d.name, a.name);
                }
            }
        }
    }
}

#[test]
fn tutorial_ops() {
    let an = Analyzer::new();
    let w = tensor("w", &[256, 784]);
    let t = call("permute_dims", vec![w]);
    let info = infer(&t, &an).unwrap();
    assert_eq!(info, StructInfo::tensor_fixed(&[784, 256], DType::F32));
    let Legalized::Tir { name, func, args, tir_vars } = legalize(&t, &info).unwrap() else { panic!() };
    assert_eq!(name, "transpose");
    assert_eq!((args.len(), tir_vars.len(), func.params.len()), (1, 0, 2));

    let m = call("matmul", vec![tensor("x", &[1, 784]), tensor("lv", &[784, 256])]);
    let info = infer(&m, &an).unwrap();
    assert_eq!(info, StructInfo::tensor_fixed(&[1, 256], DType::F32));
    assert!(matches!(legalize(&m, &info), Ok(Legalized::Tir { .. })));
}

#[test]
fn errors_name_both_shapes_and_a_way_out() {
    let an = Analyzer::new();
    let bad = call("matmul", vec![tensor("x", &[1, 784]), tensor("w", &[256, 784])]);
    let e = infer(&bad, &an).unwrap_err().to_string();
    assert!(e.contains("(1, 784)") && e.contains("(256, 784)") && e.contains("R.permute_dims(x2)"), "{e}");
    let bad = call("add", vec![tensor("x", &[3, 4]), tensor("b", &[3])]);
    let e = infer(&bad, &an).unwrap_err().to_string();
    assert!(e.contains("do not broadcast") && e.contains("reshape it to (3, 1)"), "{e}");
    let e = make_call(lookup("add").unwrap(), vec![tensor("x", &[3])], &[], Span::NONE).unwrap_err().to_string();
    assert!(e.contains("argument `x2` must be given"), "{e}");
    assert_eq!(suggest("relu"), vec!["nn.relu"]);
}

#[test]
fn symbolic_scalars_become_parameters() {
    let n = crate::prim::Var::new("n", DType::I64);
    let x = Leaf::Var(Var::new("x", StructInfo::tensor(vec![PrimExpr::i64(3)], DType::I64)));
    let c = call("add", vec![x, Leaf::Prim(n.expr())]);
    let info = infer(&c, &Analyzer::new()).unwrap();
    let Legalized::Tir { func, tir_vars, .. } = legalize(&c, &info).unwrap() else { panic!() };
    assert_eq!(tir_vars, vec![n.expr()]);
    assert!(matches!(func.params.last(), Some(crate::tir::Param::Scalar(v)) if *v != n));
}

#[test]
fn every_row_infers_and_lowers_its_samples() {
    let an = Analyzer::new();
    let samples = samples::samples();
    for (call, dims, dtype) in &samples {
        let name = call.op.name();
        let info = infer(call, &an).unwrap_or_else(|e| panic!("{name}: {e}"));
        let tensors = info.tensors().unwrap_or_else(|| panic!("{name} gives {info:?}"));
        assert_eq!(tensors[0].dims.fixed().as_ref(), Some(dims), "{name}");
        assert_eq!(tensors[0].dtype, Some(*dtype), "{name}");
        let outputs = tensors.len();
        match legalize(call, &info).unwrap_or_else(|e| panic!("{name}: {e}")) {
            Legalized::Tir { func, args, tir_vars, .. } => {
                assert_eq!(func.params.len(), args.len() + outputs + tir_vars.len(), "{name}");
                assert!(tir_vars.is_empty(), "{name} of fixed shapes has scalar parameters");
                let free = crate::tir::stmt_free_vars(&func.body);
                assert!(free.is_empty(), "{name}: {free:?}");
            }
            Legalized::Bindings { bindings, result } => {
                assert_eq!(result.info().as_ref(), Some(&info), "{name}");
                assert!(!bindings.is_empty(), "{name}");
            }
            Legalized::Keep => assert!(matches!(call.op.def().lower, crate::relax::Lower::Builtin(_)), "{name}"),
        }
    }
    // Ops that give or take shapes or lists and have tests of their own.
    let shapes = ["at_most", "nonzero", "shape_of", "tensor_to_shape", "unique"];
    for d in all().filter(|d| !shapes.contains(&d.name) && !d.name.starts_with("list.")) {
        assert!(samples.iter().any(|(c, ..)| c.op.name() == d.name), "no sample of {}", d.name);
    }
}

#[test]
fn shapes_as_values() {
    let an = Analyzer::new();
    let x = tensor("x", &[2, 3]);
    let Leaf::Var(v) = &x else { panic!() };
    let shape = infer(&call("shape_of", vec![x.clone()]), &an).unwrap();
    assert_eq!(shape, StructInfo::Shape(v.info().as_tensor().unwrap().dims.clone()));
    let t = Leaf::Var(Var::new("t", StructInfo::tensor_fixed(&[4], DType::I64)));
    let shape = infer(&call("tensor_to_shape", vec![t]), &an).unwrap();
    assert_eq!(shape, StructInfo::Shape(crate::relax::Dims::Rank(4)));
}
