//! Tensors and lists whose type is known at run time, on the heap.

use crate::abi::ALIGN;
use crate::dtype::DType;
use crate::tensor::{Arg, ListRef, ShapeRef, TensorRef, Value, elements};
use alloc::vec::Vec;

/// Bytes at an address that is a multiple of [`ALIGN`].
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; ALIGN]);

/// Owned bytes, [`ALIGN`]-aligned.
#[derive(Clone)]
pub struct AlignedBytes {
    lines: Vec<Line>,
    len: usize,
}

impl AlignedBytes {
    /// Zeros.
    pub fn zeroed(len: usize) -> Self {
        AlignedBytes { lines: alloc::vec![Line([0; ALIGN]); len.div_ceil(ALIGN)], len }
    }

    /// Zeros; `None` when there is no memory for them.
    pub fn try_zeroed(len: usize) -> Option<Self> {
        let mut lines = Vec::new();
        lines.try_reserve_exact(len.div_ceil(ALIGN)).ok()?;
        lines.resize(len.div_ceil(ALIGN), Line([0; ALIGN]));
        Some(AlignedBytes { lines, len })
    }

    /// A copy.
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut copy = AlignedBytes::zeroed(bytes.len());
        copy.as_mut_slice().copy_from_slice(bytes);
        copy
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the lines hold at least `len` initialised bytes.
        unsafe { core::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    /// The bytes, to change.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the lines hold at least `len` initialised bytes, borrowed alone here.
        unsafe { core::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

/// A tensor whose type is known at run time: compact, row-major, elements under 8 bits packed, low bits first.
#[derive(Clone)]
pub struct AnyTensor {
    dtype: DType,
    shape: Vec<i64>,
    data: AlignedBytes,
}

impl AnyTensor {
    /// A tensor of zeros; `None` when the shape is not valid or there is no memory for it.
    pub fn zeroed(dtype: DType, shape: &[i64]) -> Option<Self> {
        let bytes = dtype.storage_bytes(elements(shape)?)?;
        Some(AnyTensor { dtype, shape: shape.to_vec(), data: AlignedBytes::try_zeroed(bytes)? })
    }

    /// A tensor of given bytes; `None` when their number does not fit. Bools must be 0 or 1.
    pub fn new(dtype: DType, shape: &[i64], bytes: &[u8]) -> Option<Self> {
        let mut tensor = AnyTensor::zeroed(dtype, shape)?;
        (tensor.data.len == bytes.len()).then(|| tensor.data.as_mut_slice().copy_from_slice(bytes))?;
        Some(tensor)
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// A tensor of given elements; `None` when their number does not fit.
    pub fn of<T: crate::Element>(shape: &[i64], elements: &[T]) -> Option<Self> {
        // SAFETY: elements have no padding.
        let bytes = unsafe { core::slice::from_raw_parts(elements.as_ptr().cast::<u8>(), size_of_val(elements)) };
        AnyTensor::new(T::DTYPE, shape, bytes)
    }

    /// The elements; `None` of another type.
    pub fn elements<T: crate::Element>(&self) -> Option<&[T]> {
        let bytes = self.data.as_slice();
        // SAFETY: the bytes are as many elements of this type, aligned for every type.
        (self.dtype == T::DTYPE)
            .then(|| unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) })
    }

    /// The elements' bytes.
    pub fn bytes(&self) -> &[u8] {
        self.data.as_slice()
    }

    fn value_to_read(&self) -> (Value, usize) {
        let tensor = TensorRef {
            data: self.data.as_slice().as_ptr().cast_mut(),
            shape: ShapeRef::new(&self.shape),
            dtype: self.dtype,
        };
        (Value::Tensor(tensor), self.dtype.units(elements(&self.shape).unwrap_or(0)))
    }

    fn value(&mut self) -> (Value, usize) {
        let tensor = TensorRef {
            data: self.data.as_mut_slice().as_mut_ptr(),
            shape: ShapeRef::new(&self.shape),
            dtype: self.dtype,
        };
        (Value::Tensor(tensor), self.dtype.units(elements(&self.shape).unwrap_or(0)))
    }

    /// As a parameter.
    pub fn input(&mut self) -> Arg<'_> {
        let (value, len) = self.value();
        Arg::of(value, len, false)
    }

    /// As an output.
    pub fn output(&mut self) -> Arg<'_> {
        let (value, len) = self.value();
        Arg::of(value, len, true)
    }
}

