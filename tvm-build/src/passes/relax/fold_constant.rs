//! FoldConstant: what depends on constants alone is computed now.

use super::dead_code_elimination::remove_unused_bindings;
use super::support::evaluate::{self, Budget};
use super::support::{is_primitive, map_functions, prim_func, rewrite};
use crate::pass::{Pass, PassCx};
use std::collections::BTreeMap;
use tvm_ir::constant::Constant;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::IRModule;
use tvm_ir::ops;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::{Binding, Call, CallTir, Effects, Expr, Leaf, Legalized, StructInfo, Var, map_expr_leaves};

/// Computes `call_tir` of constants, and in dataflow blocks op calls of constants, with the reference interpreter; puts
/// constants and shapes where their variables stood; removes what nothing needs any more. Calls that only create a
/// tensor of more than 1024 elements stay (`zeros` is cheaper computed than stored), and so does what would take
/// too long or too much memory for a module with constants of this size.
pub(super) static FOLD_CONSTANT: Pass =
    Pass { name: "FoldConstant", doc: "computes what depends on constants alone", params: &[], run };

fn run(module: &mut IRModule, _cx: &PassCx<'_>) -> Result<(), Diags> {
    let mut budget = Budget::of(module);
    map_functions(module, |module, _, f| {
        if is_primitive(f) {
            return Ok(f.clone());
        }
        let mut shapes: BTreeMap<Var, Leaf> = BTreeMap::new();
        let folded = rewrite::rewrite_function(f, &mut |mut b, place| {
            if let Expr::Call(c) = &b.value {
                let c = with_shapes(c, &shapes);
                b.value = Expr::Call(c);
            }
            let value = match &b.value {
                Expr::CallTir(c) => fold_call_tir(module, c, &b, &mut budget)?,
                Expr::Call(c) if place.dataflow => fold_call(c, &b, &mut budget)?,
                Expr::Leaf(l @ Leaf::Const(_)) => Some(Expr::Leaf(l.clone())),
                _ => None,
            };
            if let Expr::Leaf(l @ Leaf::Shape(_)) = value.as_ref().unwrap_or(&b.value) {
                shapes.insert(b.var.clone(), l.clone());
            }
            Ok(match value {
                Some(Expr::Leaf(leaf @ Leaf::Const(_))) => {
                    rewrite::Step::Alias(vec![Binding { value: Expr::Leaf(leaf.clone()), ..b }], leaf)
                }
                Some(value) => rewrite::Step::keep(Binding { value, ..b }),
                None => rewrite::Step::keep(b),
            })
        })?;
        Ok(remove_unused_bindings(module, &folded))
    })
}

/// The call with shapes in place of variables that are bound to shapes.
fn with_shapes(c: &Call, shapes: &BTreeMap<Var, Leaf>) -> Call {
    let put =
        map_expr_leaves(&Expr::Call(c.clone()), &mut |l| l.as_var().and_then(|v| shapes.get(v)).unwrap_or(l).clone());
    match put {
        Expr::Call(c) => c,
        _ => c.clone(),
    }
}

fn constants(leaves: &[Leaf]) -> Option<Vec<Constant>> {
    let one = |l: &Leaf| match l {
        Leaf::Const(c) => Some(c.clone()),
        _ => None,
    };
    leaves.iter().map(one).collect()
}

/// One tensor, or the tuple of the outputs.
fn as_value(out: &StructInfo, mut results: Vec<Constant>) -> Option<Expr> {
    match out {
        StructInfo::Tensor(_) => Some(Expr::Leaf(Leaf::Const(results.pop()?))),
        _ => Some(Expr::Tuple(results.into_iter().map(Leaf::Const).collect())),
    }
}

fn fold_call_tir(module: &IRModule, c: &CallTir, b: &Binding, budget: &mut Budget) -> Result<Option<Expr>, Diag> {
    if !c.inplace.is_empty() || creates_much(&c.args, &c.out) {
        return Ok(None);
    }
    let Some(args) = constants(&c.args) else { return Ok(None) };
    let func = prim_func(module, &c.func, b.span)?;
    let results = evaluate::evaluate(func, &args, &c.tir_vars, &c.out, budget);
    Ok(results.and_then(|r| as_value(&c.out, r)))
}

