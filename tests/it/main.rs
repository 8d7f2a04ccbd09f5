//! The one integration test binary: file tests, execution, conformance, structure.

mod filetest;
mod generated;
mod op_patterns;
mod tidy;
mod tutorial;
