#![no_std]
//! Runtime of ahead-of-time compiled IRModules.
//!
//! A compiled module is a [`Program`]: a `static` table of functions made of TVM's four VM
//! instructions ([`Instr`]), the constants they name, and native kernels with one C signature
//! ([`Kernel`]). [`State`] joins a program, its weights and one arena; [`State::call`] checks the
//! arguments once against the signature and runs the table. Nothing is parsed, registered or looked
//! up by name, and no call allocates: registers and shapes lie in a [`Storage`] on the caller's
//! stack, tensors in the arena at offsets fixed by the compiler. Only tensors whose size depends on data
//! and has no upper bound lie in blocks on the heap, which stay for later calls (feature `alloc`).
//!
//! # Frames
//!
//! A function owns a window of registers, of the shape heap and of the arena; a callee's windows
//! begin where its caller's end. A function may call only functions with a smaller index, so depth is
//! bounded and [`Function::frame`] states everything a call needs. Registers `0..params` hold the
//! parameters, the next ones the output tensors the caller provides (destination passing), the
//! rest is the function's own. A symbolic variable is a register that holds an integer.
//!
//! # Safety
//!
//! A program is trusted: [`State::new`] is `unsafe` and asks that it was produced by the compiler.
//! From there on calls are safe: [`Arg`] borrows what a call reads and writes.
//!
//! # Features
//!
//! `std` (default): run-time choice of the ISA level. `alloc`: arenas on the heap. `ndarray`: views
//! in and arrays out. `host`: kernels from a shared library, for tools. The core needs none of them.

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod abi;
#[cfg(feature = "alloc")]
mod any;
pub mod builtin;
mod bytecode;
mod check;
mod dtype;
mod error;
mod float8;
mod frame;
mod half;
#[cfg(feature = "host")]
pub mod host;
mod isa;
mod lists;
mod memory;
#[cfg(feature = "ndarray")]
pub mod nd;
pub mod number;
mod overflow;
mod packed;
mod state;
mod tensor;
mod text;
mod texts;
mod verify;
mod vm;

pub use abi::{ALIGN, C_HEADER, Context, Kernel, ParallelFor, Task};
#[cfg(feature = "alloc")]
pub use any::{AlignedBytes, AnyList, AnyTensor, AnyValue};
pub use bytecode::{
    Callee, Constant, Dim, Extern, FrameSize, Function, Instr, KernelTable, Operand, Param, Program, Reg, TensorType,
    Type, VOID,
};
pub use dtype::{DType, TypeCode};
pub use error::{Error, Kind};
pub use float8::{F8E4M3Fn, F8E4M3FnUz, F8E5M2, F8E5M2FnUz, F8E8M0Fnu};
pub use half::{Bf16, F16};
pub use isa::{IsaLevel, isa_level};
pub use memory::{Arena, ArenaRef};
pub use packed::{F4E2M1x2, I2x4, I4x2, U2x4, U4x2};
pub use state::State;
pub use tensor::{Arg, Element, ListRef, ShapeRef, TensorRef, TensorView, Value, dim};
pub use texts::Text;
pub use vm::Storage;

/// Includes the module that the build script generated under this name.
#[macro_export]
macro_rules! include_module {
    ($name:ident) => {
        include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs"));
    };
}

#[cfg(test)]
mod tests;
