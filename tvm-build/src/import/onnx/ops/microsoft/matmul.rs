//! Matrix products.

use tvm_ir::dtype::DType;
use tvm_ir::prim::PrimExpr;

use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[("FusedMatMul", 1, fused_matmul), ("MatMulNBits", 1, matmul_nbits)];

/// `alpha * A' * B'`. `transA` exchanges the last two axes, `transBatchA` brings the first axis behind the others but
/// the last before that.
fn fused_matmul(cx: &mut OpCx<'_>) -> Outputs {
    let (a, b) = (cx.input(0, "A")?, cx.input(1, "B")?);
    let alpha = f64::from(cx.node.float_or("alpha", 1.0)?);
    let a = arranged(cx, a, "transA", "transBatchA")?;
    let b = arranged(cx, b, "transB", "transBatchB")?;
    let product = cx.matmul(&a, &b)?;
    if alpha == 1.0 {
        return Ok(vec![product]);
    }
    let dtype = cx.dtype(&product, "the product")?;
    let alpha = cx.scalar(alpha, dtype)?;
    Ok(vec![cx.apply("multiply", &[&product, &alpha])?])
}

fn arranged(cx: &mut OpCx<'_>, x: Value, trans: &str, trans_batch: &str) -> Result<Value, Fail> {
    let (trans, batch) = (cx.node.flag_or(trans, false)?, cx.node.flag_or(trans_batch, false)?);
    let rank = cx.rank(&x, "a matrix")?;
    if rank < 2 || !trans && !batch {
        return Ok(x);
    }
    let mut axes: Vec<i64> = (0..i64::try_from(rank).unwrap_or(0)).collect();
    if batch {
        axes[..rank - 1].rotate_left(1);
    }
    if trans {
        axes.swap(rank - 2, rank - 1);
    }
    cx.call("permute_dims", vec![x], vec![("axes", axes.into())])
}

/// `A * B'`, where the rows of B are quantized in blocks of `block_size` numbers of `bits` bits, several in a byte, the
/// first in its low bits.
fn matmul_nbits(cx: &mut OpCx<'_>) -> Outputs {
    let (a, b, scales) = (cx.input(0, "A")?, cx.input(1, "B")?, cx.input(2, "scales")?);
    let (zeros, bias) = (cx.optional(3), cx.optional(5));
    if cx.optional(4).is_some() {
        return Err(Fail::limit("g_idx is not supported: quantize in the order of the rows"));
    }
    let attribute = |cx: &OpCx<'_>, name: &str| -> Result<i64, Fail> {
        let value = cx.node.int(name)?.filter(|v| (1..=1 << 31).contains(v));
        value.ok_or_else(|| format!("attribute '{name}' must be a positive number").into())
    };
    let (k, n, block) = (attribute(cx, "K")?, attribute(cx, "N")?, attribute(cx, "block_size")?);
    let bits = cx.node.int_or("bits", 4)?;
    // How exact the product may be computed: it is exact.
    cx.node.int("accuracy_level")?;
    if ![2, 4, 8].contains(&bits) {
        return Err(Fail::limit(format!("attribute 'bits' of {bits} is not supported, only 2, 4 and 8")));
    }
    let blocks = (k + block - 1) / block;
    let dtype = cx.dtype(&a, "A")?;
    let dim = PrimExpr::i64;
    let quantized = unpacked(cx, &b, bits, n, blocks * block)?;
    let quantized = cx.astype(&quantized, dtype)?;
    let quantized = cx.reshape(&quantized, vec![dim(n), dim(blocks), dim(block)])?;
    let each = |cx: &mut OpCx<'_>, x: &Value| cx.reshape(x, vec![dim(n), dim(blocks), dim(1)]);
    let zero = match zeros {
        None => cx.scalar(f64::from(1u32 << (bits - 1)), dtype)?,
        Some(zeros) => {
            let packed = cx.dtype(&zeros, "zero_points")? == DType::U8;
            let zeros = if packed { unpacked(cx, &zeros, bits, n, blocks)? } else { zeros };
            let zeros = cx.astype(&zeros, dtype)?;
            each(cx, &zeros)?
        }
    };
    let scales = cx.astype(&scales, dtype)?;
    let scales = each(cx, &scales)?;
    let centered = cx.apply("subtract", &[&quantized, &zero])?;
    let weights = cx.apply("multiply", &[&centered, &scales])?;
    let mut weights = cx.reshape(&weights, vec![dim(n), dim(blocks * block)])?;
    if blocks * block > k {
        weights = super::super::slice::along(cx, &weights, 1, 0, k)?;
    }
    let weights = cx.call("permute_dims", vec![weights], vec![("axes", vec![1, 0].into())])?;
    let product = cx.matmul(&a, &weights)?;
    match bias {
        None => Ok(vec![product]),
        Some(bias) => Ok(vec![cx.apply("add", &[&product, &bias])?]),
    }
}

/// The first `count` numbers of `bits` bits of each of `rows` rows of bytes.
fn unpacked(cx: &mut OpCx<'_>, bytes: &Value, bits: i64, rows: i64, count: i64) -> Result<Value, Fail> {
    let dim = PrimExpr::i64;
    let in_byte = 8 / bits;
    let length = (count + in_byte - 1) / in_byte;
    let bytes = cx.reshape(bytes, vec![dim(rows), dim(length)])?;
    if bits == 8 {
        return Ok(bytes);
    }
    let mask = cx.scalar(f64::from((1u32 << bits) - 1), DType::U8)?;
    let mut parts = Vec::new();
    for i in 0..in_byte {
        let shift = cx.scalar((i * bits) as f64, DType::U8)?;
        let moved = if i == 0 { bytes.clone() } else { cx.apply("right_shift", &[&bytes, &shift])? };
        parts.push(cx.apply("bitwise_and", &[&moved, &mask])?);
    }
    let all = cx.call("stack", vec![Value::Tuple(parts)], vec![("axis", 2.into())])?;
    let all = cx.reshape(&all, vec![dim(rows), dim(length * in_byte)])?;
    if length * in_byte == count { Ok(all) } else { super::super::slice::along(cx, &all, 1, 0, count) }
}
