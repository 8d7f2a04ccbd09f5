//! The same elements in another shape.

use super::row::{arg, attr, op, required, tensor};
use super::show::{show_dims, show_expr, show_tensor};
use crate::arith::Analyzer;
use crate::diag::Diag;
use crate::prim::PrimExpr;
use crate::relax::{
    ArgKind, AttrDefault, AttrKind, Call, Dims, InferCx, Leaf, Lower, LowerCx, OpDef, Pattern, StructInfo,
};
use crate::te::{Axes, Te};
use crate::tir::PrimFunc;

pub(super) static OPS: &[OpDef] = &[
    op(
        "expand_dims",
        "x with axes of extent 1 put in, at positions of the result",
        &[tensor("x")],
        &[required("axis", AttrKind::Ints)],
        infer_expand,
        Lower::Tir("expand_dims", lower_expand),
        Pattern::Broadcast,
    ),
    op(
        "flatten",
        "x as a vector",
        &[tensor("x")],
        &[],
        infer_flatten,
        Lower::Tir("reshape", lower_reshape),
        Pattern::Injective,
    ),
    op(
        "nn.batch_flatten",
        "x as a matrix: the first axis kept, all others as one",
        &[tensor("data")],
        &[],
        infer_batch_flatten,
        Lower::Tir("reshape", lower_reshape),
        Pattern::Injective,
    ),
    op(
        "reshape",
        "x in another shape; one -1 stands for what is left, 0 for the dimension of x at its place",
        &[tensor("x"), arg("shape", ArgKind::Shape)],
        &[],
        infer_reshape,
        Lower::Tir("reshape", lower_reshape),
        Pattern::Injective,
    )
    .prepared(prepare_reshape),
    op(
        "squeeze",
        "x without axes of extent 1: those given, or all",
        &[tensor("x")],
        &[attr("axis", AttrKind::OptInts, AttrDefault::None)],
        infer_squeeze,
        Lower::Tir("squeeze", lower_squeeze),
        Pattern::Injective,
    ),
];

fn product(dims: &[PrimExpr]) -> PrimExpr {
    dims.iter().fold(PrimExpr::i64(1), |a, b| a * b)
}

/// Resolves -1 and 0 in the shape, where x's shape is known.
fn prepare_reshape(call: &mut Call) -> Result<(), Diag> {
    let [x, Leaf::Shape(shape)] = call.args.as_mut_slice() else { return Ok(()) };
    let marked = shape.iter().filter(|d| d.is_int(-1)).count();
    let fail = |m: String| Err(Diag::error(call.span, format!("R.reshape: {m}")));
    if marked > 1 {
        return fail(format!("the shape {} has more than one -1", show_dims(shape)));
    }
    let info = x.info();
    let Some(from) = info.as_ref().and_then(|i| i.as_tensor()).and_then(|t| t.dims.known()) else { return Ok(()) };
    let empty = from.iter().any(|d| d.is_int(0));
    for (i, d) in shape.iter_mut().enumerate() {
        if d.is_int(0) && !empty {
            match from.get(i) {
                Some(own) => *d = own.clone(),
                None => return fail(format!("dimension {i} is 0, which copies x's, but x is {}", show_dims(from))),
            }
        }
    }
    if marked == 0 {
        return Ok(());
    }
    let analyzer = Analyzer::new();
    let all = analyzer.simplify(&product(from));
    let rest: Vec<PrimExpr> = shape.iter().filter(|d| !d.is_int(-1)).cloned().collect();
    let given = analyzer.simplify(&product(&rest));
    if given.is_int(0) {
        return fail(format!("-1 stands for any number in {}, which holds no elements", show_dims(shape)));
    }
    if let (Some(a), Some(g)) = (all.as_int(), given.as_int()) {
        if a % g != 0 {
            return fail(format!("{} holds {a} elements, which {g} does not divide", show_dims(from)));
        }
    }
    let left = analyzer.simplify(&all.floordiv(given));
    for d in shape.iter_mut().filter(|d| d.is_int(-1)) {
        *d = left.clone();
    }
    Ok(())
}

/// The shape with the last dimension that makes it hold so many elements.
fn last_dim(elements: Option<i64>, to: &[PrimExpr]) -> Option<Vec<PrimExpr>> {
    let (last, rest) = to.split_last()?;
    let given = rest.iter().try_fold(1i64, |n, d| n.checked_mul(d.as_int()?))?;
    let elements = elements.filter(|n| given > 0 && n % given == 0)?;
    let mut dims = rest.to_vec();
    dims.push(PrimExpr::int(last.dtype(), elements / given));
    Some(dims)
}

fn infer_reshape(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let StructInfo::Shape(target) = cx.info(1)? else { return cx.result(Dims::Unknown, x.dtype) };
    let (Some(from), Some(to)) = (x.dims.known(), target.known()) else { return cx.result(target, x.dtype) };
    if let Some(bad) = to.iter().find(|d| d.as_int().is_some_and(|v| v < 0)) {
        return Err(cx.fail(format!("dimension {} of the shape {} is negative", show_expr(bad), show_dims(to))));
    }
    let (a, b) = (cx.analyzer.simplify(&product(from)), cx.analyzer.simplify(&product(to)));
    if cx.differ(&a, &b) {
        let message = format!(
            "`shape` {} holds {} elements, `x` {} holds {}",
            show_dims(to),
            show_expr(&b),
            show_tensor(&x),
            show_expr(&a)
        );
        let diag = cx.fail(message);
        return Err(match last_dim(a.as_int(), to) {
            Some(dims) => diag.help(format!("reshape to {}", show_dims(&dims))),
            None => diag,
        });
    }
    cx.result(target, x.dtype)
}

