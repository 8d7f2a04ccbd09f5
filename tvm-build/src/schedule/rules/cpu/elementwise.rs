//! Everything else.

use super::super::nest::{Nest, Step};
use super::super::{Plan, Rule};
use crate::schedule::{BlockRV, LoopRV, Schedule, Tail};
use tvm_ir::diag::Diag;
use tvm_ir::name::Name;
use tvm_ir::target::Target;
use tvm_ir::tir::{IterKind, Stmt};

/// Applies to every block. A spatial block that only touches whole buffers in order becomes one loop; vectors along
/// the innermost loop where stores go to consecutive elements. Of packed elements, an iteration stores those of one
/// byte. A reduction keeps its loops, its init before the first.
pub(super) struct Elementwise;

impl Rule for Elementwise {
    fn name(&self) -> &'static str {
        "elementwise"
    }

    fn plan(&self, sch: &Schedule, block: &BlockRV, _target: &Target) -> Option<Plan> {
        let mut plan = Plan::new(self.name(), block);
        let Some(nest) = Nest::of(sch, block) else { return Some(plan) };
        let spatial = nest.axes.iter().all(|a| a.kind == IterKind::Spatial);
        if !spatial || nest.axes.is_empty() {
            return Some(plan);
        }
        let name = |k: usize| nest.axes[k].l.var().name().clone();
        let last = nest.axes.len() - 1;
        let per_byte = nest.output().map_or(1, |b| b.dtype.per_byte());
        if per_byte > 1 {
            if nest.accesses.iter().all(|a| !a.write || a.whole) {
                plan.fuse = (0..=last).map(name).collect();
                plan.tile = vec![(fused_name(&plan.fuse), i64::try_from(per_byte).unwrap_or(1))];
            }
        } else if nest.accesses.iter().all(|a| a.whole) && last > 0 {
            plan.fuse = (0..=last).map(name).collect();
            plan.vector = Some(fused_name(&plan.fuse));
        } else if nest.accesses.iter().all(|a| !a.write || a.steps[last] == Step::Next) {
            plan.vector = Some(name(last));
        }
        Some(plan)
    }

    fn apply(&self, sch: &mut Schedule, plan: &Plan) -> Result<(), Diag> {
        let mut loops = sch.get_loops(&plan.block)?;
        if !plan.fuse.is_empty() {
            let mut fused: Option<LoopRV> = None;
            for l in loops {
                fused = Some(match fused {
                    None => l,
                    Some(outer) => sch.fuse(&outer, &l)?,
                });
            }
            loops = fused.into_iter().collect();
        }
        if let (Some((_, per_byte)), Some(l)) = (plan.tile.first(), loops.last()) {
            let [_, within] = sch.split(l, *per_byte, Tail::Shrink)?;
            sch.unroll(&within)?;
        }
        if plan.vector.is_some() {
            if let Some(l) = loops.last() {
                sch.vectorize(l)?;
            }
        }
        decompose(sch, &plan.block)
    }
}

/// Init before the first reduction loop, where there is one and the nest allows it.
fn decompose(sch: &mut Schedule, block: &BlockRV) -> Result<(), Diag> {
    let b = sch.block(block)?;
    if b.init.is_none() || !matches!(b.body, Stmt::Store(_)) {
        return Ok(());
    }
    let reduces = |l: &LoopRV| {
        b.iters.iter().any(|i| i.kind != IterKind::Spatial && tvm_ir::prim::free_vars(&i.binding).contains(l.var()))
    };
    let first = sch.get_loops(block)?.into_iter().find(reduces);
    if let Some(first) = first {
        // A nest that does not allow it keeps its init inside.
        let mut attempt = sch.clone();
        if attempt.decompose_reduction(block, &first).is_ok() {
            *sch = attempt;
        }
    }
    Ok(())
}

/// The name that `fuse` gives in the end.
pub(super) fn fused_name(loops: &[Name]) -> Name {
    let mut out = String::new();
    for (k, l) in loops.iter().enumerate() {
        out = if k == 0 { l.to_string() } else { format!("{out}_{l}_fused") };
    }
    out.into()
}
