//! Scaled dot-product attention, in terms of other ops.

use super::row::{attr, op, tensor};
use super::show::{show_expr, show_tensor};
use crate::attrs::AttrValue;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::PrimExpr;
use crate::relax::build::BindingBuilder;
use crate::relax::{AttrDef, AttrDefault, AttrKind, Dims, InferCx, Leaf, Lower, OpDef, Pattern, RewriteCx, StructInfo};

const ATTRS: &[AttrDef] = &[
    attr("scale", AttrKind::Any, AttrDefault::None),
    attr("causal_mask", AttrKind::Any, AttrDefault::None),
    attr("window_size", AttrKind::OptInt, AttrDefault::None),
];

pub(super) static OPS: &[OpDef] = &[
    op(
        "nn.attention",
        "softmax(query @ key.T * scale) @ value for each head of tensors (batch, length, heads, dim); `scale` is \
         1 / sqrt(dim) when None; causal_mask \"TopLeft\" or \"BottomRight\" hides later keys, window_size those far before",
        &[tensor("query"), tensor("key"), tensor("value")],
        ATTRS,
        infer,
        Lower::Ops(lower),
        Pattern::Opaque,
    ),
    op(
        "nn.attention_bias",
        "as nn.attention, with a bias that broadcasts to (batch, heads, query length, key length) added to the scores",
        &[tensor("query"), tensor("key"), tensor("value"), tensor("bias")],
        ATTRS,
        infer,
        Lower::Ops(lower),
        Pattern::Opaque,
    ),
];

/// The dimensions of query, key and value, when all are known.
struct Shapes {
    query: Vec<PrimExpr>,
    key: Vec<PrimExpr>,
    value: Vec<PrimExpr>,
}

fn shapes(cx: &InferCx<'_>) -> Result<Option<Shapes>, Diag> {
    let mut all = Vec::with_capacity(3);
    for i in 0..3 {
        let t = cx.tensor(i)?;
        cx.expect_rank(i, &t, 4)?;
        all.push(t.dims.known().map(<[PrimExpr]>::to_vec));
    }
    let (Some(Some(value)), Some(Some(key)), Some(Some(query))) = (all.pop(), all.pop(), all.pop()) else {
        return Ok(None);
    };
    Ok(Some(Shapes { query, key, value }))
}

/// How often each head of key and value serves: 1, or more query heads than key heads.
fn share(cx: &InferCx<'_>, s: &Shapes) -> Result<i64, Diag> {
    match (s.query[2].as_int(), s.key[2].as_int()) {
        (Some(q), Some(k)) if k > 0 && q % k == 0 => Ok(q / k),
        (Some(q), Some(k)) => Err(cx.fail(format!("{q} query heads are no multiple of {k} key heads"))),
        _ if cx.differ(&s.query[2], &s.key[2]) => Err(cx.fail("query and key differ in heads")),
        _ => Ok(1),
    }
}

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, "floating point", DType::is_float)?;
    cx.common_dtype(0, 1)?;
    cx.common_dtype(0, 2)?;
    match cx.call.attr("causal_mask") {
        AttrValue::None => {}
        AttrValue::Str(s) if matches!(s.as_str(), "TopLeft" | "BottomRight") => {}
        other => {
            let message = format!("attribute `causal_mask` is {other:?}");
            return Err(cx.fail(message).help("it is \"TopLeft\", \"BottomRight\" or None"));
        }
    }
    if !matches!(cx.call.attr("scale"), AttrValue::None) && cx.call.attr("scale").as_float().is_none() {
        return Err(cx.fail("attribute `scale` must be a number or None"));
    }
    let dtype = cx.tensor(0)?.dtype;
    let Some(s) = shapes(cx)? else { return cx.result(Dims::Rank(4), dtype) };
    for (what, a, b) in [
        ("query and key differ in batch", &s.query[0], &s.key[0]),
        ("key and value differ in batch", &s.key[0], &s.value[0]),
        ("query and key differ in dim", &s.query[3], &s.key[3]),
        ("key and value differ in length", &s.key[1], &s.value[1]),
        ("key and value differ in heads", &s.key[2], &s.value[2]),
    ] {
        if cx.differ(a, b) {
            return Err(cx.fail(format!("{what}: {} and {}", show_expr(a), show_expr(b))));
        }
    }
    share(cx, &s)?;
    if cx.call.args.len() > 3 {
        cx.common_dtype(0, 3)?;
        let scores = [&s.query[0], &s.query[2], &s.query[1], &s.key[1]].map(Clone::clone).to_vec();
        let bias = cx.tensor(3)?;
        let fits = match cx.broadcast_dims(&Dims::Known(scores.clone()), &bias.dims) {
            Ok(Dims::Known(d)) => d.iter().zip(&scores).all(|(a, b)| !cx.differ(a, b)),
            Ok(_) => true,
            Err(_) => false,
        };
        if !fits {
            let want = super::show::show_dims(&scores);
            return Err(cx.fail(format!("`bias` {} does not broadcast to {want}", show_tensor(&bias))));
        }
    }
    let mut out = s.query;
    out[3] = s.value[3].clone();
    cx.result(Dims::Known(out), dtype)
}

