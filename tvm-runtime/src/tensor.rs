//! Tensors and values of the VM.

use crate::dtype::DType;
use crate::error::{Error, Kind};
use crate::float8::{F8E4M3Fn, F8E4M3FnUz, F8E5M2, F8E5M2FnUz, F8E8M0Fnu};
use crate::half::{Bf16, F16};
use crate::packed::{F4E2M1x2, I2x4, I4x2, U2x4, U4x2};
use core::marker::PhantomData;

/// A Rust type that can be the element of a tensor, or the byte that holds several ([`crate::I4x2`]).
///
/// # Safety
///
/// `DTYPE` describes the size and meaning of the type's bytes, and the type has no padding.
pub unsafe trait Element: Copy + 'static {
    /// The element type's [`DType`].
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty, $dtype:ident;)*) => {
        // SAFETY: each row pairs a plain type with the DType of its size and meaning.
        $(unsafe impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        })*
    };
}

elements! {
    bool, BOOL; i8, I8; i16, I16; i32, I32; i64, I64; u8, U8; u16, U16; u32, U32; u64, U64;
    F16, F16; Bf16, BF16; f32, F32; f64, F64;
    F8E4M3Fn, F8E4M3FN; F8E4M3FnUz, F8E4M3FNUZ; F8E5M2, F8E5M2; F8E5M2FnUz, F8E5M2FNUZ; F8E8M0Fnu, F8E8M0FNU;
    crate::texts::Text, TEXT; I4x2, I4; U4x2, U4; F4E2M1x2, F4E2M1FN; I2x4, I2; U2x4, U2;
}

/// A compact row-major tensor in memory that something else owns.
///
/// Plain pointers: using one is `unsafe`, holding one is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorRef {
    pub(crate) data: *mut u8,
    pub(crate) shape: ShapeRef,
    pub(crate) dtype: DType,
}

/// Extents in memory that something else owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShapeRef {
    pub(crate) dims: *const i64,
    pub(crate) rank: u16,
}

impl ShapeRef {
    /// Points to `dims`, of which at most 65,535 count.
    pub(crate) const fn new(dims: &[i64]) -> Self {
        let rank = if dims.len() > u16::MAX as usize { u16::MAX } else { dims.len() as u16 };
        ShapeRef { dims: dims.as_ptr(), rank }
    }

    /// The extents.
    ///
    /// # Safety
    ///
    /// The memory this was made from is alive and not written during `'a`.
    pub unsafe fn dims<'a>(self) -> &'a [i64] {
        // SAFETY: made from a slice of this length, alive as the caller promises.
        unsafe { core::slice::from_raw_parts(self.dims, self.rank as usize) }
    }
}

impl TensorRef {
    /// Element type.
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape.
    pub const fn shape(&self) -> ShapeRef {
        self.shape
    }

    /// First element.
    pub const fn as_ptr(&self) -> *mut u8 {
        self.data
    }

    /// The elements (the bytes that hold them, of packed types), or `None` when `T` is not the element type or the
    /// shape is not valid.
    ///
    /// # Safety
    ///
    /// Data and shape are alive during `'a`, the data is initialised and not written.
    pub unsafe fn as_slice<'a, T: Element>(&self) -> Option<&'a [T]> {
        if self.dtype != T::DTYPE {
            return None;
        }
        // SAFETY: alive as the caller promises.
        let len = self.dtype.units(elements(unsafe { self.shape.dims() })?);
        // SAFETY: a tensor holds as many elements of its type as its shape says.
        Some(unsafe { core::slice::from_raw_parts(self.data.cast(), len) })
    }

    /// The elements for writing, or `None` as in [`Self::as_slice`].
    ///
    /// # Safety
    ///
    /// Data and shape are alive during `'a`, the data is initialised and not used otherwise.
    pub unsafe fn as_mut_slice<'a, T: Element>(&self) -> Option<&'a mut [T]> {
        if self.dtype != T::DTYPE {
            return None;
        }
        // SAFETY: alive as the caller promises.
        let len = self.dtype.units(elements(unsafe { self.shape.dims() })?);
        // SAFETY: a tensor holds as many elements of its type as its shape says; unique as promised.
        Some(unsafe { core::slice::from_raw_parts_mut(self.data.cast(), len) })
    }
}

/// A tensor that a call has given, in memory that belongs to the module: elements in row-major order, and the shape,
/// known since the call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TensorView<'a, T, const RANK: usize> {
    data: &'a [T],
    shape: [usize; RANK],
}

impl<'a, T: Element, const RANK: usize> TensorView<'a, T, RANK> {
    /// Errors: another rank or element type.
    ///
    /// # Safety
    ///
    /// As [`TensorRef::as_slice`].
    pub(crate) unsafe fn of(tensor: TensorRef, argument: &'static str) -> Result<Self, Error> {
        // SAFETY: alive as the caller promises.
        let dims = unsafe { tensor.shape.dims() };
        if tensor.dtype != T::DTYPE {
            return Err(Error::WrongDType { argument, expected: T::DTYPE, found: tensor.dtype });
        }
        let mut shape = [0; RANK];
        if dims.len() != RANK {
            return Err(Error::WrongRank { argument, expected: RANK, found: dims.len() });
        }
        for (to, &from) in shape.iter_mut().zip(dims) {
            *to = usize::try_from(from).map_err(|_| Error::BadShape { argument })?;
        }
        // SAFETY: as above.
        let data = unsafe { tensor.as_slice() }.ok_or(Error::BadShape { argument })?;
        Ok(TensorView { data, shape })
    }
}

