//! Reading one chain from its front, a chunk at a time.

use super::chunk::{COUNT_MASK, NEXT, PREV};
use super::{Chains, NO_CHUNK};

impl Chains {
    /// Takes the first number off the chain that is read. When that gets to another chunk,
    /// `fetch` is told of numbers behind that chunk, which will be wanted soon.
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

    /// Has some of the first chunk of the chain that is read been popped?
    #[inline]
    pub(in crate::local) fn is_amid_chunk(&self) -> bool {
        !self.batch.is_empty()
    }

    #[inline(never)]
    fn begin_batch(&mut self, fetch: impl Fn(u32)) -> bool {
        let head = self.ends[self.reading].head;
        let Some(chunk) = self.chunks.get_mut(head as usize) else { return false };
        let (used, held) = (chunk.used() as usize, chunk.held() as usize);
        self.batch.fill(&chunk.0, used, held);
        self.batch_of = head;
        self.len -= held;
        chunk.0[PREV] &= !COUNT_MASK;
        self.fetch_ahead(head, fetch);
        true
    }

    #[inline(never)]
    fn end_batch(&mut self) {
        self.release(self.batch_of);
        self.batch_of = NO_CHUNK;
    }

    /// Takes a number out of what is left of the first chunk.
    #[cold]
    pub(super) fn remove_from_batch(&mut self, slot: u32) {
        self.batch.remove(slot);
        if self.batch.is_empty() {
            self.end_batch();
        }
    }

    /// The first chunk of the chain that is read, of which nothing has been popped: its numbers
    /// and holes between them, and how many numbers. They stay there.
    #[inline]
    pub(in crate::local) fn first_chunk(
        &self,
        fetch: impl Fn(u32),
    ) -> Option<(&[u32; NEXT], usize)> {
        let head = self.ends[self.reading].head;
        let chunk = self.chunks.get(head as usize)?;
        self.fetch_ahead(head, fetch);
        Some((chunk.0.first_chunk()?, chunk.held() as usize))
    }

    /// Throws the first chunk of the chain that is read away, with all that is in it.
    #[inline]
    pub(in crate::local) fn drop_first_chunk(&mut self) {
        let head = self.ends[self.reading].head;
        if let Some(chunk) = self.chunks.get_mut(head as usize) {
            self.len -= chunk.held() as usize;
            chunk.0[PREV] &= !COUNT_MASK;
            self.release(head);
        }
    }

    /// Tells `fetch` what the second chunk after this one holds, and asks for the fourth, of which
    /// the link is known. One chunk ahead is too late: the records of a large table take longer to
    /// arrive than those of one chunk to be dealt with.
    #[inline(never)]
    fn fetch_ahead(&self, number: u32, fetch: impl Fn(u32)) {
        let Some(second) = self.next(number).and_then(|next| self.next(next)) else { return };
        let Some(chunk) = self.chunks.get(second as usize) else { return };
        for &slot in &chunk.0[..NEXT] {
            fetch(slot);
        }
        if let Some(fourth) = self.next(chunk.link(NEXT)) {
            crate::link::prefetch(&self.chunks, fourth as usize);
        }
    }

    /// The link after a chunk.
    #[inline]
    fn next(&self, number: u32) -> Option<u32> {
        self.chunks.get(number as usize).map(|chunk| chunk.link(NEXT))
    }
}
