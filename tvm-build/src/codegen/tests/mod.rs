//! Generated C, compiled by every compiler at hand with all warnings as errors, run, and compared with Rust's own
//! arithmetic.

mod build;
mod memory;
mod scalar;
mod scheduled;
mod shapes;
mod ulp;
mod vector;
