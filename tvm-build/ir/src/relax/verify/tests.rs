//! Each rule, broken once.

use super::*;
use crate::dtype::DType;
use crate::prim;
use crate::relax::build::FnBuilder;
use crate::relax::{Binding, Block, Expr, Function, GlobalVar, Leaf, StructInfo, Var};
use crate::span::Span;

fn info(dims: &[i64]) -> StructInfo {
    StructInfo::tensor_fixed(dims, DType::F32)
}

/// `relu(x) + x`
fn sample() -> Function {
    let mut f = FnBuilder::new();
    let x = f.param("x", info(&[2, 3]));
    let y = f.call("nn.relu", vec![x.clone()], &[]).unwrap();
    let z = f.call("add", vec![y, x], &[]).unwrap();
    f.finish_public("main", z).unwrap()
}

fn module(f: Function) -> IRModule {
    let mut m = IRModule::new();
    m.funcs.insert("main".into(), Func::Relax(f));
    m
}

fn errors(f: Function) -> String {
    verify_module(&module(f)).err().map_or_else(String::new, |d| d.to_string())
}

fn bindings(f: &mut Function) -> &mut Vec<Binding> {
    f.body.blocks[0].bindings_mut()
}

#[track_caller]
fn expect(f: Function, text: &str) {
    let found = errors(f);
    assert!(found.contains(text), "{found:?} lacks {text:?}");
}

#[test]
fn a_good_function() {
    assert_eq!(errors(sample()), "");
}

#[test]
fn scopes() {
    let mut f = sample();
    bindings(&mut f).swap(0, 1);
    expect(f, "the variable `lv` is used before it is bound");

    let mut f = sample();
    let again = bindings(&mut f)[0].clone();
    bindings(&mut f).insert(1, again);
    expect(f, "the variable `lv` is bound twice");

    let mut f = sample();
    f.body.result = Leaf::Var(bindings(&mut f)[0].var.clone());
    expect(f, "in a dataflow block that does not output it");

    let mut f = sample();
    let Block::Dataflow { outputs, .. } = &mut f.body.blocks[0] else { panic!() };
    outputs.push(Var::new("ghost", info(&[1])));
    expect(f, "outputs `ghost`, which it does not bind");
}

#[test]
fn struct_info() {
    let retyped = |to: StructInfo| {
        let mut f = sample();
        let last = bindings(&mut f).pop().unwrap();
        let var = Var::new("gv", to);
        f.body.result = Leaf::Var(var.clone());
        f.ret = var.info().clone();
        bindings(&mut f).push(Binding { var: var.clone(), ..last });
        let Block::Dataflow { outputs, .. } = &mut f.body.blocks[0] else { panic!() };
        *outputs = vec![var];
        f
    };
    expect(retyped(info(&[2, 4])), "`gv` is declared a tensor (2, 4) float32, its value is a tensor (2, 3) float32");
    assert_eq!(errors(retyped(StructInfo::Object)), "");

    let mut f = sample();
    f.ret = info(&[6]);
    expect(f, "is declared to give a tensor (6,) float32");

    let n = prim::Var::new("n", DType::I64);
    expect(retyped(StructInfo::tensor(vec![n.expr(), n.expr()], DType::F32)), "`n` of `gv` is not defined");
}

#[test]
fn effects_and_calls() {
    let packed = |pure| Expr::CallPacked { symbol: "f".into(), args: vec![], ret: StructInfo::Object, pure };
    let mut f = sample();
    bindings(&mut f)
        .insert(0, Binding { var: Var::new("p", StructInfo::Object), value: packed(false), span: Span::NONE });
    expect(f.clone(), "the call of \"f\" must not stand in a dataflow block");
    expect(f, "which is marked pure");

    let mut f = sample();
    let call_tir = crate::relax::CallTir {
        func: GlobalVar("missing".into()),
        args: vec![],
        out: info(&[2]),
        tir_vars: vec![],
        inplace: vec![],
    };
    let value = Expr::CallTir(call_tir.clone());
    bindings(&mut f).insert(0, Binding { var: Var::new("t", info(&[2])), value, span: Span::NONE });
    expect(f, "`missing`, which the module does not have");

    let mut f = sample();
    let callee = Leaf::Global(GlobalVar("main".into()));
    let value = Expr::CallFunc { callee: callee.clone(), args: vec![] };
    bindings(&mut f).insert(0, Binding { var: Var::new("t", info(&[2])), value, span: Span::NONE });
    expect(f, "a function of 1 parameters is called with 0 arguments");

    let mut f = sample();
    f.attrs.insert("global_symbol".into(), "other".into());
    expect(f, "has the global_symbol");
}

#[test]
fn call_tir_fits_its_prim_func() {
    let mut m = IRModule::new();
    let x = Leaf::Var(Var::new("x", info(&[2, 3])));
    let call = crate::ops::make_call(crate::ops::lookup("nn.relu").unwrap(), vec![x], &[], Span::NONE).unwrap();
    let crate::relax::Legalized::Tir { func, .. } = crate::ops::legalize(&call, &info(&[2, 3])).unwrap() else {
        panic!()
    };
    m.funcs.insert("relu".into(), Func::Prim(func));
    let calling = |arg: &[i64], out: &[i64]| {
        let mut f = FnBuilder::new();
        let x = f.param("x", info(arg));
        let call = crate::relax::CallTir {
            func: GlobalVar("relu".into()),
            args: vec![x],
            out: info(out),
            tir_vars: vec![],
            inplace: vec![],
        };
        let y = f.bindings().emit_as("lv", Expr::CallTir(call), info(out));
        let mut m = m.clone();
        m.funcs.insert("main".into(), Func::Relax(f.finish_public("main", Leaf::Var(y)).unwrap()));
        verify_module(&m).err().map_or_else(String::new, |d| d.to_string())
    };
    assert_eq!(calling(&[2, 3], &[2, 3]), "");
    assert!(
        calling(&[2, 4], &[2, 3])
            .contains("the argument for parameter `x` of `relu` must be (2, 3), it is a tensor (2, 4) float32")
    );
    assert!(calling(&[2, 3], &[6]).contains("the output for parameter `compute` of `relu` must be (2, 3) float32"));
}

#[test]
fn match_cast_defines_symbols() {
    let n = prim::Var::new("n", DType::I64);
    let mut f = FnBuilder::new();
    let unknown = crate::relax::TensorInfo { dims: crate::relax::Dims::Unknown, dtype: Some(DType::F32) };
    let x = f.param("x", StructInfo::Tensor(unknown.clone()));
    let y = f.bindings().match_cast(x, StructInfo::tensor(vec![n.expr()], DType::F32));
    let z = f.call("nn.relu", vec![y], &[]).unwrap();
    let mut func = f.finish_public("main", z).unwrap();
    // The builder declares what parameters tell of it: the rank.
    let rank = crate::relax::TensorInfo { dims: crate::relax::Dims::Rank(1), dtype: Some(DType::F32) };
    assert_eq!((&func.ret, errors(func.clone()).as_str()), (&StructInfo::Tensor(rank), ""));
    func.ret = StructInfo::tensor(vec![n.expr()], DType::F32);
    expect(func.clone(), "`n` of what is returned is not defined");
    func.ret = StructInfo::Tensor(unknown);
    assert_eq!(errors(func), "");
}
