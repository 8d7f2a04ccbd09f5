//! Running a program whose kernels lie in a shared library, with tensors whose type is known at run time.
//!
//! For tools and tests: generated modules link their kernels and have typed entry points.

use crate::abi::{ALIGN, Kernel};
use crate::bytecode::{Function, Program};
use crate::dtype::DType;
use crate::error::Error;
use crate::memory::ArenaRef;
use crate::state::State;
use crate::tensor::{Arg, ListRef, ShapeRef, TensorRef, Value, elements};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::c_void;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Loads the kernels of these symbols from a shared library, which stays loaded until the process ends.
///
/// The error is the loader's message.
///
/// # Safety
///
/// The library was made by the compiler: it runs no code when loaded, and each symbol is a [`Kernel`].
pub unsafe fn load_kernels(library: &Path, symbols: &[&str]) -> Result<&'static [Kernel], libloading::Error> {
    // SAFETY: loading runs no code, as the caller promises.
    let library = unsafe { libloading::Library::new(library) }?;
    let library: &'static libloading::Library = Box::leak(Box::new(library));
    let kernels: Result<Vec<Kernel>, libloading::Error> = symbols
        .iter()
        // SAFETY: the symbol is a kernel, as the caller promises; the library is never unloaded.
        .map(|symbol| unsafe { library.get::<Kernel>(symbol.as_bytes()) }.map(|kernel| *kernel))
        .collect();
    Ok(kernels?.leak())
}

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

/// A tensor whose type is known at run time: compact, row-major, elements under 8 bits packed, low bits first.
#[derive(Clone)]
pub struct HostTensor {
    dtype: DType,
    shape: Vec<i64>,
    data: AlignedBytes,
}

impl HostTensor {
    /// A tensor of zeros; `None` when the shape is not valid.
    pub fn zeroed(dtype: DType, shape: &[i64]) -> Option<Self> {
        let bytes = dtype.storage_bytes(elements(shape)?)?;
        Some(HostTensor { dtype, shape: shape.to_vec(), data: AlignedBytes::zeroed(bytes) })
    }

