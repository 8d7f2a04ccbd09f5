//! Attention and rotary position embedding.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, PrimExpr};
use tvm_ir::relax::Leaf;

use super::Row;
use super::create::element_type;
use super::index::from_the_start;
use super::slice::along;
use crate::import::onnx::cx::{OpCx, Outputs, axes_attr};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[("Attention", 23, attention), ("RotaryEmbedding", 23, rotary_embedding)];

pub(super) fn transposed(cx: &mut OpCx<'_>, x: &Value, axes: [i64; 4]) -> Result<Value, Fail> {
    cx.call("permute_dims", vec![x.clone()], vec![("axes", axes.to_vec().into())])
}

/// `(batch, length, heads * size)` as `(batch, length, heads, size)`.
pub(super) fn split_heads(cx: &mut OpCx<'_>, x: &Value, heads: i64, role: &str) -> Result<Value, Fail> {
    let dims = cx.dims(x, role)?;
    let [batch, length, hidden] = &dims[..] else {
        return Err(format!("{role} must have 3 axes, not {dims:?}").into());
    };
    if hidden.as_int().is_none() {
        return Err(Fail::limit(format!(
            "the last axis of {role} must have a fixed extent, and its shape is {dims:?}"
        )));
    }
    let size = hidden.as_int().filter(|n| heads > 0 && n % heads == 0).map(|n| n / heads);
    let size = size.ok_or_else(|| format!("{role} of shape {dims:?} does not fall into {heads} heads"))?;
    cx.reshape(x, vec![batch.clone(), length.clone(), PrimExpr::i64(heads), PrimExpr::i64(size)])
}

/// `(batch, heads, length, size)` as `(batch, length, heads * size)`.
pub(super) fn merged_heads(cx: &mut OpCx<'_>, x: &Value) -> Result<Value, Fail> {
    let dims = cx.dims_of::<4>(x, "the result")?;
    let x = transposed(cx, x, [0, 2, 1, 3])?;
    let hidden = PrimExpr::binary(BinOp::Mul, dims[1].clone(), dims[3].clone());
    cx.reshape(&x, vec![dims[0].clone(), dims[2].clone(), hidden])
}

/// An input as `(batch, heads, length, size)`, whose heads are in `attribute` if it has three axes.
fn with_heads(cx: &mut OpCx<'_>, x: Value, attribute: &str, role: &str) -> Result<Value, Fail> {
    let heads = cx.node.int(attribute)?;
    match (cx.rank(&x, role)?, heads) {
        (4, _) => Ok(x),
        (3, Some(heads)) => {
            let x = split_heads(cx, &x, heads, role)?;
            transposed(cx, &x, [0, 2, 1, 3])
        }
        (3, None) => Err(format!("attribute '{attribute}' is missing").into()),
        (rank, _) => Err(format!("{role} must have 3 or 4 axes, and its rank is {rank}").into()),
    }
}

/// 0, 1, … below an extent, along the last of `rank` axes or, if `column`, along the one before.
pub(super) fn positions(cx: &mut OpCx<'_>, extent: &PrimExpr, column: bool) -> Result<Value, Fail> {
    let prim = |e: PrimExpr| Value::Leaf(Leaf::Prim(e));
    let args = vec![prim(PrimExpr::i64(0)), prim(extent.clone()), prim(PrimExpr::i64(1))];
    let range = cx.call("arange", args, vec![("dtype", AttrValue::DType(DType::I64))])?;
    let one = PrimExpr::i64(1);
    cx.reshape(&range, if column { vec![extent.clone(), one] } else { vec![one, extent.clone()] })
}

/// Which keys a query may see, as a condition on the difference of their positions.
struct Sight {
    causal: bool,
    left: i64,
    right: i64,
}

