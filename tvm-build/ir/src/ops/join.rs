//! Putting tensors together along an axis, and taking them apart.

use super::row::{arg, attr, op, required, tensor};
use super::show::{show_expr, show_tensor};
use crate::attrs::AttrValue;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::PrimExpr;
use crate::relax::{
    ArgKind, AttrDef, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo, TensorInfo,
};
use crate::te::{Axes, Te};
use crate::tir::PrimFunc;

const AXIS: AttrDef = attr("axis", AttrKind::Int, AttrDefault::Int(0));

pub(super) static OPS: &[OpDef] = &[
    op(
        "concat",
        "tensors one after another along an axis",
        &[arg("tensors", ArgKind::Tensors)],
        // None flattens to rank 1 only.
        &[attr("axis", AttrKind::OptInt, AttrDefault::Int(0))],
        infer_concat,
        Lower::Tir("concatenate", lower_concat),
        Pattern::Injective,
    ),
    op(
        "split",
        "pieces along an axis: of equal extent by their number, or between given positions",
        &[tensor("x")],
        &[required("indices_or_sections", AttrKind::Any), AXIS],
        infer_split,
        Lower::Tir("split", lower_split),
        Pattern::Injective,
    ),
    op(
        "stack",
        "tensors of one shape along a new axis",
        &[arg("tensors", ArgKind::Tensors)],
        &[AXIS],
        infer_stack,
        Lower::Tir("stack", lower_stack),
        Pattern::Injective,
    ),
];

/// The type all tensors have; unknown when one is.
fn one_dtype(cx: &InferCx<'_>, all: &[TensorInfo]) -> Result<Option<DType>, Diag> {
    let mut known = all.iter().enumerate().filter_map(|(i, t)| t.dtype.map(|d| (i, d)));
    if let Some((i, first)) = known.next() {
        if let Some((j, other)) = known.find(|(_, d)| *d != first) {
            return Err(cx
                .fail(format!("`tensors` differ in type: tensor {i} is {first} and tensor {j} is {other}"))
                .help("convert with R.astype"));
        }
    }
    Ok(if all.iter().all(|t| t.dtype.is_some()) { all[0].dtype } else { None })
}

/// The rank all tensors have; unknown when none is known.
fn one_rank(cx: &InferCx<'_>, all: &[TensorInfo]) -> Result<Option<usize>, Diag> {
    let mut known = all.iter().enumerate().filter_map(|(i, t)| t.dims.rank().map(|r| (i, r)));
    let Some((i, first)) = known.next() else { return Ok(None) };
    match known.find(|(_, r)| *r != first) {
        Some((j, _)) => {
            let (a, b) = (show_tensor(&all[i]), show_tensor(&all[j]));
            Err(cx.fail(format!("`tensors` differ in rank: tensor {i} is {a} and tensor {j} is {b}")))
        }
        None => Ok(Some(first)),
    }
}

fn concat_axis(cx: &InferCx<'_>, rank: usize) -> Result<usize, Diag> {
    match cx.call.attr("axis").as_int() {
        Some(a) => cx.axis("axis", a, rank),
        None if rank == 1 => Ok(0),
        None => Err(cx.fail(format!("axis=None joins vectors only, the tensors have rank {rank}"))),
    }
}

fn infer_concat(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let all = cx.tensors(0)?;
    let dtype = one_dtype(cx, &all)?;
    let Some(rank) = one_rank(cx, &all)? else { return cx.result(Dims::Unknown, dtype) };
    let axis = concat_axis(cx, rank)?;
    let known: Vec<(usize, &[PrimExpr])> =
        all.iter().enumerate().filter_map(|(i, t)| t.dims.known().map(|d| (i, d))).collect();
    let Some(((i, first), others)) = known.split_first() else { return cx.result(Dims::Rank(rank), dtype) };
    let mut proven = known.len() == all.len();
    let mut total = first[axis].clone();
    for (j, d) in others {
        for a in (0..rank).filter(|a| *a != axis) {
            if cx.differ(&first[a], &d[a]) {
                let (p, q) = (show_tensor(&all[*i]), show_tensor(&all[*j]));
                let message = format!(
                    "`tensors` may differ in axis {axis} alone, not in axis {a}: tensor {i} is {p} and tensor {j} is {q}"
                );
                return Err(cx.fail(message));
            }
            proven &= cx.analyzer.prove_equal(&first[a], &d[a]);
        }
        total = total + &d[axis];
    }
    if !proven {
        return cx.result(Dims::Rank(rank), dtype);
    }
    let mut dims = first.to_vec();
    dims[axis] = cx.analyzer.simplify(&total);
    cx.result(Dims::Known(dims), dtype)
}

