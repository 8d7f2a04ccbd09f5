//! CallTIRRewrite: outputs of PrimFuncs are allocated explicitly.

use super::support::{map_functions, rewrite};
use crate::pass::{Pass, PassCx};
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::IRModule;
use tvm_ir::name::NameSupply;
use tvm_ir::ops;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::{Binding, Call, CallTir, Dims, Expr, Leaf, StructInfo, TensorInfo, Var};
use tvm_ir::span::Span;

/// `y = call_tir(f, (x,))` becomes `y = builtin.alloc_tensor(…)` and a call `f(x, y)`; several outputs become a tuple of
/// allocations. Runs after ToNonDataflow: the calls have effects.
pub(super) static CALL_TIR_REWRITE: Pass = Pass {
    name: "CallTIRRewrite",
    doc: "makes call_tir an allocation of the outputs and a call with effects",
    params: &[],
    run,
};

fn run(module: &mut IRModule, _cx: &PassCx<'_>) -> Result<(), Diags> {
    map_functions(module, |_, _, f| {
        let mut names = NameSupply::new();
        rewrite::rewrite_function(f, &mut |b, place| {
            if place.dataflow && matches!(b.value, Expr::CallTir(_) | Expr::CallDps { .. }) {
                return Err(Diag::error(b.span, "CallTIRRewrite works outside of dataflow blocks")
                    .help("run ToNonDataflow before it"));
            }
            rewrite_binding(&mut names, b)
        })
    })
}

fn rewrite_binding(names: &mut NameSupply, b: Binding) -> Result<rewrite::Step, Diag> {
    let (out, args, tir_vars, inplace) = match &b.value {
        Expr::CallTir(CallTir { out, args, tir_vars, inplace, .. }) => {
            (out.clone(), args.clone(), tir_vars.clone(), inplace.clone())
        }
        Expr::CallDps { out, args, .. } => (out.clone(), args.clone(), Vec::new(), Vec::new()),
        _ => return Ok(rewrite::Step::keep(b)),
    };
    let tensors = out
        .tensors()
        .ok_or_else(|| Diag::error(b.span, "the outputs of R.call_tir are no tensors with known shapes"))?;
    let mut bindings = Vec::new();
    let mut results = Vec::new();
    let mut fresh = Vec::new();
    for (i, t) in tensors.iter().enumerate() {
        if let Some(arg) = inplace.get(i).and_then(|a| usize::try_from(*a).ok()).and_then(|a| args.get(a)) {
            results.push(arg.clone());
            continue;
        }
        let var = Var::at(names.fresh("alloc"), StructInfo::Tensor((*t).clone()), b.span);
        bindings.push(Binding { var: var.clone(), value: Expr::Call(alloc_tensor(t, b.span)?), span: b.span });
        fresh.push(Leaf::Var(var.clone()));
        results.push(Leaf::Var(var));
    }
    let mut all = args;
    all.extend(fresh);
    if !tir_vars.is_empty() {
        all.extend(tir_vars.into_iter().map(Leaf::Prim));
    }
    let value = match &b.value {
        Expr::CallDps { symbol, .. } => {
            Expr::CallPacked { symbol: symbol.clone(), args: all, ret: StructInfo::unit(), pure: false }
        }
        Expr::CallTir(c) => Expr::CallFunc { callee: Leaf::Global(c.func.clone()), args: all },
        _ => return Ok(rewrite::Step::keep(b)),
    };
    bindings.push(Binding { var: Var::at("_", StructInfo::unit(), b.span), value, span: b.span });
    let value = match (out, results.as_slice()) {
        (StructInfo::Tensor(_), [only]) => Expr::Leaf(only.clone()),
        _ => Expr::Tuple(results),
    };
    bindings.push(Binding { value, ..b });
    Ok(rewrite::Step::Bind(bindings))
}

/// `R.builtin.alloc_tensor(shape, dtype, 0, "global")`
fn alloc_tensor(t: &TensorInfo, span: Span) -> Result<Call, Diag> {
    let (Dims::Known(shape), Some(dtype)) = (&t.dims, t.dtype) else {
        return Err(Diag::error(span, "an output of R.call_tir has no known shape and dtype"));
    };
    let op = ops::lookup("builtin.alloc_tensor")
        .ok_or_else(|| Diag::error(span, "the op table has no builtin.alloc_tensor"))?;
    let args =
        vec![Leaf::Shape(shape.clone()), Leaf::DType(dtype), Leaf::Prim(PrimExpr::i64(0)), Leaf::Str("global".into())];
    Ok(Call { op, args, attrs: Vec::new(), span })
}