/// A value whose kind is known at run time.
#[derive(Clone)]
pub enum AnyValue {
    /// A tensor.
    Tensor(AnyTensor),
    /// A sequence, or an optional of no or one item.
    List(AnyList),
}

/// A list of values: a sequence, or an optional of no or one item.
#[derive(Default)]
pub struct AnyList {
    items: Vec<AnyValue>,
    /// What a call sees of them: pointers to what the items own on the heap.
    values: Vec<Value>,
}

impl AnyList {
    /// A list of these items.
    pub fn new(items: Vec<AnyValue>) -> Self {
        let values = items.iter().map(|item| item.value().0).collect();
        AnyList { items, values }
    }

    /// The items.
    pub fn items(&self) -> &[AnyValue] {
        &self.items
    }

    /// The items, to keep.
    pub fn into_items(self) -> Vec<AnyValue> {
        self.items
    }

    /// As a parameter.
    pub fn as_input(&self) -> Arg<'_> {
        Arg::of(Value::List(ListRef::new(&self.values)), 0, false)
    }
}

/// The copy owns copies of the items.
impl Clone for AnyList {
    fn clone(&self) -> Self {
        AnyList::new(self.items.clone())
    }
}

impl<T: Into<AnyValue>> FromIterator<T> for AnyList {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        AnyList::new(items.into_iter().map(Into::into).collect())
    }
}

impl From<AnyList> for AnyValue {
    fn from(list: AnyList) -> Self {
        AnyValue::List(list)
    }
}

impl From<AnyTensor> for AnyValue {
    fn from(tensor: AnyTensor) -> Self {
        AnyValue::Tensor(tensor)
    }
}

impl AnyValue {
    /// The tensor, if it is one.
    pub fn as_tensor(&self) -> Option<&AnyTensor> {
        match self {
            AnyValue::Tensor(tensor) => Some(tensor),
            AnyValue::List(_) => None,
        }
    }

    /// The list, if it is one.
    pub fn as_list(&self) -> Option<&AnyList> {
        match self {
            AnyValue::List(list) => Some(list),
            AnyValue::Tensor(_) => None,
        }
    }

    fn value(&self) -> (Value, usize) {
        match self {
            AnyValue::Tensor(tensor) => tensor.value_to_read(),
            AnyValue::List(list) => (Value::List(ListRef::new(&list.values)), 0),
        }
    }

    /// As a parameter.
    pub fn input(&mut self) -> Arg<'_> {
        let (value, len) = self.value();
        Arg::of(value, len, false)
    }

    /// A copy of what a call gave.
    ///
    /// # Safety
    ///
    /// What `value` points to is as the call left it.
    pub(crate) unsafe fn copy(value: &Value) -> Option<AnyValue> {
        match value {
            Value::Tensor(tensor) => {
                // SAFETY: as the caller promises.
                let dims = unsafe { tensor.shape().dims() };
                let mut copy = AnyTensor::zeroed(tensor.dtype(), dims)?;
                let bytes = copy.data.as_mut_slice();
                // SAFETY: the tensor holds as many bytes; the copy is new memory.
                unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(tensor.as_ptr(), bytes.len()) };
                Some(AnyValue::Tensor(copy))
            }
            Value::List(list) => {
                // SAFETY: as the caller promises.
                let items = unsafe { list.items() };
                // SAFETY: as the caller promises.
                let copies = items.iter().map(|item| unsafe { AnyValue::copy(item) });
                Some(AnyValue::List(AnyList::new(copies.collect::<Option<_>>()?)))
            }
            _ => None,
        }
    }
}
