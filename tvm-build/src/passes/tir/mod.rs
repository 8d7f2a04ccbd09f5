//! TensorIR passes: one file a pass.

mod apply_default_schedule;
mod compact_buffer_allocation;
mod convert_blocks_to_opaque;
mod flatten_buffer;
mod instrument_bound_checkers;
mod legalize_packed_types;
mod lower_init_block;
mod lower_opaque_block;
mod narrow_data_type;
mod plan_and_update_buffer_allocation_location;
mod remove_no_op;
mod simplify;
mod unroll_loop;
mod vectorize_loop;

pub(crate) use plan_and_update_buffer_allocation_location::plan_allocation;

use crate::pass::Pass;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::{Func, IRModule};
use tvm_ir::target::Target;
use tvm_ir::tir::PrimFunc;

/// Sorted by name.
pub static PASSES: &[&Pass] = &[
    &apply_default_schedule::PASS,
    &compact_buffer_allocation::PASS,
    &convert_blocks_to_opaque::PASS,
    &flatten_buffer::PASS,
    &instrument_bound_checkers::PASS,
    &legalize_packed_types::PASS,
    &lower_init_block::PASS,
    &lower_opaque_block::PASS,
    &narrow_data_type::PASS,
    &plan_and_update_buffer_allocation_location::PASS,
    &remove_no_op::PASS,
    &simplify::PASS,
    &unroll_loop::PASS,
    &vectorize_loop::PASS,
];

/// A rewriting of one function; errors name the loop, block or buffer.
pub type PrimFuncPass = fn(PrimFunc, &Target) -> Result<PrimFunc, Diag>;

/// The lowering of a scheduled function to flat loops, in order.
pub static LOWERING: &[(&str, PrimFuncPass)] = &[
    // Needs blocks: init is what runs where the block's reduction iterators start.
    (lower_init_block::PASS.name, lower_init_block::lower_init_block),
    // Needs iterator kinds, to see which loops a buffer's content outlives.
    (plan_and_update_buffer_allocation_location::PASS.name, plan_allocation),
    (convert_blocks_to_opaque::PASS.name, convert_blocks_to_opaque::convert_blocks_to_opaque),
    // Needs iterators gone (indices over loops alone) and dimensions still apart.
    (compact_buffer_allocation::PASS.name, compact_buffer_allocation::compact_buffer_allocation),
    (lower_opaque_block::PASS.name, lower_opaque_block::lower_opaque_block),
    (flatten_buffer::PASS.name, flatten_buffer::flatten_buffer),
    // Needs flat indices, and loops that are not yet vectors.
    (legalize_packed_types::PASS.name, legalize_packed_types::legalize_packed_types),
    // Vector lanes are told by the shape of simplified indices.
    (simplify::PASS.name, simplify::simplify),
    (vectorize_loop::PASS.name, vectorize_loop::vectorize_loop),
    (unroll_loop::PASS.name, unroll_loop::unroll_loop),
    (narrow_data_type::PASS.name, narrow_data_type::narrow_data_type),
    (simplify::PASS.name, simplify::simplify),
    (remove_no_op::PASS.name, remove_no_op::remove_no_op),
];

/// Rewrites every PrimFunc of a module and collects the errors of all.
pub(crate) fn each_prim_func(module: &mut IRModule, target: &Target, run: PrimFuncPass) -> Result<(), Diags> {
    let mut diags = Diags::new();
    for (name, func) in &mut module.funcs {
        if let Func::Prim(f) = func {
            let span = f.span;
            let result = run(f.clone(), target).map_err(|d| d.at(span).note(format!("in PrimFunc {name}")));
            if let Some(new) = diags.ok(result) {
                *f = new;
            }
        }
    }
    diags.into_result(())
}
