//! Compiles models to native code in build scripts.

pub mod build;
mod cfg;
pub mod codegen;
pub mod compile;
pub mod dims;
pub mod external;
#[cfg(feature = "cli")]
pub mod host;
pub mod import;
pub mod lower;
pub mod model;
#[cfg(feature = "cli")]
pub mod npy;
#[cfg(feature = "cli")]
mod npy_strings;
#[cfg(feature = "cli")]
pub mod npz;
pub mod pass;
mod pass_spec;
pub mod passes;
pub mod pipeline;
mod rust_source;
#[cfg(test)]
mod samples;
pub mod schedule;
pub mod tir_tools;
pub mod toolchain;
pub mod vm;
pub mod weights;

pub use build::Build;
pub use tvm_ir as ir;
