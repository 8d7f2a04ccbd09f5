//! AnnotateTIROpPattern: PrimFuncs say how they take part in fusion.

use super::support::{has_nonzero, pattern_kind};
use crate::pass::{Pass, PassCx};
use crate::schedule::rules::IS_SCHEDULED;
use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::Diags;
use tvm_ir::module::{Func, IRModule};
use tvm_ir::relax::Pattern;

/// Sets the attribute `op_pattern` of each PrimFunc that has none (or 0) to the number of its `Pattern`.
pub(super) static ANNOTATE_TIR_OP_PATTERN: Pass = Pass {
    name: "AnnotateTIROpPattern",
    doc: "sets op_pattern of PrimFuncs, from which FuseOps decides",
    params: &[],
    run,
};

fn run(module: &mut IRModule, _cx: &PassCx<'_>) -> Result<(), Diags> {
    for func in module.funcs.values_mut() {
        if let Func::Prim(f) = func {
            if !has_nonzero(&f.attrs, "op_pattern") {
                // What is scheduled by hand stays a kernel of its own.
                let by_hand = f.attrs.get(IS_SCHEDULED).and_then(AttrValue::as_bool).unwrap_or(false);
                let kind = if by_hand { Pattern::Opaque } else { pattern_kind::analyze(f) };
                f.attrs.insert("op_pattern".into(), AttrValue::Int(kind as i64));
            }
        }
    }
    Ok(())
}
