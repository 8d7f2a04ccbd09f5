//! Matrix products.

use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[("Det", 11, det), ("Gemm", 7, gemm), ("MatMul", 1, matmul)];

fn det(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    Ok(vec![cx.apply("linalg.det", &[&x])?])
}

fn matmul(cx: &mut OpCx<'_>) -> Outputs {
    let (a, b) = (cx.input(0, "A")?, cx.input(1, "B")?);
    Ok(vec![cx.matmul(&a, &b)?])
}

/// `alpha * A' * B' + beta * C`, where `A'` and `B'` may be transposed.
fn gemm(cx: &mut OpCx<'_>) -> Outputs {
    let (a, b) = (cx.input(0, "A")?, cx.input(1, "B")?);
    for (value, role) in [(&a, "A"), (&b, "B")] {
        let rank = cx.rank(value, role)?;
        if rank != 2 {
            return Err(format!("input {role} must be a matrix, and its rank is {rank}").into());
        }
    }
    let a = scaled(cx, a, "alpha")?;
    let a = transposed(cx, a, "transA")?;
    let b = transposed(cx, b, "transB")?;
    let product = cx.matmul(&a, &b)?;
    // Without a bias there is nothing that `beta` scales.
    let Some(c) = cx.optional(2) else {
        cx.node.float("beta")?;
        return Ok(vec![product]);
    };
    let c = scaled(cx, c, "beta")?;
    Ok(vec![cx.apply("add", &[&product, &c])?])
}

fn scaled(cx: &mut OpCx<'_>, value: Value, attribute: &str) -> Result<Value, Fail> {
    let factor = cx.node.float_or(attribute, 1.0)?;
    if factor == 1.0 {
        return Ok(value);
    }
    let dtype = cx.dtype(&value, "the matrix")?;
    let factor = cx.scalar(f64::from(factor), dtype)?;
    cx.apply("multiply", &[&value, &factor])
}

fn transposed(cx: &mut OpCx<'_>, value: Value, attribute: &str) -> Result<Value, Fail> {
    // Any number but 0 transposes.
    if cx.node.int_or(attribute, 0)? == 0 {
        return Ok(value);
    }
    cx.call("permute_dims", vec![value], vec![("axes", vec![1, 0].into())])
}