fn fold_call(c: &Call, b: &Binding, budget: &mut Budget) -> Result<Option<Expr>, Diag> {
    if c.op.def().effects != Effects::Pure || creates_much(&c.args, b.var.info()) {
        return Ok(None);
    }
    match (c.op.name(), c.args.as_slice()) {
        ("tensor_to_shape", [Leaf::Const(t)]) => return Ok(shape_of(t).map(Expr::Leaf)),
        ("reshape" | "expand_dims" | "squeeze" | "flatten" | "nn.batch_flatten", [Leaf::Const(t), ..]) => {
            let folded = b.var.info().as_tensor().and_then(|info| evaluate::reshape(t, info));
            return Ok(folded.map(|c| Expr::Leaf(Leaf::Const(c))));
        }
        _ => {}
    }
    // Looked at before lowering, which costs more.
    let all_known = c.args.iter().all(is_known);
    if !all_known {
        return Ok(None);
    }
    match ops::legalize(c, b.var.info()).map_err(|d| d.at(c.span.or(b.span)))? {
        Legalized::Tir { func, args, tir_vars, .. } => {
            let Some(args) = constants(&args) else { return Ok(None) };
            let results = evaluate::evaluate(&func, &args, &tir_vars, b.var.info(), budget);
            Ok(results.and_then(|r| as_value(b.var.info(), r)))
        }
        Legalized::Bindings { bindings, result } => fold_bindings(bindings, &result, budget),
        Legalized::Keep => Ok(None),
    }
}

/// The result of bindings that an op stands for, when all of them fold.
fn fold_bindings(bindings: Vec<Binding>, result: &Leaf, budget: &mut Budget) -> Result<Option<Expr>, Diag> {
    let mut known: BTreeMap<Var, Leaf> = BTreeMap::new();
    let put = |l: &Leaf, known: &BTreeMap<Var, Leaf>| l.as_var().and_then(|v| known.get(v)).unwrap_or(l).clone();
    for b in bindings {
        let value = map_expr_leaves(&b.value, &mut |l| put(l, &known));
        let folded = match &value {
            Expr::Call(c) => fold_call(c, &b, budget)?,
            Expr::Leaf(Leaf::Const(_)) => Some(value.clone()),
            Expr::Tuple(items) if constants(items).is_some() => Some(value.clone()),
            Expr::TupleGetItem(Leaf::Tuple(items), i) => items.get(*i).cloned().map(Expr::Leaf),
            _ => None,
        };
        match folded {
            Some(Expr::Leaf(l)) => known.insert(b.var, l),
            Some(Expr::Tuple(items)) => known.insert(b.var, Leaf::Tuple(items)),
            _ => return Ok(None),
        };
    }
    Ok(match result.map(&mut |l| put(l, &known)) {
        l @ Leaf::Const(_) => Some(Expr::Leaf(l)),
        Leaf::Tuple(items) if constants(&items).is_some() => Some(Expr::Tuple(items)),
        _ => None,
    })
}

fn is_known(l: &Leaf) -> bool {
    match l {
        Leaf::Const(_) | Leaf::Str(_) | Leaf::DType(_) | Leaf::Absent => true,
        Leaf::Prim(e) => e.as_int().is_some() || e.as_float().is_some(),
        Leaf::Shape(dims) => dims.iter().all(|d| d.as_int().is_some()),
        Leaf::Tuple(items) => items.iter().all(is_known),
        Leaf::Var(_) | Leaf::Global(_) => false,
    }
}

/// Whether a call makes a large tensor out of no tensor.
fn creates_much(args: &[Leaf], out: &StructInfo) -> bool {
    fn has_tensor(l: &Leaf) -> bool {
        match l {
            Leaf::Tuple(items) => items.iter().any(has_tensor),
            other => matches!(other.info(), Some(StructInfo::Tensor(_))),
        }
    }
    let Some(dims) = out.as_tensor().and_then(|t| t.dims.fixed()) else { return false };
    let count = dims.iter().fold(1i64, |n, d| n.saturating_mul(*d));
    count > 1024 && !args.iter().any(has_tensor)
}

/// The values of an `int64` vector as a shape.
fn shape_of(c: &Constant) -> Option<Leaf> {
    if c.dtype() != tvm_ir::dtype::DType::I64 || c.shape().len() != 1 {
        return None;
    }
    let values = c.data().chunks_exact(8).map(|b| b.try_into().ok().map(|b| PrimExpr::i64(i64::from_le_bytes(b))));
    values.collect::<Option<Vec<_>>>().map(Leaf::Shape)
}
