//! The arena: the memory of all tensors between kernels.

#[cfg(feature = "alloc")]
use crate::error::Error;
use core::mem::MaybeUninit;

/// Arena of `N` bytes, to be placed by the caller (a local, a `static` cell, a linker section).
#[repr(C, align(64))]
pub struct Arena<const N: usize>([MaybeUninit<u8>; N]);

impl<const N: usize> Arena<N> {
    /// Uninitialised memory.
    pub const fn new() -> Self {
        Arena([MaybeUninit::uninit(); N])
    }
}

impl<const N: usize> Default for Arena<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// One alignment unit of an arena on the heap.
#[cfg(feature = "alloc")]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// An arena, borrowed or owned; [`crate::ALIGN`]-aligned.
pub struct ArenaRef<'a>(Kind<'a>);

enum Kind<'a> {
    Borrowed(&'a mut [MaybeUninit<u8>]),
    #[cfg(feature = "alloc")]
    /// No element, and room for all: the bytes are not initialised.
    Owned(alloc::vec::Vec<Line>),
}

impl ArenaRef<'_> {
    /// Allocates at least `bytes` bytes; when there is no memory, ends the program as `Vec` does.
    #[cfg(feature = "alloc")]
    pub fn heap(bytes: usize) -> ArenaRef<'static> {
        ArenaRef(Kind::Owned(alloc::vec::Vec::with_capacity(bytes.div_ceil(size_of::<Line>()))))
    }

    /// Allocates at least `bytes` bytes. Errors: [`Error::ArenaMemory`] when there is no memory.
    #[cfg(feature = "alloc")]
    pub fn try_heap(bytes: usize) -> Result<ArenaRef<'static>, Error> {
        let mut lines = alloc::vec::Vec::new();
        lines.try_reserve_exact(bytes.div_ceil(size_of::<Line>())).map_err(|_| Error::ArenaMemory { bytes })?;
        Ok(ArenaRef(Kind::Owned(lines)))
    }

    /// Bytes available.
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Borrowed(bytes) => bytes.len(),
            #[cfg(feature = "alloc")]
            Kind::Owned(lines) => lines.capacity() * size_of::<Line>(),
        }
    }

    /// Whether no byte is available.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        match &mut self.0 {
            Kind::Borrowed(bytes) => bytes.as_mut_ptr().cast(),
            #[cfg(feature = "alloc")]
            Kind::Owned(lines) => lines.as_mut_ptr().cast(),
        }
    }
}

impl<'a, const N: usize> From<&'a mut Arena<N>> for ArenaRef<'a> {
    fn from(arena: &'a mut Arena<N>) -> Self {
        ArenaRef(Kind::Borrowed(&mut arena.0))
    }
}