    /// A tensor of given bytes; `None` when their number does not fit. Bools must be 0 or 1.
    pub fn new(dtype: DType, shape: &[i64], bytes: &[u8]) -> Option<Self> {
        let mut tensor = HostTensor::zeroed(dtype, shape)?;
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
        HostTensor::new(T::DTYPE, shape, bytes)
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
pub enum HostValue {
    /// A tensor.
    Tensor(HostTensor),
    /// A sequence, or an optional of no or one item.
    List(HostList),
}

/// A list of values.
#[derive(Clone, Default)]
pub struct HostList {
    items: Vec<HostValue>,
    /// What a call sees of them.
    values: Vec<Value>,
}

impl HostList {
    /// A list of these items.
    pub fn new(items: Vec<HostValue>) -> Self {
        HostList { items, values: Vec::new() }
    }

    /// The items.
    pub fn items(&self) -> &[HostValue] {
        &self.items
    }
}

impl From<HostTensor> for HostValue {
    fn from(tensor: HostTensor) -> Self {
        HostValue::Tensor(tensor)
    }
}

impl HostValue {
    /// The tensor, if it is one.
    pub fn as_tensor(&self) -> Option<&HostTensor> {
        match self {
            HostValue::Tensor(tensor) => Some(tensor),
            HostValue::List(_) => None,
        }
    }

    fn value(&mut self) -> (Value, usize) {
        match self {
            HostValue::Tensor(tensor) => tensor.value(),
            HostValue::List(list) => {
                list.values = list.items.iter_mut().map(|item| item.value().0).collect();
                (Value::List(ListRef::new(&list.values)), 0)
            }
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
    unsafe fn copy(value: &Value) -> Option<HostValue> {
        match value {
            Value::Tensor(tensor) => {
                // SAFETY: as the caller promises.
                let dims = unsafe { tensor.shape().dims() };
                let mut copy = HostTensor::zeroed(tensor.dtype(), dims)?;
                let bytes = copy.data.as_mut_slice();
                // SAFETY: the tensor holds as many bytes; the copy is new memory.
                unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(tensor.as_ptr(), bytes.len()) };
                Some(HostValue::Tensor(copy))
            }
            Value::List(list) => {
                // SAFETY: as the caller promises.
                let items = unsafe { list.items() };
                // SAFETY: as the caller promises.
                let copies = items.iter().map(|item| unsafe { HostValue::copy(item) });
                Some(HostValue::List(HostList::new(copies.collect::<Option<_>>()?)))
            }
            _ => None,
        }
    }
}

/// Registers, integers and pointers of calls of one function, on the heap.
pub struct HostStorage {
    registers: Vec<Value>,
    ints: Vec<i64>,
    pointers: Vec<*mut c_void>,
}

impl HostStorage {
    /// As much as the function needs.
    pub fn new(function: &Function) -> Self {
        HostStorage {
            registers: alloc::vec![Value::None; function.frame.registers],
            ints: alloc::vec![0; function.frame.ints],
            pointers: alloc::vec![core::ptr::null_mut(); function.frame.pointers],
        }
    }
}

/// A program that runs in this process. It owns its weights and its arena.
pub struct Session {
    state: State<'static>,
}

impl Session {
    /// Joins a program with its weights (copied once, for alignment) and an arena on the heap.
    ///
    /// # Safety
    ///
    /// As [`State::new`].
    pub unsafe fn new(program: &'static Program, weights: &[u8]) -> Self {
        let weights: &'static AlignedBytes = Box::leak(Box::new(AlignedBytes::copy_of(weights)));
        let arena = program.functions.iter().map(|f| f.frame.arena).max().unwrap_or(0);
        // SAFETY: the caller keeps the contract.
        Session { state: unsafe { State::new(program, weights.as_slice(), ArenaRef::heap(arena)) } }
    }

    /// The index of a function.
    pub fn function(&self, name: &str) -> Option<usize> {
        self.state.program().functions.iter().position(|f| f.name == name)
    }

    /// Calls a function with its parameters, then its outputs. Allocates nothing.
    pub fn call(&mut self, function: usize, args: &[Arg<'_>], storage: &mut HostStorage) -> Result<Value, Error> {
        self.state.enter(function, args, &mut storage.registers, &mut storage.ints, &mut storage.pointers)
    }

    /// Copies of the tensors that a call returned, in order.
    ///
    /// # Safety
    ///
    /// As [`Session::returned_values`].
    pub unsafe fn returned(&self, value: Value, storage: &HostStorage) -> Vec<HostTensor> {
        // SAFETY: the caller keeps the contract.
        let values = unsafe { self.returned_values(value, storage) }.into_iter();
        let tensor = |v| match v {
            HostValue::Tensor(tensor) => Some(tensor),
            HostValue::List(_) => None,
        };
        values.filter_map(tensor).collect()
    }

    /// Copies of the tensors and lists that a call returned, in order.
    ///
    /// # Safety
    ///
    /// `value` is what the last call, made with this storage, returned, and its arguments are still there.
    pub unsafe fn returned_values(&self, value: Value, storage: &HostStorage) -> Vec<HostValue> {
        let values = match value {
            Value::Tuple { first, len } => {
                storage.registers.get(first.into()..first.saturating_add(len).into()).unwrap_or_default()
            }
            ref one => core::slice::from_ref(one),
        };
        // SAFETY: the arguments, the state's memory and the storage are as the call left them.
        values.iter().filter_map(|v| unsafe { HostValue::copy(v) }).collect()
    }

    /// Bytes on the heap beyond the arena; see [`State::overflow_bytes`].
    pub fn overflow_bytes(&self) -> usize {
        self.state.overflow_bytes()
    }

    /// The state behind it.
    pub fn state(&mut self) -> &mut State<'static> {
        &mut self.state
    }

    /// Makes the arena at least this large.
    pub fn reserve(&mut self, bytes: usize) {
        self.state.reserve(bytes);
    }
}

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, counting its calls. A program makes it its `#[global_allocator]`.
pub struct CountingAllocator;

impl CountingAllocator {
    /// Allocations and reallocations of this process so far.
    pub fn count() -> u64 {
        ALLOCATIONS.load(Ordering::Relaxed)
    }
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract is the same.
        unsafe { System.realloc(ptr, layout, size) }
    }
}
