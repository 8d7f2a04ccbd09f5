//! Explicit memory, as CallTIRRewrite writes it.

use super::row::{arg, op};
use crate::diag::Diag;
use crate::relax::{ArgDef, ArgKind, Effects, InferCx, Leaf, Lower, OpDef, Pattern, StructInfo, TensorInfo};

const ARGS: &[ArgDef] = &[
    arg("shape", ArgKind::Shape),
    arg("dtype", ArgKind::Any),
    arg("runtime_device_index", ArgKind::Prim),
    arg("storage_scope", ArgKind::Any),
];

pub(super) static OPS: &[OpDef] = &[OpDef {
    // Each allocation is another tensor: it may go when it is not used, and never be merged with an equal one.
    effects: Effects::Random,
    ..op(
        "builtin.alloc_tensor",
        "a new tensor whose elements are not defined",
        ARGS,
        &[],
        infer,
        Lower::Builtin("vm.builtin.alloc_tensor"),
        Pattern::Opaque,
    )
}];

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let dims = match cx.info(0)? {
        StructInfo::Shape(dims) => dims,
        other => return Err(cx.fail(format!("`shape` must be a shape, it is {other:?}"))),
    };
    match cx.call.args.get(1) {
        Some(Leaf::DType(dtype)) => Ok(StructInfo::Tensor(TensorInfo { dims, dtype: Some(*dtype) })),
        _ => Err(cx.fail("`dtype` must be a data type, as R.dtype(\"float32\")")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::prim::PrimExpr;

    #[test]
    fn allocates_what_is_asked_for() {
        let f = super::super::lookup("builtin.alloc_tensor").unwrap();
        let shape = Leaf::Shape(vec![PrimExpr::i64(2), PrimExpr::i64(3)]);
        let args = |dtype| vec![shape.clone(), dtype, Leaf::Prim(PrimExpr::i64(0)), Leaf::Str("global".into())];
        let make = |dtype| super::super::make_call(f, args(dtype), &[], crate::span::Span::NONE).unwrap();
        let an = crate::arith::Analyzer::new();
        let info = super::super::infer(&make(Leaf::DType(DType::F32)), &an).unwrap();
        assert_eq!(info, StructInfo::tensor_fixed(&[2, 3], DType::F32));
        let e = super::super::infer(&make(Leaf::Str("f32".into())), &an).unwrap_err();
        assert!(e.to_string().contains("R.dtype"), "{e}");
    }
}