impl Sight {
    fn read(cx: &OpCx<'_>) -> Result<Sight, Fail> {
        let bound = |name: &str| -> Result<i64, Fail> {
            match cx.node.int_or(name, -1)? {
                v if v >= -1 => Ok(v),
                v => Err(format!("attribute '{name}' cannot be {v}").into()),
            }
        };
        Ok(Sight {
            causal: cx.node.flag_or("is_causal", false)?,
            left: bound("left_window_size")?,
            right: bound("right_window_size")?,
        })
    }

    /// Conditions that broadcast to (batch, heads, query length, key length). `offset` is how far the first query is
    /// behind the first key.
    fn conditions(
        &self,
        cx: &mut OpCx<'_>,
        queries: &PrimExpr,
        keys: &PrimExpr,
        offset: Value,
    ) -> Result<Vec<Value>, Fail> {
        let mut out = Vec::new();
        if !self.causal && self.left < 0 && self.right < 0 {
            return Ok(out);
        }
        let (i, j) = (positions(cx, queries, true)?, positions(cx, keys, false)?);
        let at = cx.apply("add", &[&i, &offset])?;
        let ahead = cx.apply("subtract", &[&j, &at])?;
        if self.causal {
            let zero = cx.scalar(0.0, DType::I64)?;
            out.push(cx.apply("less_equal", &[&ahead, &zero])?);
        }
        if self.left >= 0 {
            let least = cx.scalar(-(self.left as f64), DType::I64)?;
            out.push(cx.apply("greater_equal", &[&ahead, &least])?);
        }
        if self.right >= 0 {
            let most = cx.scalar(self.right as f64, DType::I64)?;
            out.push(cx.apply("less_equal", &[&ahead, &most])?);
        }
        Ok(out)
    }
}

/// The mask, widened with what hides to the number of keys.
fn widened(cx: &mut OpCx<'_>, mask: Value, keys: &PrimExpr) -> Result<Value, Fail> {
    let dims = cx.dims(&mask, "attn_mask")?;
    let Some(last) = dims.last() else { return Err("attn_mask must have at least one axis".into()) };
    let missing = match (keys.as_int(), last.as_int()) {
        (Some(keys), Some(last)) if last <= keys => keys - last,
        (Some(keys), Some(last)) => return Err(format!("attn_mask has {last} keys, and there are {keys}").into()),
        _ => 0,
    };
    if missing == 0 {
        return Ok(mask);
    }
    let mut widths = vec![0; 2 * dims.len()];
    widths[2 * dims.len() - 1] = missing;
    let hides = if cx.dtype(&mask, "attn_mask")?.is_bool() { 0.0 } else { f64::NEG_INFINITY };
    cx.call("nn.pad", vec![mask], vec![("pad_width", widths.into()), ("pad_value", hides.into())])
}

/// What is added to the scores, in their type; `None` where every query sees every key. The flag says whether a query
/// may see no key at all.
fn bias(
    cx: &mut OpCx<'_>,
    mask: Option<Value>,
    mut conditions: Vec<Value>,
    keys: &PrimExpr,
    dtype: DType,
) -> Result<Option<Value>, Fail> {
    let mut base = cx.scalar(0.0, dtype)?;
    if let Some(mask) = mask {
        let mask = widened(cx, mask, keys)?;
        if cx.dtype(&mask, "attn_mask")?.is_bool() {
            conditions.push(mask);
        } else {
            base = cx.astype(&mask, dtype)?;
            if conditions.is_empty() {
                return Ok(Some(base));
            }
        }
    }
    let mut seen: Option<Value> = None;
    for condition in conditions {
        seen = Some(match seen {
            None => condition,
            Some(seen) => cx.apply("logical_and", &[&seen, &condition])?,
        });
    }
    let Some(seen) = seen else { return Ok(None) };
    let hidden = cx.scalar(f64::NEG_INFINITY, dtype)?;
    Ok(Some(cx.apply("where", &[&seen, &base, &hidden])?))
}

/// The factor of the scores: what the node says, or one over the root of the size of a head.
pub(in super::super) fn head_scale(scale: Option<f32>, size: Option<i64>) -> Result<f64, Fail> {
    match (scale, size) {
        (Some(scale), _) => Ok(f64::from(scale)),
        (None, Some(size)) if size > 0 => Ok(1.0 / (size as f64).sqrt()),
        _ => Err("attribute 'scale' must be given where the size of a head varies".into()),
    }
}

