//! Bounds on what a model file may ask for.

/// Bounds on what a model file may ask for. A file beyond one of them is refused before the memory for it is
/// taken. The defaults fit models of tens of gigabytes of weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the model file, and of each file of external data.
    pub file_bytes: u64,
    /// Elements of the file's structure: nodes, attributes, names, tensors, dimensions and so on.
    pub items: u64,
    /// Elements of one tensor.
    pub tensor_elements: u64,
    /// Bytes that may be allocated to make sparse tensors dense, together.
    pub dense_bytes: u64,
}

/// Most axes that a tensor may have.
pub(super) const MAX_RANK: usize = 64;

/// Most elements of a list of extents, axes or parts that is an input.
pub(super) const MAX_LENGTH: usize = 1 << 16;

/// A sentence if a shape has too many axes.
pub(super) fn check_rank(rank: usize) -> Result<(), String> {
    if rank > MAX_RANK {
        Err(format!("a tensor has {rank} dimensions, and at most {MAX_RANK} are allowed"))
    } else {
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { file_bytes: 1 << 37, items: 1 << 22, tensor_elements: 1 << 40, dense_bytes: 1 << 28 }
    }
}
