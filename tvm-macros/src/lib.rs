//! Relax and TensorIR inline in Rust.
