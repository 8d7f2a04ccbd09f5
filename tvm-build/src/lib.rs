//! Compiles models to native code in build scripts.

pub mod import;
pub mod pass;
pub mod passes;