/// What attention is computed with, besides queries, keys and values.
pub(super) struct Dot {
    pub(super) scale: f64,
    /// 0 for none.
    pub(super) softcap: f64,
    /// What is added to the scores.
    pub(super) bias: Option<Value>,
    /// Whether a query may see no key at all; its result is 0.
    pub(super) hides_all: bool,
    /// Element type of the softmax.
    pub(super) compute: DType,
}

/// What attention computes, step by step.
pub(super) struct Steps {
    raw: Value,
    capped: Value,
    biased: Value,
    weights: Value,
    /// (batch, heads, query length, size of a value)
    pub(super) out: Value,
}

/// Keys or values with each head repeated for the heads of the queries that share it.
pub(in super::super) fn shared_heads(cx: &mut OpCx<'_>, q: &Value, x: Value) -> Result<Value, Fail> {
    let (dims, own) = (cx.dims_of::<4>(q, "Q")?, cx.dims_of::<4>(&x, "K or V")?);
    let share = match (dims[1].as_int(), own[1].as_int()) {
        (Some(q), Some(k)) if k > 0 && q % k == 0 => q / k,
        _ if dims[1] == own[1] => 1,
        _ => return Err(format!("{:?} query heads are no multiple of {:?} key heads", dims[1], own[1]).into()),
    };
    if share == 1 {
        return Ok(x);
    }
    cx.call("repeat", vec![x], vec![("repeats", share.into()), ("axis", 1.into())])
}

/// The product of queries and keys, scaled.
pub(in super::super) fn scores(cx: &mut OpCx<'_>, q: Value, key: Value, scale: f64) -> Result<Value, Fail> {
    let dtype = cx.dtype(&q, "Q")?;
    let key = shared_heads(cx, &q, key)?;
    // The operator is defined with the root of the scale on both sides.
    let root = cx.scalar(scale.sqrt(), dtype)?;
    let (q, key) = (cx.apply("multiply", &[&q, &root])?, cx.apply("multiply", &[&key, &root])?);
    let key = transposed(cx, &key, [0, 1, 3, 2])?;
    cx.matmul(&q, &key)
}

/// Scaled dot-product attention of queries, keys and values, each (batch, heads, length, size). The heads of the queries
/// may be a multiple of those of keys and values.
pub(super) fn dot_product(cx: &mut OpCx<'_>, [q, key, value]: [Value; 3], dot: Dot) -> Result<Steps, Fail> {
    let Dot { scale, softcap, bias, hides_all, compute } = dot;
    let dtype = cx.dtype(&q, "Q")?;
    let value = shared_heads(cx, &q, value)?;
    let raw = scores(cx, q, key, scale)?;
    let mut capped = raw.clone();
    if softcap > 0.0 {
        let cap = cx.scalar(softcap, dtype)?;
        let ratio = cx.apply("divide", &[&raw, &cap])?;
        let bent = cx.apply("tanh", &[&ratio])?;
        capped = cx.apply("multiply", &[&bent, &cap])?;
    }
    let biased = match &bias {
        Some(bias) => cx.apply("add", &[&capped, bias])?,
        None => capped.clone(),
    };
    let logits = cx.astype(&biased, compute)?;
    let mut weights = cx.call("nn.softmax", vec![logits], vec![("axis", (-1).into())])?;
    if let Some(bias) = bias.filter(|_| hides_all) {
        // The weights of a query that sees nothing are zero.
        let best = cx.call("max", vec![bias], vec![("axis", vec![-1i64].into()), ("keepdims", true.into())])?;
        let hidden = cx.scalar(f64::NEG_INFINITY, dtype)?;
        let none = cx.apply("equal", &[&best, &hidden])?;
        let zero = cx.scalar(0.0, compute)?;
        weights = cx.apply("where", &[&none, &zero, &weights])?;
    }
    let weights = cx.astype(&weights, dtype)?;
    let out = cx.matmul(&weights, &value)?;
    Ok(Steps { raw, capped, biased, weights, out })
}

