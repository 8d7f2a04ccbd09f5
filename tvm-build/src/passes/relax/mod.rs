//! Relax passes: one file a pass.

mod annotate_tir_op_pattern;
mod bind_params;
mod bind_symbolic_vars;
mod call_tir_rewrite;
mod canonicalize_bindings;
mod check_indices;
mod convert_to_dataflow;
mod dead_code_elimination;
mod decompose_ops_for_inference;
mod eliminate_common_subexpr;
mod fold_batchnorm_to_conv2d;
mod fold_constant;
mod fuse_ops;
mod fuse_tir;
mod legalize_ops;
mod lift_tir_global_buffer_alloc;
mod support;
#[cfg(test)]
mod tests;
mod to_non_dataflow;

pub use bind_params::bind_params;
pub use bind_symbolic_vars::{bind_symbolic_vars, symbolic_vars, unknown_symbol};
pub(crate) use lift_tir_global_buffer_alloc::lift_levels;

use crate::pass::Pass;

/// Sorted by name.
pub static PASSES: &[&Pass] = &[
    &annotate_tir_op_pattern::ANNOTATE_TIR_OP_PATTERN,
    &call_tir_rewrite::CALL_TIR_REWRITE,
    &canonicalize_bindings::CANONICALIZE_BINDINGS,
    &check_indices::CHECK_INDICES,
    &convert_to_dataflow::CONVERT_TO_DATAFLOW,
    &dead_code_elimination::DEAD_CODE_ELIMINATION,
    &decompose_ops_for_inference::DECOMPOSE_OPS_FOR_INFERENCE,
    &eliminate_common_subexpr::ELIMINATE_COMMON_SUBEXPR,
    &fold_batchnorm_to_conv2d::FOLD_BATCHNORM_TO_CONV2D,
    &fold_constant::FOLD_CONSTANT,
    &fuse_ops::FUSE_OPS,
    &fuse_tir::FUSE_TIR,
    &legalize_ops::LEGALIZE_OPS,
    &lift_tir_global_buffer_alloc::LIFT_TIR_GLOBAL_BUFFER_ALLOC,
    &to_non_dataflow::TO_NON_DATAFLOW,
];
