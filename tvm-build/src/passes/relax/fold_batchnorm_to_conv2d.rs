//! FoldBatchnormToConv2D: batch norm goes into the weights of the convolution before it.

use super::support::{is_primitive, map_functions, ops::Emitter, rewrite};
use crate::pass::{Pass, PassCx};
use std::collections::BTreeMap;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::IRModule;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::{Binding, Call, Expr, Function, Leaf, Var, leaf_vars};

/// `batch_norm(conv2d(x, W), gamma, beta, mean, var)[0]` becomes `conv2d(x, W * s) + b` with
/// `s = gamma / sqrt(var + epsilon)` and `b = beta - mean * s`, where all but `x` are constants (fold them with
/// FoldConstant) and nothing else uses the convolution. Weights in `OIHW` or `IOHW`, data in `NCHW`; a bias added
/// between the two is taken along.
pub(super) static FOLD_BATCHNORM_TO_CONV2D: Pass = Pass {
    name: "FoldBatchnormToConv2D",
    doc: "folds batch_norm after conv2d into constant weights",
    params: &[],
    run,
};

fn run(module: &mut IRModule, _cx: &PassCx<'_>) -> Result<(), Diags> {
    map_functions(module, |_, _, f| {
        if is_primitive(f) {
            return Ok(f.clone());
        }
        let mut uses = Uses::of(f);
        rewrite::rewrite_function(f, &mut |b, _| match &b.value {
            Expr::TupleGetItem(Leaf::Var(norm), 0) => match uses.match_norm(norm) {
                Some(m) => m.rewrite(&b),
                None => Ok(rewrite::Step::keep(b)),
            },
            Expr::Call(c) => {
                // Its arguments may be what took the place of an earlier norm.
                uses.calls.insert(b.var.clone(), c.clone());
                Ok(rewrite::Step::keep(b))
            }
            _ => Ok(rewrite::Step::keep(b)),
        })
    })
}

/// The op calls of a function by their variables, and how often each variable is used.
struct Uses {
    calls: BTreeMap<Var, Call>,
    count: BTreeMap<Var, usize>,
}

/// A batch norm with constant parameters after a convolution with constant weights.
struct Match<'a> {
    norm: &'a Call,
    conv: &'a Call,
    /// A constant bias, added between the two.
    bias: Option<&'a Leaf>,
}

impl Uses {
    fn of(f: &Function) -> Uses {
        let mut u = Uses { calls: BTreeMap::new(), count: BTreeMap::new() };
        super::support::visit_bodies(&f.body, &mut |body| {
            let mut used: Vec<Var> = leaf_vars(&Expr::Leaf(body.result.clone()));
            for b in body.bindings() {
                if let Expr::Call(c) = &b.value {
                    u.calls.insert(b.var.clone(), c.clone());
                }
                if !matches!(b.value, Expr::If(_) | Expr::Function(_)) {
                    used.extend(leaf_vars(&b.value));
                }
            }
            for v in used {
                *u.count.entry(v).or_default() += 1;
            }
        });
        u
    }

    fn call(&self, l: &Leaf, op: &str) -> Option<&Call> {
        let v = l.as_var()?;
        let only_use = self.count.get(v) == Some(&1);
        self.calls.get(v).filter(|c| only_use && c.op.name() == op)
    }

    fn match_norm(&self, norm: &Var) -> Option<Match<'_>> {
        let norm = self.calls.get(norm).filter(|c| c.op.name() == "nn.batch_norm")?;
        let inference = norm.attr("training").as_bool() != Some(true) && norm.attr("axis").as_int() == Some(1);
        if !inference || !norm.args.iter().skip(1).all(|a| matches!(a, Leaf::Const(_))) {
            return None;
        }
        let data = norm.args.first()?;
        let (conv, bias) = match self.call(data, "nn.conv2d") {
            Some(conv) => (conv, None),
            None => {
                let add = self.call(data, "add")?;
                let bias = add.args.get(1).filter(|b| is_channel_bias(b))?;
                (self.call(add.args.first()?, "nn.conv2d")?, Some(bias))
            }
        };
        let weight_const = matches!(conv.args.get(1), Some(Leaf::Const(_)));
        let layouts = matches!(conv.attr("kernel_layout").as_str(), Some("OIHW" | "IOHW"))
            && conv.attr("data_layout").as_str() == Some("NCHW");
        (weight_const && layouts).then_some(Match { norm, conv, bias })
    }
}

/// A constant of shape `[1, C, 1, 1]` or `[C, 1, 1]`.
fn is_channel_bias(l: &Leaf) -> bool {
    matches!(l, Leaf::Const(c) if matches!(c.shape(), [1, _, 1, 1] | [_, 1, 1]))
}

impl Match<'_> {
    fn rewrite(&self, b: &Binding) -> Result<rewrite::Step, Diag> {
        let span = self.norm.span.or(b.span);
        let [_, gamma, beta, mean, var] = self.norm.args.as_slice() else {
            return Err(Diag::error(span, "R.nn.batch_norm takes five tensors"));
        };
        let mut e = Emitter::new(span);
        let (_, dtype) = e.rank_and_dtype(gamma)?;
        let channels = match gamma {
            Leaf::Const(c) => PrimExpr::i64(c.shape().first().and_then(|d| i64::try_from(*d).ok()).unwrap_or(0)),
            _ => return Err(Diag::error(span, "gamma of R.nn.batch_norm is no constant")),
        };
        let flag = |name: &str| self.norm.attr(name).as_bool() != Some(false);
        let epsilon = e.scalar(dtype, self.norm.attr("epsilon").as_float().unwrap_or(1e-5));
        let shifted = e.call("add", vec![var.clone(), epsilon], &[])?;
        let deviation = e.call("sqrt", vec![shifted], &[])?;
        let numerator = if flag("scale") { gamma.clone() } else { e.scalar(dtype, 1.0) };
        let scale = e.call("divide", vec![numerator, deviation], &[])?;
        let mut mean = mean.clone();
        let one = PrimExpr::i64(1);
        if let Some(bias) = self.bias {
            // The mean of what the norm sees without its bias.
            let flat = e.call("reshape", vec![bias.clone(), Leaf::Shape(vec![channels.clone()])], &[])?;
            mean = e.call("subtract", vec![mean, flat], &[])?;
        }
        let moved = e.call("multiply", vec![mean, scale.clone()], &[])?;
        let beta = if flag("center") { beta.clone() } else { e.scalar(dtype, 0.0) };
        let shift = e.call("subtract", vec![beta, moved], &[])?;
        let by_output = if self.conv.attr("kernel_layout").as_str() == Some("OIHW") {
            vec![channels.clone(), one.clone(), one.clone(), one.clone()]
        } else {
            vec![one.clone(), channels.clone(), one.clone(), one.clone()]
        };
        let wide = e.call("reshape", vec![scale, Leaf::Shape(by_output)], &[])?;
        let [x, w] = self.conv.args.as_slice() else {
            return Err(Diag::error(span, "R.nn.conv2d takes two tensors"));
        };
        let weight = e.call("multiply", vec![w.clone(), wide], &[])?;
        let shift_dims = vec![one.clone(), channels, one.clone(), one];
        let shift = e.call("reshape", vec![shift, Leaf::Shape(shift_dims)], &[])?;
        let conv = e.emit(Call { args: vec![x.clone(), weight], ..self.conv.clone() })?;
        let out = e.call("add", vec![conv, shift], &[])?;
        Ok(rewrite::Step::Replace(e.finish(), out))
    }
}
