//! What can go wrong in a call.

use crate::dtype::DType;
use core::fmt;

/// Kind of a [`crate::Value`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named like the variants of Value")]
pub enum Kind {
    None,
    Tensor,
    Shape,
    Int,
    Float,
    Bool,
    Tuple,
    List,
}

/// Why a call failed. `argument` is the parameter's name in the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Error {
    /// Another number of arguments than parameters and outputs of the function.
    ArgumentCount { expected: usize, found: usize },
    /// A tensor where an integer is due, and the like.
    WrongKind { argument: &'static str, expected: Kind, found: Kind },
    /// An output must be a mutable buffer.
    ReadOnly { argument: &'static str },
    /// Another element type than the signature's.
    WrongDType { argument: &'static str, expected: DType, found: DType },
    /// Another number of dimensions than the signature's.
    WrongRank { argument: &'static str, expected: usize, found: usize },
    /// Another extent than the signature's constant.
    WrongDim { argument: &'static str, axis: usize, expected: i64, found: i64 },
    /// Another extent than the value that `symbol` was bound to before.
    WrongSymbol { argument: &'static str, axis: usize, symbol: &'static str, bound: i64, found: i64 },
    /// A symbol's value above the bound that memory was planned for.
    AboveBound { symbol: &'static str, most: i64, found: i64 },
    /// A symbol's value below the bound that code was made for.
    BelowBound { symbol: &'static str, least: i64, found: i64 },
    /// An extent below zero, or more elements than memory can hold.
    BadShape { argument: &'static str },
    /// A buffer with another number of elements than its shape says.
    WrongLength { argument: &'static str, expected: usize, found: usize },
    /// A view whose elements are not one contiguous block in row-major order.
    NotContiguous { argument: &'static str },
    /// The arena holds fewer bytes than the call needs.
    ArenaTooSmall { needed: usize, available: usize },
    /// There is no memory for an arena of this size.
    ArenaMemory { bytes: usize },
    /// The size of a tensor depends on data, has no upper bound, and there is no heap (feature `alloc`).
    Unbounded { tensor: &'static str, symbol: &'static str },
    /// An iteration of a loop gives a row of another shape than those before it.
    UnequalRows { tensor: &'static str },
    /// A list has no item at this position.
    BadPosition { position: i64, len: usize },
    /// An item is not like those before it, with which it is joined.
    UnequalItems { position: usize },
    /// Elements that share their bytes with others are joined, split or stacked.
    PackedRows,
    /// A list without items is joined to a tensor.
    EmptyList,
    /// A tensor is split along an axis of `extent` into parts that do not make it up; one is, or all are, `length` long.
    BadSplit { extent: i64, length: i64 },
    /// There is no memory for a list or an item of one.
    ListMemory { bytes: usize },
    /// Lists need a heap (feature `alloc`).
    ListsNeedAlloc,
    /// A string or regular expression cannot be had.
    Text { message: &'static str },
    /// Element `position` of the strings that the node `node` casts writes no number of the type.
    NotANumber { node: &'static str, position: usize, dtype: DType },
    /// There is no memory for a tensor whose size depends on data.
    OutOfMemory { tensor: &'static str, symbol: &'static str, bytes: usize },
    /// The weights are shorter than the program's, or not aligned.
    BadWeights { needed: usize, available: usize },
    /// The storage given to the call is smaller than [`crate::Function::frame`].
    StorageTooSmall,
    /// An assertion in a kernel failed.
    Kernel { kernel: &'static str, message: &'static str },
    /// A function outside of the program failed.
    Extern { name: &'static str, message: &'static str },
    /// Integer overflow or division by zero in shape arithmetic.
    Arithmetic { operation: &'static str },
    /// The program's table breaks a rule of the bytecode: a fault of the compiler.
    Malformed { function: &'static str, rule: &'static str },
}

impl core::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::ArgumentCount { expected, found } => {
                write!(f, "the function takes {expected} arguments (parameters and outputs), {found} were given")
            }
            Error::WrongKind { argument, expected, found } => {
                write!(f, "`{argument}` must be a {expected:?}, found a {found:?}")
            }
            Error::ReadOnly { argument } => write!(f, "`{argument}` is an output and needs a mutable buffer"),
            Error::WrongDType { argument, expected, found } => {
                write!(f, "`{argument}` must have dtype {expected}, found {found}")
            }
            Error::WrongRank { argument, expected, found } => {
                write!(f, "`{argument}` must have {expected} dimensions, found {found}")
            }
            Error::WrongDim { argument, axis, expected, found } => {
                write!(f, "`{argument}` must have extent {expected} on axis {axis}, found {found}")
            }
            Error::WrongSymbol { argument, axis, symbol, bound, found } => {
                write!(f, "`{argument}` must have extent {symbol} = {bound} on axis {axis}, found {found}")
            }
            Error::AboveBound { symbol, most, found } => {
                write!(f, "{symbol} must be at most {most}, found {found}")
            }
            Error::BelowBound { symbol, least, found } => {
                write!(f, "{symbol} must be at least {least}, found {found}")
            }
            Error::BadShape { argument } => {
                write!(f, "the shape of `{argument}` has a negative extent or too many elements")
            }
            Error::WrongLength { argument, expected, found } => {
                write!(f, "the shape of `{argument}` has {expected} elements, its buffer {found}")
            }
            Error::NotContiguous { argument } => {
                write!(f, "`{argument}` must be contiguous in row-major order; copy it first")
            }
            Error::ArenaTooSmall { needed, available } => {
                write!(f, "the call needs an arena of {needed} bytes, {available} are available")
            }
            Error::ArenaMemory { bytes } => write!(f, "there is no memory for an arena of {bytes} bytes"),
            Error::Unbounded { tensor, symbol } => {
                write!(
                    f,
                    "the size of `{tensor}` depends on {symbol}, which has no upper bound: state one in the function's \
                     attribute tir_var_upper_bound or with R.at_most, or enable the feature `alloc` of tvm-runtime"
                )
            }
            Error::UnequalRows { tensor } => {
                write!(f, "the rows of `{tensor}`, which a loop stacks, have not all the same shape")
            }
            Error::BadPosition { position, len } => write!(f, "there is no position {position} in a list of {len}"),
            Error::UnequalItems { position } => {
                write!(
                    f,
                    "item {position} of a list has not the shape and dtype that joining it with those before it needs"
                )
            }
            Error::PackedRows => {
                f.write_str("elements of less than a byte cannot be joined, split or stacked at run time")
            }
            Error::EmptyList => f.write_str("a list without items cannot be joined to a tensor"),
            Error::BadSplit { extent, length } => {
                write!(
                    f,
                    "an axis of {extent} cannot be split as asked for: the parts end at, or one of them is, {length}"
                )
            }
            Error::ListMemory { bytes } => write!(f, "there is no memory for the {bytes} bytes of a list"),
            Error::ListsNeedAlloc => f.write_str("lists need a heap: enable the feature `alloc` of tvm-runtime"),
            Error::Text { message } => f.write_str(message),
            Error::NotANumber { node, position, dtype } => {
                write!(f, "{node}: string {position} of those that are cast is no number of the range of {dtype}")
            }
            Error::OutOfMemory { tensor, symbol, bytes } => {
                write!(f, "there is no memory for the {bytes} bytes of `{tensor}`, whose size depends on {symbol}")
            }
            Error::BadWeights { needed, available } => {
                write!(f, "the program needs {needed} bytes of weights at a 64-byte boundary, {available} were given")
            }
            Error::StorageTooSmall => f.write_str("the storage is smaller than the function's frame"),
            Error::Kernel { kernel, message } => write!(f, "kernel `{kernel}`: {message}"),
            Error::Extern { name, message } => write!(f, "external function `{name}`: {message}"),
            Error::Arithmetic { operation } => {
                write!(f, "{operation}: integer overflow or division by zero in a shape expression")
            }
            Error::Malformed { function, rule } => write!(f, "malformed program, function `{function}`: {rule}"),
        }
    }
}
