//! Offsets for blocks of memory with known sizes and lifetimes.

use tvm_runtime::ALIGN;

/// A block: live from step `first` to step `last`, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Interval {
    pub(super) bytes: u64,
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Interval {
    /// Bytes up to the next block's alignment.
    pub(super) fn padded(&self) -> u64 {
        self.bytes.next_multiple_of(ALIGN as u64)
    }

    fn meets(&self, other: &Interval) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Offsets, multiples of [`ALIGN`], at which blocks that live at the same time do not overlap, and the end of the last
/// block. Largest blocks first, each into the smallest gap that holds it.
pub(super) fn best_fit(blocks: &[Interval]) -> (Vec<u64>, u64) {
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(blocks[i].padded()), blocks[i].first, i));
    let mut offsets = vec![0u64; blocks.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut end = 0;
    for i in order {
        let mut busy: Vec<(u64, u64)> = placed
            .iter()
            .filter(|&&j| blocks[j].meets(&blocks[i]) && blocks[j].bytes != 0)
            .map(|&j| (offsets[j], offsets[j] + blocks[j].padded()))
            .collect();
        busy.sort_unstable();
        let (need, mut at, mut best) = (blocks[i].padded(), 0, None);
        for (from, to) in busy {
            if from > at && from - at >= need && best.is_none_or(|(gap, _)| from - at < gap) {
                best = Some((from - at, at));
            }
            at = at.max(to);
        }
        offsets[i] = best.map_or(at, |(_, offset)| offset);
        end = end.max(offsets[i] + blocks[i].bytes);
        placed.push(i);
    }
    (offsets, end)
}

/// The fewest bytes that hold the blocks that live at the same time: all but the last one begin where another, padded, ends.
pub(super) fn lower_bound(blocks: &[Interval]) -> u64 {
    let live_at = |step| {
        let live = || blocks.iter().filter(move |b| b.first <= step && step <= b.last);
        let spared = live().map(|b| b.padded() - b.bytes).max().unwrap_or(0);
        live().map(Interval::padded).sum::<u64>() - spared
    };
    blocks.iter().map(|b| live_at(b.first)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: u64, first: usize, last: usize) -> Interval {
        Interval { bytes, first, last }
    }

    #[test]
    fn a_chain_takes_two_blocks() {
        let blocks = [block(100, 0, 1), block(100, 1, 2), block(100, 2, 3)];
        assert_eq!(best_fit(&blocks), (vec![0, 128, 0], 228));
        assert_eq!(lower_bound(&blocks), 228);
    }

    #[test]
    fn the_smallest_gap_is_taken() {
        // Where two short blocks lay are gaps of 128 and 64 bytes; the last block takes the latter.
        let short = [block(128, 0, 2), block(64, 0, 2)];
        let blocks = [block(256, 0, 9), short[0], block(128, 0, 9), short[1], block(64, 0, 9), block(64, 3, 9)];
        let (offsets, end) = best_fit(&blocks);
        assert_eq!((offsets, end), (vec![0, 256, 384, 512, 576, 512], 640));
        assert_eq!(end, lower_bound(&blocks));
    }

    /// A small linear congruential generator: the test is the same on every machine.
    fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        }
    }

    #[test]
    fn live_blocks_never_overlap() {
        for seed in 0..200 {
            let mut next = numbers(seed);
            let blocks: Vec<Interval> = (0..20)
                .map(|_| {
                    let first = next(30) as usize;
                    block(next(5000), first, first + next(8) as usize)
                })
                .collect();
            let (offsets, end) = best_fit(&blocks);
            assert!(end <= blocks.iter().map(Interval::padded).sum());
            for (i, a) in blocks.iter().enumerate() {
                assert_eq!(offsets[i] % 64, 0);
                assert!(offsets[i] + a.bytes <= end);
                for (j, b) in blocks.iter().enumerate().skip(i + 1) {
                    let apart = offsets[i] + a.bytes <= offsets[j] || offsets[j] + b.bytes <= offsets[i];
                    assert!(apart || !a.meets(b) || a.bytes == 0 || b.bytes == 0, "seed {seed}: {a:?} {b:?}");
                }
            }
        }
    }
}
