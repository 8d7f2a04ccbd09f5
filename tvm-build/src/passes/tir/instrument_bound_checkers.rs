//! InstrumentBoundCheckers: see [`PASS`].

use super::each_prim_func;
use crate::pass::Pass;
use tvm_ir::tir::verify;

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "InstrumentBoundCheckers",
    doc: "in functions with tir.check_bounds, accesses that are not proven in bounds are checked at run time",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, |f, _| verify::instrument_bound_checkers(&f)),
};
