//! Extents that are known only at run time: every tensor that a node gives has an expression for each extent.

use std::collections::BTreeSet;

use tvm_ir::dtype::DType;
use tvm_ir::prim::{PrimExpr, Var, free_vars};
use tvm_ir::relax::{Dims, StructInfo, TensorInfo};

use super::convert::Converter;
use super::dims::identifier;
use super::emit::{Emitter, Fail};
use super::graph::{Dim, Type, ValueInfo};
use super::value::Value;

impl Emitter {
    /// A tensor whose dimensions are not known, cast to dimensions: its own where `dims` has none. What stands alone and
    /// is new is a symbolic variable from here on, never negative.
    pub(crate) fn cast_dims(&mut self, value: &Value, dims: Vec<PrimExpr>, hint: &str) -> Result<Value, Fail> {
        let dtype = value.tensor_info().and_then(|t| t.dtype);
        let info = StructInfo::Tensor(TensorInfo { dims: Dims::Known(dims), dtype });
        let leaf = self.bind(value)?;
        self.function.set_span(self.span);
        info.visit_exprs(&mut |dim| {
            if let Some(var) = dim.as_var() {
                self.function.bindings().analyzer.assume_nonnegative(var);
            }
        });
        let value = tvm_ir::relax::Expr::MatchCast(leaf, info.clone());
        Ok(Value::Leaf(self.function.bindings().emit_as(hint, value, info).into()))
    }

    /// A new symbolic variable for an extent.
    pub(crate) fn fresh_extent(&mut self, name: &str) -> PrimExpr {
        let var = Var::new(name, DType::I64);
        self.function.bindings().analyzer.assume_nonnegative(&var);
        var.expr()
    }

    /// New symbolic variables of these names for the elements of `extents`, a vector of `int64`. Each is at most what
    /// `most` says, which is compared at run time and bounds the memory of what has such extents.
    pub(crate) fn bounded_dims(
        &mut self,
        extents: &Value,
        most: Vec<PrimExpr>,
        names: &[&str],
    ) -> Result<Vec<PrimExpr>, Fail> {
        let shape = self.call("tensor_to_shape", vec![extents.clone()], vec![])?;
        let bounded = self.call("at_most", vec![shape, Value::shape(most)], vec![])?;
        let leaf = self.bind(&bounded)?;
        let dims: Vec<PrimExpr> = names.iter().map(|name| self.fresh_extent(name)).collect();
        self.function.set_span(self.span);
        self.function.bindings().match_cast(leaf, StructInfo::Shape(Dims::Known(dims.clone())));
        Ok(dims)
    }
}

impl Converter<'_> {
    /// The output `name` of a node: where its rank but no dimension is known, with a new symbolic variable for each
    /// extent, called as the file calls it.
    pub(super) fn with_extents(&mut self, name: &str, value: Value) -> Result<Value, Fail> {
        let unknown = |v: &Value| v.tensor_info().filter(|t| t.dims.known().is_none());
        let Some(info) = unknown(&value).filter(|_| !matches!(value, Value::Poison(_))) else { return Ok(value) };
        let declared = match self.declared.get(name) {
            Some(Type::Tensor { shape: Some(dims), .. }) => dims.as_slice(),
            _ => &[],
        };
        let rank = info.dims.rank().or((!declared.is_empty()).then_some(declared.len()));
        let Some(rank) = rank else { return Ok(value) };
        let named = |axis: usize| match declared.get(axis).filter(|_| declared.len() == rank) {
            Some(Dim::Named(name)) => Some(identifier(name, "dim_")),
            _ => None,
        };
        let names: Vec<Option<String>> = (0..rank).map(named).collect();
        let dims = names.into_iter().map(|name| match name {
            Some(name) => Ok(Var::new(name, DType::I64).expr()),
            None => self.symbols.dim(&Dim::Unknown),
        });
        let dims = dims.collect::<Result<Vec<_>, _>>()?;
        self.emitter.cast_dims(&value, dims, "lv")
    }

    /// An output of the model: extents that no input tells become what the file declares, where that is a number or
    /// what inputs tell. The cast is checked by the call.
    pub(super) fn declared_output(&mut self, output: &ValueInfo, value: Value) -> Result<Value, Fail> {
        let Some(Type::Tensor { shape: Some(declared), .. }) = &output.ty else { return Ok(value) };
        let value = self.with_extents(&output.name, value)?;
        let Some(dims) = value.tensor_info().and_then(|t| Some(t.dims.known()?.to_vec())) else { return Ok(value) };
        if dims.len() != declared.len() {
            return Ok(value);
        }
        let told = |e: &PrimExpr, entry: &BTreeSet<Var>| free_vars(e).is_subset(entry);
        let mut cast = dims.clone();
        for (dim, declared) in cast.iter_mut().zip(declared).filter(|(_, d)| **d != Dim::Unknown) {
            if !told(dim, &self.entry) {
                let declared = self.symbols.dim(declared)?;
                if told(&declared, &self.entry) {
                    *dim = declared;
                }
            }
        }
        if cast == dims {
            return Ok(value);
        }
        self.emitter.cast_dims(&value, cast, &identifier(&output.name, "output_"))
    }
}
