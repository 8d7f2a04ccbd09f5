//! Lists: sequences and optionals (no or one item) whose length is known at run time only. Items are tensors or lists; to
//! the types they are objects. A list never changes: what inserts or removes gives another one.

use super::row::{arg, attr, op, optional, required, tensor};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::relax::{ArgKind, AttrDef, AttrDefault, AttrKind, Dims, InferCx, Leaf, Lower, OpDef, Pattern, StructInfo};

const LIST: crate::relax::ArgDef = arg("list", ArgKind::Any);

/// What is known of the tensor that comes out: its element type, `void` for a list, and its rank.
const DTYPE: AttrDef = attr("dtype", AttrKind::DType, AttrDefault::Void);
const NDIM: AttrDef = attr("ndim", AttrKind::OptInt, AttrDefault::None);

pub(super) static OPS: &[OpDef] = &[
    op(
        "list.at",
        "the item at a position, which counts from the end below 0",
        &[LIST, arg("position", ArgKind::Prim)],
        &[DTYPE, NDIM],
        |cx| list(cx).and_then(|()| taken(cx)),
        Lower::Builtin("vm.builtin.list_at"),
        Pattern::Opaque,
    ),
    op(
        "list.concat",
        "the tensors of a list joined along an axis, or along a new one",
        &[LIST],
        &[
            required("axis", AttrKind::Int),
            attr("new_axis", AttrKind::Bool, AttrDefault::Bool(false)),
            required("dtype", AttrKind::DType),
            required("ndim", AttrKind::Int),
        ],
        |cx| list(cx).and_then(|()| taken(cx)),
        Lower::Builtin("vm.builtin.list_concat"),
        Pattern::Opaque,
    ),
    op(
        "list.erase",
        "the list without the item at a position, by default the last one",
        &[LIST, optional("position", ArgKind::Prim)],
        &[],
        |cx| list(cx).map(|()| StructInfo::Object),
        Lower::Builtin("vm.builtin.list_erase"),
        Pattern::Opaque,
    ),
    op(
        "list.insert",
        "the list with an item more, before the one at a position, by default at the end",
        &[LIST, arg("item", ArgKind::Any), optional("position", ArgKind::Prim)],
        &[],
        |cx| item(cx, 1).and_then(|()| list(cx)).map(|()| StructInfo::Object),
        Lower::Builtin("vm.builtin.list_insert"),
        Pattern::Opaque,
    ),
    op(
        "list.length",
        "the number of items",
        &[LIST],
        &[],
        |cx| list(cx).map(|()| StructInfo::tensor(Vec::new(), DType::I64)),
        Lower::Builtin("vm.builtin.list_length"),
        Pattern::Opaque,
    ),
    op(
        "list.make",
        "a list of tensors or lists",
        &[arg("items", ArgKind::Any)],
        &[],
        infer_make,
        Lower::Builtin("vm.builtin.list_make"),
        Pattern::Opaque,
    ),
    op(
        "list.split",
        "parts of a tensor along an axis, of the lengths in a vector or of one length; without keepdims, they have length 1",
        &[tensor("x"), tensor("lengths")],
        &[required("axis", AttrKind::Int), attr("keepdims", AttrKind::Bool, AttrDefault::Bool(true))],
        infer_split,
        Lower::Builtin("vm.builtin.list_split"),
        Pattern::Opaque,
    ),
];

fn list(cx: &InferCx<'_>) -> Result<(), Diag> {
    match cx.info(0)? {
        StructInfo::Object => Ok(()),
        other => Err(cx.fail(format!("`list` must be a list, it is {}", super::show_info(&other)))),
    }
}

fn item(cx: &InferCx<'_>, i: usize) -> Result<(), Diag> {
    match cx.info(i)? {
        StructInfo::Object | StructInfo::Tensor(_) => Ok(()),
        other => Err(cx.fail(format!("an item must be a tensor or a list, it is {}", super::show_info(&other)))),
    }
}

