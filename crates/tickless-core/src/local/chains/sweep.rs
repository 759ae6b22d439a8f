//! Bounded garbage: where a new chunk comes from, and how holes go.
//!
//! Taking a number out leaves a hole, so that nothing else moves. A chunk of holes goes at once. Of
//! the others, each new chunk pays for looking at [`SWEPT`] in the order of memory: one that would
//! fit into a neighbour with room to spare is merged with it, which moves up to [`MERGED_MAX`]
//! numbers. Were there no free chunk left in the room that was made for so many timers, all are
//! looked at; after that, two neighbours hold at least `MERGED_MAX` numbers together, so that
//! there is one: putting a number into a chain never allocates.

use super::chunk::{COUNT_MASK, Chunk, NEXT, PER_CHUNK, PREV};
use super::{Chains, MERGED_MAX, NO_CHUNK};
use crate::local::table::{NO_SLOT, Records};

/// A chunk with more numbers is not merged with any other.
const SPARSE_MAX: u32 = PER_CHUNK - 1;
/// Chunks with so many numbers on average are not worth a sweep.
const DENSE: usize = 9;
/// Chunks that are looked at for each that is taken.
const SWEPT: usize = 4;

impl Chains {
    /// A chunk that nobody uses.
    pub(super) fn take_chunk(&mut self, records: &mut Records) -> u32 {
        // Not worth it while there are about as few as there can be.
        if self.in_use > self.len / DENSE + self.ends.len() / 4 {
            for _ in 0..SWEPT {
                self.sweep_one(records);
            }
        }
        if self.free == NO_CHUNK && self.chunks.len() == self.chunks.capacity() {
            self.sweep = 0;
            for _ in 0..self.chunks.len() {
                self.sweep_one(records);
            }
        }
        match self.chunks.get(self.free as usize) {
            Some(chunk) => core::mem::replace(&mut self.free, chunk.0[0]),
            None => {
                self.chunks.push(Chunk([0; 16]));
                self.taken_for.push(0);
                self.chunks.len() as u32 - 1
            }
        }
    }

    fn sweep_one(&mut self, records: &mut Records) {
        let number = self.sweep;
        self.sweep = (number + 1) % self.chunks.len() as u32;
        while self.merge(number, records) {}
    }

    /// Merges a chunk with the one after it, if both have little.
    fn merge(&mut self, number: u32, records: &mut Records) -> bool {
        let chunk = self.chunks[number as usize];
        // A chunk that is free holds nothing; what is being read stays where it is.
        if !(1..=SPARSE_MAX).contains(&chunk.held()) || self.ends[self.reading].head == number {
            return false;
        }
        let next = chunk.link(NEXT);
        let Some(&after) = self.chunks.get(next as usize) else { return false };
        if chunk.held() + after.held() > MERGED_MAX {
            return false;
        }
        self.squeeze(number, records);
        for &slot in after.0[..NEXT].iter().filter(|&&slot| slot != NO_SLOT) {
            let place = number << 4 | self.chunks[number as usize].add(slot);
            records.put(slot, place);
        }
        self.chunks[next as usize].0[PREV] &= !COUNT_MASK;
        self.release(next);
        true
    }

    /// Moves the numbers of a chunk to its front.
    pub(super) fn squeeze(&mut self, number: u32, records: &mut Records) {
        let chunk = &mut self.chunks[number as usize];
        let old = chunk.0;
        chunk.0[..NEXT].fill(NO_SLOT);
        chunk.0[NEXT] &= !COUNT_MASK;
        chunk.0[PREV] &= !COUNT_MASK;
        for &slot in old[..NEXT].iter().filter(|&&slot| slot != NO_SLOT) {
            records.put(slot, number << 4 | chunk.add(slot));
        }
    }
}
