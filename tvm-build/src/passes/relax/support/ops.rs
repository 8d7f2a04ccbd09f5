//! Emitting calls of ops in place of another call.

use tvm_ir::attrs::AttrValue;
use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::diag::Diag;
use tvm_ir::dtype::DType;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::build::BindingBuilder;
use tvm_ir::relax::{Binding, Call, Leaf, StructInfo};
use tvm_ir::span::Span;

/// Emits bindings of op calls; variables are named `lv`, `lv1`, …
pub(crate) struct Emitter {
    builder: BindingBuilder,
}

impl Emitter {
    /// What is emitted stands at a place.
    pub(crate) fn new(span: Span) -> Emitter {
        Emitter { builder: BindingBuilder { span, ..BindingBuilder::new() } }
    }

    /// Binds a call; errors are the op's inference errors.
    pub(crate) fn call(&mut self, op: &str, args: Vec<Leaf>, attrs: &[(&str, AttrValue)]) -> Result<Leaf, Diag> {
        self.builder.call(op, args, attrs)
    }

    /// Binds a call that is complete.
    pub(crate) fn emit(&mut self, call: Call) -> Result<Leaf, Diag> {
        self.builder.emit(call)
    }

    /// A number as a constant of rank 0.
    pub(crate) fn scalar(&self, dtype: DType, v: f64) -> Leaf {
        let bytes = match dtype {
            DType::F32 => Some((v as f32).to_le_bytes().to_vec()),
            DType::F64 => Some(v.to_le_bytes().to_vec()),
            _ => None,
        };
        bytes
            .and_then(|b| Constant::new(dtype, Vec::new(), Bytes::new(b)).ok())
            .map_or_else(|| Leaf::Prim(PrimExpr::float(dtype, v)), Leaf::Const)
    }

    /// Rank and element type of a tensor whose both are known.
    pub(crate) fn rank_and_dtype(&self, l: &Leaf) -> Result<(i64, DType), Diag> {
        if let Some(StructInfo::Tensor(t)) = l.info() {
            let rank = t.dims.rank().and_then(|r| i64::try_from(r).ok());
            if let (Some(rank), Some(dtype)) = (rank, t.dtype) {
                return Ok((rank, dtype));
            }
        }
        Err(Diag::error(self.builder.span, "rank or dtype of the operand is not known")
            .help("give the value a shape with R.match_cast"))
    }

    /// The bindings emitted.
    pub(crate) fn finish(self) -> Vec<Binding> {
        self.builder.bindings
    }
}
