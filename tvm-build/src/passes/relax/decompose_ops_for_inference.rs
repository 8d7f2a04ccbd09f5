//! DecomposeOpsForInference: batch norm becomes element-wise ops.

use super::support::{map_functions, ops::Emitter, rewrite};
use crate::pass::{Pass, PassCx};
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::IRModule;
use tvm_ir::relax::{AttrDef, AttrDefault, AttrKind, Binding, Call, Expr, Leaf};

/// `batch_norm(x, gamma, beta, mean, var)` becomes
/// `((x - mean) / sqrt(var + epsilon) * gamma + beta, mean, var)`, each vector along `axis`. A call with
/// `training=True` stays: its statistics are the batch's. `func_name` restricts the pass to one function.
pub(super) static DECOMPOSE_OPS_FOR_INFERENCE: Pass = Pass {
    name: "DecomposeOpsForInference",
    doc: "makes batch_norm element-wise ops",
    params: &[AttrDef { name: "func_name", kind: AttrKind::Any, default: Some(AttrDefault::None) }],
    run,
};

fn run(module: &mut IRModule, cx: &PassCx<'_>) -> Result<(), Diags> {
    let only = cx.arg("func_name").as_str();
    map_functions(module, |_, name, f| {
        if only.is_some_and(|only| name != only) {
            return Ok(f.clone());
        }
        rewrite::rewrite_function(f, &mut |b, _| match &b.value {
            Expr::Call(c) if c.op.name() == "nn.batch_norm" && c.attr("training").as_bool() != Some(true) => {
                batch_norm(c, &b)
            }
            _ => Ok(rewrite::Step::keep(b)),
        })
    })
}

fn batch_norm(c: &Call, b: &Binding) -> Result<rewrite::Step, Diag> {
    let [x, gamma, beta, mean, var] = c.args.as_slice() else {
        return Err(Diag::error(c.span, "R.nn.batch_norm takes five tensors"));
    };
    let mut e = Emitter::new(c.span.or(b.span));
    let (rank, dtype) = e.rank_and_dtype(x)?;
    let axis = c.attr("axis").as_int().unwrap_or(1);
    let axis = if axis < 0 { axis + rank } else { axis };
    let other_axes: Vec<i64> = (0..rank).filter(|a| *a != axis).collect();
    let spread =
        |e: &mut Emitter, v: &Leaf| e.call("expand_dims", vec![v.clone()], &[("axis", other_axes.clone().into())]);
    let flag = |name: &str| c.attr(name).as_bool() != Some(false);
    let epsilon = c.attr("epsilon").as_float().unwrap_or(1e-5);

    let mean_wide = spread(&mut e, mean)?;
    let centered = e.call("subtract", vec![x.clone(), mean_wide], &[])?;
    let var_wide = spread(&mut e, var)?;
    let epsilon = e.scalar(dtype, epsilon);
    let shifted = e.call("add", vec![var_wide, epsilon], &[])?;
    let deviation = e.call("sqrt", vec![shifted], &[])?;
    let mut out = e.call("divide", vec![centered, deviation], &[])?;
    if flag("scale") {
        let wide = spread(&mut e, gamma)?;
        out = e.call("multiply", vec![out, wide], &[])?;
    }
    if flag("center") {
        let wide = spread(&mut e, beta)?;
        out = e.call("add", vec![out, wide], &[])?;
    }
    let value = Expr::Tuple(vec![out, mean.clone(), var.clone()]);
    let mut bindings = e.finish();
    bindings.push(Binding { value, ..b.clone() });
    Ok(rewrite::Step::Bind(bindings))
}
