//! Borders.

use super::row::{attr, op, required, tensor};
use super::show::{show_expr, show_tensor};
use crate::diag::Diag;
use crate::prim::PrimExpr;
use crate::relax::{AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::PrimFunc;

pub(super) static OPS: &[OpDef] = &[op(
    "nn.pad",
    "data with a border before and after each axis: of one value (\"constant\"), mirrored without the edge \
     (\"reflect\"), of the edge (\"replicate\"), or wrapped around (\"circular\")",
    &[tensor("data")],
    &[
        required("pad_width", AttrKind::Ints),
        attr("pad_value", AttrKind::Float, AttrDefault::Float(0.0)),
        attr("pad_mode", AttrKind::Str, AttrDefault::Str("constant")),
    ],
    infer,
    Lower::Tir("pad", lower),
    Pattern::Injective,
)];

/// Before and after each axis.
fn widths(cx: &InferCx<'_>, rank: usize) -> Result<Vec<(i64, i64)>, Diag> {
    let w = cx.ints("pad_width")?;
    if w.len() != 2 * rank {
        return Err(cx.fail(format!("attribute `pad_width` has {} entries, rank {rank} needs {}", w.len(), 2 * rank)));
    }
    Ok(w.chunks_exact(2).map(|p| (p[0], p[1])).collect())
}

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let mode = cx.str("pad_mode")?;
    if !matches!(mode, "constant" | "reflect" | "replicate" | "circular") {
        return Err(cx
            .fail(format!("attribute `pad_mode` is \"{mode}\""))
            .help("it is \"constant\", \"reflect\", \"replicate\" or \"circular\""));
    }
    let Some(rank) = x.dims.rank() else { return cx.result(Dims::Unknown, x.dtype) };
    let widths = widths(cx, rank)?;
    let Some(d) = x.dims.known() else { return cx.result(Dims::Rank(rank), x.dtype) };
    let mut dims = Vec::with_capacity(rank);
    for (axis, (n, (before, after))) in d.iter().zip(widths).enumerate() {
        let sum = cx.analyzer.simplify(&(n + before.saturating_add(after)));
        if sum.as_int().is_some_and(|v| v < 0) {
            return Err(cx.fail(format!("axis {axis} of `data` {} is left with {}", show_tensor(&x), show_expr(&sum))));
        }
        let most = before.max(after);
        let room = match mode {
            "reflect" => n.as_int().map(|v| v - 1),
            "circular" => n.as_int(),
            "replicate" => n.as_int().filter(|v| *v == 0).map(|_| 0),
            _ => None,
        };
        if room.is_some_and(|r| most > r) {
            let message = format!("\"{mode}\" cannot pad axis {axis} of `data` {} by {most}", show_tensor(&x));
            return Err(cx.fail(message).help("pad in several steps, or with another mode"));
        }
        dims.push(sum);
    }
    cx.result(Dims::Known(dims), x.dtype)
}

fn lower(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let (widths, mode) = cx.with_infer(|c| Ok((widths(c, x.shape.len())?, c.str("pad_mode")?.to_string())))?;
    let value = cx.call.attr("pad_value").as_float().ok_or_else(|| cx.fail("`pad_value` must be a number"))?;
    let dims = cx.out_dims()?;
    let name = match mode.as_str() {
        "reflect" => "ReflectPadInput",
        "replicate" => "ReplicatePadInput",
        "circular" => "CircularPadInput",
        _ => "PadInput",
    };
    let mut te = Te::new();
    let out = te.compute(name, Axes::I, dims, x.dtype, |i| {
        let mut inside = PrimExpr::bool(true);
        let mut at = Vec::with_capacity(i.len());
        for (a, (before, after)) in widths.iter().enumerate() {
            let n = &x.shape[a];
            let own = &i[a] - *before;
            at.push(match mode.as_str() {
                _ if *before == 0 && *after == 0 => own,
                "reflect" => {
                    let zero = || PrimExpr::i64(0);
                    let low = PrimExpr::select(zero().le(own.clone()), own.clone(), zero() - own);
                    let last = n - 1;
                    let past =
                        PrimExpr::select(low.clone().le(last.clone()), last.clone() - low.clone(), low - last.clone());
                    last - past
                }
                "replicate" => own.min(n - 1).max(PrimExpr::i64(0)),
                "circular" => (own + n).floormod(n),
                _ => {
                    inside = inside.clone().and(PrimExpr::i64(*before).le(&i[a]));
                    inside = inside.clone().and(i[a].clone().lt(n + *before));
                    own
                }
            });
        }
        PrimExpr::if_then_else(inside, PrimExpr::load(x, at), PrimExpr::number(x.dtype, value))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
