//! Other reductions: pooling, sums, products with the reduction in memory order.

use super::super::{Plan, Rule};
use super::tile::{apply_tile, plan_tile};
use crate::schedule::{BlockRV, Schedule};
use tvm_ir::diag::Diag;
use tvm_ir::target::Target;

/// Any reduction in a perfect nest: several results at a time in registers, in vectors where the outputs and what is
/// read for them lie side by side. The order of each sum is the program's.
pub(super) struct Reduction;

impl Rule for Reduction {
    fn name(&self) -> &'static str {
        "reduction"
    }

    fn plan(&self, sch: &Schedule, block: &BlockRV, target: &Target) -> Option<Plan> {
        plan_tile(self.name(), sch, block, target)
    }

    fn apply(&self, sch: &mut Schedule, plan: &Plan) -> Result<(), Diag> {
        apply_tile(sch, plan, false)
    }
}
