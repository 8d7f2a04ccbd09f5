//! Extents and ranges computed from parameters that are tensors: what reductions, slices and pads along axes given at
//! run time need to know before their results can have a shape. The tensors are as short as a shape is.

use super::row::{arg, attr, op, optional, tensor};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, PrimExpr, Var};
use crate::relax::{
    ArgKind, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo, TensorInfo,
};
use crate::te::{Axes, Reducer, Te};
use crate::tir::{AssertStmt, IfStmt, PrimFunc, Stmt};

pub(super) static OPS: &[OpDef] = &[
    op(
        "axis_parts",
        "the number of elements before an axis, along it and after it. An axis out of range is an error at run time",
        &[tensor("extents"), arg("axis", ArgKind::Prim)],
        &[],
        infer_parts,
        Lower::Tir("axis_parts", lower_parts),
        Pattern::Opaque,
    ),
    op(
        "padded_extents",
        "what is added before each axis, what is added after it, and its extent then, each one vector, from the extents \
         and what `before` and `after` say of the given axes (of all axes where none are given); below zero, elements \
         are cut off. Axes out of range or given twice are an error at run time",
        &[tensor("extents"), tensor("before"), tensor("after"), optional("axes", ArgKind::Tensor)],
        &[],
        |cx| vectors(cx, 3),
        Lower::Tir("padded_extents", lower_padded),
        Pattern::Opaque,
    ),
    op(
        "reduced_extents",
        "the extents after a reduction along axes, with 1 for each reduced one (`keepdims`) or without them. No axes are \
         all axes, or with `noop_with_empty_axes` none. Axes out of range or given twice are an error at run time",
        &[tensor("extents"), tensor("axes")],
        &[
            attr("keepdims", AttrKind::Bool, AttrDefault::Bool(true)),
            attr("noop_with_empty_axes", AttrKind::Bool, AttrDefault::Bool(false)),
        ],
        infer_reduced,
        Lower::Tir("reduced_extents", lower_reduced),
        Pattern::Opaque,
    ),
    op(
        "slice_ranges",
        "the first index, the step and the number of indices along each axis, each one vector, of a slice with the given \
         starts, ends and steps along the given axes (the first ones where none are given). Below zero, starts and ends \
         count from the end, and both are clamped: a start before the first element is the first, also where the step is \
         negative. A step of 0, axes out of range or given twice are an error at run time",
        &[
            tensor("extents"),
            tensor("starts"),
            tensor("ends"),
            optional("axes", ArgKind::Tensor),
            optional("steps", ArgKind::Tensor),
        ],
        &[],
        |cx| vectors(cx, 3),
        Lower::Tir("slice_ranges", lower_slice),
        Pattern::Opaque,
    ),
];

/// Checks that every argument is a vector of integers, and that all but the first are of one length.
fn check(cx: &InferCx<'_>) -> Result<TensorInfo, Diag> {
    let mut length: Option<PrimExpr> = None;
    for i in (0..cx.call.args.len()).filter(|i| cx.is_given(*i)) {
        let t = cx.tensor(i)?;
        cx.expect_rank(i, &t, 1)?;
        cx.expect_dtype(i, "an integer type", DType::is_integer)?;
        if let (true, Some([n])) = (i > 0, t.dims.known()) {
            match &length {
                Some(m) if cx.differ(m, n) => {
                    let name = cx.arg_name(i);
                    return Err(cx.fail(format!("`{name}` has {n:?} elements, the argument before it {m:?}")));
                }
                _ => length = Some(n.clone()),
            }
        }
    }
    cx.tensor(0)
}

/// So many vectors as long as the extents.
fn vectors(cx: &InferCx<'_>, count: usize) -> Result<StructInfo, Diag> {
    let extents = check(cx)?;
    let one = StructInfo::Tensor(TensorInfo { dims: extents.dims, dtype: Some(DType::I64) });
    Ok(StructInfo::Tuple(vec![one; count]))
}

fn infer_reduced(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let extents = check(cx)?;
    if cx.call.attr("keepdims").as_bool() == Some(true) {
        return cx.result(extents.dims, Some(DType::I64));
    }
    let axes = cx.tensor(1)?;
    let (Some([rank]), Some([count])) = (extents.dims.known(), axes.dims.known()) else {
        return cx.result(Dims::Rank(1), Some(DType::I64));
    };
    if count.is_int(0) {
        let none = cx.call.attr("noop_with_empty_axes").as_bool() == Some(true);
        let left = if none { rank.clone() } else { PrimExpr::i64(0) };
        return cx.result(Dims::Known(vec![left]), Some(DType::I64));
    }
    let left = cx.analyzer.simplify(&(rank - count.clone()));
    if left.as_int().is_some_and(|n| n < 0) {
        return Err(cx.fail(format!("{count:?} axes are given for {rank:?} extents")));
    }
    cx.result(Dims::Known(vec![left]), Some(DType::I64))
}