fn attention(cx: &mut OpCx<'_>) -> Outputs {
    let (q, k, v) = (cx.input(0, "Q")?, cx.input(1, "K")?, cx.input(2, "V")?);
    let (mask, past_key, past_value, valid) = (cx.optional(3), cx.optional(4), cx.optional(5), cx.optional(6));
    let sight = Sight::read(cx)?;
    let (scale, softcap) = (cx.node.float("scale")?, f64::from(cx.node.float_or("softcap", 0.0)?));
    let mode = cx.node.int_or("qk_matmul_output_mode", 0)?;
    let precision = cx.node.int("softmax_precision")?.map(element_type).transpose()?;
    let flat = cx.rank(&q, "Q")? == 3;
    let q = with_heads(cx, q, "q_num_heads", "Q")?;
    let k = with_heads(cx, k, "kv_num_heads", "K")?;
    let v = with_heads(cx, v, "kv_num_heads", "V")?;
    let dtype = cx.dtype(&q, "Q")?;
    let dims = cx.dims_of::<4>(&q, "Q")?;
    let (mut offset, mut present) = (PrimExpr::i64(0), (k.clone(), v.clone()));
    match (&past_key, &past_value) {
        (Some(key), Some(value)) => {
            offset = cx.dims(key, "past_key")?.get(2).cloned().ok_or("past_key must have 4 axes")?;
            let grown = |cx: &mut OpCx<'_>, past: &Value, new: Value| {
                cx.call("concat", vec![Value::Tuple(vec![past.clone(), new])], vec![("axis", 2.into())])
            };
            present = (grown(cx, key, k)?, grown(cx, value, v)?);
        }
        (None, None) => {}
        _ => return Err("past_key and past_value must be given together".into()),
    }
    let (key, value) = present.clone();
    let keys = cx.dims_of::<4>(&key, "K")?;
    let size = dims[3].as_int();
    let scale = head_scale(scale, size)?;
    let mut hides_all = mask.is_some() || valid.is_some() || sight.left >= 0 || sight.right >= 0;
    hides_all &= sight.causal || mask.is_some() || valid.is_some();
    let mut conditions = Vec::new();
    let offset = match &valid {
        None => cx.emitter.materialize(&[offset], true)?,
        Some(valid) => {
            let count = cx.astype(valid, DType::I64)?;
            let one = || PrimExpr::i64(1);
            let count = cx.reshape(&count, vec![dims[0].clone(), one(), one(), one()])?;
            let at = positions(cx, &keys[2], false)?;
            conditions.push(cx.apply("less", &[&at, &count])?);
            let length = cx.emitter.materialize(&dims[2..3], true)?;
            cx.apply("subtract", &[&count, &length])?
        }
    };
    conditions.extend(sight.conditions(cx, &dims[2], &keys[2], offset)?);
    let bias = bias(cx, mask, conditions, &keys[2], dtype)?;
    // In the type of the operands, as the definition says: only sums are kept wider.
    let compute = precision.unwrap_or(dtype);
    let Steps { raw, capped, biased, weights, mut out } =
        dot_product(cx, [q, key, value], Dot { scale, softcap, bias, hides_all, compute })?;
    if flat {
        out = merged_heads(cx, &out)?;
    }
    let shown = match mode {
        0 => raw,
        1 => capped,
        2 => biased,
        3 => weights,
        other => return Err(format!("attribute 'qk_matmul_output_mode' cannot be {other}").into()),
    };
    let shown = cx.astype(&shown, dtype)?;
    Ok(vec![out, present.0, present.1, shown])
}