fn infer_flatten(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let dims = match x.dims.known() {
        Some(d) => Dims::Known(vec![cx.analyzer.simplify(&product(d))]),
        None => Dims::Rank(1),
    };
    cx.result(dims, x.dtype)
}

fn infer_batch_flatten(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    if x.dims.rank().is_some_and(|r| r < 2) {
        return Err(cx.fail(format!("`data` must have rank 2 or more, it is {}", show_tensor(&x))));
    }
    let dims = match x.dims.known() {
        Some([first, rest @ ..]) => Dims::Known(vec![first.clone(), cx.analyzer.simplify(&product(rest))]),
        _ => Dims::Rank(2),
    };
    cx.result(dims, x.dtype)
}

/// The linear index of an index of a shape, and back.
pub(super) fn ravel(index: &[PrimExpr], shape: &[PrimExpr]) -> PrimExpr {
    let mut all = index.iter().zip(shape);
    let Some((first, _)) = all.next() else { return PrimExpr::i64(0) };
    all.fold(first.clone(), |at, (i, d)| at * d + i)
}

/// The index of a linear index: each dimension modulo its extent, as TVM does.
pub(super) fn unravel(linear: &PrimExpr, shape: &[PrimExpr]) -> Vec<PrimExpr> {
    let mut rest = linear.clone();
    let mut out: Vec<PrimExpr> = shape
        .iter()
        .rev()
        .map(|d| {
            let i = rest.clone().floormod(d);
            rest = rest.clone().floordiv(d);
            i
        })
        .collect();
    out.reverse();
    out
}

fn lower_reshape(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let dims = cx.out_dims()?;
    let mut te = Te::new();
    let out = te.compute("T_reshape", Axes::Ax, dims, x.dtype, |i| {
        if dims.iter().any(|d| d.is_int(0)) {
            // No element is ever read.
            return PrimExpr::zero(x.dtype);
        }
        PrimExpr::load(x, unravel(&ravel(i, dims), &x.shape))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// Positions of the new axes in the result.
fn new_axes(cx: &InferCx<'_>, rank: usize) -> Result<Vec<usize>, Diag> {
    let axes = cx.ints("axis")?;
    cx.axes("axis", &axes, rank + axes.len())
}

fn infer_expand(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let Some(rank) = x.dims.rank() else { return cx.result(Dims::Unknown, x.dtype) };
    let axes = new_axes(cx, rank)?;
    let Some(d) = x.dims.known() else { return cx.result(Dims::Rank(rank + axes.len()), x.dtype) };
    let mut own = d.iter();
    let dims = (0..rank + axes.len())
        .filter_map(|a| if axes.contains(&a) { Some(PrimExpr::i64(1)) } else { own.next().cloned() })
        .collect();
    cx.result(Dims::Known(dims), x.dtype)
}

fn lower_expand(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let axes = cx.with_infer(|c| new_axes(c, x.shape.len()))?;
    let mut te = Te::new();
    let out = te.compute("expand_dims", Axes::I, cx.out_dims()?, x.dtype, |i| {
        let own = i.iter().enumerate().filter(|(a, _)| !axes.contains(a)).map(|(_, e)| e.clone());
        PrimExpr::load(x, own.collect())
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// The axes that go; `None` where the dimensions that would tell are not known.
fn gone_axes(cx: &InferCx<'_>, dims: &Dims) -> Result<Option<Vec<usize>>, Diag> {
    let Some(rank) = dims.rank() else { return Ok(None) };
    let Some(axes) = cx.opt_ints("axis") else {
        let Some(d) = dims.known() else { return Ok(None) };
        return Ok(Some((0..rank).filter(|a| d[*a].is_int(1)).collect()));
    };
    let axes = cx.axes("axis", &axes, rank)?;
    if let Some(d) = dims.known() {
        if let Some(bad) = axes.iter().find(|a| d[**a].as_int().is_some_and(|v| v != 1)) {
            let message = format!("axis {bad} of {} has extent {}, not 1", show_dims(d), show_expr(&d[*bad]));
            return Err(cx.fail(message));
        }
    }
    Ok(Some(axes))
}

fn infer_squeeze(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let Some(gone) = gone_axes(cx, &x.dims)? else { return cx.result(Dims::Unknown, x.dtype) };
    let dims = match &x.dims {
        Dims::Known(d) => {
            Dims::Known(d.iter().enumerate().filter(|(a, _)| !gone.contains(a)).map(|(_, e)| e.clone()).collect())
        }
        other => other.rank().map_or(Dims::Unknown, |r| Dims::Rank(r - gone.len())),
    };
    cx.result(dims, x.dtype)
}

fn lower_squeeze(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let gone = cx.with_infer(|c| gone_axes(c, &Dims::Known(x.shape.clone())))?.unwrap_or_default();
    let mut te = Te::new();
    let out = te.compute("T_squeeze", Axes::Ax, cx.out_dims()?, x.dtype, |i| {
        let mut own = i.iter();
        let at = (0..x.shape.len()).map(|a| {
            let kept = if gone.contains(&a) { None } else { own.next() };
            kept.cloned().unwrap_or_else(|| PrimExpr::i64(0))
        });
        PrimExpr::load(x, at.collect())
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
