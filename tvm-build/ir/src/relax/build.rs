//! Building bindings: emit infers struct info and normalises arguments to leaves.

use super::{Binding, Call, Expr, Leaf, StructInfo, Var};
use crate::arith::Analyzer;
use crate::diag::Diag;
use crate::name::NameSupply;
use crate::span::Span;

/// Collects bindings. Variables are named `lv`, `lv1`, … unless a name is given.
#[derive(Default)]
pub struct BindingBuilder {
    /// The bindings so far.
    pub bindings: Vec<Binding>,
    /// Names given so far.
    pub names: NameSupply,
    /// Facts about symbolic variables.
    pub analyzer: Analyzer,
    /// Location given to emitted bindings.
    pub span: Span,
}

impl BindingBuilder {
    /// A builder without bindings.
    pub fn new() -> BindingBuilder {
        BindingBuilder::default()
    }

    /// Binds a value whose struct info is known.
    pub fn emit_as(&mut self, hint: &str, value: Expr, info: StructInfo) -> Var {
        let var = Var::at(self.names.fresh(hint), info, self.span);
        self.bindings.push(Binding { var: var.clone(), value, span: self.span });
        var
    }

    /// Infers and binds a call. Errors are the op's inference errors.
    pub fn emit(&mut self, call: Call) -> Result<Leaf, Diag> {
        let info = crate::ops::infer(&call, &self.analyzer)?;
        Ok(Leaf::Var(self.emit_as("lv", Expr::Call(call), info)))
    }
}
