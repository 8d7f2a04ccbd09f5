//! Short forms for writing rows.

use crate::diag::Diag;
use crate::relax::{
    ArgDef, ArgKind, AttrDef, AttrDefault, AttrKind, Call, Effects, InferCx, Lower, OpDef, Pattern, StructInfo,
};

/// A required argument.
pub(super) const fn arg(name: &'static str, kind: ArgKind) -> ArgDef {
    ArgDef { name, kind, optional: false }
}

/// An argument that may be left out.
pub(super) const fn optional(name: &'static str, kind: ArgKind) -> ArgDef {
    ArgDef { name, kind, optional: true }
}

/// A required tensor.
pub(super) const fn tensor(name: &'static str) -> ArgDef {
    arg(name, ArgKind::Tensor)
}

/// An attribute with a default.
pub(super) const fn attr(name: &'static str, kind: AttrKind, default: AttrDefault) -> AttrDef {
    AttrDef { name, kind, default: Some(default) }
}

/// An attribute that must be given.
pub(super) const fn required(name: &'static str, kind: AttrKind) -> AttrDef {
    AttrDef { name, kind, default: None }
}

/// A pure op.
pub(super) const fn op(
    name: &'static str,
    doc: &'static str,
    args: &'static [ArgDef],
    attrs: &'static [AttrDef],
    infer: fn(&InferCx<'_>) -> Result<StructInfo, Diag>,
    lower: Lower,
    pattern: Pattern,
) -> OpDef {
    OpDef { name, doc, args, attrs, prepare: |_| Ok(()), infer, lower, pattern, effects: Effects::Pure }
}

impl OpDef {
    /// The row with a rule that brings calls into normal form.
    pub(super) const fn prepared(mut self, prepare: fn(&mut Call) -> Result<(), Diag>) -> OpDef {
        self.prepare = prepare;
        self
    }
}
