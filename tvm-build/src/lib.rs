//! Compiles models to native code in build scripts.

#[cfg(feature = "cli")]
pub mod codegen;
pub mod import;
pub mod npy;
pub mod npz;
pub mod lower;
pub mod pass;
pub mod passes;
#[cfg(test)]
mod samples;
pub mod tir_tools;
