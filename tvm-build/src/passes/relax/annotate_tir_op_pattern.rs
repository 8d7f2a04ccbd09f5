//! AnnotateTIROpPattern: PrimFuncs say how they take part in fusion.

use super::support::{has_nonzero, pattern_kind};
use crate::pass::{Pass, PassCx};
use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::Diags;
use tvm_ir::module::{Func, IRModule};

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
                let kind = pattern_kind::analyze(f);
                f.attrs.insert("op_pattern".into(), AttrValue::Int(kind as i64));
            }
        }
    }
    Ok(())
}
