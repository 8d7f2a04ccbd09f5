//! The op table: one row an op, one file a family.

use crate::arith::Analyzer;
use crate::diag::Diag;
use crate::relax::{Call, InferCx, Legalized, Op, OpDef, StructInfo};

/// The families.
static FILES: &[&[OpDef]] = &[];

/// The op of a name after `R.`.
pub fn lookup(name: &str) -> Option<Op> {
    all().find(|d| d.name == name).map(Op::new)
}

/// Every op, family by family.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    FILES.iter().flat_map(|f| f.iter())
}

/// Struct info of a call. Errors name the op, the argument and both sides of what does not fit.
pub fn infer(call: &Call, analyzer: &Analyzer) -> Result<StructInfo, Diag> {
    (call.op.def().infer)(&InferCx { call, analyzer })
}

/// Makes a call simpler. `out` is its struct info.
pub fn legalize(call: &Call, _out: &StructInfo) -> Result<Legalized, Diag> {
    Err(Diag::error(call.span, format!("R.{} has no lowering yet", call.op.name())))
}