pub(super) fn assert(cond: PrimExpr, message: &str) -> Stmt {
    Stmt::Assert(Box::new(AssertStmt { cond, message: message.into() }))
}

fn loop_over(name: &str, extent: &PrimExpr, body: impl FnOnce(PrimExpr) -> Stmt) -> Stmt {
    let var = Var::new(name, DType::I64);
    let body = body(var.expr());
    Stmt::serial(var, extent.clone(), body)
}

fn given(cond: PrimExpr, then: Stmt) -> Stmt {
    Stmt::If(Box::new(IfStmt { cond, then, otherwise: None }))
}

/// An element of a vector of integers.
pub(super) fn element(b: &Buffer, i: &PrimExpr) -> PrimExpr {
    PrimExpr::load(b, vec![i.clone()]).cast(DType::I64)
}

/// The axes counted from the first; checked to be in range and to differ.
pub(super) fn checked_axes(te: &mut Te, axes: &Buffer, rank: &PrimExpr) -> Buffer {
    let (count, out) = (&axes.shape[0], Buffer::new("checked_axes", axes.shape.clone(), DType::I64));
    te.block("checked_axes", Axes::Ax, &[], &[], std::slice::from_ref(&out), |_, _| {
        let body = loop_over("j", count, |j| {
            let axis = element(axes, &j);
            let least = PrimExpr::i64(0) - rank.clone();
            let inside = least.le(axis.clone()).and(axis.clone().lt(rank.clone()));
            let positive = PrimExpr::select(axis.clone().lt(0), axis.clone() + rank.clone(), axis);
            let differ = loop_over("l", &j, |l| {
                let same = PrimExpr::load(&out, vec![l]).eq(PrimExpr::load(&out, vec![j.clone()]));
                assert(same.logical_not(), "an axis is given twice")
            });
            let store = Stmt::store(&out, vec![j.clone()], positive);
            Stmt::seq([assert(inside, "an axis is out of range"), store, differ])
        });
        (None, body)
    });
    out
}

