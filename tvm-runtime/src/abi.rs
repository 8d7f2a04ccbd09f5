//! The C ABI of kernels. `include/tvm_runtime.h` says the same in C.

use core::ffi::c_void;

/// Text of the C header that generated sources include.
pub const C_HEADER: &str = include_str!("../include/tvm_runtime.h");

/// Alignment in bytes of the arena, of weights and of a kernel's workspace.
///
/// Tensors handed in by a caller have the alignment of their element only.
pub const ALIGN: usize = 64;

/// A compiled PrimFunc.
///
/// `args`: buffers in the order of its parameters, inputs then outputs. `dims`: its scalar
/// parameters in order (floats as the bits of an `f64`). Returns 0, or `n` for the program's `n`-th
/// message, counted from 1, when an assertion failed.
pub type Kernel = unsafe extern "C" fn(args: *const *mut c_void, dims: *const i64, ctx: *const Context) -> i32;

/// One task of a parallel loop: 0, or a message number as a [`Kernel`] returns it.
pub type Task = unsafe extern "C" fn(task: i64, data: *mut c_void) -> i32;

/// Runs `body(0, data)` … `body(tasks - 1, data)` in any order, on any threads, and returns when
/// all have returned: 0, or the result of one that was not 0.
pub type ParallelFor = unsafe extern "C" fn(opaque: *mut c_void, tasks: i64, body: Task, data: *mut c_void) -> i32;

/// What a kernel may use besides its arguments.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// `None`: tasks run one after the other.
    pub parallel_for: Option<ParallelFor>,
    /// First argument of `parallel_for`.
    pub opaque: *mut c_void,
    /// Scratch memory of this call, [`ALIGN`]-aligned.
    pub workspace: *mut c_void,
    /// Bytes at `workspace`.
    pub workspace_bytes: usize,
}

/// What a state keeps of a thread pool; sent between threads with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parallel {
    pub(crate) run: Option<ParallelFor>,
    pub(crate) opaque: *mut c_void,
}

// SAFETY: `State::set_parallel` requires that `opaque` may be used from any thread.
unsafe impl Send for Parallel {}
// SAFETY: as above; nothing is done through a shared reference.
unsafe impl Sync for Parallel {}
