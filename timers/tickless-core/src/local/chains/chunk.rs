//! A chunk: a cache line of slot numbers with holes between them, and links to its neighbours.

use crate::local::table::NO_SLOT;

/// How many slot numbers a chunk has room for.
pub(in crate::local) const PER_CHUNK: u32 = 14;
/// The index of the word with the link to the next chunk. The low bits of the word count the used
/// places of this chunk, holes included.
const NEXT: usize = PER_CHUNK as usize;
/// The index of the word with the link to the previous chunk. The low bits of the word count the
/// places of this chunk that hold a slot number; the other used places are holes.
const PREV: usize = NEXT + 1;
/// The bits of either count.
const COUNT_MASK: u32 = 15;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Chunk([u32; 16]);

const _: () = assert!(size_of::<Chunk>() == 64);

impl Chunk {
    pub(super) const EMPTY: Chunk = {
        let mut words = [NO_SLOT; 16];
        (words[NEXT], words[PREV]) = (0, 0);
        Chunk(words)
    };

    #[inline]
    pub(super) fn used(&self) -> u32 {
        self.0[NEXT] & COUNT_MASK
    }

    #[inline]
    pub(super) fn held(&self) -> u32 {
        self.0[PREV] & COUNT_MASK
    }

    /// Returns the places for slot numbers, used or not.
    #[inline]
    pub(super) fn places(&self) -> &[u32] {
        &self.0[..NEXT]
    }

    /// Returns the places, and two more words, which mean nothing to the caller.
    #[inline]
    pub(super) fn words(&self) -> &[u32; 16] {
        &self.0
    }

    /// Returns the next free chunk, of a chunk that is free itself.
    pub(super) fn next_free(&self) -> u32 {
        self.0[0]
    }

    pub(super) fn set_next_free(&mut self, number: u32) {
        self.0[0] = number;
    }

    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.0[NEXT] >> 4
    }

    #[inline]
    pub(super) fn prev(&self) -> u32 {
        self.0[PREV] >> 4
    }

    pub(super) fn set_next(&mut self, link: u32) {
        self.0[NEXT] = link << 4 | self.used();
    }

    pub(super) fn set_prev(&mut self, link: u32) {
        self.0[PREV] = link << 4 | self.held();
    }

    /// Makes a hole of a used place.
    #[inline]
    pub(super) fn remove(&mut self, within: u32) {
        self.0[(within & COUNT_MASK) as usize] = NO_SLOT;
        self.0[PREV] -= 1;
        if self.used() == within + 1 {
            self.0[NEXT] -= 1;
        }
    }

    /// Makes holes of all used places, whose slot numbers were taken.
    #[inline]
    pub(super) fn hold_none(&mut self) {
        self.0[PREV] &= !COUNT_MASK;
    }

    /// Empties all places. The links stay.
    pub(super) fn clear(&mut self) {
        self.0[..NEXT].fill(NO_SLOT);
        self.0[NEXT] &= !COUNT_MASK;
        self.0[PREV] &= !COUNT_MASK;
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
