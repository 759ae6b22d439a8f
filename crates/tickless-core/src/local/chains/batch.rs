//! The numbers of a chain's first chunk while that is read, out of the way of everything else.
//!
//! A chunk is counted and unlinked once, not once for each number that is taken off it. It stays
//! where it is until all have been taken, so that the places that records know lead here.

use crate::local::table::NO_SLOT;

/// Room for the numbers of a chunk: a power of two, so that no index is outside.
const ROOM: usize = 16;

/// Numbers that are next in line, those of one chunk.
pub(super) struct Batch {
    slots: [u32; ROOM],
    /// Those from here on wait.
    at: usize,
    end: usize,
}

impl Batch {
    pub(super) const fn new() -> Batch {
        Batch { slots: [NO_SLOT; ROOM], at: 0, end: 0 }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.at == self.end
    }

    /// The numbers that wait.
    pub(super) fn waiting(&self) -> &[u32] {
        &self.slots[self.at..self.end]
    }

    /// Takes up the first `used` words of a chunk, of which so many are numbers and the others
    /// holes, instead of what is left.
    #[inline]
    pub(super) fn fill(&mut self, chunk: &[u32; ROOM], used: usize, held: usize) {
        (self.slots, self.at, self.end) = (*chunk, 0, held);
        if held < used {
            let mut end = 0;
            for &slot in &chunk[..used] {
                // What is written over a hole is the number behind it.
                self.slots[end % ROOM] = slot;
                end += usize::from(slot != NO_SLOT);
            }
        }
    }

    /// The next number; there is one.
    #[inline]
    pub(super) fn next(&mut self) -> u32 {
        let slot = self.slots[self.at % ROOM];
        self.at += 1;
        slot
    }

    /// Takes a number out that waits.
    pub(super) fn remove(&mut self, slot: u32) {
        let waiting = &mut self.slots[self.at..self.end];
        if let Some(found) = waiting.iter().position(|&other| other == slot) {
            waiting[found..].rotate_left(1);
            self.end -= 1;
        }
    }
}
