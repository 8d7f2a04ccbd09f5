//! Parts of tables that all functions of a program share.

use tvm_ir::diag::Diag;
use tvm_ir::span::Span;
use tvm_runtime::{Constant, DType, Operand, Param, TensorType};

/// A slice that lives as long as the process: tables are `static` where programs run.
pub(super) fn leak<T>(items: Vec<T>) -> &'static [T] {
    items.leak()
}

/// A string that lives as long as the process.
pub(super) fn leak_str(text: &str) -> &'static str {
    Box::leak(text.to_string().into_boxed_str())
}

/// The constants of a program, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct Constants {
    pub(super) items: Vec<Constant>,
}

impl Constants {
    /// The operand of a constant.
    pub(super) fn add(&mut self, constant: Constant) -> Result<Operand, Diag> {
        let at = self.items.iter().position(|c| *c == constant).unwrap_or_else(|| {
            self.items.push(constant);
            self.items.len() - 1
        });
        u16::try_from(at)
            .map(Operand::Const)
            .map_err(|_| Diag::error(Span::NONE, "a program has at most 65536 different constants"))
    }

    pub(super) fn shape(&mut self, dims: &[i64]) -> Result<Operand, Diag> {
        self.add(Constant::Shape(leak(dims.to_vec())))
    }

    pub(super) fn dtype(&mut self, dtype: DType) -> Result<Operand, Diag> {
        self.add(Constant::DType(dtype))
    }

    pub(super) fn param(&mut self, param: Param) -> Result<Operand, Diag> {
        self.add(Constant::Param(param))
    }
}

/// The type of a tensor of fixed shape; one whose elements only kernels know is seen as its bytes.
pub(super) fn tensor_type(dtype: tvm_ir::dtype::DType, dims: &[i64]) -> Option<TensorType> {
    if let Some(dtype) = super::dtype::run_dtype(dtype) {
        return Some(TensorType { dtype, shape: leak(dims.to_vec()) });
    }
    let count = dims.iter().try_fold(1u64, |n, d| n.checked_mul(u64::try_from(*d).ok()?))?;
    let bytes = i64::try_from(dtype.storage_bytes(count)?).ok()?;
    Some(TensorType { dtype: DType::U8, shape: leak(vec![bytes]) })
}
