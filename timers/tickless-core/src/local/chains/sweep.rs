//! Allocates chunks of slot numbers, and merges those with many holes, to limit the memory.
//!
//! Removing a slot number from a chain leaves a hole, and moves no other number. A chunk that has
//! only holes is freed at once. Unless chunks are well filled, each allocation also examines the
//! next [`SWEPT`] chunks in memory, and merges a chunk with its successor if they hold at most
//! [`MERGED_MAX`] numbers together. If no free chunk is left in the reserved room, all chunks are
//! examined. After that any two neighbours hold more than `MERGED_MAX` numbers together, and so a
//! chunk of the reserved room is free: putting a number into a chain never allocates.

use super::chunk::Chunk;
use super::{Chains, MERGED_MAX, NO_CHUNK, PER_CHUNK};
use crate::local::table::{NO_SLOT, Records};

/// A chunk with more slot numbers than this is not merged.
const SPARSE_MAX: u32 = PER_CHUNK - 1;
/// If chunks hold at least this many slot numbers on average, none is examined for merging.
const DENSE: usize = 9;
/// How many chunks an allocation checks, to merge each that has many holes with its successor.
const SWEPT: usize = 4;

impl Chains {
    /// Returns the number of a free chunk. First merges some sparse chunks to limit the memory.
    pub(super) fn take_chunk(&mut self, records: &mut Records) -> u32 {
        // No chunks are examined while there are hardly more chunks than needed.
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
            Some(chunk) => core::mem::replace(&mut self.free, chunk.next_free()),
            None => {
                self.chunks.push(Chunk::EMPTY);
                self.allocated_for.push(0);
                self.chunks.len() as u32 - 1
            }
        }
    }

    /// Merges the next chunk in turn with its successors while their slot numbers fit into one.
    fn sweep_one(&mut self, records: &mut Records) {
        let number = self.sweep;
        self.sweep = (number + 1) % self.chunks.len() as u32;
        while self.merge(number, records) {}
    }

    /// Merges a chunk with the next one of its chain if the slot numbers of both fit into one
    /// chunk. Returns whether it has merged them.
    fn merge(&mut self, number: u32, records: &mut Records) -> bool {
        let chunk = self.chunks[number as usize];
        // A free chunk holds nothing; the chunk that is being read must not change.
        if !(1..=SPARSE_MAX).contains(&chunk.held()) || self.ends[self.reading].head == number {
            return false;
        }
        let next = chunk.next();
        let Some(&after) = self.chunks.get(next as usize) else { return false };
        if chunk.held() + after.held() > MERGED_MAX {
            return false;
        }
        self.squeeze(number, records);
        for &slot in after.places().iter().filter(|&&slot| slot != NO_SLOT) {
            let place = number << 4 | self.chunks[number as usize].add(slot);
            records.put(slot, place);
        }
        self.chunks[next as usize].hold_none();
        self.release(next);
        true
    }

    /// Moves the slot numbers of a chunk to its front, so that its free places are at its end.
    pub(super) fn squeeze(&mut self, number: u32, records: &mut Records) {
        let chunk = &mut self.chunks[number as usize];
        let old = *chunk;
        chunk.clear();
        for &slot in old.places().iter().filter(|&&slot| slot != NO_SLOT) {
            records.put(slot, number << 4 | chunk.add(slot));
        }
    }
}
