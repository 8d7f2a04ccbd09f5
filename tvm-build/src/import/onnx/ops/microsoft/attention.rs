//! Attention with the masks and caches of ONNX Runtime.

use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, PrimExpr};

use super::super::attention::{
    Dot, dot_product, head_scale, merged_heads, positions, rotated, split_heads, transposed,
};
use super::super::index::from_the_start;
use super::super::slice::along;
use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("Attention", 1, attention),
    ("GroupQueryAttention", 1, group_query_attention),
    ("MultiHeadAttention", 1, multi_head_attention),
    ("RotaryEmbedding", 1, rotary_embedding),
];

fn dim(extent: i64) -> PrimExpr {
    PrimExpr::i64(extent)
}

/// Most heads of a layer.
const MAX_HEADS: i64 = 1 << 20;

fn num_heads(cx: &OpCx<'_>, attribute: &str) -> Result<i64, Fail> {
    let heads = cx.node.int(attribute)?.filter(|n| (1..=MAX_HEADS).contains(n));
    heads.ok_or_else(|| format!("attribute '{attribute}' must be a number from 1 to {MAX_HEADS}").into())
}

/// `(batch, length, heads * size)` as `(batch, heads, length, size)`.
fn heads_first(cx: &mut OpCx<'_>, x: &Value, heads: i64, role: &str) -> Result<Value, Fail> {
    let x = split_heads(cx, x, heads, role)?;
    transposed(cx, &x, [0, 2, 1, 3])
}

fn concat(cx: &mut OpCx<'_>, parts: Vec<Value>, axis: i64) -> Result<Value, Fail> {
    cx.call("concat", vec![Value::Tuple(parts)], vec![("axis", axis.into())])
}

fn size_of(cx: &OpCx<'_>, x: &Value, axis: usize, role: &str) -> Result<i64, Fail> {
    let dims = cx.dims(x, role)?;
    let size = dims.get(axis).and_then(PrimExpr::as_int);
    size.ok_or_else(|| format!("axis {axis} of {role} must have a fixed extent; its shape is {dims:?}").into())
}

/// 0 where a condition holds, `hidden` elsewhere, plus what there is already.
fn hide(
    cx: &mut OpCx<'_>,
    bias: Option<Value>,
    visible: &Value,
    hidden: f64,
    dtype: DType,
) -> Result<Option<Value>, Fail> {
    let (zero, hidden) = (cx.scalar(0.0, dtype)?, cx.scalar(hidden, dtype)?);
    let new = cx.apply("where", &[visible, &zero, &hidden])?;
    plus(cx, bias, new)
}

fn plus(cx: &mut OpCx<'_>, bias: Option<Value>, new: Value) -> Result<Option<Value>, Fail> {
    Ok(Some(match bias {
        None => new,
        Some(bias) => cx.apply("add", &[&bias, &new])?,
    }))
}

/// A mask of int32 as a condition that broadcasts to (batch, heads, queries, keys): of two axes, (batch, keys), or three,
/// (batch, queries, keys), it says with 1 what is visible; of one axis, (batch), how many keys are.
fn visible(cx: &mut OpCx<'_>, mask: &Value, keys: &PrimExpr) -> Result<Value, Fail> {
    let dims = cx.dims(mask, "the mask")?;
    let mask = cx.astype(mask, DType::I64)?;
    let (one, zero) = (|| dim(1), cx.scalar(0.0, DType::I64)?);
    match &dims[..] {
        [batch] => {
            let count = cx.reshape(&mask, vec![batch.clone(), one(), one(), one()])?;
            let at = positions(cx, keys, false)?;
            cx.apply("less", &[&at, &count])
        }
        [batch, keys] => {
            let mask = cx.reshape(&mask, vec![batch.clone(), one(), one(), keys.clone()])?;
            cx.apply("not_equal", &[&mask, &zero])
        }
        [batch, queries, keys] => {
            let mask = cx.reshape(&mask, vec![batch.clone(), one(), queries.clone(), keys.clone()])?;
            cx.apply("not_equal", &[&mask, &zero])
        }
        _ => Err(Fail::limit(format!("a mask of shape {dims:?} is not supported"))),
    }
}

