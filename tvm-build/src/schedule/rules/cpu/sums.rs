//! Long sums as sums of shorter ones: the error of a sum grows with the number of additions one after another.

use crate::schedule::{BlockRV, LoopRV, Schedule, Tail, Update};
use tvm_ir::diag::Diag;
use tvm_ir::name::Name;
use tvm_ir::tir::Block;

/// The reduction loop to cut, and into how many iterations, so that about `steps` additions follow each other; `None`
/// when there are no more than that or when their order does not matter. `reduce` are the reduction loops with their
/// extents, outermost first; a loop of unknown extent is taken to be long.
pub(super) fn plan_sums(b: &Block, reduce: &[(Name, Option<i64>)], steps: i64) -> Option<(Name, i64)> {
    if !Update::of(b)?.rounds() {
        return None;
    }
    let mut inner = 1i64;
    for (name, extent) in reduce.iter().rev() {
        let most = (steps / inner).max(1);
        match extent {
            Some(n) if *n <= most => inner = inner.saturating_mul((*n).max(1)),
            Some(n) => {
                // Parts of about one length.
                let parts = (n + most - 1) / most;
                return Some((name.clone(), (n + parts - 1) / parts));
            }
            None => return Some((name.clone(), most)),
        }
    }
    None
}

/// What sums apart.
pub(super) struct Parts {
    /// The block that sums; the original one adds the sums up.
    pub(super) block: BlockRV,
    /// The loop over the parts, in the place of the one that was cut.
    pub(super) outer: LoopRV,
    /// The loops over the elements: where the sums are set to 0, and where they are added up.
    pub(super) loops: [Vec<LoopRV>; 2],
}

/// Cuts the loop of a block that [`plan_sums`] chose, and sums each part in a buffer of its own.
pub(super) fn sum_in_parts(sch: &mut Schedule, block: &BlockRV, (name, n): &(Name, i64)) -> Result<Parts, Diag> {
    let found = sch.get_loops(block)?.into_iter().find(|l| l.var().name() == name);
    let l = found.ok_or_else(|| Diag::error(sch.func().span, format!("block {block} has no loop {name}")))?;
    let [outer, inner] = sch.split(&l, *n, Tail::Shrink)?;
    let [init, rf] = sch.rfactor(block, &inner, None)?;
    let around = sch.get_loops(block)?.iter().position(|l| *l == outer).map_or(0, |k| k + 1);
    let inside = |sch: &Schedule, b: &BlockRV| Ok(sch.get_loops(b)?.get(around..).unwrap_or_default().to_vec());
    let loops = [inside(sch, &init)?, inside(sch, block)?];
    Ok(Parts { block: rf, outer, loops })
}
