//! The operator set `com.microsoft`: what ONNX Runtime's optimizers and exporters for it write. Definitions:
//! ONNX Runtime's ContribOperators.md.

mod activation;
mod attention;
mod matmul;
mod norm;
mod quantize;

use super::Row;

pub(super) use norm::simplified_layer_norm;

/// The families.
pub(super) static FILES: &[&[Row]] = &[activation::ROWS, attention::ROWS, matmul::ROWS, norm::ROWS, quantize::ROWS];
