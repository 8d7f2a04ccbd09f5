//! Constant tensors: referenced, never copied.

use crate::dtype::DType;
use std::fmt;
use std::sync::Arc;

/// Bytes that somebody owns (a mapped file, a vector) and a range of them. Cloning copies nothing.
#[derive(Clone)]
pub struct Bytes {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    start: usize,
    len: usize,
}

impl Bytes {
    /// All bytes of an owner.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Bytes {
        let len = owner.as_ref().len();
        Bytes { owner: Arc::new(owner), start: 0, len }
    }

    /// A range of these bytes; `None` when it leaves them.
    pub fn slice(&self, start: usize, len: usize) -> Option<Bytes> {
        (start.checked_add(len)? <= self.len).then(|| Bytes {
            owner: self.owner.clone(),
            start: self.start + start,
            len,
        })
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        (*self.owner).as_ref().get(self.start..self.start + self.len).unwrap_or(&[])
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.as_ref()
    }
}

/// A constant tensor: compact row-major little-endian elements (4-bit types packed low nibble first).
///
/// Invariant: `data.len() == dtype.storage_bytes(product of shape)`.
#[derive(Clone)]
pub struct Constant(Arc<ConstantNode>);

struct ConstantNode {
    dtype: DType,
    shape: Vec<u64>,
    data: Bytes,
}

/// The number of bytes does not fit shape and dtype.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeMismatch;

impl Constant {
    /// A constant over given bytes. Errors when their number does not fit shape and dtype.
    pub fn new(dtype: DType, shape: Vec<u64>, data: Bytes) -> Result<Constant, SizeMismatch> {
        let count = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d)).ok_or(SizeMismatch)?;
        if dtype.storage_bytes(count) != u64::try_from(data.len()).ok() {
            return Err(SizeMismatch);
        }
        Ok(Constant(Arc::new(ConstantNode { dtype, shape, data })))
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Dimensions, outermost first.
    pub fn shape(&self) -> &[u64] {
        &self.0.shape
    }

    /// The elements' bytes.
    pub fn data(&self) -> &Bytes {
        &self.0.data
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.0.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both are the same node (no bytes are compared).
    pub fn same_as(&self, other: &Constant) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PartialEq for Constant {
    fn eq(&self, other: &Constant) -> bool {
        self.same_as(other)
            || (self.dtype() == other.dtype() && self.shape() == other.shape() && self.data()[..] == other.data()[..])
    }
}

impl Eq for Constant {}

impl fmt::Debug for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Constant({} {:?})", self.dtype(), self.shape())
    }
}
