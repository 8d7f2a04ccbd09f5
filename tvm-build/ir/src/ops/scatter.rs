//! Writing elements at indices.

use super::row::{attr, op, tensor};
use super::show::show_tensor;
use super::take::from_end;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, PrimExpr, Var};
use crate::relax::{AttrDef, AttrDefault, AttrKind, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::{PrimFunc, Stmt};

const REDUCTION: AttrDef = attr("reduction", AttrKind::Str, AttrDefault::Str("update"));

pub(super) static OPS: &[OpDef] = &[
    op(
        "scatter_elements",
        "data with the updates at their indices along an axis: written, or combined by \"add\", \"mul\", \"min\", \"max\", \
         \"mean\"; negative indices count from the end",
        &[tensor("data"), tensor("indices"), tensor("updates")],
        &[attr("axis", AttrKind::Int, AttrDefault::Int(0)), REDUCTION],
        infer_elements,
        Lower::Tir("scatter_elements", lower_elements),
        Pattern::Opaque,
    ),
    op(
        "scatter_nd",
        "data with slices of the updates at index tuples, the last axis of `indices`: written, or combined by \"add\", \
         \"mul\", \"min\", \"max\"; negative indices count from the end",
        &[tensor("data"), tensor("indices"), tensor("updates")],
        &[REDUCTION],
        infer_nd,
        Lower::Tir("scatter_nd", lower_nd),
        Pattern::Opaque,
    ),
];

fn reduction<'a>(cx: &'a InferCx<'_>, legal: &[&str]) -> Result<&'a str, Diag> {
    let text = cx.str("reduction")?;
    if legal.contains(&text) {
        return Ok(text);
    }
    Err(cx.fail(format!("attribute `reduction` is \"{text}\"")).help(format!("it is one of {}", legal.join(", "))))
}

const ELEMENTS: &[&str] = &["update", "add", "mul", "min", "max", "mean"];
const ND: &[&str] = &["update", "add", "mul", "min", "max"];

fn infer_elements(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    reduction(cx, ELEMENTS)?;
    cx.expect_dtype(1, "an integer type", DType::is_integer)?;
    cx.common_dtype(0, 2)?;
    let (x, at, updates) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    if let Some(rank) = x.dims.rank() {
        cx.axis("axis", cx.int("axis")?, rank)?;
        cx.expect_rank(1, &at, rank)?;
        cx.expect_rank(2, &updates, rank)?;
    }
    if let (Some(a), Some(b)) = (at.dims.known(), updates.dims.known()) {
        if a.iter().zip(b).any(|(a, b)| cx.differ(a, b)) {
            let message = format!("`indices` {} and `updates` {} differ", show_tensor(&at), show_tensor(&updates));
            return Err(cx.fail(message));
        }
    }
    cx.result(x.dims, x.dtype)
}

fn combined(mode: &str, old: PrimExpr, new: PrimExpr) -> PrimExpr {
    match mode {
        "add" | "mean" => old + new,
        "mul" => old * new,
        "min" => old.min(new),
        "max" => old.max(new),
        _ => new,
    }
}

/// Loops over a shape, outermost first.
pub(super) fn nest(shape: &[PrimExpr], prefix: &str, body: impl FnOnce(&[PrimExpr]) -> Stmt) -> Stmt {
    let vars: Vec<Var> = (0..shape.len()).map(|d| Var::new(format!("{prefix}{d}"), DType::I64)).collect();
    let index: Vec<PrimExpr> = vars.iter().map(Var::expr).collect();
    let inner = body(&index);
    vars.into_iter().zip(shape).rev().fold(inner, |body, (v, extent)| Stmt::serial(v, extent.clone(), body))
}

fn copy(from: &Buffer, to: &Buffer) -> Stmt {
    nest(&from.shape, "i", |i| Stmt::store(to, i.to_vec(), PrimExpr::load(from, i.to_vec())))
}

fn lower_elements(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, indices, updates) = (cx.buffer(0)?, cx.buffer(1)?, cx.buffer(2)?);
    let (axis, mode) =
        cx.with_infer(|c| Ok((c.axis("axis", c.int("axis")?, x.shape.len())?, reduction(c, ELEMENTS)?.to_string())))?;
    let out = Buffer::new("out_buf", x.shape.clone(), x.dtype);
    let mut te = Te::new();
    let place = |i: &[PrimExpr]| {
        let mut at = i.to_vec();
        at[axis] = from_end(PrimExpr::load(indices, i.to_vec()), &x.shape[axis]);
        at
    };
    let write = |i: &[PrimExpr]| {
        let at = place(i);
        let value = combined(&mode, PrimExpr::load(&out, at.clone()), PrimExpr::load(updates, i.to_vec()));
        Stmt::store(&out, at, value)
    };
    if mode == "mean" {
        // How many values meet at each place: the old one and the updates.
        let count = Buffer::new("count", x.shape.clone(), x.dtype);
        te.block("scatter_elements_sum", Axes::Ax, &[], &[], &[out.clone(), count.clone()], |_, _| {
            let one = PrimExpr::number(x.dtype, 1.0);
            let start = nest(&x.shape, "i", |i| Stmt::store(&count, i.to_vec(), one.clone()));
            let add = nest(&updates.shape, "j", |i| {
                let at = place(i);
                let more = PrimExpr::load(&count, at.clone()) + one.clone();
                Stmt::seq([write(i), Stmt::store(&count, at, more)])
            });
            (None, Stmt::seq([copy(x, &out), start, add]))
        });
        let mean = te.compute("scatter_elements_mean", Axes::Ax, &x.shape, x.dtype, |i| {
            PrimExpr::load(&out, i.to_vec()) / PrimExpr::load(&count, i.to_vec())
        });
        return Ok(te.finish(cx.inputs, &[mean], cx.call.span));
    }
    te.block("scatter_elements_generic", Axes::Ax, &[], &[], std::slice::from_ref(&out), |_, _| {
        (None, Stmt::seq([copy(x, &out), nest(&updates.shape, "j", write)]))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// Length of an index tuple.
fn tuple_len(cx: &InferCx<'_>, rank: usize, indices: &[PrimExpr]) -> Result<usize, Diag> {
    let n = indices.last().and_then(PrimExpr::as_int).and_then(|n| usize::try_from(n).ok());
    match n {
        Some(n) if n <= rank => Ok(n),
        Some(n) => Err(cx.fail(format!("`indices` holds tuples of {n}, `data` has rank {rank}"))),
        None => Err(cx.fail("the last axis of `indices` must be there and have a fixed extent")),
    }
}

fn infer_nd(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    reduction(cx, ND)?;
    cx.expect_dtype(1, "an integer type", DType::is_integer)?;
    cx.common_dtype(0, 2)?;
    let (x, at, updates) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    if let (Some(d), Some(own), Some(up)) = (x.dims.known(), at.dims.known(), updates.dims.known()) {
        let n = tuple_len(cx, d.len(), own)?;
        let want: Vec<PrimExpr> = own[..own.len() - 1].iter().chain(&d[n..]).cloned().collect();
        if want.len() != up.len() || want.iter().zip(up).any(|(a, b)| cx.differ(a, b)) {
            let message = format!(
                "`updates` {} must be {}: the leading axes of `indices`, then the axes of `data` no index names",
                show_tensor(&updates),
                super::show::show_dims(&want)
            );
            return Err(cx.fail(message));
        }
    }
    cx.result(x.dims, x.dtype)
}

fn lower_nd(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, indices, updates) = (cx.buffer(0)?, cx.buffer(1)?, cx.buffer(2)?);
    let (n, mode) =
        cx.with_infer(|c| Ok((tuple_len(c, x.shape.len(), &indices.shape)?, reduction(c, ND)?.to_string())))?;
    let lead = indices.shape.len() - 1;
    let out = Buffer::new("out_buf", x.shape.clone(), x.dtype);
    let mut te = Te::new();
    te.block("scatter_nd_generic", Axes::Ax, &[], &[], std::slice::from_ref(&out), |_, _| {
        let update = nest(&updates.shape, "j", |i| {
            let tuple = (0i64..).zip(&x.shape[..n]).map(|(k, extent)| {
                let mut at = i[..lead].to_vec();
                at.push(PrimExpr::i64(k));
                from_end(PrimExpr::load(indices, at), extent)
            });
            let at: Vec<PrimExpr> = tuple.chain(i[lead..].iter().cloned()).collect();
            let value = combined(&mode, PrimExpr::load(&out, at.clone()), PrimExpr::load(updates, i.to_vec()));
            Stmt::store(&out, at, value)
        });
        (None, Stmt::seq([copy(x, &out), update]))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
