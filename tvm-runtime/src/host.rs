//! Running a program whose kernels lie in a shared library, with tensors whose type is known at run time.
//!
//! For tools and tests: generated modules link their kernels and have typed entry points.

use crate::abi::Kernel;
pub use crate::any::{AlignedBytes, AnyList as HostList, AnyTensor as HostTensor, AnyValue as HostValue};
use crate::bytecode::{Function, Program};
use crate::error::Error;
use crate::memory::ArenaRef;
use crate::state::State;
use crate::tensor::{Arg, Value};
use alloc::boxed::Box;
use alloc::rc::Rc;
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
    /// What `state` borrows its weights from; dropped after it.
    _weights: Rc<dyn AsRef<[u8]>>,
}

impl Session {
    /// Joins a program with its weights, which are not copied, and an arena on the heap. Calls fail with
    /// [`Error::BadWeights`] unless the weights lie at a multiple of [`crate::ALIGN`], as [`AlignedBytes`] and mapped files do.
    ///
    /// Errors: [`Error::ArenaMemory`] when there is no memory for the arena.
    ///
    /// # Safety
    ///
    /// As [`State::new`]. `weights` gives the same bytes, at the same address, as long as it lives.
    pub unsafe fn new(program: &'static Program, weights: impl AsRef<[u8]> + 'static) -> Result<Self, Error> {
        let arena = program.functions.iter().map(|f| f.frame.arena).max().unwrap_or(0);
        let arena = ArenaRef::try_heap(arena)?;
        let weights: Rc<dyn AsRef<[u8]>> = Rc::new(weights);
        let bytes = (*weights).as_ref();
        // SAFETY: the bytes stay where they are until the session, which owns them, has dropped its state.
        let bytes: &'static [u8] = unsafe { core::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        // SAFETY: the caller keeps the contract.
        let state = unsafe { State::new(program, bytes, arena) };
        Ok(Session { state, _weights: weights })
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

    /// Makes the arena at least this large; see [`State::reserve`].
    pub fn reserve(&mut self, bytes: usize) -> Result<(), Error> {
        self.state.reserve(bytes)
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
