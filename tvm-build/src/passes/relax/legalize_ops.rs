//! LegalizeOps: calls of ops become calls of PrimFuncs.

use super::support::{FunctionAdder, map_functions, rewrite};
use crate::pass::{Pass, PassCx};
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::{Func, IRModule};
use tvm_ir::ops;
use tvm_ir::relax::{Binding, Call, CallTir, Dims, Expr, Leaf, Legalized, StructInfo};

/// Lowers each op call by its row of the op table: to `R.call_tir` of a new private PrimFunc (one for all calls that
/// give structurally equal functions), to simpler ops that are lowered in turn, or, for builtins of the VM, not at all.
/// A call whose shapes are not known stays, as upstream.
pub(super) static LEGALIZE_OPS: Pass =
    Pass { name: "LegalizeOps", doc: "lowers op calls to call_tir of PrimFuncs added to the module", params: &[], run };

fn run(module: &mut IRModule, _cx: &PassCx<'_>) -> Result<(), Diags> {
    let mut adder = FunctionAdder::new(module);
    map_functions(module, |module, _, f| {
        rewrite::rewrite_function(f, &mut |b, _| {
            let mut out = Vec::new();
            legalize(module, &mut adder, b, &mut out, 0)?;
            Ok(rewrite::Step::Bind(out))
        })
    })
}

/// Ops that lower to ops that lower to ops …: the table has no such chain of this length.
const MAX_DEPTH: usize = 16;

fn legalize(
    module: &mut IRModule,
    adder: &mut FunctionAdder,
    b: Binding,
    out: &mut Vec<Binding>,
    depth: usize,
) -> Result<(), Diag> {
    let Expr::Call(call) = &b.value else {
        out.push(b);
        return Ok(());
    };
    if !shapes_known(call) {
        out.push(b);
        return Ok(());
    }
    if depth > MAX_DEPTH {
        return Err(Diag::error(call.span.or(b.span), format!("R.{}: its lowering does not end", call.op.name())));
    }
    match ops::legalize(call, b.var.info()).map_err(|d| d.at(call.span.or(b.span)))? {
        Legalized::Keep => out.push(b),
        Legalized::Tir { name, func, args, tir_vars } => {
            let func = adder.add(module, &name, Func::Prim(func));
            let out_info = b.var.info().clone();
            let value = Expr::CallTir(CallTir { func, args, out: out_info, tir_vars, inplace: Vec::new() });
            out.push(Binding { value, ..b });
        }
        Legalized::Bindings { mut bindings, result } => {
            // The last binding takes the variable's place when it is the result; else the variable gets it by name.
            let last = match (bindings.last_mut(), &result) {
                (Some(last), Leaf::Var(v)) if last.var == *v && v.info() == b.var.info() => {
                    last.var = b.var.clone();
                    None
                }
                _ => Some(Binding { value: Expr::Leaf(result), ..b.clone() }),
            };
            for inner in bindings.into_iter().chain(last) {
                legalize(module, adder, Binding { span: inner.span.or(b.span), ..inner }, out, depth + 1)?;
            }
        }
    }
    Ok(())
}

/// Whether every tensor and shape among the arguments has known dimensions.
fn shapes_known(call: &Call) -> bool {
    fn known(s: &StructInfo) -> bool {
        match s {
            StructInfo::Tensor(t) => matches!(t.dims, Dims::Known(_)) && t.dtype.is_some(),
            StructInfo::Shape(d) => matches!(d, Dims::Known(_)),
            StructInfo::Tuple(fields) => fields.iter().all(known),
            _ => true,
        }
    }
    call.args.iter().all(|a| a.info().is_none_or(|s| known(&s)))
}