fn infer_make(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let Some(Leaf::Tuple(items)) = cx.call.args.first() else {
        return Err(cx.fail("`items` must be a tuple written in place"));
    };
    match items.iter().find(|l| !matches!(l.info(), Some(StructInfo::Object | StructInfo::Tensor(_)))) {
        None => Ok(StructInfo::Object),
        Some(_) => Err(cx.fail("an item must be a tensor or a list")),
    }
}

fn taken(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let Some(dtype) = cx.dtype_attr("dtype") else { return Ok(StructInfo::Object) };
    let rank = cx.call.attr("ndim").as_int();
    let dims = match rank.map(usize::try_from) {
        None => Dims::Unknown,
        Some(Ok(rank)) => Dims::Rank(rank),
        Some(Err(_)) => return Err(cx.fail("attribute `ndim` must not be negative")),
    };
    cx.result(dims, Some(dtype))
}

fn infer_split(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let (x, lengths) = (cx.tensor(0)?, cx.tensor(1)?);
    if lengths.dims.rank().is_some_and(|r| r > 1) {
        return Err(cx.fail("`lengths` must be a vector or a scalar"));
    }
    cx.expect_dtype(1, "an integer type", |d| d.is_integer())?;
    if let Some(rank) = x.dims.rank() {
        cx.axis("axis", cx.int("axis")?, rank)?;
    }
    Ok(StructInfo::Object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::Analyzer;
    use crate::attrs::AttrValue;
    use crate::relax::Var;
    use crate::span::Span;

    fn infer(op: &str, args: Vec<Leaf>, attrs: &[(&str, AttrValue)]) -> Result<StructInfo, Diag> {
        let call = super::super::make_call(super::super::lookup(op).unwrap(), args, attrs, Span::NONE)?;
        super::super::infer(&call, &Analyzer::new())
    }

    #[test]
    fn lists_are_objects_and_items_are_what_attributes_say() {
        let x = Leaf::Var(Var::new("x", StructInfo::tensor_fixed(&[2, 3], DType::F32)));
        let n = Leaf::Var(Var::new("n", StructInfo::tensor_fixed(&[], DType::I64)));
        let l = Leaf::Var(Var::new("l", StructInfo::Object));
        let items = Leaf::Tuple(vec![x.clone(), l.clone()]);
        assert_eq!(infer("list.make", vec![items], &[]).unwrap(), StructInfo::Object);
        assert_eq!(infer("list.make", vec![Leaf::Tuple(vec![])], &[]).unwrap(), StructInfo::Object);
        assert_eq!(infer("list.insert", vec![l.clone(), x.clone(), n.clone()], &[]).unwrap(), StructInfo::Object);
        assert_eq!(infer("list.erase", vec![l.clone()], &[]).unwrap(), StructInfo::Object);
        assert_eq!(infer("list.at", vec![l.clone(), n.clone()], &[]).unwrap(), StructInfo::Object);
        let attrs = [("dtype", AttrValue::DType(DType::F32)), ("ndim", AttrValue::Int(2))];
        let tensor = infer("list.at", vec![l.clone(), n.clone()], &attrs).unwrap();
        let want = crate::relax::TensorInfo { dims: Dims::Rank(2), dtype: Some(DType::F32) };
        assert_eq!(tensor, StructInfo::Tensor(want));
        assert_eq!(infer("list.length", vec![l], &[]).unwrap(), StructInfo::tensor_fixed(&[], DType::I64));
        assert_eq!(
            infer("list.split", vec![x.clone(), n.clone()], &[("axis", AttrValue::Int(1))]).unwrap(),
            StructInfo::Object
        );
        let e = infer("list.at", vec![x, n], &[]).unwrap_err().to_string();
        assert!(e.contains("`list` must be a list, it is a tensor (2, 3) float32"), "{e}");
    }
}