fn lower_reduced(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (extents, axes) = (cx.buffer(0)?, cx.buffer(1)?);
    let flag = |name: &str| cx.call.attr(name).as_bool() == Some(true);
    let (rank, count) = (extents.shape[0].clone(), axes.shape[0].clone());
    let mut te = Te::new();
    let at = checked_axes(&mut te, axes, &rank);
    let all = !flag("noop_with_empty_axes");
    // How often each axis is named.
    let named =
        te.reduce("named", Axes::Ax, &extents.shape, &[("k", count.clone())], Reducer::Sum, DType::I64, |i, k| {
            PrimExpr::load(&at, k.to_vec()).eq(&i[0]).cast(DType::I64)
        });
    let kept = |i: &PrimExpr| {
        let kept = element(&named, i).eq(0);
        if all { kept.and(count.clone().eq(0).logical_not()) } else { kept }
    };
    let out = if flag("keepdims") {
        te.compute("extents", Axes::Ax, &extents.shape, DType::I64, |i| {
            PrimExpr::select(kept(&i[0]), element(extents, &i[0]), PrimExpr::i64(1))
        })
    } else {
        let place =
            te.reduce("place", Axes::Ax, &extents.shape, &[("k", rank.clone())], Reducer::Sum, DType::I64, |i, k| {
                k[0].clone().lt(i[0].clone()).and(kept(&k[0])).cast(DType::I64)
            });
        te.reduce("extents", Axes::Ax, cx.out_dims()?, &[("k", rank)], Reducer::Sum, DType::I64, |p, k| {
            let here = kept(&k[0]).and(element(&place, &k[0]).eq(&p[0]));
            PrimExpr::select(here, element(extents, &k[0]), PrimExpr::i64(0))
        })
    };
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// Writes what `of` gives for an axis and the place of its parameters to the outputs; elsewhere they are what `else_`
/// gives for the axis.
fn along_axes(
    cx: &LowerCx<'_>,
    axes: usize,
    outputs: &[Buffer],
    else_: impl Fn(&PrimExpr) -> Vec<PrimExpr>,
    of: impl Fn(&PrimExpr, &PrimExpr) -> (Vec<Stmt>, Vec<PrimExpr>),
) -> Result<PrimFunc, Diag> {
    let (extents, parameters) = (cx.buffer(0)?, cx.buffer(1)?);
    let (rank, count) = (&extents.shape[0], &parameters.shape[0]);
    let mut te = Te::new();
    let axes = cx.inputs.get(axes).and_then(|b| b.first());
    let axes = axes.map(|axes| checked_axes(&mut te, axes, rank));
    let store = |i: &PrimExpr, values: Vec<PrimExpr>| {
        Stmt::seq(outputs.iter().zip(values).map(|(b, v)| Stmt::store(b, vec![i.clone()], v)))
    };
    te.block(cx.call.op.name(), Axes::Ax, &[], &[], outputs, |_, _| {
        let body = loop_over("i", rank, |i| {
            let start = store(&i, else_(&i));
            let each = loop_over("j", count, |j| {
                let axis = axes.as_ref().map_or(j.clone(), |axes| element(axes, &j));
                let (checks, values) = of(&i, &j);
                given(axis.eq(&i), Stmt::seq(checks.into_iter().chain([store(&i, values)])))
            });
            Stmt::seq([start, each])
        });
        let fits = assert(count.clone().le(rank.clone()), "there are more parameters than axes");
        (None, Stmt::seq([fits, body]))
    });
    Ok(te.finish(cx.inputs, outputs, cx.call.span))
}

fn infer_parts(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_rank(0, &cx.tensor(0)?, 1)?;
    cx.expect_dtype(0, "an integer type", DType::is_integer)?;
    cx.expect_dtype(1, "an integer type", DType::is_integer)?;
    cx.result(Dims::Known(vec![PrimExpr::i64(3)]), Some(DType::I64))
}

fn lower_parts(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (extents, axis) = (cx.buffer(0)?, cx.scalar(1)?.cast(DType::I64));
    let rank = &extents.shape[0];
    let out = Buffer::new("axis_parts", vec![PrimExpr::i64(3)], DType::I64);
    let mut te = Te::new();
    te.block("axis_parts", Axes::Ax, &[], &[], std::slice::from_ref(&out), |_, _| {
        let inside = (PrimExpr::i64(0) - rank.clone()).le(axis.clone()).and(axis.clone().lt(rank.clone()));
        let at = PrimExpr::select(axis.clone().lt(0), axis.clone() + rank.clone(), axis.clone());
        let part = |i: i64| vec![PrimExpr::i64(i)];
        let start = (0..3).map(|i| Stmt::store(&out, part(i), PrimExpr::i64(1)));
        let each = loop_over("i", rank, |i| {
            let grow = |p: i64| Stmt::store(&out, part(p), PrimExpr::load(&out, part(p)) * element(extents, &i));
            let here = [i.clone().lt(at.clone()), i.clone().eq(at.clone()), at.lt(i.clone())];
            Stmt::seq((0i64..).zip(here).map(|(p, here)| given(here, grow(p))))
        });
        let check = assert(inside, "the axis is out of range");
        (None, Stmt::seq(std::iter::once(check).chain(start).chain([each])))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn outputs(cx: &LowerCx<'_>, names: [&str; 3]) -> Result<Vec<Buffer>, Diag> {
    let extents = cx.buffer(0)?;
    Ok(names.map(|name| Buffer::new(name, extents.shape.clone(), DType::I64)).to_vec())
}

fn lower_padded(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (extents, before, after) = (cx.buffer(0)?, cx.buffer(1)?, cx.buffer(2)?);
    let zero = || PrimExpr::i64(0);
    along_axes(
        cx,
        3,
        &outputs(cx, ["before_axis", "after_axis", "extent"])?,
        |i| vec![zero(), zero(), element(extents, i)],
        |i, j| {
            let (before, after) = (element(before, j), element(after, j));
            // Far beyond every tensor; a sum of two still is a number.
            let small = |e: &PrimExpr| PrimExpr::i64(-(1 << 48)).le(e.clone()).and(e.clone().le(1 << 48));
            let check = assert(small(&before).and(small(&after)), "a pad is too large");
            let extent = element(extents, i) + before.clone() + after.clone();
            (vec![check], vec![before, after, extent])
        },
    )
}

fn lower_slice(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (extents, starts, ends) = (cx.buffer(0)?, cx.buffer(1)?, cx.buffer(2)?);
    let steps = cx.inputs.get(4).and_then(|b| b.first());
    let int = PrimExpr::i64;
    along_axes(
        cx,
        3,
        &outputs(cx, ["begin", "stride", "extent"])?,
        |i| vec![int(0), int(1), element(extents, i)],
        |i, j| {
            let n = element(extents, i);
            let given = steps.map_or(int(1), |steps| element(steps, j));
            // A step past the end is a step past the end, however far.
            let step = given.clone().min(n.clone() + 1).max(int(-1) - n.clone());
            let back = step.clone().lt(0);
            let (low, high) = (
                PrimExpr::select(back.clone(), int(-1), int(0)),
                PrimExpr::select(back.clone(), n.clone() - 1, n.clone()),
            );
            let bound = |e: PrimExpr, low: PrimExpr| {
                let e = PrimExpr::select(e.clone().lt(0), e.clone() + n.clone(), e);
                e.max(low).min(high.clone())
            };
            let (from, to) = (bound(element(starts, j), int(0)), bound(element(ends, j), low));
            let span = PrimExpr::select(back.clone(), from.clone() - to.clone(), to - from.clone());
            let size = PrimExpr::select(back, int(0) - step.clone(), step.clone()).max(int(1));
            let count = (span + size.clone() - 1).floordiv(size).max(int(0));
            let check = assert(given.eq(0).logical_not(), "a step is 0");
            (vec![check], vec![from, step, count])
        },
    )
}