impl<'a, T, const RANK: usize> TensorView<'a, T, RANK> {
    /// The elements.
    pub const fn data(&self) -> &'a [T] {
        self.data
    }

    /// The extents.
    pub const fn shape(&self) -> [usize; RANK] {
        self.shape
    }
}

/// Values in memory that something else owns: a sequence, or an optional of no or one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListRef {
    pub(crate) items: *const Value,
    pub(crate) len: u32,
    /// It was made by the running program, in memory that says how many items fit into it.
    pub(crate) owned: bool,
}

impl ListRef {
    /// Points to `items`, of which at most `u32::MAX` count.
    #[cfg_attr(not(feature = "host"), allow(dead_code, reason = "arguments come from tools"))]
    pub(crate) const fn new(items: &[Value]) -> Self {
        let len = if items.len() > u32::MAX as usize { u32::MAX } else { items.len() as u32 };
        ListRef { items: items.as_ptr(), len, owned: false }
    }

    /// The items.
    ///
    /// # Safety
    ///
    /// The memory this was made from is alive during `'a`.
    pub unsafe fn items<'a>(self) -> &'a [Value] {
        // SAFETY: made from a slice of at least this length, alive as the caller promises.
        unsafe { core::slice::from_raw_parts(self.items, self.len as usize) }
    }
}

/// What a register of the VM holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// Nothing.
    None,
    /// A tensor.
    Tensor(TensorRef),
    /// A shape.
    Shape(ShapeRef),
    /// An integer or the value of a symbolic variable.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Values in `len` consecutive registers, counted over all frames.
    Tuple {
        /// First register.
        first: u16,
        /// Number of values.
        len: u16,
    },
    /// A list of tensors, or of lists.
    List(ListRef),
}

impl Value {
    /// Its kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Value::None => Kind::None,
            Value::Tensor(_) => Kind::Tensor,
            Value::Shape(_) => Kind::Shape,
            Value::Int(_) => Kind::Int,
            Value::Float(_) => Kind::Float,
            Value::Bool(_) => Kind::Bool,
            Value::Tuple { .. } => Kind::Tuple,
            Value::List(_) => Kind::List,
        }
    }
}

/// An argument of [`crate::State::call`]: a value and the borrow that keeps it usable.
#[derive(Debug)]
pub struct Arg<'a> {
    pub(crate) value: Value,
    pub(crate) len: usize,
    pub(crate) writable: bool,
    borrow: PhantomData<&'a mut ()>,
}

impl<'a> Arg<'a> {
    pub(crate) const fn of(value: Value, len: usize, writable: bool) -> Self {
        Arg { value, len, writable, borrow: PhantomData }
    }

    /// A tensor to read: row-major elements and their shape, which the call compares. Packed types take as many values
    /// as hold the elements of the shape.
    pub const fn input<T: Element>(data: &'a [T], shape: &'a [i64]) -> Self {
        let tensor =
            TensorRef { data: data.as_ptr().cast::<u8>().cast_mut(), shape: ShapeRef::new(shape), dtype: T::DTYPE };
        Self::of(Value::Tensor(tensor), data.len(), false)
    }

    /// A tensor that the call writes.
    pub const fn output<T: Element>(data: &'a mut [T], shape: &'a [i64]) -> Self {
        let len = data.len();
        let tensor = TensorRef { data: data.as_mut_ptr().cast(), shape: ShapeRef::new(shape), dtype: T::DTYPE };
        Self::of(Value::Tensor(tensor), len, true)
    }

    /// A shape.
    pub const fn shape(dims: &'a [i64]) -> Self {
        Self::of(Value::Shape(ShapeRef::new(dims)), 0, false)
    }

    /// An integer.
    pub const fn int(value: i64) -> Self {
        Self::of(Value::Int(value), 0, false)
    }

    /// A floating-point number.
    pub const fn float(value: f64) -> Self {
        Self::of(Value::Float(value), 0, false)
    }

    /// A truth value.
    pub const fn bool(value: bool) -> Self {
        Self::of(Value::Bool(value), 0, false)
    }
}

/// An extent as the VM holds it. One that no memory can hold becomes `i64::MAX`, which no buffer matches.
pub const fn dim(extent: usize) -> i64 {
    if extent as u64 > i64::MAX as u64 { i64::MAX } else { extent as i64 }
}

/// The most that extents beside a 0 may multiply to: kernels go through them although there are no elements.
const MOST_BESIDE_ZERO: u64 = 1 << 40;

/// Number of elements of a shape; `None` if an extent is negative or the product does not fit, also that of the extents
/// beside a 0.
pub(crate) fn elements(dims: &[i64]) -> Option<usize> {
    let one = |d: i64| usize::try_from(d).ok();
    if !dims.contains(&0) {
        return dims.iter().try_fold(1usize, |n, &d| n.checked_mul(one(d)?));
    }
    let others = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(one(d)?.max(1)))?;
    (others as u64 <= MOST_BESIDE_ZERO).then_some(0)
}
