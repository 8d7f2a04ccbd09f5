//! LinearAttention.

use tvm_ir::prim::{BinOp, PrimExpr};
use tvm_ir::relax::Leaf;

use super::Row;
use super::attention::split_heads;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[("LinearAttention", 27, linear_attention)];

fn linear_attention(cx: &mut OpCx<'_>) -> Outputs {
    let (q, k, v) = (cx.input(0, "query")?, cx.input(1, "key")?, cx.input(2, "value")?);
    let (past, decay, beta) = (cx.optional(3), cx.optional(4), cx.optional(5));
    let heads = |name: &str| {
        let heads = cx.node.int(name)?.filter(|n| *n > 0);
        heads.ok_or_else(|| format!("attribute '{name}' must be positive"))
    };
    let (q_heads, kv_heads) = (heads("q_num_heads")?, heads("kv_num_heads")?);
    // How a prefill may be divided does not change its results.
    cx.node.int("chunk_size")?;
    let (gated, delta) = match cx.node.string_or("update_rule", "gated_delta")? {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => {
            return Err(format!(
                "attribute 'update_rule' is 'linear', 'gated', 'delta' or 'gated_delta', not '{other}'"
            )
            .into());
        }
    };
    if gated != decay.is_some() || delta != beta.is_some() {
        return Err("the update rule does not go with the inputs decay and beta".into());
    }
    let scale = f64::from(cx.node.float_or("scale", 0.0)?);
    let q = split_heads(cx, &q, q_heads, "query")?;
    let k = split_heads(cx, &k, kv_heads, "key")?;
    let v = split_heads(cx, &v, kv_heads, "value")?;
    let size = cx.dims(&q, "query")?.last().and_then(PrimExpr::as_int).unwrap_or(1);
    let scale = if scale == 0.0 { 1.0 / (size as f64).sqrt() } else { scale };
    let decay = decay.map(|d| split_heads(cx, &d, kv_heads, "decay")).transpose()?;
    let absent = |v: Option<Value>| v.unwrap_or(Value::Leaf(Leaf::Absent));
    let args = vec![q, k, v, absent(past), absent(decay), absent(beta)];
    let both = cx.call("nn.linear_attention", args, vec![("scale", scale.into())])?;
    let [out, state] = &cx.emitter.fields(&both)?[..] else {
        return Err("R.nn.linear_attention does not give two tensors".into());
    };
    let dims = cx.dims_of::<4>(out, "the result")?;
    let hidden = PrimExpr::binary(BinOp::Mul, dims[2].clone(), dims[3].clone());
    Ok(vec![cx.reshape(out, vec![dims[0].clone(), dims[1].clone(), hidden])?, state.clone()])
}
