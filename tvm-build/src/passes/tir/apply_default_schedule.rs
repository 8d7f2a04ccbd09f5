//! ApplyDefaultSchedule: see [`PASS`].

use super::each_prim_func;
use crate::pass::Pass;
use crate::schedule::rules;
use tvm_ir::diag::Diag;
use tvm_ir::target::Target;
use tvm_ir::tir::PrimFunc;

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "ApplyDefaultSchedule",
    doc: "functions without a schedule get one from the target's rules",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, apply_default_schedule),
};

/// Schedules one function by the rules of the target.
fn apply_default_schedule(f: PrimFunc, target: &Target) -> Result<PrimFunc, Diag> {
    Ok(rules::apply_default_schedule(f, target).func)
}
