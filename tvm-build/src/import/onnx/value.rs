//! Values of a model while it is converted.

use std::cell::OnceCell;
use std::rc::Rc;

use tvm_ir::attrs::AttrValue;
use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::dtype::DType;
use tvm_ir::interp::ExprTensor;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::{Dims, Leaf, Op, StructInfo, TensorInfo};
use tvm_ir::span::Span;

use super::data_type::DataType;
use super::fold::{self, Known};
use super::list::List;
use super::tensor::Tensor;

/// A value.
///
/// A call is bound to a variable only when something uses it, as upstream's importer does: what nothing uses
/// leaves no binding, and bindings come in the order of use.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A variable or constant.
    Leaf(Leaf),
    /// A call that may not be bound yet.
    Call(Rc<Pending>),
    /// A tuple of values, as an argument or as the outputs of a node.
    Tuple(Vec<Value>),
    /// A small tensor of integers whose elements are known expressions, at least one of them no literal (what is
    /// all literals is a constant): the stuff that shapes are made of.
    Known(Rc<ExprTensor>),
    /// A sequence or an optional.
    List(Rc<List>),
    /// The output of a node that could not be converted. What it would have been may be known.
    Poison(Option<StructInfo>),
}

/// A call and, once it is bound, its variable.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) op: Op,
    pub(crate) args: Vec<Value>,
    pub(crate) attrs: Vec<AttrValue>,
    pub(crate) info: StructInfo,
    pub(crate) span: Span,
    /// How many calls that are not bound hang on one another below it.
    pub(crate) depth: u32,
    pub(crate) bound: OnceCell<Leaf>,
    /// The result, where it is known and the call is there nevertheless.
    pub(crate) known: Option<Known>,
}

