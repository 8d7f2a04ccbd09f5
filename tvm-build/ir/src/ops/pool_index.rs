//! Where the greatest elements of windows are.

use super::row::{attr, op, required, tensor};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{BinOp, Buffer, Intrinsic, PrimExpr, Var};
use crate::relax::{
    AttrDef, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo, TensorInfo,
};
use crate::te::{Axes, Te, lowest};
use crate::tir::{IfStmt, PrimFunc, Stmt};

const ATTRS: &[AttrDef] = &[
    required("pool_size", AttrKind::Ints),
    required("strides", AttrKind::Ints),
    required("dilation", AttrKind::Ints),
    required("padding", AttrKind::Ints),
    required("windows", AttrKind::Ints),
    attr("column_major", AttrKind::Bool, AttrDefault::Bool(false)),
];

pub(super) static OPS: &[OpDef] = &[op(
    "nn.max_pool_with_indices",
    "the greatest element of each of `windows` windows along all axes but the first two, and its number in the whole \
     tensor in row-major order, or with `column_major` with the spatial axes in reverse; of equal elements the first; \
     `padding` is what is before each axis, which no window chooses",
    &[tensor("data")],
    ATTRS,
    infer,
    Lower::Tir("max_pool_with_indices", lower),
    Pattern::Opaque,
)];

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let both = |dims: Dims| {
        let of = |dtype| StructInfo::Tensor(TensorInfo { dims: dims.clone(), dtype });
        Ok(StructInfo::Tuple(vec![of(x.dtype), of(Some(DType::I64))]))
    };
    let windows = cx.ints("windows")?;
    let spatial = windows.len();
    for (name, least) in [("pool_size", 1), ("strides", 1), ("dilation", 1), ("padding", 0), ("windows", 0)] {
        let list = cx.ints(name)?;
        if list.len() != spatial || list.iter().any(|v| *v < least || *v > 1 << 31) {
            return Err(
                cx.fail(format!("attribute `{name}` must be {spatial} integers of at least {least}, it is {list:?}"))
            );
        }
    }
    cx.expect_rank(0, &x, spatial + 2)?;
    let Some(d) = x.dims.known() else { return both(Dims::Rank(spatial + 2)) };
    both(Dims::Known(d[..2].iter().cloned().chain(windows.into_iter().map(PrimExpr::i64)).collect()))
}

fn lower(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let list = |name: &str| cx.with_infer(|c| c.ints(name));
    let (size, strides, dilation, padding) =
        (list("pool_size")?, list("strides")?, list("dilation")?, list("padding")?);
    let column_major = cx.call.attr("column_major").as_bool() == Some(true);
    let infos = cx.out.tensors().unwrap_or_default();
    let Some(dims) = infos.first().and_then(|t| t.dims.known()) else {
        return Err(cx.fail("the shape of the result must be known"));
    };
    let outputs = [Buffer::new("pool_max", dims.to_vec(), x.dtype), Buffer::new("indices", dims.to_vec(), DType::I64)];
    let mut te = Te::new();
    te.block("pool_max", Axes::Ax, dims, &[], &outputs, |i, _| {
        let vars: Vec<Var> = (0..size.len()).map(|d| Var::new(format!("k{d}"), DType::I64)).collect();
        let mut at = i[..2].to_vec();
        let mut within = PrimExpr::bool(true);
        for (d, k) in vars.iter().enumerate() {
            let place = &i[d + 2] * strides[d] + k.expr() * dilation[d] - padding[d];
            within = within.and(place.clone().ge(0)).and(place.clone().lt(x.shape[d + 2].clone()));
            at.push(place);
        }
        let mut order: Vec<usize> = (0..at.len()).collect();
        if column_major {
            order[2..].reverse();
        }
        let number = order
            .iter()
            .fold(PrimExpr::i64(0), |n, a| PrimExpr::binary(BinOp::Add, n * x.shape[*a].clone(), at[*a].clone()));
        // A window that has chosen nothing takes the first element, whatever it is.
        let best = PrimExpr::load(&outputs[0], i.to_vec());
        let value = PrimExpr::load(x, at);
        let mut better = value.clone().gt(best.clone()).or(PrimExpr::load(&outputs[1], i.to_vec()).lt(0));
        if x.dtype.is_float() {
            let nan = |e: PrimExpr| {
                PrimExpr::call(Intrinsic::IsNan, vec![if x.dtype.bits < 32 { e.cast(DType::F32) } else { e }])
            };
            better = better.or(nan(value.clone()).and(nan(best).logical_not()));
        }
        let choose =
            Stmt::seq([Stmt::store(&outputs[1], i.to_vec(), number), Stmt::store(&outputs[0], i.to_vec(), value)]);
        let choose = Stmt::If(Box::new(IfStmt { cond: better, then: choose, otherwise: None }));
        let step = Stmt::If(Box::new(IfStmt { cond: within, then: choose, otherwise: None }));
        let loops =
            vars.into_iter().zip(&size).rev().fold(step, |body, (k, n)| Stmt::serial(k, PrimExpr::i64(*n), body));
        let start = [
            Stmt::store(&outputs[0], i.to_vec(), lowest(x.dtype)),
            Stmt::store(&outputs[1], i.to_vec(), PrimExpr::i64(-1)),
        ];
        (None, Stmt::seq(start.into_iter().chain([loops])))
    });
    Ok(te.finish(cx.inputs, &outputs, cx.call.span))
}
