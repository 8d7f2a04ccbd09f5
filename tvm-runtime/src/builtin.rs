//! The functions of the runtime that a program may call.
//!
//! A builtin is one row of the table below and one function. A program refers to them by address,
//! so that those it does not use are not linked.

use crate::bytecode::{Constant, Operand};
use crate::dtype::DType;
use crate::error::Error;
use crate::tensor::{ListRef, ShapeRef, TensorRef, Value};
use crate::vm::{Fail, Frame};

/// A function of the runtime.
#[derive(Debug)]
pub struct Builtin {
    /// Name, as TVM spells it.
    pub name: &'static str,
    /// Names of the operands.
    pub params: &'static [&'static str],
    /// Whether more operands, of the kind of the last one, may follow.
    pub variadic: bool,
    pub(crate) run: fn(&mut Frame<'_>, &[Operand]) -> Result<Value, Fail>,
}

/// Builtins are equal when they have the same name.
impl PartialEq for Builtin {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

macro_rules! builtins {
    ($($(#[doc = $doc:literal])* $name:ident $text:literal ($($param:ident),* $(; $rest:ident)?) $run:expr;)*) => {
        $($(#[doc = $doc])*
        #[doc = concat!("\n\n`", $text, "(", stringify!($($param),*), $(" ", stringify!($rest), "…",)? ")`")]
        pub static $name: Builtin = Builtin {
            name: concat!("vm.builtin.", $text),
            params: &[$(stringify!($param),)* $(stringify!($rest))?],
            variadic: builtins!(@variadic $($rest)?),
            run: $run,
        };)*

        /// All builtins, each with its name in this module.
        pub static ALL: &[(&str, &Builtin)] = &[$((stringify!($name), &$name)),*];
    };
    (@variadic) => { false };
    (@variadic $rest:ident) => { true };
}

builtins! {
    /// Checks `value` against the type constant and binds the symbols it binds; gives the value.
    MATCH_CAST "match_cast" (value, ty) match_cast;
    /// Gives the value.
    COPY "copy" (value) |f, a| f.get(arg(a, 0));
    /// The shape of a tensor.
    SHAPE_OF "shape_of" (tensor) |f, a| Ok(Value::Shape(f.tensor(arg(a, 0))?.shape));
    /// Extent of an axis of a tensor or shape.
    DIM "dim" (value, axis) dim;
    /// Makes a shape in the function's heap, from `slot` on.
    MAKE_SHAPE "make_shape" (slot; dims) make_shape;
    /// Makes a shape of the elements of an integer tensor of rank 1, as `make_shape`.
    TENSOR_TO_SHAPE "tensor_to_shape" (slot, tensor) tensor_to_shape;
    /// Writes the extents of a shape to a vector of `int64` with as many elements; no value.
    SHAPE_TO_TENSOR "shape_to_tensor" (shape, tensor) shape_to_tensor;
    /// A tensor at a byte offset in the function's part of the arena, which must have room.
    ALLOC_TENSOR "alloc_tensor" (offset, shape, dtype) alloc_tensor;
    /// A tensor in the overflow store, for a size that has no bound; `tensor` and `symbol` are names for errors.
    ALLOC_OVERFLOW "alloc_overflow" (shape, dtype, tensor, symbol) alloc_overflow;
    /// A copy of a tensor in the overflow store; as `alloc_overflow`.
    CLONE_TENSOR "clone_tensor" (value, tensor, symbol) clone_tensor;
    /// `stack`, a tensor in the overflow store or without elements, with a row more at its end; its shape is made in the
    /// function's heap, from `slot` on. `stack` itself is used no more. A row of another shape than those before it is an
    /// error. `tensor` and `symbol` are names for errors.
    APPEND "append" (slot, stack, row, tensor, symbol) append;
    /// Ends the use of a tensor in the overflow store, whose memory is given to others from then on; no value, and
    /// without effect on tensors that lie elsewhere and on lists.
    FREE_OVERFLOW "free_overflow" (tensor) free_overflow;
    /// A list of values.
    LIST_MAKE "list_make" (; values) list_make;
    /// The list with a value more, before the item at a position; `None`: at the end. Positions below 0 count from the end.
    LIST_INSERT "list_insert" (list, value, position) list_insert;
    /// The list without the item at a position; `None`: the last one.
    LIST_ERASE "list_erase" (list, position) list_erase;
    /// The item at a position.
    LIST_AT "list_at" (list, position) list_at;
    /// The number of items.
    LIST_LENGTH "list_length" (list) |f, a| Ok(Value::Int(f.list(arg(a, 0))?.len.into()));
    /// The tensors of a list joined along an axis, along a new one if `new` is not 0, in the overflow store; the shape is
    /// made as in `make_shape`. `tensor` and `symbol` are names for errors.
    LIST_CONCAT "list_concat" (slot, list, axis, new, tensor, symbol) list_concat;
    /// Parts of a tensor along an axis as a list, of the lengths in a tensor, or of one length. If `keep` is 0, they have
    /// one element along the axis, and lose it.
    LIST_SPLIT "list_split" (tensor, lengths, axis, keep) list_split;
    /// The same elements in another shape with the same number of elements.
    RESHAPE "reshape" (tensor, shape) reshape;
    /// A part of a tensor's elements, from the byte `offset` on, as another tensor.
    VIEW "view" (tensor, offset, shape, dtype) view;
    /// Copies the elements of a tensor to one of the same dtype and number of elements; no value.
    COPY_TENSOR "copy_tensor" (from, to) copy_tensor;
    /// Sets every byte of a tensor; no value. Programs made to find uses of freed memory fill it so.
    FILL "fill" (tensor, byte) fill;
    /// Fails when an integer is above `most`, the bound that memory was planned for; gives the integer.
    AT_MOST "at_most" (value, most, symbol) at_most;
    /// Fails when an integer is below `least`, the bound that code was made for; gives the integer.
    AT_LEAST "at_least" (value, least, symbol) at_least;
    /// The first element of a tensor as `Int`, `Bool` or `Float`.
    READ_SCALAR "read_scalar" (tensor) |f, a| { let t = f.tensor(arg(a, 0))?; f.element(t, 0) };
    /// Puts values into registers from `first` on; gives the tuple.
    MAKE_TUPLE "make_tuple" (first; values) make_tuple;
    /// A value of a tuple.
    TUPLE_GETITEM "tuple_getitem" (tuple, index) tuple_getitem;
    /// The strings that end at these bytes of `bytes`; no value, as of all functions of strings.
    TEXT_CONSTANT "text_constant" (bytes, ends, out) crate::texts::text_constant;
    /// Strings of two tensors of one shape joined.
    TEXT_CONCAT "text_concat" (a, b, out) crate::texts::text_concat;
    /// Strings in lower case (1), in upper case (2), or as they are.
    TEXT_NORMALIZE "text_normalize" (x, case, out) crate::texts::text_normalize;
    /// How many strings are none of `stop`, at least 1; with `fold` case does not matter.
    TEXT_KEEP_COUNT "text_keep_count" (x, stop, fold, out) crate::texts::text_keep_count;
    /// Those strings, or an empty one.
    TEXT_KEEP "text_keep" (x, stop, fold, out) crate::texts::text_keep;
    /// The most pieces that a string has.
    TEXT_SPLIT_COUNT "text_split_count" (x, delimiter, most, out) crate::texts::text_split_count;
    /// The pieces of each string, filled up with empty ones, and how many they are.
    TEXT_SPLIT "text_split" (x, delimiter, most, pieces, counts) crate::texts::text_split;
    /// Whether a pattern matches all of a string.
    TEXT_MATCH "text_match" (x, pattern, out) crate::texts::text_match;
    /// Numbers as strings, as [`crate::number`] writes them; of `float32`, `float64`, `int64` and `uint64`.
    TEXT_FORMAT "text_format" (x, out) crate::texts::text_format;
    /// The numbers that strings write, as [`crate::number`] reads them, of the type of `out`, of whose integers `bits` bits
    /// count. One that writes none is an error that says `name`, what the model calls this.
    TEXT_PARSE "text_parse" (x, bits, name, out) crate::texts::text_parse;
    /// Sum of integers.
    ADD "add" (a, b) |f, a| int(f, a, "add", i64::checked_add);
    /// Difference of integers.
    SUB "sub" (a, b) |f, a| int(f, a, "sub", i64::checked_sub);
    /// Product of integers.
    MUL "mul" (a, b) |f, a| int(f, a, "mul", i64::checked_mul);
    /// Quotient rounded down.
    FLOORDIV "floordiv" (a, b) |f, a| int(f, a, "floordiv", floordiv);
    /// Remainder of `floordiv`: of the divisor's sign.
    FLOORMOD "floormod" (a, b) |f, a| int(f, a, "floormod", floormod);
    /// Smaller integer.
    MIN "min" (a, b) |f, a| int(f, a, "min", |x, y| Some(x.min(y)));
    /// Greater integer.
    MAX "max" (a, b) |f, a| int(f, a, "max", |x, y| Some(x.max(y)));
    /// 1 if the integers are equal, else 0.
    EQ "eq" (a, b) |f, a| int(f, a, "eq", |x, y| Some((x == y).into()));
    /// 1 if the first integer is smaller, else 0.
    LT "lt" (a, b) |f, a| int(f, a, "lt", |x, y| Some((x < y).into()));
    /// `a` if the condition is not 0, else `b`.
    SELECT "select" (condition, a, b) |f, a| { let taken = f.int(arg(a, 0))? != 0; f.get(arg(a, if taken { 1 } else { 2 })) };
}

pub(crate) fn arg(args: &[Operand], index: usize) -> Operand {
    args.get(index).copied().unwrap_or(Operand::None)
}

impl Frame<'_> {
    pub(crate) fn tensor(&self, operand: Operand) -> Result<TensorRef, Fail> {
        match self.get(operand)? {
            Value::Tensor(tensor) => Ok(tensor),
            _ => Err(self.malformed("a builtin's operand must be a tensor")),
        }
    }

    fn shape(&self, operand: Operand) -> Result<ShapeRef, Fail> {
        match self.get(operand)? {
            Value::Shape(shape) => Ok(shape),
            _ => Err(self.malformed("a builtin's operand must be a shape")),
        }
    }

    pub(crate) fn int(&self, operand: Operand) -> Result<i64, Fail> {
        match self.get(operand)? {
            Value::Int(value) => Ok(value),
            Value::Bool(value) => Ok(value.into()),
            _ => Err(self.malformed("a builtin's operand must be an integer")),
        }
    }

    fn list(&self, operand: Operand) -> Result<ListRef, Fail> {
        match self.get(operand)? {
            Value::List(list) => Ok(list),
            _ => Err(self.malformed("a builtin's operand must be a list")),
        }
    }

    fn dtype(&self, operand: Operand) -> Result<DType, Fail> {
        match self.constant(operand)? {
            Constant::DType(dtype) => Ok(*dtype),
            _ => Err(self.malformed("a builtin's operand must be a dtype")),
        }
    }
}

fn match_cast(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let value = f.get(arg(a, 0))?;
    let Constant::Param(param) = f.constant(arg(a, 1))? else {
        return Err(f.malformed("match_cast needs a type"));
    };
    f.check(value, param)?;
    Ok(value)
}

fn dim(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let shape = match f.get(arg(a, 0))? {
        Value::Tensor(tensor) => tensor.shape,
        _ => f.shape(arg(a, 0))?,
    };
    let axis = usize::try_from(f.int(arg(a, 1))?).ok();
    let extent = axis.and_then(|axis| f.dims(shape).get(axis));
    extent.map(|&extent| Value::Int(extent)).ok_or_else(|| f.malformed("no such axis"))
}

fn make_shape(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let slot = f.int(arg(a, 0))?;
    f.make_shape(slot, a.len().saturating_sub(1), |f, i| f.int(arg(a, i + 1)))
}

fn tensor_to_shape(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (slot, tensor) = (f.int(arg(a, 0))?, f.tensor(arg(a, 1))?);
    let rank = f.elements(tensor.shape)?;
    f.make_shape(slot, rank, |f, i| match f.element(tensor, i)? {
        Value::Int(extent) => Ok(extent),
        _ => Err(f.malformed("tensor_to_shape needs integers")),
    })
}

fn shape_to_tensor(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (shape, tensor) = (f.shape(arg(a, 0))?, f.tensor(arg(a, 1))?);
    f.write_dims(shape, tensor)?;
    Ok(Value::None)
}

fn alloc_tensor(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (offset, shape, dtype) = (f.int(arg(a, 0))?, f.shape(arg(a, 1))?, f.dtype(arg(a, 2))?);
    let bytes = dtype.storage_bytes(f.elements(shape)?);
    Ok(Value::Tensor(TensorRef { data: f.arena_bytes(offset, bytes)?, shape, dtype }))
}

pub(crate) fn name(f: &Frame<'_>, operand: Operand) -> Result<&'static str, Fail> {
    match f.constant(operand)? {
        Constant::Param(param) => Ok(param.name),
        _ => Err(f.malformed("a builtin's operand must be a name")),
    }
}

fn overflow_bytes(f: &mut Frame<'_>, bytes: usize, names: [Operand; 2]) -> Result<*mut u8, Fail> {
    let (tensor, symbol) = (name(f, names[0])?, name(f, names[1])?);
    match f.overflow.take(bytes) {
        Some(data) => Ok(data),
        None if cfg!(feature = "alloc") => Err(f.fail(Error::OutOfMemory { tensor, symbol, bytes })),
        None => Err(f.fail(Error::Unbounded { tensor, symbol })),
    }
}

fn overflow(f: &mut Frame<'_>, shape: ShapeRef, dtype: DType, names: [Operand; 2]) -> Result<TensorRef, Fail> {
    let bytes = dtype.storage_bytes(f.elements(shape)?).unwrap_or(usize::MAX);
    Ok(TensorRef { data: overflow_bytes(f, bytes, names)?, shape, dtype })
}

fn alloc_overflow(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (shape, dtype) = (f.shape(arg(a, 0))?, f.dtype(arg(a, 1))?);
    overflow(f, shape, dtype, [arg(a, 2), arg(a, 3)]).map(Value::Tensor)
}

fn clone_tensor(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let from = f.tensor(arg(a, 0))?;
    let to = overflow(f, from.shape, from.dtype, [arg(a, 1), arg(a, 2)])?;
    f.copy_elements(from, to)?;
    Ok(Value::Tensor(to))
}

fn append(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (slot, stack, row) = (f.int(arg(a, 0))?, f.tensor(arg(a, 1))?, f.tensor(arg(a, 2))?);
    let names = (name(f, arg(a, 3))?, name(f, arg(a, 4))?);
    if row.dtype.per_byte() > 1 {
        return Err(f.fail(Error::PackedRows));
    }
    let (count, elements) = match f.dims(stack.shape).split_first() {
        Some((&count, others)) if count == 0 || others == f.dims(row.shape) => (count, f.elements(row.shape)?),
        _ => return Err(f.fail(Error::UnequalRows { tensor: names.0 })),
    };
    let row_bytes = elements.saturating_mul(row.dtype.bytes());
    let used = usize::try_from(count).ok().and_then(|n| n.checked_mul(row_bytes)).unwrap_or(usize::MAX);
    let data = match f.overflow.grow(stack.data, used, used.saturating_add(row_bytes)) {
        Some(data) => data,
        None if cfg!(feature = "alloc") => {
            let bytes = used.saturating_add(row_bytes);
            return Err(f.fail(Error::OutOfMemory { tensor: names.0, symbol: names.1, bytes }));
        }
        None => return Err(f.fail(Error::Unbounded { tensor: names.0, symbol: names.1 })),
    };
    let rank = usize::from(row.shape.rank) + 1;
    let made = f.make_shape(slot, rank, |f, i| match i.checked_sub(1) {
        None => Ok(count.saturating_add(1)),
        Some(axis) => f.dims(row.shape).get(axis).copied().ok_or_else(|| f.malformed("no such axis")),
    })?;
    let Value::Shape(shape) = made else { return Err(f.malformed("a shape is made")) };
    let place = TensorRef { data: data.wrapping_add(used), ..row };
    f.copy_elements(row, place)?;
    Ok(Value::Tensor(TensorRef { data, shape, dtype: row.dtype }))
}

fn list_make(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let mut list = f.empty_list()?;
    for (i, &value) in a.iter().enumerate() {
        let value = f.get(value)?;
        list = f.insert(list, i, value)?;
    }
    Ok(Value::List(list))
}

/// A position that may be left out: then it is `default`.
fn position(f: &Frame<'_>, operand: Operand, default: usize, len: usize, end: bool) -> Result<usize, Fail> {
    match operand {
        Operand::None if end || len != 0 => Ok(default),
        Operand::None => Err(f.fail(Error::BadPosition { position: -1, len })),
        operand => f.position(f.int(operand)?, len, end),
    }
}

fn list_insert(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (list, value) = (f.list(arg(a, 0))?, f.get(arg(a, 1))?);
    let len = list.len as usize;
    let at = position(f, arg(a, 2), len, len, true)?;
    f.insert(list, at, value).map(Value::List)
}

fn list_erase(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let list = f.list(arg(a, 0))?;
    let len = list.len as usize;
    let at = position(f, arg(a, 1), len.saturating_sub(1), len, false)?;
    f.erase(list, at).map(Value::List)
}

fn list_at(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (list, at) = (f.list(arg(a, 0))?, f.int(arg(a, 1))?);
    let at = f.position(at, list.len as usize, false)?;
    f.items(list).get(at).copied().ok_or_else(|| f.malformed("no such item"))
}

fn list_concat(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (slot, list, axis) = (f.int(arg(a, 0))?, f.list(arg(a, 1))?, f.int(arg(a, 2))?);
    let (new, names) = (f.int(arg(a, 3))? != 0, [arg(a, 4), arg(a, 5)]);
    f.concat(list, axis, new, slot, |f, bytes| overflow_bytes(f, bytes, names)).map(Value::Tensor)
}

fn list_split(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (x, lengths) = (f.tensor(arg(a, 0))?, f.tensor(arg(a, 1))?);
    let (axis, keep) = (f.int(arg(a, 2))?, f.int(arg(a, 3))? != 0);
    f.split(x, lengths, axis, keep).map(Value::List)
}

fn free_overflow(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    if let Value::Tensor(tensor) = f.get(arg(a, 0))? {
        f.overflow.give_back(tensor.data);
    }
    Ok(Value::None)
}

fn reshape(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (tensor, shape) = (f.tensor(arg(a, 0))?, f.shape(arg(a, 1))?);
    let (expected, found) = (f.elements(tensor.shape)?, f.elements(shape)?);
    if expected != found {
        return Err(f.fail(Error::WrongLength { argument: "reshape", expected: found, found: expected }));
    }
    Ok(Value::Tensor(TensorRef { shape, ..tensor }))
}

fn view(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (tensor, offset) = (f.tensor(arg(a, 0))?, f.int(arg(a, 1))?);
    let (shape, dtype) = (f.shape(arg(a, 2))?, f.dtype(arg(a, 3))?);
    let whole = f.storage_bytes(tensor.dtype, f.elements(tensor.shape)?)?;
    let part = dtype.storage_bytes(f.elements(shape)?);
    match (usize::try_from(offset), part) {
        (Ok(offset), Some(part)) if offset.checked_add(part).is_some_and(|end| end <= whole) => {
            Ok(Value::Tensor(TensorRef { data: tensor.data.wrapping_add(offset), shape, dtype }))
        }
        _ => Err(f.malformed("a view leaves its tensor")),
    }
}

fn copy_tensor(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (from, to) = (f.tensor(arg(a, 0))?, f.tensor(arg(a, 1))?);
    f.copy_elements(from, to)?;
    Ok(Value::None)
}

fn fill(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (tensor, byte) = (f.tensor(arg(a, 0))?, f.int(arg(a, 1))?);
    f.fill_elements(tensor, byte as u8)?;
    Ok(Value::None)
}

fn at_most(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (found, most, symbol) = bounded(f, a)?;
    if found > most {
        return Err(f.fail(Error::AboveBound { symbol, most, found }));
    }
    Ok(Value::Int(found))
}

fn at_least(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let (found, least, symbol) = bounded(f, a)?;
    if found < least {
        return Err(f.fail(Error::BelowBound { symbol, least, found }));
    }
    Ok(Value::Int(found))
}

/// An integer, its bound and the name of its symbol.
fn bounded(f: &Frame<'_>, a: &[Operand]) -> Result<(i64, i64, &'static str), Fail> {
    let Constant::Param(symbol) = f.constant(arg(a, 2))? else {
        return Err(f.malformed("a bound needs the symbol's name"));
    };
    Ok((f.int(arg(a, 0))?, f.int(arg(a, 1))?, symbol.name))
}

fn make_tuple(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let first = u16::try_from(f.int(arg(a, 0))?).map_err(|_| f.malformed("no such register"))?;
    let len = a.len().saturating_sub(1) as u16;
    for i in 0..len {
        let value = f.get(arg(a, usize::from(i) + 1))?;
        f.set(first.saturating_add(i), value)?;
    }
    Ok(Value::Tuple { first: f.absolute(first)?, len })
}

fn tuple_getitem(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
    let index = usize::try_from(f.int(arg(a, 1))?).ok();
    let value = match (f.get(arg(a, 0))?, index) {
        (Value::Tuple { first, len }, Some(index)) if index < usize::from(len) => {
            f.registers.get(usize::from(first) + index).copied()
        }
        _ => None,
    };
    value.ok_or_else(|| f.malformed("no such item of a tuple"))
}

fn int(
    f: &mut Frame<'_>,
    a: &[Operand],
    operation: &'static str,
    compute: fn(i64, i64) -> Option<i64>,
) -> Result<Value, Fail> {
    let (x, y) = (f.int(arg(a, 0))?, f.int(arg(a, 1))?);
    compute(x, y).map(Value::Int).ok_or_else(|| f.fail(Error::Arithmetic { operation }))
}

fn floordiv(x: i64, y: i64) -> Option<i64> {
    let quotient = x.checked_div(y)?;
    Some(quotient - i64::from(x % y != 0 && (x < 0) != (y < 0)))
}

fn floormod(x: i64, y: i64) -> Option<i64> {
    let rest = x.checked_rem(y)?;
    Some(if rest != 0 && (rest < 0) != (y < 0) { rest + y } else { rest })
}
