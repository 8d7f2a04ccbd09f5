//! What C-like languages say differently. The defaults are C99; a dialect overrides the few hooks it needs.

use super::prelude;
use tvm_ir::diag::Diag;
use tvm_ir::lowered::Space;
use tvm_ir::name::Name;
use tvm_ir::span::Span;

/// A C-like language.
pub trait Dialect {
    /// Name shown to users.
    fn name(&self) -> &'static str;

    /// Ending of a source file, without the dot.
    fn extension(&self) -> &'static str;

    /// What a file begins with.
    fn head(&self) -> &'static str;

    /// Definitions of every helper that a text names.
    fn helpers(&self, text: &str) -> Result<String, Diag> {
        prelude::helpers(text)
    }

    /// Whether vector types exist; without, vectors are written as loops over lanes.
    fn has_vectors(&self) -> bool {
        true
    }

    /// What stands before a kernel's result type.
    fn kernel_qualifier(&self) -> &'static str {
        ""
    }

    /// The word after `*` of a pointer that no other reaches.
    fn restrict(&self) -> &'static str {
        "restrict "
    }

    /// A line before a loop to be unrolled; empty when there is none.
    fn unroll_hint(&self) -> &'static str {
        "TVM_UNROLL"
    }

    /// Whether a parallel loop becomes tasks of the context's `parallel_for`.
    fn has_tasks(&self) -> bool {
        true
    }

    /// Index of the thread along an axis, as `threadIdx.x`.
    fn thread_index(&self, axis: &Name) -> Result<String, Diag> {
        Err(Diag::error(Span::NONE, format!("{} has no thread axis `{axis}`", self.name()))
            .help("schedule the function for a CPU: bind no loop to a thread axis"))
    }

    /// What stands before the type of an array.
    fn space(&self, space: Space) -> Result<&'static str, Diag> {
        match space {
            Space::Local => Ok(""),
            Space::Shared => Err(Diag::error(Span::NONE, format!("{} has no shared memory", self.name()))
                .help("schedule the function for a CPU: keep its buffers in the scope `global` or `local`")),
        }
    }

    /// A barrier as a statement.
    fn barrier(&self, space: Space) -> Result<String, Diag> {
        Err(Diag::error(Span::NONE, format!("{} has no barrier of {space:?} memory", self.name())))
    }
}
