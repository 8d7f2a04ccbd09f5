//! The one integration test binary: file tests, execution, conformance, structure.

mod filetest;
mod tidy;
mod tutorial;