/// A query sees the keys up to its own place, which is `past` behind its number.
fn causal(cx: &mut OpCx<'_>, queries: &PrimExpr, keys: &PrimExpr, past: &PrimExpr) -> Result<Value, Fail> {
    let (i, j) = (positions(cx, queries, true)?, positions(cx, keys, false)?);
    let past = cx.emitter.materialize(std::slice::from_ref(past), true)?;
    let at = cx.apply("add", &[&i, &past])?;
    cx.apply("less_equal", &[&j, &at])
}

/// What is added to the scores of queries and keys: what there is already, a mask with what it hides with, and, after
/// `past` keys, that no query looks ahead.
fn masked(
    cx: &mut OpCx<'_>,
    added: Option<Value>,
    [q, k]: [&Value; 2],
    mask: Option<(Value, f64)>,
    past: Option<&PrimExpr>,
) -> Result<Option<Value>, Fail> {
    let dtype = cx.dtype(q, "query")?;
    let (queries, keys) = (cx.dims_of::<4>(q, "query")?[2].clone(), cx.dims_of::<4>(k, "key")?[2].clone());
    let mut bias = added;
    if let Some((mask, hidden)) = mask {
        let seen = visible(cx, &mask, &keys)?;
        bias = hide(cx, bias, &seen, hidden, dtype)?;
    }
    if let Some(past) = past {
        let seen = causal(cx, &queries, &keys, past)?;
        bias = hide(cx, bias, &seen, f64::from(f32::MIN), dtype)?;
    }
    Ok(bias)
}

/// The bias of a projection to queries, keys and values, which follow one another in it.
fn projected(cx: &mut OpCx<'_>, x: Value, bias: Option<&Value>, from: i64, size: i64) -> Result<Value, Fail> {
    let Some(bias) = bias else { return Ok(x) };
    let part = along(cx, bias, 0, from, from + size)?;
    cx.apply("add", &[&x, &part])
}

