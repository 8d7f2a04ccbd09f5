//! Element-wise ops of one tensor.

use super::row::{op, tensor};
use crate::diag::Diag;
use crate::prim::PrimExpr;
use crate::relax::{InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::PrimFunc;

/// One row an op: name, name hint, types, block name, what it computes of an element, doc.
macro_rules! unary {
    ($($name:literal $hint:literal $infer:ident $stage:literal $f:expr, $doc:literal;)*) => {
        pub(super) static OPS: &[OpDef] = &[$(
            op($name, $doc, &[tensor("x")], &[], $infer, Lower::Tir($hint, |cx| lower(cx, $stage, $f)), Pattern::ElemWise),
        )*];
    };
}

unary! {
    "nn.relu" "relu" same "compute" |x| { let zero = PrimExpr::zero(x.dtype()); x.max(zero) }, "max(x, 0)";
}

fn same(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    cx.result(x.dims, x.dtype)
}

fn lower(cx: &LowerCx<'_>, stage: &str, f: fn(PrimExpr) -> PrimExpr) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let axes = if stage == "compute" { Axes::I } else { Axes::Ax };
    let mut te = Te::new();
    let out = te.compute(stage, axes, cx.out_dims()?, cx.out_dtype()?, |i| f(PrimExpr::load(x, i.to_vec())));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
