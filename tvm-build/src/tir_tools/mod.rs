//! Analyses and rewriters of TensorIR that passes, schedules and the lowering share.

mod access;
mod fresh;
mod func;
mod interval;

pub use access::{Access, accesses, buffers_accessed, reads_buffer, touches};
pub use fresh::freshen;
pub use func::{SymbolicVar, analyzer_of, bind_loops, symbolic_vars};
pub use interval::RunningLoops;