fn lower(cx: &mut RewriteCx<'_>) -> Result<Leaf, Diag> {
    let analyzer = crate::arith::Analyzer::new();
    let inner = InferCx { call: cx.call, analyzer: &analyzer };
    let Some(s) = shapes(&inner)? else {
        return Err(inner
            .fail("the shapes of query, key and value must be known")
            .help("state them with R.match_cast"));
    };
    let Some(dtype) = inner.tensor(0)?.dtype else { return Err(inner.fail("the data type must be known")) };
    let share = share(&inner, &s)?;
    // Scores of half types are kept in single precision.
    let wide = if dtype.bits < 32 { DType::F32 } else { dtype };
    let scale = match cx.call.attr("scale").as_float() {
        Some(v) => v,
        None => match s.query[3].as_int() {
            Some(d) if d > 0 => 1.0 / (d as f64).sqrt(),
            _ => return Err(inner.fail("`scale` must be given: the dim of query is not a fixed number")),
        },
    };
    let b = &mut *cx.builder;
    let [query, key, value, rest @ ..] = cx.call.args.as_slice() else {
        return Err(Diag::error(cx.call.span, "R.nn.attention: three arguments expected"));
    };
    let heads = |b: &mut BindingBuilder, x: &Leaf, axes: [i64; 4]| {
        let x = b.call("permute_dims", vec![x.clone()], &[("axes", axes.to_vec().into())])?;
        if share == 1 {
            return Ok(x);
        }
        b.call("repeat", vec![x], &[("repeats", share.into()), ("axis", 1.into())])
    };
    let q = b.call("permute_dims", vec![query.clone()], &[("axes", vec![0, 2, 1, 3].into())])?;
    let k = heads(b, key, [0, 2, 3, 1])?;
    let v = heads(b, value, [0, 2, 1, 3])?;
    let mut scores = b.call("matmul", vec![q, k], &[("out_dtype", wide.into())])?;
    scores = b.call("multiply", vec![scores, Leaf::Prim(PrimExpr::float(wide, scale))], &[])?;
    if let [bias] = rest {
        let bias =
            if wide == dtype { bias.clone() } else { b.call("astype", vec![bias.clone()], &[("dtype", wide.into())])? };
        scores = b.call("add", vec![scores, bias], &[])?;
    }
    for mask in masks(b, cx.call.attr("causal_mask"), cx.call.attr("window_size"), &s, wide)? {
        scores = b.call("add", vec![scores, mask], &[])?;
    }
    let mut weights = b.call("nn.softmax", vec![scores], &[])?;
    if wide != dtype {
        weights = b.call("astype", vec![weights], &[("dtype", dtype.into())])?;
    }
    let out = b.call("matmul", vec![weights, v], &[])?;
    b.call("permute_dims", vec![out], &[("axes", vec![0, 2, 1, 3].into())])
}

/// Matrices (query length, key length) of negative infinity where a key is hidden, zero elsewhere.
fn masks(
    b: &mut BindingBuilder,
    causal: &AttrValue,
    window: &AttrValue,
    s: &Shapes,
    dtype: DType,
) -> Result<Vec<Leaf>, Diag> {
    let (rows, columns) = (s.query[1].clone(), s.key[1].clone());
    // How far right of the diagonal a query's own key is.
    let shift = match causal.as_str() {
        Some("BottomRight") => b.analyzer.simplify(&(columns.clone() - rows.clone())),
        _ => PrimExpr::i64(0),
    };
    let mut out = Vec::new();
    let mut hide = |b: &mut BindingBuilder, op: &str, k: PrimExpr| -> Result<(), Diag> {
        let fill = Leaf::Prim(PrimExpr::float(dtype, f64::NEG_INFINITY));
        let all = b.call("full", vec![Leaf::Shape(vec![rows.clone(), columns.clone()]), fill], &[])?;
        out.push(b.call(op, vec![all, Leaf::Prim(k)], &[])?);
        Ok(())
    };
    if causal.as_str().is_some() {
        hide(b, "triu", shift.clone() + 1)?;
    }
    if let Some(w) = window.as_int() {
        hide(b, "tril", shift - w)?;
    }
    Ok(out)
}
