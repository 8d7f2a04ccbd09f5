//! What cannot be computed.

use super::extents::assert;
use super::row::{arg, op, required};
use super::scatter::nest;
use crate::diag::Diag;
use crate::prim::{Buffer, PrimExpr};
use crate::relax::{ArgKind, AttrKind, Effects, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::{PrimFunc, Stmt};

pub(super) static OPS: &[OpDef] = &[OpDef {
    // It is never computed when a program is compiled.
    effects: Effects::Random,
    ..op(
        "fail",
        "stands for a tensor that cannot be had, in a branch that should not be taken: an error at run time, with a message",
        &[arg("shape", ArgKind::Shape)],
        &[required("message", AttrKind::Str), required("dtype", AttrKind::DType)],
        infer,
        Lower::Tir("fail", lower),
        Pattern::Opaque,
    )
}];

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let StructInfo::Shape(dims) = cx.info(0)? else { return Err(cx.fail("`shape` must be a shape")) };
    cx.result(dims, cx.dtype_attr("dtype"))
}

fn lower(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let message = cx.call.attr("message").as_str().unwrap_or_default();
    let dtype = cx.out_dtype()?;
    let out = Buffer::new("T_fail", cx.out_dims()?.to_vec(), dtype);
    let mut te = Te::new();
    te.block("T_fail", Axes::Ax, &[], &[], std::slice::from_ref(&out), |_, _| {
        let fill = nest(&out.shape, "i", |i| Stmt::store(&out, i.to_vec(), PrimExpr::number(dtype, 0.0)));
        (None, Stmt::seq([assert(PrimExpr::bool(false), message), fill]))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::interp::{Options, TensorBuf, run_with};
    use crate::relax::{Leaf, Legalized};
    use crate::span::Span;

    #[test]
    fn running_it_says_why() {
        let attrs = [("message", "no \"such\" axis".into()), ("dtype", DType::F32.into())];
        let shape = Leaf::Shape(vec![PrimExpr::i64(2), PrimExpr::i64(0)]);
        let call = super::super::make_call(super::super::lookup("fail").unwrap(), vec![shape], &attrs, Span::NONE);
        let call = call.unwrap();
        let info = super::super::infer(&call, &crate::arith::Analyzer::new()).unwrap();
        assert_eq!(info, StructInfo::tensor_fixed(&[2, 0], DType::F32));
        let Legalized::Tir { func, .. } = super::super::legalize(&call, &info).unwrap() else { panic!() };
        let mut out = [TensorBuf::zeros(DType::F32, &[2, 0]).unwrap()];
        let e = run_with(&func, &mut out, &Options::default()).unwrap_err().to_string();
        assert!(e.contains("no \"such\" axis"), "{e}");
    }
}
