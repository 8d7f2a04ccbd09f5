//! The one integration test binary: file tests, execution, conformance, structure.

mod digits;
mod filetest;
mod generated;
mod hostile;
mod no_std;
mod onnx;
mod op_patterns;
mod packages;
mod rust_spelling;
mod stubs;
mod tidy;
mod tutorial;
mod tvmc;
mod ui;