fn lower_concat(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let inputs = cx.inputs.first().filter(|b| !b.is_empty()).ok_or_else(|| cx.fail("there are no tensors"))?;
    let dims = cx.out_dims()?;
    let axis = cx.with_infer(|c| concat_axis(c, dims.len()))?;
    let mut te = Te::new();
    let out = te.compute("T_concat", Axes::Ax, dims, cx.out_dtype()?, |i| {
        let mut start = PrimExpr::i64(0);
        let mut value = PrimExpr::load(&inputs[0], i.to_vec());
        for pair in inputs.windows(2) {
            start = start + &pair[0].shape[axis];
            let mut at = i.to_vec();
            at[axis] = &i[axis] - start.clone();
            let here = start.clone().le(&i[axis]);
            value = PrimExpr::if_then_else(here, PrimExpr::load(&pair[1], at), value);
        }
        value
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn infer_stack(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let all = cx.tensors(0)?;
    let dtype = one_dtype(cx, &all)?;
    let Some(rank) = one_rank(cx, &all)? else { return cx.result(Dims::Unknown, dtype) };
    let axis = cx.axis("axis", cx.int("axis")?, rank + 1)?;
    let mut known = all.iter().enumerate().filter_map(|(i, t)| t.dims.known().map(|d| (i, d)));
    let Some((i, first)) = known.next() else { return cx.result(Dims::Rank(rank + 1), dtype) };
    for (j, d) in known {
        if let Some(a) = (0..rank).find(|a| cx.differ(&first[*a], &d[*a])) {
            let (p, q) = (show_tensor(&all[i]), show_tensor(&all[j]));
            return Err(cx.fail(format!("`tensors` differ in axis {a}: tensor {i} is {p} and tensor {j} is {q}")));
        }
    }
    let mut dims = first.to_vec();
    dims.insert(axis, PrimExpr::i64(i64::try_from(all.len()).unwrap_or(i64::MAX)));
    cx.result(Dims::Known(dims), dtype)
}

fn lower_stack(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let inputs = cx.inputs.first().filter(|b| !b.is_empty()).ok_or_else(|| cx.fail("there are no tensors"))?;
    let dims = cx.out_dims()?;
    let axis = cx.with_infer(|c| c.axis("axis", c.int("axis")?, dims.len()))?;
    let mut te = Te::new();
    let out = te.compute("T_stack", Axes::Ax, dims, cx.out_dtype()?, |i| {
        let mut at = i.to_vec();
        let which = at.remove(axis);
        let mut value = PrimExpr::load(&inputs[0], at.clone());
        for (n, b) in (0i64..).zip(inputs).skip(1) {
            let here = which.clone().eq(n);
            value = PrimExpr::if_then_else(here, PrimExpr::load(b, at.clone()), value);
        }
        value
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// Where the pieces begin along the axis of this extent, and the extent.
fn starts(cx: &InferCx<'_>, extent: &PrimExpr) -> Result<Vec<PrimExpr>, Diag> {
    let attr = cx.call.attr("indices_or_sections");
    if let AttrValue::List(_) = attr {
        let at = attr.as_ints().ok_or_else(|| cx.fail("`indices_or_sections` must hold integers"))?;
        let n = extent.as_int();
        // Positions past the end give empty pieces; negative ones count from the end, as numpy's do.
        let mut out = vec![PrimExpr::i64(0)];
        for v in at {
            let fixed = match n {
                Some(n) if v < 0 => (v + n).max(0),
                Some(n) => v.min(n),
                None if v < 0 => return Err(cx.fail(format!("position {v} needs a fixed extent"))),
                None => v,
            };
            out.push(PrimExpr::i64(fixed));
        }
        return Ok(out);
    }
    let sections = attr.as_int().filter(|n| *n > 0 && *n < 1 << 20).ok_or_else(|| {
        cx.fail("attribute `indices_or_sections` must be a positive number of pieces or a list of positions")
    })?;
    if extent.as_int().is_some_and(|n| n % sections != 0) {
        let message = format!(
            "`indices_or_sections` is {sections}, which does not divide the extent {} of the axis",
            show_expr(extent)
        );
        return Err(cx.fail(message).help("give the positions between the pieces"));
    }
    let step = cx.analyzer.simplify(&extent.clone().floordiv(sections));
    Ok((0..sections).map(|i| cx.analyzer.simplify(&(&step * i))).collect())
}

fn infer_split(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let (Some(rank), known) = (x.dims.rank(), x.dims.known()) else { return Ok(StructInfo::Object) };
    let axis = cx.axis("axis", cx.int("axis")?, rank)?;
    let Some(d) = known else {
        let pieces = starts(cx, &PrimExpr::i64(0))?.len();
        return Ok(StructInfo::Tuple(vec![cx.result(Dims::Rank(rank), x.dtype)?; pieces]));
    };
    let starts = starts(cx, &d[axis])?;
    let ends = starts.iter().skip(1).chain(std::iter::once(&d[axis]));
    let pieces = starts.iter().zip(ends).map(|(a, b)| {
        let mut dims = d.to_vec();
        let extent = cx.analyzer.simplify(&(b - a));
        dims[axis] = if extent.as_int().is_some_and(|v| v < 0) { PrimExpr::i64(0) } else { extent };
        cx.result(Dims::Known(dims), x.dtype)
    });
    Ok(StructInfo::Tuple(pieces.collect::<Result<_, _>>()?))
}

fn lower_split(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let (axis, starts) = cx.with_infer(|c| {
        let axis = c.axis("axis", c.int("axis")?, x.shape.len())?;
        Ok((axis, starts(c, &x.shape[axis])?))
    })?;
    let by_list = matches!(cx.call.attr("indices_or_sections"), AttrValue::List(_));
    let name = if by_list { "T_split" } else { "T_split_sections" };
    let pieces = cx.out.tensors().unwrap_or_default();
    let mut te = Te::new();
    let mut outputs = Vec::with_capacity(pieces.len());
    for (t, start) in pieces.iter().zip(starts) {
        let dims = t.dims.known().ok_or_else(|| cx.fail("the shape of a piece is not known"))?;
        outputs.push(te.compute(name, Axes::Ax, dims, x.dtype, |i| {
            let mut at = i.to_vec();
            at[axis] = &i[axis] + start;
            PrimExpr::load(x, at)
        }));
    }
    Ok(te.finish(cx.inputs, &outputs, cx.call.span))
}
