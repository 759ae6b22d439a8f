//! A chunk: a cache line of slot numbers, holes between them, and the links to its neighbours.

/// Slot numbers a chunk.
pub(in crate::local) const PER_CHUNK: u32 = 14;
/// Words of a chunk behind the numbers: the link to its neighbour, and below it a count.
pub(super) const NEXT: usize = PER_CHUNK as usize;
pub(super) const PREV: usize = NEXT + 1;
/// Below the links: how many places of the chunk have been used, by [`NEXT`], and how many hold a
/// number, by [`PREV`].
pub(super) const COUNT_MASK: u32 = 15;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Chunk(pub(super) [u32; 16]);

const _: () = assert!(size_of::<Chunk>() == 64);

impl Chunk {
    #[inline]
    pub(super) fn used(&self) -> u32 {
        self.0[NEXT] & COUNT_MASK
    }

    #[inline]
    pub(super) fn held(&self) -> u32 {
        self.0[PREV] & COUNT_MASK
    }

    #[inline]
    pub(super) fn link(&self, word: usize) -> u32 {
        self.0[word] >> 4
    }

    pub(super) fn set_link(&mut self, word: usize, link: u32) {
        self.0[word] = link << 4 | self.0[word] & COUNT_MASK;
    }

    /// Adds a number behind the others; there is room. Returns where.
    #[inline]
    pub(super) fn add(&mut self, slot: u32) -> u32 {
        let used = self.used();
        self.0[(used & COUNT_MASK) as usize] = slot;
        self.0[NEXT] += 1;
        self.0[PREV] += 1;
        used
    }
}
