//! ApplyDefaultSchedule: see [`PASS`].

use super::compact_buffer_allocation::compact_buffer_allocation;
use super::convert_blocks_to_opaque::convert_blocks_to_opaque;
use super::lower_init_block::lower_init_block;
use super::{each_prim_func, plan_allocation};
use crate::pass::Pass;
use crate::schedule::rules::{self, SCHEDULE_PLAN};
use crate::tir_tools::symbolic_vars;
use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{Buffer, PrimExpr, Scope};
use tvm_ir::target::Target;
use tvm_ir::tir::{PrimFunc, Stmt, visit_stmt};

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "ApplyDefaultSchedule",
    doc: "functions without a schedule get one from the target's rules",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, apply_default_schedule),
};

/// Schedules one function by the rules of the target. Where symbolic extents do not let the buffers of the schedule have
/// constant sizes, by the last rule alone; the plan says so.
fn apply_default_schedule(f: PrimFunc, target: &Target) -> Result<PrimFunc, Diag> {
    let scheduled = rules::apply_default_schedule(f.clone(), target).func;
    let Some(buffer) = buffer_without_size(&scheduled, target)? else { return Ok(scheduled) };
    let mut plain = rules::apply_last_rule(f, target).func;
    if let Some(AttrValue::Str(plan)) = plain.attrs.get_mut(SCHEDULE_PLAN) {
        let why = format!("the size of buffer {} would not be known at build time: {:?}", buffer.name, buffer.shape);
        *plan = format!("{plan}; no tiles: {why}").into();
    }
    Ok(plain)
}

/// A buffer of registers or stack whose size lowering would not find.
fn buffer_without_size(f: &PrimFunc, target: &Target) -> Result<Option<Buffer>, Diag> {
    if symbolic_vars(f).is_empty() {
        return Ok(None);
    }
    let mut f = f.clone();
    for pass in [lower_init_block, plan_allocation, convert_blocks_to_opaque, compact_buffer_allocation] {
        f = pass(f, target)?;
    }
    let mut found = None;
    visit_stmt(&f.body, &mut |s| {
        if let Stmt::Block(b) = s {
            let unknown =
                |b: &&Buffer| b.scope != Scope::Global && !b.shape.iter().all(|d| PrimExpr::as_int(d).is_some());
            found = found.take().or_else(|| b.allocs.iter().find(unknown).cloned());
        }
    });
    Ok(found)
}
