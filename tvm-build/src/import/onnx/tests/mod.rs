//! Whole models: from messages or files to Relax.

mod agree;
mod branches;
mod convert;
mod custom;
mod data;
mod files;
mod fold;
mod lists;
mod loops;
pub(super) mod make;
mod neural;
mod ops;
mod resize;
mod runtime;
