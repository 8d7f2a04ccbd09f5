//! Memory for tensors whose size is known only after something has run and has no upper bound: the overflow store.
//!
//! Tensors of known or bounded size lie in the arena; a program without others never comes here.

/// Blocks on the heap, [`crate::ALIGN`]-aligned.
///
/// A block is in use from [`Overflow::take`] until [`Overflow::give_back`] or [`Overflow::begin`]. It stays allocated
/// for the next one that needs no more, so that calls of like sizes allocate once. Without the feature `alloc` there
/// are no blocks.
#[derive(Default)]
pub(crate) struct Overflow {
    #[cfg(feature = "alloc")]
    blocks: alloc::vec::Vec<heap::Block>,
}

impl Overflow {
    /// A new call: nothing is in use.
    pub(crate) fn begin(&mut self) {
        #[cfg(feature = "alloc")]
        self.blocks.iter_mut().for_each(|b| b.used = false);
    }

    /// At least `bytes` bytes, not initialised; `None` when there is no memory, or no heap.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<*mut u8> {
        if bytes == 0 {
            return Some(core::ptr::without_provenance_mut(crate::ALIGN));
        }
        #[cfg(feature = "alloc")]
        return self.block(bytes);
        #[cfg(not(feature = "alloc"))]
        None
    }

    /// Memory of at least `bytes` bytes that begins with the first `used` bytes at `start`, whose use ends: the block that
    /// begins there, if it is large enough, else one of twice the size. What lies elsewhere is copied only. `None` as for
    /// [`Overflow::take`].
    pub(crate) fn grow(&mut self, start: *mut u8, used: usize, bytes: usize) -> Option<*mut u8> {
        #[cfg(feature = "alloc")]
        if self.blocks.iter().any(|b| b.used && core::ptr::eq(b.start(), start) && b.len() >= bytes) {
            return Some(start);
        }
        let room = if used == 0 { bytes } else { bytes.max(used.saturating_mul(2)) };
        let to = self.take(room)?;
        // SAFETY: the caller's tensor holds `used` bytes, the new block as many; blocks in use are apart.
        unsafe { to.copy_from_nonoverlapping(start, used) };
        self.give_back(start);
        Some(to)
    }

    /// Ends the use of the block that begins here; without effect on other memory.
    pub(crate) fn give_back(&mut self, _start: *const u8) {
        #[cfg(feature = "alloc")]
        if let Some(block) = self.blocks.iter_mut().find(|b| core::ptr::eq(b.start(), _start)) {
            block.used = false;
        }
    }

    /// Bytes allocated, in use or not.
    pub(crate) fn len(&self) -> usize {
        #[cfg(feature = "alloc")]
        return self.blocks.iter().map(heap::Block::len).sum();
        #[cfg(not(feature = "alloc"))]
        0
    }
}

#[cfg(feature = "alloc")]
impl Overflow {
    /// The smallest free block that is large enough; else a new one, in the place of the largest free block.
    fn block(&mut self, bytes: usize) -> Option<*mut u8> {
        let free = |b: &heap::Block| !b.used;
        let fits = self.blocks.iter_mut().filter(|b| free(b) && b.len() >= bytes).min_by_key(|b| b.len());
        if let Some(block) = fits {
            block.used = true;
            return Some(block.start());
        }
        let small = (0..self.blocks.len()).filter(|&i| free(&self.blocks[i])).max_by_key(|&i| self.blocks[i].len());
        if let Some(small) = small {
            self.blocks.swap_remove(small);
        }
        let block = heap::Block::new(bytes)?;
        let start = block.start();
        self.blocks.push(block);
        Some(start)
    }
}

#[cfg(feature = "alloc")]
mod heap {
    use crate::abi::ALIGN;
    use core::alloc::Layout;
    use core::ptr::NonNull;

    /// An allocation, owned by raw pointer: moving a block moves no memory and ends no borrow.
    pub(super) struct Block {
        start: NonNull<u8>,
        layout: Layout,
        pub(super) used: bool,
    }

    // SAFETY: a block owns its memory; only who has the store for itself reaches it.
    unsafe impl Send for Block {}
    // SAFETY: as above; nothing is done through a shared reference.
    unsafe impl Sync for Block {}

    impl Block {
        /// A block in use; `None` when there is no memory for it.
        pub(super) fn new(bytes: usize) -> Option<Block> {
            let layout = Layout::from_size_align(bytes.checked_next_multiple_of(ALIGN)?.max(ALIGN), ALIGN).ok()?;
            // SAFETY: the size is not 0.
            let start = NonNull::new(unsafe { alloc::alloc::alloc(layout) })?;
            Some(Block { start, layout, used: true })
        }

        pub(super) fn start(&self) -> *mut u8 {
            self.start.as_ptr()
        }

        pub(super) fn len(&self) -> usize {
            self.layout.size()
        }
    }

    impl Drop for Block {
        fn drop(&mut self) {
            // SAFETY: allocated with this layout, freed once.
            unsafe { alloc::alloc::dealloc(self.start.as_ptr(), self.layout) }
        }
    }
}

#[cfg(test)]
#[cfg(feature = "alloc")]
mod tests {
    use super::Overflow;

    fn take(o: &mut Overflow, bytes: usize) -> *mut u8 {
        let start = o.take(bytes).unwrap();
        assert_eq!(start.addr() % crate::ALIGN, 0);
        // SAFETY: the block holds as many bytes.
        unsafe { start.write_bytes(0xAB, bytes) };
        start
    }

    #[test]
    fn blocks_are_apart_and_stay_where_they_are() {
        let mut o = Overflow::default();
        let starts: std::vec::Vec<*mut u8> = (0..20).map(|i| take(&mut o, 64 * i)).collect();
        for (i, a) in starts.iter().enumerate().skip(1) {
            // SAFETY: the block is in use, and written by `take`.
            assert_eq!(unsafe { a.add(64 * i - 1).read() }, 0xAB);
            assert!(starts.iter().skip(i + 1).all(|b| a != b));
        }
    }

    #[test]
    fn blocks_are_used_again() {
        let mut o = Overflow::default();
        let (a, b) = (take(&mut o, 100), take(&mut o, 1000));
        assert_eq!(o.len(), 128 + 1024);
        o.give_back(a);
        assert_eq!(take(&mut o, 128), a);
        o.begin();
        // The smallest that holds it; one that none holds takes the place of the largest.
        assert_eq!(take(&mut o, 10), a);
        take(&mut o, 2000);
        assert_eq!(o.len(), 128 + 2048);
        o.give_back(b);
        o.give_back(core::ptr::null());
        assert_eq!(take(&mut o, 0).addr(), crate::ALIGN);
    }

    #[test]
    fn blocks_grow() {
        let mut o = Overflow::default();
        let mut at = o.take(0).unwrap();
        let (mut used, mut moves) = (0, 0);
        for i in 0..100u8 {
            let to = o.grow(at, used, used + 100).unwrap();
            moves += usize::from(to != at);
            // SAFETY: the block holds as many bytes.
            unsafe { to.add(used).write_bytes(i, 100) };
            (at, used) = (to, used + 100);
        }
        // SAFETY: written above.
        assert!((0..used).all(|i| usize::from(unsafe { at.add(i).read() }) == i / 100));
        assert!(moves <= 9, "{moves}");
        assert!(o.len() <= 3 * used, "{}", o.len());
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(Overflow::default().take(usize::MAX).is_none());
        assert!(Overflow::default().take(isize::MAX as usize).is_none());
    }
}
