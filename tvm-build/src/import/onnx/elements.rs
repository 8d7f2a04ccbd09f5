//! What is known of the elements of small tensors of integers that the program computes: not their values, but which
//! elements are one and the same, and which of them are extents.

use std::collections::{BTreeMap, BTreeSet};

use tvm_ir::dtype::DType;
use tvm_ir::interp::ExprTensor;
use tvm_ir::prim::{self, PrimExpr, free_vars, substitute};
use tvm_ir::relax::{Leaf, StructInfo, Var};

use super::fold::Known;
use super::value::Value;

/// Most elements of a tensor that is followed.
const MAX_ELEMENTS: i64 = 32;

/// Elements by name. A variable stands for an element whose value only the program knows; it may be negative and never
/// stands in a shape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elements {
    of: BTreeMap<Var, Known>,
    names: BTreeSet<prim::Var>,
    /// Extents, over elements, and the symbolic variables that they were bound to: those in scope.
    extents: Vec<(PrimExpr, PrimExpr)>,
    /// The elements that are extents themselves.
    symbols: BTreeMap<prim::Var, PrimExpr>,
}

impl Elements {
    /// The elements of a value; new names, where it is a small tensor of integers that nothing is known of.
    pub(super) fn of(&mut self, value: &Value) -> Option<Known> {
        let known = match value {
            Value::Known(tensor) => Known::Exprs((**tensor).clone()),
            Value::Call(call) => call.known.clone()?,
            Value::Leaf(Leaf::Var(var)) => match self.of.get(var) {
                Some(known) => known.clone(),
                None => {
                    let known = self.fresh(var.info())?;
                    self.of.insert(var.clone(), known.clone());
                    known
                }
            },
            _ => return None,
        };
        Some(self.resolved(known))
    }

    /// What is known of the elements of a value by now, if anything is.
    pub(super) fn known(&self, value: &Value) -> Option<Known> {
        let known = match value {
            Value::Call(call) => call.known.clone()?,
            Value::Leaf(Leaf::Var(var)) => self.of.get(var)?.clone(),
            _ => return None,
        };
        Some(self.resolved(known))
    }

    /// New names for the elements of a small tensor of integers.
    pub(super) fn fresh(&mut self, info: &StructInfo) -> Option<Known> {
        let info = info.as_tensor()?;
        let dtype = info.dtype.filter(|d| *d == DType::I64 || *d == DType::I32)?;
        let shape = info.dims.fixed().filter(|s| s.len() <= 1)?;
        let count = shape.first().copied().unwrap_or(1);
        if !(1..=MAX_ELEMENTS).contains(&count) {
            return None;
        }
        let name = |_| {
            let var = prim::Var::new("element", dtype);
            self.names.insert(var.clone());
            var.expr()
        };
        Some(Known::Exprs(ExprTensor { dtype, shape, elements: (0..count).map(name).collect() }))
    }

    /// The elements of a tensor that a value was bound to.
    pub(super) fn tell(&mut self, leaf: &Leaf, known: &Known) {
        if let Leaf::Var(var) = leaf {
            self.of.insert(var.clone(), known.clone());
        }
    }

    /// Whether an expression is one of symbolic dimensions alone.
    pub(super) fn told(&self, e: &PrimExpr) -> bool {
        self.names.is_empty() || free_vars(e).is_disjoint(&self.names)
    }

    /// Whether all elements are told by symbolic dimensions.
    pub(super) fn all_told(&self, known: &Known) -> bool {
        match known {
            Known::Const(_) => true,
            Known::Exprs(tensor) => tensor.elements.iter().all(|e| self.told(e)),
            Known::Tuple(items) => items.iter().all(|item| self.all_told(item)),
        }
    }

    /// With symbolic variables in place of the elements that are extents.
    fn resolved(&self, known: Known) -> Known {
        match known {
            Known::Exprs(mut tensor) if !self.symbols.is_empty() => {
                for e in &mut tensor.elements {
                    if !self.told(e) {
                        *e = substitute(e, &self.symbols).cast(tensor.dtype);
                    }
                }
                Known::Exprs(tensor)
            }
            Known::Tuple(items) => Known::Tuple(items.into_iter().map(|item| self.resolved(item)).collect()),
            known => known,
        }
    }

    /// The dimension that an extent over elements was bound to.
    pub(super) fn extent(&self, e: &PrimExpr) -> Option<PrimExpr> {
        self.extents.iter().find(|(known, _)| known == e).map(|(_, dim)| dim.clone())
    }

    /// An extent over elements is a symbolic dimension from here on.
    pub(super) fn bind_extent(&mut self, e: PrimExpr, dim: PrimExpr) {
        if let Some(var) = e.as_var().filter(|v| self.names.contains(v)) {
            self.symbols.insert(var.clone(), dim.clone());
        }
        self.extents.push((e, dim));
    }

    /// Adds what is known elsewhere.
    pub(super) fn absorb(&mut self, other: &Elements) {
        self.of.extend(other.of.iter().map(|(var, known)| (var.clone(), known.clone())));
        self.names.extend(other.names.iter().cloned());
        self.symbols.extend(other.symbols.iter().map(|(var, dim)| (var.clone(), dim.clone())));
        let more = other.extents.iter().filter(|e| !self.extents.contains(e)).cloned().collect::<Vec<_>>();
        self.extents.extend(more);
    }

    /// For a function that sees no symbolic variable of this one, or for one that sees all: what is bound in it is
    /// forgotten with what this gives back.
    pub(super) fn scope(&mut self, sees: bool) -> Elements {
        let outer = self.clone();
        if !sees {
            self.extents.clear();
            self.symbols.clear();
        }
        outer
    }
}
