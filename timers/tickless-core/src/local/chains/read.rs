//! Reading one chain from its front, a chunk at a time.

use super::{Chains, NO_CHUNK, PER_CHUNK};

impl Chains {
    /// Takes the first slot number off the chain that is read. When it takes the first number of a
    /// chunk, it also calls `fetch` for the slot numbers of a later chunk, so that the caller can
    /// prefetch the records of these.
    #[inline(always)]
    pub(in crate::local) fn pop(&mut self, fetch: impl Fn(u32)) -> Option<u32> {
        if self.batch.is_empty() && !self.begin_batch(fetch) {
            return None;
        }
        let slot = self.batch.next();
        if self.batch.is_empty() {
            self.end_batch();
        }
        Some(slot)
    }

    /// Returns whether some slot numbers of the first chunk have been popped, but not all.
    #[inline]
    pub(in crate::local) fn is_amid_chunk(&self) -> bool {
        !self.batch.is_empty()
    }

    /// Copies the slot numbers of the first chunk to the batch. Returns whether there is a chunk.
    #[inline(never)]
    fn begin_batch(&mut self, fetch: impl Fn(u32)) -> bool {
        let head = self.ends[self.reading].head;
        let Some(chunk) = self.chunks.get_mut(head as usize) else { return false };
        let (used, held) = (chunk.used() as usize, chunk.held() as usize);
        self.batch.fill(chunk.words(), used, held);
        self.batch_of = head;
        self.len -= held;
        chunk.hold_none();
        self.fetch_ahead(head, fetch);
        true
    }

    #[inline(never)]
    fn end_batch(&mut self) {
        self.release(self.batch_of);
        self.batch_of = NO_CHUNK;
    }

    /// Removes a slot number that remains in the first chunk of the chain that is read.
    #[cold]
    pub(super) fn remove_from_batch(&mut self, slot: u32) {
        self.batch.remove(slot);
        if self.batch.is_empty() {
            self.end_batch();
        }
    }

    /// Returns the first chunk of the chain that is read: its slot numbers with holes between them,
    /// and their count. Removes nothing. Call it only before any of the numbers is popped.
    #[inline]
    pub(in crate::local) fn first_chunk(
        &self,
        fetch: impl Fn(u32),
    ) -> Option<(&[u32; PER_CHUNK as usize], usize)> {
        let head = self.ends[self.reading].head;
        let chunk = self.chunks.get(head as usize)?;
        self.fetch_ahead(head, fetch);
        Some((chunk.places().first_chunk()?, chunk.held() as usize))
    }

    /// Drops the first chunk of the chain that is read, with all its slot numbers.
    #[inline]
    pub(in crate::local) fn drop_first_chunk(&mut self) {
        let head = self.ends[self.reading].head;
        if let Some(chunk) = self.chunks.get_mut(head as usize) {
            self.len -= chunk.held() as usize;
            chunk.hold_none();
            self.release(head);
        }
    }

    /// Calls `fetch` for the slot numbers of the second chunk after chunk `number`, and prefetches
    /// the fourth chunk after it. One chunk ahead would be too late: a record of a large table
    /// takes longer to arrive than the timers of one chunk take to fire.
    #[inline(never)]
    fn fetch_ahead(&self, number: u32, fetch: impl Fn(u32)) {
        let Some(second) = self.next(number).and_then(|next| self.next(next)) else { return };
        let Some(chunk) = self.chunks.get(second as usize) else { return };
        for &slot in chunk.places() {
            fetch(slot);
        }
        if let Some(fourth) = self.next(chunk.next()) {
            crate::link::prefetch(&self.chunks, fourth as usize);
        }
    }

    #[inline]
    fn next(&self, number: u32) -> Option<u32> {
        self.chunks.get(number as usize).map(|chunk| chunk.next())
    }
}
