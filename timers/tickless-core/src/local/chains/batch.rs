//! A copy of the slot numbers of a chain's first chunk while the chain is read.
//!
//! With the copy, the chunk's count is updated once, not once for each slot number. The chunk stays
//! linked until all its numbers have been taken, because their timers' records still refer to it.

use crate::local::table::NO_SLOT;

/// Room for the slot numbers of a chunk: a power of two, so a masked index needs no bounds check.
const ROOM: usize = 16;

pub(super) struct ChunkCopy {
    slots: [u32; ROOM],
    /// The numbers from here to `end` remain.
    at: usize,
    end: usize,
}

impl ChunkCopy {
    pub(super) const fn new() -> ChunkCopy {
        ChunkCopy { slots: [NO_SLOT; ROOM], at: 0, end: 0 }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.at == self.end
    }

    /// Replaces the slot numbers by those of a chunk: of its first `used` words, `held` are numbers
    /// and the others are holes.
    #[inline]
    pub(super) fn fill(&mut self, chunk: &[u32; ROOM], used: usize, held: usize) {
        (self.slots, self.at, self.end) = (*chunk, 0, held);
        if held < used {
            let mut end = 0;
            for &slot in &chunk[..used] {
                // A hole is overwritten by the next number.
                self.slots[end % ROOM] = slot;
                end += usize::from(slot != NO_SLOT);
            }
        }
    }

    /// Takes the next slot number. The caller has checked that there is one.
    #[inline]
    pub(super) fn next(&mut self) -> u32 {
        let slot = self.slots[self.at % ROOM];
        self.at += 1;
        slot
    }

    /// Removes a slot number that has not been popped yet.
    pub(super) fn remove(&mut self, slot: u32) {
        let remaining = &mut self.slots[self.at..self.end];
        if let Some(found) = remaining.iter().position(|&other| other == slot) {
            remaining[found..].rotate_left(1);
            self.end -= 1;
        }
    }
}