impl Value {
    /// How many calls that are not bound hang on one another in the value.
    pub(crate) fn depth(&self) -> u32 {
        match self {
            Value::Call(call) if call.bound.get().is_none() => call.depth,
            Value::Tuple(items) => items.iter().map(Value::depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// A shape argument.
    pub(crate) fn shape(dims: Vec<PrimExpr>) -> Value {
        Value::Leaf(Leaf::Shape(dims))
    }

    /// A rank-1 `int64` tensor of known elements.
    pub(crate) fn ints(values: Vec<PrimExpr>) -> Value {
        let count = i64::try_from(values.len()).unwrap_or(i64::MAX);
        Value::known(ExprTensor { dtype: DType::I64, shape: vec![count], elements: values })
    }

    /// A rank-0 `int64` tensor of a known element.
    pub(crate) fn int(value: PrimExpr) -> Value {
        Value::known(ExprTensor { dtype: DType::I64, shape: Vec::new(), elements: vec![value] })
    }

    /// A tensor of known elements of integers: a constant, if all of them are literals.
    pub(crate) fn known(tensor: ExprTensor) -> Value {
        match tensor.to_buf().and_then(fold::constant) {
            Some(constant) => constant.into(),
            None => Value::Known(Rc::new(tensor)),
        }
    }

    /// The constant, if it is one or has been computed from constants.
    pub(crate) fn as_const(&self) -> Option<&Constant> {
        match self {
            Value::Leaf(Leaf::Const(constant)) => Some(constant),
            Value::Call(call) => match &call.known {
                Some(Known::Const(constant)) => Some(constant),
                _ => None,
            },
            _ => None,
        }
    }

    /// What is known of it; `None` for what has no value of its own.
    pub(crate) fn info(&self) -> Option<StructInfo> {
        match self {
            Value::Leaf(leaf) => leaf.info(),
            Value::Call(call) => Some(call.info.clone()),
            Value::Tuple(items) => Some(StructInfo::Tuple(items.iter().map(Value::info).collect::<Option<_>>()?)),
            Value::Known(tensor) => Some(StructInfo::tensor_fixed(&tensor.shape, tensor.dtype)),
            Value::List(_) => Some(StructInfo::Object),
            Value::Poison(info) => info.clone(),
        }
    }

    /// What is known of the tensor, if it is one.
    pub(crate) fn tensor_info(&self) -> Option<TensorInfo> {
        self.info()?.as_tensor().cloned()
    }

    /// The elements of an integer tensor of rank 0 or 1 as `int64`, if they are known now.
    pub(crate) fn known_ints(&self) -> Option<Vec<PrimExpr>> {
        match self {
            Value::Known(tensor) if tensor.shape.len() <= 1 => {
                Some(tensor.elements.iter().map(|e| e.cast(DType::I64)).collect())
            }
            Value::Leaf(Leaf::Const(constant)) if constant.shape().len() <= 1 => {
                Some(ints_of(constant)?.into_iter().map(PrimExpr::i64).collect())
            }
            _ => None,
        }
    }

    /// The elements of an integer tensor of rank 0 or 1, if they are known and plain numbers.
    pub(crate) fn fixed_ints(&self) -> Option<Vec<i64>> {
        self.known_ints()?.iter().map(PrimExpr::as_int).collect()
    }
}

impl From<Leaf> for Value {
    fn from(leaf: Leaf) -> Value {
        Value::Leaf(leaf)
    }
}

impl From<Constant> for Value {
    fn from(constant: Constant) -> Value {
        Value::Leaf(Leaf::Const(constant))
    }
}

/// The constant of a tensor, over the same bytes. The error is a sentence about the element type.
pub(crate) fn constant(tensor: &Tensor) -> Result<Constant, String> {
    if tensor.dtype == DataType::String {
        return Err("strings are not known when the model is compiled".to_owned());
    }
    let dtype = dtype(tensor.dtype)?;
    Constant::new(dtype, tensor.shape.clone(), Bytes::new(tensor.data.clone()))
        .map_err(|_| format!("a tensor of {} does not have the size its shape asks for", tensor.dtype.name()))
}

/// The dtype of an element type. Complex numbers are an error: no back end holds them.
pub(crate) fn dtype(dtype: DataType) -> Result<DType, String> {
    if matches!(dtype, DataType::Complex64 | DataType::Complex128) {
        return Err(format!(
            "elements of {} are not supported; real and imaginary parts as an axis of 2 are",
            dtype.name()
        ));
    }
    dtype.name().parse().map_err(|_| format!("there is no dtype for elements of {}", dtype.name()))
}

/// The elements of an integer constant; `None` for other types.
pub(crate) fn ints_of(constant: &Constant) -> Option<Vec<i64>> {
    let dtype = constant.dtype();
    let data: &[u8] = constant.data();
    if !dtype.is_integer() || dtype.lanes != 1 || dtype.bits < 8 {
        return None;
    }
    let width = usize::from(dtype.bits / 8);
    Some(
        data.chunks_exact(width)
            .map(|bytes| {
                let negative = dtype.is_int() && bytes.last().is_some_and(|b| b & 0x80 != 0);
                let mut word = [if negative { 0xff } else { 0 }; 8];
                word[..width].copy_from_slice(bytes);
                i64::from_le_bytes(word)
            })
            .collect(),
    )
}

/// The elements of a constant of rank at most 1 as numbers; `None` for types that are neither integers, bools
/// nor floats of 32 and 64 bits.
pub(crate) fn numbers_of(constant: &Constant) -> Option<Vec<f64>> {
    let data: &[u8] = constant.data();
    match constant.dtype() {
        DType::F32 => {
            Some(data.chunks_exact(4).filter_map(|c| Some(f64::from(f32::from_le_bytes(c.try_into().ok()?)))).collect())
        }
        DType::F64 => Some(data.chunks_exact(8).filter_map(|c| Some(f64::from_le_bytes(c.try_into().ok()?))).collect()),
        DType::BOOL => Some(data.iter().map(|&b| f64::from(b)).collect()),
        _ => Some(ints_of(constant)?.into_iter().map(|v| v as f64).collect()),
    }
}

/// An `int64` constant of rank 1, or 0 if `scalar`.
pub(crate) fn int_constant(values: &[i64], scalar: bool) -> Option<Constant> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let shape = if scalar { Vec::new() } else { vec![values.len() as u64] };
    Constant::new(DType::I64, shape, Bytes::new(bytes)).ok()
}

/// The known dimensions of a tensor; a sentence that names `role` if they are not known.
pub(crate) fn known_dims(value: &Value, role: &str) -> Result<Vec<PrimExpr>, String> {
    let info = value.tensor_info().ok_or_else(|| format!("{role} is not a tensor"))?;
    match info.dims {
        Dims::Known(dims) => Ok(dims),
        Dims::Rank(_) | Dims::Unknown => Err(format!("the shape of {role} must be known when the model is imported")),
    }
}
