//! A chunk: a cache line of slot numbers with holes between them, and links to its neighbours.

/// How many slot numbers a chunk has room for.
pub(in crate::local) const PER_CHUNK: u32 = 14;
/// The index of the word with the link to the next chunk. The low bits of the word count the used
/// places of this chunk, holes included.
pub(super) const NEXT: usize = PER_CHUNK as usize;
/// The index of the word with the link to the previous chunk. The low bits of the word count the
/// places of this chunk that hold a slot number; the other used places are holes.
pub(super) const PREV: usize = NEXT + 1;
/// The bits of either count.
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

    /// Appends a slot number, for which there is room. Returns its index in the chunk.
    #[inline]
    pub(super) fn add(&mut self, slot: u32) -> u32 {
        let used = self.used();
        self.0[(used & COUNT_MASK) as usize] = slot;
        self.0[NEXT] += 1;
        self.0[PREV] += 1;
        used
    }
}