/// The first `part` elements of each head, in pairs, turned by angles whose cosines and sines broadcast to all axes of
/// `x` but the last, which has `part / 2` of them. Pairs are neighbours or, if not `interleaved`, half of `part` apart.
pub(super) fn rotated(
    cx: &mut OpCx<'_>,
    x: &Value,
    [cos, sin]: [Value; 2],
    part: i64,
    interleaved: bool,
) -> Result<Value, Fail> {
    let dims = cx.dims_of::<4>(x, "X")?;
    let size = dims[3].as_int().ok_or("the size of a head must be fixed")?;
    let half = part / 2;
    let turned = if part == size { x.clone() } else { along(cx, x, 3, 0, part)? };
    let (a, b) = if interleaved {
        let mut pairs = dims.to_vec();
        pairs[3] = PrimExpr::i64(half);
        pairs.push(PrimExpr::i64(2));
        let x = cx.reshape(&turned, pairs)?;
        let pick = |cx: &mut OpCx<'_>, i: i64| {
            let one = along(cx, &x, 4, i, i + 1)?;
            cx.call("squeeze", vec![one], vec![("axis", vec![4].into())])
        };
        (pick(cx, 0)?, pick(cx, 1)?)
    } else {
        (along(cx, &turned, 3, 0, half)?, along(cx, &turned, 3, half, part)?)
    };
    let mut product = |x: &Value, y: &Value| cx.apply("multiply", &[x, y]);
    let (ca, sb, sa, cb) = (product(&cos, &a)?, product(&sin, &b)?, product(&sin, &a)?, product(&cos, &b)?);
    let real = cx.apply("subtract", &[&ca, &sb])?;
    let imaginary = cx.apply("add", &[&sa, &cb])?;
    let mut out = if interleaved {
        let both = cx.call("stack", vec![Value::Tuple(vec![real, imaginary])], vec![("axis", 4.into())])?;
        let mut joined = dims.to_vec();
        joined[3] = PrimExpr::i64(part);
        cx.reshape(&both, joined)?
    } else {
        cx.call("concat", vec![Value::Tuple(vec![real, imaginary])], vec![("axis", 3.into())])?
    };
    if part < size {
        let rest = along(cx, x, 3, part, size)?;
        out = cx.call("concat", vec![Value::Tuple(vec![out, rest])], vec![("axis", 3.into())])?;
    }
    Ok(out)
}

/// Pairs of elements of each head turned by the angle of their position.
fn rotary_embedding(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let (mut cos, mut sin) = (cx.input(1, "cos_cache")?, cx.input(2, "sin_cache")?);
    let ids = cx.optional(3);
    let interleaved = cx.node.flag_or("interleaved", false)?;
    let heads = cx.node.int_or("num_heads", 0)?;
    let part = cx.node.int_or("rotary_embedding_dim", 0)?;
    let whole = cx.dims(&x, "X")?;
    // The axis of the heads, along which all angles are the same.
    let (x, head_axis) = match whole.len() {
        4 => (x, 1),
        3 => (split_heads(cx, &x, heads, "X")?, 2),
        rank => return Err(format!("X must have 3 or 4 axes, and its rank is {rank}").into()),
    };
    let dims = cx.dims_of::<4>(&x, "X")?;
    let size = dims[3].as_int().ok_or("the size of a head must be fixed")?;
    let part = if part == 0 { size } else { part };
    if part < 0 || part > size || part % 2 != 0 {
        return Err(format!("attribute 'rotary_embedding_dim' cannot be {part} with heads of {size}").into());
    }
    for cache in [&mut cos, &mut sin] {
        if let Some(ids) = &ids {
            let count = cx.dims_of::<2>(cache, "a cache")?[0].clone();
            let ids = from_the_start(cx, ids.clone(), &count)?;
            *cache = cx.call("take", vec![cache.clone(), ids], vec![("axis", 0.into())])?;
        }
        *cache = cx.call("expand_dims", vec![cache.clone()], vec![("axis", axes_attr(&[head_axis]))])?;
    }
    let mut out = rotated(cx, &x, [cos, sin], part, interleaved)?;
    if whole.len() == 3 {
        out = cx.reshape(&out, whole)?;
    }
    Ok(vec![out])
}
