//! Relax passes: one file a pass.

mod annotate_tir_op_pattern;
mod call_tir_rewrite;
mod canonicalize_bindings;
mod dead_code_elimination;
mod fuse_ops;
mod fuse_tir;
mod legalize_ops;
mod support;
#[cfg(test)]
mod tests;
mod to_non_dataflow;

use crate::pass::Pass;

/// Sorted by name.
pub static PASSES: &[&Pass] = &[
    &annotate_tir_op_pattern::ANNOTATE_TIR_OP_PATTERN,
    &call_tir_rewrite::CALL_TIR_REWRITE,
    &canonicalize_bindings::CANONICALIZE_BINDINGS,
    &dead_code_elimination::DEAD_CODE_ELIMINATION,
    &fuse_ops::FUSE_OPS,
    &fuse_tir::FUSE_TIR,
    &legalize_ops::LEGALIZE_OPS,
    &to_non_dataflow::TO_NON_DATAFLOW,
];
