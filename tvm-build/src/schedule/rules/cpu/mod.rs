//! Rules for CPUs, through C.

mod conv;
mod elementwise;
mod epilogue;
mod inner_reduction;
mod matmul;
mod padding;
mod reduction;
mod sums;
mod tile;

use super::Rule;

/// In order; the last applies to every block.
pub static RULES: &[&dyn Rule] = &[
    &inner_reduction::InnerReduction,
    &matmul::Matmul,
    &conv::Conv,
    &reduction::Reduction,
    &padding::Padding,
    &elementwise::Elementwise,
];
