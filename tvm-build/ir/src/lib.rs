//! Relax and TensorIR.
