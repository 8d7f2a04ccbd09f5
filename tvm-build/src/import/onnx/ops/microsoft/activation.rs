//! Activations.

use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs};

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("BiasGelu", 1, |cx| gelu(cx, "nn.gelu", true)),
    ("FastGelu", 1, |cx| gelu(cx, "nn.gelu_tanh", cx.node.input_count() > 1)),
    ("Gelu", 1, |cx| gelu(cx, "nn.gelu", false)),
    ("QuickGelu", 1, quick_gelu),
];

fn gelu(cx: &mut OpCx<'_>, op: &str, biased: bool) -> Outputs {
    let mut x = cx.input(0, "X")?;
    if biased {
        let bias = cx.input(1, "bias")?;
        x = cx.apply("add", &[&x, &bias])?;
    }
    Ok(vec![cx.apply(op, &[&x])?])
}

/// `x * sigmoid(alpha * x)`.
fn quick_gelu(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let alpha = f64::from(cx.node.float_or("alpha", 1.702)?);
    let dtype = cx.dtype(&x, "X")?;
    let alpha = cx.scalar(alpha, dtype)?;
    let scaled = cx.apply("multiply", &[&x, &alpha])?;
    let gate = cx.apply("sigmoid", &[&scaled])?;
    Ok(vec![cx.apply("multiply", &[&x, &gate])?])
}
