//! Every row is reachable by its path in the Rust spelling, and so is every intrinsic of TensorIR.

use super::samples::{call, of, samples, shape};
use crate::arith::Analyzer;
use crate::attrs::AttrValue;
use crate::dtype::DType;
use crate::module::{Func, IRModule};
use crate::ops::{all, infer};
use crate::prim::{INTRINSICS, PrimExpr, PrimKind};
use crate::relax::build::FnBuilder;
use crate::relax::{Call, Expr, Leaf, StructInfo, Var};
use crate::render::render_all;
use crate::span::SourceMap;
use crate::structural::diff;
use crate::syntax::rust::parse_rust;
use crate::syntax::{ParseOptions, print_rust};
use crate::tir::visit_exprs;
use std::collections::{BTreeMap, BTreeSet};

/// A function that makes one call of its parameters.
fn module(call: &Call) -> IRModule {
    let mut f = FnBuilder::new();
    let mut params = BTreeMap::new();
    let mut args = Vec::new();
    for a in &call.args {
        args.push(a.map(&mut |l| match l {
            Leaf::Var(v) => {
                params.entry(v.clone()).or_insert_with(|| f.param(&format!("p_{}", v.name()), v.info().clone())).clone()
            }
            other => other.clone(),
        }));
    }
    let call = Call { args, ..call.clone() };
    let info = infer(&call, &Analyzer::new()).unwrap();
    let result = f.bindings().emit_as("y", Expr::Call(call), info);
    let mut module = IRModule::new();
    module.funcs.insert("main".into(), Func::Relax(f.finish_public("main", Leaf::Var(result)).unwrap()));
    module
}

/// Calls of rows whose results have no known shape, and so no sample.
fn others() -> Vec<Call> {
    let x = of("x", &[4], DType::F32);
    let list = Leaf::Var(Var::new("list", StructInfo::Object));
    let one = Leaf::Prim(PrimExpr::i64(1));
    let joined = [("axis", AttrValue::Int(0)), ("dtype", AttrValue::DType(DType::F32)), ("ndim", AttrValue::Int(1))];
    vec![
        call("at_most", vec![shape(&[3]), shape(&[4])], &[]),
        call("nonzero", vec![x.clone()], &[]),
        call("shape_of", vec![x.clone()], &[]),
        call("tensor_to_shape", vec![of("s", &[2], DType::I64)], &[]),
        call("unique", vec![x.clone()], &[]),
        call("list.at", vec![list.clone(), one.clone()], &[]),
        call("list.concat", vec![list.clone()], &joined),
        call("list.erase", vec![list.clone()], &[]),
        call("list.insert", vec![list.clone(), x.clone(), one], &[]),
        call("list.length", vec![list], &[]),
        call("list.make", vec![Leaf::Tuple(vec![x.clone(), x.clone()])], &[]),
        call("list.split", vec![x, of("n", &[], DType::I64)], &joined[..1]),
    ]
}

#[test]
fn every_op_is_reachable() {
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for call in samples().into_iter().map(|(call, ..)| call).chain(others()) {
        let module = module(&call);
        let (text, constants) = print_rust(&module, "m").unwrap();
        let path = format!("R::{}", call.op.name().replace('.', "::"));
        let written = text.replace("r#", "");
        // What has an operator is written with it.
        if !written.contains(&format!("{path}(")) && !text.contains("let y = p_") {
            wrong.push(format!("{path} is not in\n{text}"));
        }
        let mut sources = SourceMap::default();
        match parse_rust(&mut sources, "m.rs", &text, &ParseOptions { constants }) {
            Ok(again) => wrong.extend(diff::modules(&module, &again).err().map(|d| format!("{path}: {d}\n{text}"))),
            Err(d) => wrong.push(format!("{path}: {}\n{text}", render_all(&d, &sources))),
        }
        seen.insert(call.op.name());
    }
    let missing: Vec<&str> = all().map(|o| o.name).filter(|n| !seen.contains(n)).collect();
    assert!(missing.is_empty(), "no sample of {missing:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_intrinsic_is_reachable() {
    let mut wrong = Vec::new();
    for (intrinsic, def) in INTRINSICS {
        let args = match def.name {
            "bitwise_not" | "clz" | "popcount" => "i[0]".to_string(),
            "if_then_else" => "b[0], x[0], x[1]".into(),
            "likely" => "b[0]".into(),
            "ldexp" => "x[0], i[0]".into(),
            "reinterpret" => "i32, x[0]".into(),
            "tvm_storage_sync" => "\"shared\"".into(),
            _ => (0..def.arity).map(|k| format!("x[{k}]")).collect::<Vec<_>>().join(", "),
        };
        let text = format!(
            "mod m {{ #[T::prim_func] fn f(x: T::Buffer<f32, 4>, i: T::Buffer<i32, 4>, b: T::Buffer<bool, 4>) {{ \
             T::evaluate(T::{}({args})); }} }}",
            def.name
        );
        let mut sources = SourceMap::default();
        match parse_rust(&mut sources, "m.rs", &text, &ParseOptions::default()) {
            Ok(module) => {
                let mut found = false;
                for (_, f) in module.prim_funcs() {
                    visit_exprs(&f.body, &mut |e| found |= matches!(e.kind(), PrimKind::Call(c, _) if c == intrinsic));
                }
                if !found {
                    wrong.push(format!("T::{} is something else", def.name));
                }
            }
            Err(d) => wrong.push(format!("T::{}: {}", def.name, render_all(&d, &sources))),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