fn multi_head_attention(cx: &mut OpCx<'_>) -> Outputs {
    let (query, key, value) = (cx.input(0, "query")?, cx.optional(1), cx.optional(2));
    let (bias, mask, added) = (cx.optional(3), cx.optional(4), cx.optional(5));
    let (past_key, past_value) = (cx.optional(6), cx.optional(7));
    let heads = num_heads(cx, "num_heads")?;
    let scale = cx.node.float("scale")?;
    let hidden = f64::from(cx.node.float_or("mask_filter_value", -10000.0)?);
    let unidirectional = cx.node.flag_or("unidirectional", false)?;
    let (Some(key), Some(value)) = (key, value) else {
        return Err(Fail::limit(
            "queries, keys and values packed into one input are not supported; give them as three",
        ));
    };
    let (q_size, v_size) = (size_of(cx, &query, 2, "query")?, |cx: &OpCx<'_>| size_of(cx, &value, 2, "value"));
    let query = projected(cx, query, bias.as_ref(), 0, q_size)?;
    let q = heads_first(cx, &query, heads, "query")?;
    let (k, v) = match (cx.rank(&key, "key")?, cx.rank(&value, "value")?) {
        (4, 4) => (key, value),
        (3, 3) => {
            let v_size = v_size(cx)?;
            let key = projected(cx, key, bias.as_ref(), q_size, q_size)?;
            let value = projected(cx, value.clone(), bias.as_ref(), 2 * q_size, v_size)?;
            (heads_first(cx, &key, heads, "key")?, heads_first(cx, &value, heads, "value")?)
        }
        (k, v) => return Err(Fail::limit(format!("key and value of ranks {k} and {v} are not supported"))),
    };
    let (present, past) = grown(cx, (k, v), past_key, past_value)?;
    let past = unidirectional.then_some(&past);
    let bias = masked(cx, added, [&q, &present.0], mask.map(|m| (m, hidden)), past)?;
    let out = attended(cx, [q, present.0.clone(), present.1.clone()], scale, 0.0, bias)?;
    Ok(vec![out, present.0, present.1])
}

/// Keys and values behind those of the past, and how many those are.
fn grown(
    cx: &mut OpCx<'_>,
    (k, v): (Value, Value),
    past_key: Option<Value>,
    past_value: Option<Value>,
) -> Result<((Value, Value), PrimExpr), Fail> {
    match (past_key, past_value) {
        (None, None) => Ok(((k, v), dim(0))),
        (Some(key), Some(value)) => {
            let past = cx.dims(&key, "past_key")?.get(2).cloned().ok_or("past_key must have 4 axes")?;
            Ok(((concat(cx, vec![key, k], 2)?, concat(cx, vec![value, v], 2)?), past))
        }
        _ => Err("past_key and past_value must be given together".into()),
    }
}

/// The result of attention as (batch, length, hidden).
fn attended(
    cx: &mut OpCx<'_>,
    [q, k, v]: [Value; 3],
    scale: Option<f32>,
    softcap: f64,
    bias: Option<Value>,
) -> Result<Value, Fail> {
    let size = cx.dims_of::<4>(&q, "query")?[3].as_int();
    // 0 stands for the usual scale.
    let scale = head_scale(scale.filter(|&s| s != 0.0), size)?;
    let dtype = cx.dtype(&q, "query")?;
    let compute = if dtype.bits < 32 { DType::F32 } else { dtype };
    let dot = Dot { scale, softcap, bias, hides_all: false, compute };
    let out = dot_product(cx, [q, k, v], dot)?.out;
    merged_heads(cx, &out)
}

/// With the projection to queries, keys and values.
fn attention(cx: &mut OpCx<'_>) -> Outputs {
    let (x, weights, bias) = (cx.input(0, "input")?, cx.input(1, "weights")?, cx.optional(2));
    let (mask, past, added) = (cx.optional(3), cx.optional(4), cx.optional(5));
    let heads = num_heads(cx, "num_heads")?;
    let scale = cx.node.float("scale")?;
    let hidden = f64::from(cx.node.float_or("mask_filter_value", -10000.0)?);
    let unidirectional = cx.node.flag_or("unidirectional", false)?;
    let width = size_of(cx, &weights, 1, "weights")?;
    let sizes = match cx.node.ints("qkv_hidden_sizes")? {
        None => vec![width / 3; 3],
        Some(sizes) => sizes.to_vec(),
    };
    let [q_size, k_size, v_size] = sizes[..] else {
        return Err(format!("attribute 'qkv_hidden_sizes' must have 3 numbers, not {sizes:?}").into());
    };
    let sizes = [q_size, k_size, v_size];
    if sizes.iter().any(|&s| s <= 0) || sizes.iter().try_fold(0i64, |n, &s| n.checked_add(s)) != Some(width) {
        return Err(format!("the sizes {sizes:?} do not make up the {width} columns of the weights").into());
    }
    let mut all = cx.matmul(&x, &weights)?;
    if let Some(bias) = bias {
        all = cx.apply("add", &[&all, &bias])?;
    }
    let mut parts = Vec::new();
    let mut from = 0;
    for (size, role) in sizes.into_iter().zip(["query", "key", "value"]) {
        let part = along(cx, &all, 2, from, from + size)?;
        parts.push(heads_first(cx, &part, heads, role)?);
        from += size;
    }
    let (Some(v), Some(k), Some(q)) = (parts.pop(), parts.pop(), parts.pop()) else {
        return Err("queries, keys and values are expected".into());
    };
    let mut each = [None, None];
    if let Some(past) = past {
        for (i, each) in each.iter_mut().enumerate() {
            let i = i64::try_from(i).unwrap_or(0);
            let part = along(cx, &past, 0, i, i + 1)?;
            *each = Some(cx.call("squeeze", vec![part], vec![("axis", vec![0].into())])?);
        }
    }
    let [past_key, past_value] = each;
    let (present, past) = grown(cx, (k, v), past_key, past_value)?;
    let past = unidirectional.then_some(&past);
    let bias = masked(cx, added, [&q, &present.0], mask.map(|m| (m, hidden)), past)?;
    let out = attended(cx, [q, present.0.clone(), present.1.clone()], scale, 0.0, bias)?;
    let both = Value::Tuple(vec![present.0, present.1]);
    let present = cx.call("stack", vec![both], vec![("axis", 0.into())])?;
    Ok(vec![out, present])
}

/// Cosines or sines of the positions, which are (batch, length), over all heads: (batch, 1, length, size).
fn angles(cx: &mut OpCx<'_>, cache: &Value, positions: &Value) -> Result<Value, Fail> {
    let count = cx.dims_of::<2>(cache, "a cache")?[0].clone();
    let positions = from_the_start(cx, positions.clone(), &count)?;
    let rows = cx.call("take", vec![cache.clone(), positions], vec![("axis", 0.into())])?;
    cx.call("expand_dims", vec![rows], vec![("axis", vec![1].into())])
}

fn rotary_embedding(cx: &mut OpCx<'_>) -> Outputs {
    let (x, ids) = (cx.input(0, "input")?, cx.input(1, "position_ids")?);
    let (cos, sin) = (cx.input(2, "cos_cache")?, cx.input(3, "sin_cache")?);
    let interleaved = cx.node.flag_or("interleaved", false)?;
    let (heads, part) = (cx.node.int_or("num_heads", 0)?, cx.node.int_or("rotary_embedding_dim", 0)?);
    let scale = cx.node.float_or("scale", 1.0)?;
    if cx.node.flag_or("is_packed_batching", false)? || scale != 1.0 {
        return Err(Fail::limit("packed batches and a scale are not supported"));
    }
    let turned = 2 * size_of(cx, &cos, 1, "cos_cache")?;
    let flat = cx.rank(&x, "input")? == 3;
    let x = if flat {
        let heads = if heads > 0 { heads } else { size_of(cx, &x, 2, "input")? / turned.max(1) };
        heads_first(cx, &x, heads, "input")?
    } else {
        x
    };
    let dims = cx.dims_of::<4>(&x, "input")?;
    let size = dims[3].as_int().ok_or("the size of a head must be fixed")?;
    let part = if part > 0 { part } else { size };
    if part != turned || part > size {
        return Err(format!("the caches turn {turned} elements, of heads of {size} elements {part} shall be").into());
    }
    let ids = match cx.rank(&ids, "position_ids")? {
        1 => {
            let first = cx.reshape(&ids, vec![])?;
            let at = positions(cx, &dims[2], false)?;
            cx.apply("add", &[&at, &first])?
        }
        _ => ids,
    };
    let caches = [angles(cx, &cos, &ids)?, angles(cx, &sin, &ids)?];
    let out = rotated(cx, &x, caches, part, interleaved)?;
    Ok(vec![if flat { merged_heads(cx, &out)? } else { out }])
}

/// Decoder attention: `seqlens_k` says, for each sequence of the batch, how many keys there are in all, less one.
fn group_query_attention(cx: &mut OpCx<'_>) -> Outputs {
    let (query, key, value) = (cx.input(0, "query")?, cx.optional(1), cx.optional(2));
    let (past_key, past_value) = (cx.optional(3), cx.optional(4));
    let lengths = cx.input(5, "seqlens_k")?;
    // The greatest of the lengths, which the shapes say.
    cx.input(6, "total_sequence_length")?;
    let (cos, sin, ids, added) = (cx.optional(7), cx.optional(8), cx.optional(9), cx.optional(10));
    let (heads, kv_heads) = (num_heads(cx, "num_heads")?, num_heads(cx, "kv_num_heads")?);
    let (scale, softcap) = (cx.node.float("scale")?, f64::from(cx.node.float_or("softcap", 0.0)?));
    let window = cx.node.int_or("local_window_size", -1)?;
    let (rotary, interleaved) = (cx.node.flag_or("do_rotary", false)?, cx.node.flag_or("rotary_interleaved", false)?);
    if cx.node.flag_or("smooth_softmax", false)? {
        return Err(Fail::limit("attribute 'smooth_softmax' is not supported"));
    }
    let (query, key, value) = match (key, value) {
        (Some(key), Some(value)) => (query, key, value),
        (None, None) => {
            let width = size_of(cx, &query, 2, "query")?;
            let size = width / (heads + 2 * kv_heads);
            let (a, b) = (heads * size, (heads + kv_heads) * size);
            (along(cx, &query, 2, 0, a)?, along(cx, &query, 2, a, b)?, along(cx, &query, 2, b, width)?)
        }
        _ => return Err("key and value must be given together".into()),
    };
    let mut q = heads_first(cx, &query, heads, "query")?;
    let mut k = heads_first(cx, &key, kv_heads, "key")?;
    let v = heads_first(cx, &value, kv_heads, "value")?;
    let (dtype, dims) = (cx.dtype(&q, "query")?, cx.dims_of::<4>(&q, "query")?);
    let (batch, length) = (dims[0].clone(), dims[2].clone());
    // The keys that were there before, of each sequence: (batch, 1). A prompt may be padded on the right.
    let lengths = cx.astype(&lengths, DType::I64)?;
    let lengths = cx.reshape(&lengths, vec![batch.clone(), dim(1)])?;
    let new = PrimExpr::binary(BinOp::Sub, length.clone(), dim(1));
    let new = cx.emitter.materialize(&[new], true)?;
    let before = cx.apply("subtract", &[&lengths, &new])?;
    let zero = cx.scalar(0.0, DType::I64)?;
    let before = cx.apply("maximum", &[&before, &zero])?;
    let step = positions(cx, &length, false)?;
    let at = cx.apply("add", &[&before, &step])?;
    if rotary {
        let (Some(cos), Some(sin)) = (cos, sin) else { return Err("cos_cache and sin_cache are missing".into()) };
        let ids = ids.unwrap_or_else(|| at.clone());
        let part = 2 * size_of(cx, &cos, 1, "cos_cache")?;
        let caches = [angles(cx, &cos, &ids)?, angles(cx, &sin, &ids)?];
        q = rotated(cx, &q, caches.clone(), part, interleaved)?;
        k = rotated(cx, &k, caches, part, interleaved)?;
    }
    let (mut present, past) = grown(cx, (k, v), past_key, past_value)?;
    let keys = cx.dims_of::<4>(&present.0, "key")?[2].clone();
    if !batch.is_int(1) && !past.is_int(0) {
        // Sequences of different lengths: what is new comes right behind what was there.
        let index = behind(cx, &before, &past, &keys)?;
        present = (picked(cx, &present.0, &index)?, picked(cx, &present.1, &index)?);
    }
    // (batch, 1, queries, 1) against (1, keys).
    let at = cx.reshape(&at, vec![batch, dim(1), length, dim(1)])?;
    let j = positions(cx, &keys, false)?;
    let mut seen = cx.apply("less_equal", &[&j, &at])?;
    if window > 0 {
        let ahead = cx.apply("subtract", &[&at, &j])?;
        let window = cx.scalar(window as f64, DType::I64)?;
        let near = cx.apply("less", &[&ahead, &window])?;
        seen = cx.apply("logical_and", &[&seen, &near])?;
    }
    let bias = hide(cx, added, &seen, f64::NEG_INFINITY, dtype)?;
    let out = attended(cx, [q, present.0.clone(), present.1.clone()], scale, softcap, bias)?;
    Ok(vec![out, present.0, present.1])
}

/// For each sequence and place, where in past and new keys the key of that place is: (batch, keys).
fn behind(cx: &mut OpCx<'_>, before: &Value, past: &PrimExpr, keys: &PrimExpr) -> Result<Value, Fail> {
    let j = positions(cx, keys, false)?;
    let last = PrimExpr::binary(BinOp::Sub, keys.clone(), dim(1));
    let (past, last) =
        (cx.emitter.materialize(std::slice::from_ref(past), true)?, cx.emitter.materialize(&[last], true)?);
    let gap = cx.apply("subtract", &[&past, before])?;
    let moved = cx.apply("add", &[&j, &gap])?;
    let moved = cx.apply("minimum", &[&moved, &last])?;
    let old = cx.apply("less", &[&j, before])?;
    cx.apply("where", &[&old, &j, &moved])
}

/// The rows of a (batch, heads, length, size) that an index (batch, places) names.
fn picked(cx: &mut OpCx<'_>, x: &Value, index: &Value) -> Result<Value, Fail> {
    let dims = cx.dims_of::<4>(x, "keys or values")?;
    let places = cx.dims_of::<2>(index, "the index")?[1].clone();
    let index = cx.reshape(index, vec![dims[0].clone(), dim(1), places.clone(), dim(1)])?;
    let shape = Value::shape(vec![dims[0].clone(), dims[1].clone(), places, dims[3].clone()]);
    let index = cx.call("broadcast_to", vec![index, shape], vec![])?;
    cx.call("gather_elements", vec![x.clone(), index], vec![("axis", 2.into())])
}
