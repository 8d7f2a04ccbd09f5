//! Readers of model formats.

pub(crate) mod file;
pub mod onnx;
