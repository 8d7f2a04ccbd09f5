//! Matrix products: one reduction loop, two operands, one of which stays while the vectors' loop steps.

use super::super::nest::Nest;
use super::super::{Plan, Rule};
use super::tile::{apply_tile, plan_tile};
use crate::schedule::{BlockRV, Schedule};
use tvm_ir::diag::Diag;
use tvm_ir::target::Target;
use tvm_ir::tir::IterKind;

/// `C[…, i, j] = sum over k of A[…, i, k] * B[…, k, j]` with B's rows in memory order: a register tile of rows by
/// vectors along `j`, over all of `k`; the epilogue on the tile. One row (a vector times a matrix) gets several
/// vectors of accumulators.
pub(super) struct Matmul;

impl Rule for Matmul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn plan(&self, sch: &Schedule, block: &BlockRV, target: &Target) -> Option<Plan> {
        let nest = Nest::of(sch, block)?;
        let [_] = nest.of_kind(IterKind::Reduce).as_slice() else { return None };
        let plan = plan_tile(self.name(), sch, block, target)?;
        nest.streams_one_operand(plan.vector.as_ref()?).then_some(plan)
    }

    fn apply(&self, sch: &mut Schedule, plan: &Plan) -> Result<(), Diag> {
        apply_tile(sch, plan, true)
    }
}
