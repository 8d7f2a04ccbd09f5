//! Whole models: from messages or files to Relax.

mod convert;
mod files;
mod make;
mod neural;
mod ops;
