//! Order: sort, argsort, topk.
//!
//! Each element's rank is the number of elements that come before it, counted for few elements and found by merging for
//! many; ranks are a permutation, so that every place of the result is written once. Equal elements keep their order; NaN is greater than every number.

use super::merge;
use super::row::{attr, op, tensor};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, Intrinsic, PrimExpr, Var};
use crate::relax::{
    AttrDef, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo, TensorInfo,
};
use crate::te::{Axes, Reducer, Te};
use crate::tir::{IfStmt, PrimFunc, Stmt};

const AXIS: AttrDef = attr("axis", AttrKind::Int, AttrDefault::Int(-1));
const DESCENDING: AttrDef = attr("descending", AttrKind::Bool, AttrDefault::Bool(false));
const DTYPE: AttrDef = attr("dtype", AttrKind::DType, AttrDefault::DType(DType::I32));

pub(super) static OPS: &[OpDef] = &[
    op(
        "argsort",
        "the indices that sort along an axis",
        &[tensor("data")],
        &[AXIS, DESCENDING, DTYPE],
        |cx| same(cx, cx.dtype_attr("dtype")),
        Lower::Tir("argsort", |cx| lower(cx, flag(cx, "descending"), &[Want::Indices])),
        Pattern::Opaque,
    ),
    op(
        "sort",
        "the elements in order along an axis",
        &[tensor("data")],
        &[AXIS, DESCENDING],
        |cx| same(cx, cx.tensor(0)?.dtype),
        Lower::Tir("sort", |cx| lower(cx, flag(cx, "descending"), &[Want::Values])),
        Pattern::Opaque,
    ),
    op(
        "topk",
        "the k greatest (or least) elements along an axis in order, and their indices; all when k is below 1; \
         `ret_type` is \"both\", \"values\" or \"indices\"",
        &[tensor("data")],
        &[
            attr("k", AttrKind::Int, AttrDefault::Int(1)),
            AXIS,
            attr("ret_type", AttrKind::Str, AttrDefault::Str("both")),
            attr("largest", AttrKind::Bool, AttrDefault::Bool(true)),
            DTYPE,
        ],
        infer_topk,
        Lower::Tir("topk", |cx| lower(cx, flag(cx, "largest"), cx.with_infer(wanted)?)),
        Pattern::Opaque,
    ),
];

/// A result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Want {
    Values,
    Indices,
}

fn flag(cx: &LowerCx<'_>, name: &str) -> bool {
    cx.call.attr(name).as_bool() == Some(true)
}

fn same(cx: &InferCx<'_>, dtype: Option<DType>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    if let Some(rank) = x.dims.rank() {
        cx.axis("axis", cx.int("axis")?, rank)?;
    }
    cx.result(x.dims, dtype)
}

fn wanted(cx: &InferCx<'_>) -> Result<&'static [Want], Diag> {
    match cx.str("ret_type")? {
        "both" => Ok(&[Want::Values, Want::Indices]),
        "values" => Ok(&[Want::Values]),
        "indices" => Ok(&[Want::Indices]),
        other => Err(cx
            .fail(format!("attribute `ret_type` is \"{other}\""))
            .help("it is \"both\", \"values\" or \"indices\"")),
    }
}

fn infer_topk(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let (k, wanted) = (cx.int("k")?, wanted(cx)?);
    let mut dims = x.dims.clone();
    if let Some(rank) = dims.rank() {
        let axis = cx.axis("axis", cx.int("axis")?, rank)?;
        if let Dims::Known(d) = &mut dims {
            if let Some(n) = d[axis].as_int().filter(|n| k > *n) {
                return Err(cx.fail(format!("`k` is {k}, axis {axis} has {n} elements")));
            }
            if k >= 1 {
                d[axis] = PrimExpr::i64(k);
            }
        }
    }
    let of = |w: &Want| {
        let dtype = if *w == Want::Values { x.dtype } else { cx.dtype_attr("dtype") };
        StructInfo::Tensor(TensorInfo { dims: dims.clone(), dtype })
    };
    Ok(match wanted {
        [one] => of(one),
        many => StructInfo::Tuple(many.iter().map(of).collect()),
    })
}

/// `a < b`, where NaN is greater than every number.
pub(super) fn less(a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
    let plain = a.clone().lt(b.clone());
    if !a.dtype().is_float() {
        return plain;
    }
    let nan = |x: &PrimExpr| PrimExpr::call(Intrinsic::IsNan, vec![x.clone()]);
    plain.or(nan(b).and(nan(a).logical_not()))
}

fn lower(cx: &LowerCx<'_>, descending: bool, wanted: &[Want]) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let axis = cx.with_infer(|c| c.axis("axis", c.int("axis")?, x.shape.len()))?;
    let infos = cx.out.tensors().unwrap_or_default();
    let mut outputs = Vec::with_capacity(wanted.len());
    for (w, t) in wanted.iter().zip(&infos) {
        let name = if *w == Want::Values { "out_buf" } else { "indices_buf" };
        let (Some(d), Some(dtype)) = (t.dims.known(), t.dtype) else {
            return Err(cx.fail("the shape and type of the result must be known"));
        };
        outputs.push(Buffer::new(name, d.to_vec(), dtype));
    }
    let Some(kept) = outputs.first().and_then(|b| b.shape.get(axis)).cloned() else {
        return Err(cx.fail("there is no result"));
    };
    let mut te = Te::new();
    let n = x.shape[axis].clone();
    let before = |a: &PrimExpr, b: &PrimExpr| if descending { less(b, a) } else { less(a, b) };
    let few = n.as_int().is_some_and(|n| n <= merge::FEW);
    let rank = if few {
        te.reduce("rank", Axes::Ax, &x.shape, &[("k", n.clone())], Reducer::Sum, DType::I64, |i, r| {
            let mut other = i.to_vec();
            other[axis] = r[0].clone();
            let (own, theirs) = (PrimExpr::load(x, i.to_vec()), PrimExpr::load(x, other));
            let ties = before(&own, &theirs).logical_not().and(r[0].clone().lt(i[axis].clone()));
            before(&theirs, &own).or(ties).cast(DType::I64)
        })
    } else {
        merge::rank(&mut te, x, axis, before)
    };
    let mut outer = x.shape.clone();
    outer.remove(axis);
    te.block(cx.call.op.name(), Axes::Ax, &outer, &[], &outputs, |i, _| {
        let k = Var::new("k", DType::I64);
        let at = |e: PrimExpr| {
            let mut index = i.to_vec();
            index.insert(axis, e);
            index
        };
        let place = PrimExpr::load(&rank, at(k.expr()));
        let stores = wanted.iter().zip(&outputs).map(|(w, b)| {
            let value = match w {
                Want::Values => PrimExpr::load(x, at(k.expr())),
                Want::Indices => k.expr().cast(b.dtype),
            };
            Stmt::store(b, at(place.clone()), value)
        });
        let stores = Stmt::seq(stores);
        let body = if kept == n {
            stores
        } else {
            Stmt::If(Box::new(IfStmt { cond: place.clone().lt(kept), then: stores, otherwise: None }))
        };
        (None, Stmt::serial(k, n, body))
    });
    Ok(te.finish(cx.inputs, &outputs, cx.call.span))
}
