//! Convolutions: several reduction loops, vectors along the output's width.

use super::super::nest::Nest;
use super::super::{Plan, Rule};
use super::tile::{apply_tile, plan_tile};
use crate::schedule::{BlockRV, Schedule};
use tvm_ir::diag::Diag;
use tvm_ir::target::Target;
use tvm_ir::tir::IterKind;

/// A direct convolution in NCHW with stride 1 along the width: a register tile of output channels by vectors of the
/// output's width over all of channels and window; the padded input is in memory, the epilogue is on the tile.
pub(super) struct Conv;

impl Rule for Conv {
    fn name(&self) -> &'static str {
        "conv"
    }

    fn plan(&self, sch: &Schedule, block: &BlockRV, target: &Target) -> Option<Plan> {
        let nest = Nest::of(sch, block)?;
        if nest.of_kind(IterKind::Reduce).len() < 2 {
            return None;
        }
        let plan = plan_tile(self.name(), sch, block, target)?;
        nest.streams_one_operand(plan.vector.as_ref()?).then_some(plan)
    }

    fn apply(&self, sch: &mut Schedule, plan: &Plan) -> Result<(), Diag> {
        apply_tile(sch, plan, false)
    }
}
