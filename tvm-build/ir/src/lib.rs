//! Relax and TensorIR: the types of the three levels, the op table, integer arithmetic, TVMScript text, verifiers and
//! the reference interpreter. No file, process or environment access.

pub mod arith;
pub mod attrs;
pub mod check;
pub mod constant;
pub mod diag;
pub mod dtype;
pub mod float;
pub mod interp;
pub mod lowered;
pub mod lowered_verify;
pub mod module;
pub mod name;
pub mod ops;
pub mod prim;
pub mod relax;
pub mod render;
pub mod span;
pub mod structural;
pub mod syntax;
pub mod target;
pub mod te;
pub mod tir;
