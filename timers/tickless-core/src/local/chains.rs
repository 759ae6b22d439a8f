//! Chains of slot numbers. A slot number is the index of a timer in the table of timers; a chain
//! lists the numbers in the order in which they were appended.
//!
//! A chain is a doubly linked list of chunks. A chunk is a cache line with up to fourteen numbers
//! and the two links, so that a reader gets fourteen numbers with one memory access and can
//! prefetch the records of later ones. A number's *place* is its chunk's number and its index in
//! the chunk. The place is stored in the timer's record, so that removing a number is one store,
//! which leaves a hole. `sweep.rs` bounds the number of holes.

mod batch;
mod chunk;
mod read;
mod sweep;

use super::table::Records;
use alloc::vec::Vec;
use batch::ChunkCopy;
use chunk::Chunk;

pub(super) use chunk::PER_CHUNK;

/// Two neighbouring chunks with at most this many slot numbers together are merged.
const MERGED_MAX: u32 = PER_CHUNK;
/// In the first or last chunk of a chain, one link has no neighbour to name: it is this number plus
/// the number of the chain. All other links are the number of the neighbouring chunk.
const END: u32 = 1 << 27;
/// Stored in place of a chunk's number where there is no chunk.
const NO_CHUNK: u32 = u32::MAX;

/// The first and the last chunk of a chain.
#[derive(Clone, Copy)]
struct Ends {
    head: u32,
    tail: u32,
}

impl Ends {
    const EMPTY: Ends = Ends { head: NO_CHUNK, tail: NO_CHUNK };
}

pub(super) struct Chains {
    chunks: Vec<Chunk>,
    /// For each chunk: the chain that it was allocated for. The function `splice` has possibly
    /// moved the chunk to another chain since.
    allocated_for: Vec<u32>,
    /// The chunk that was freed last.
    free: u32,
    ends: Vec<Ends>,
    /// A bit for each chain that is not empty.
    occupied: Vec<u64>,
    reading: usize,
    /// The slot numbers of the first chunk of the chain `reading` that have not been popped yet.
    batch: ChunkCopy,
    /// The number of the chunk whose slot numbers are in `batch`, or `NO_CHUNK` while none of the
    /// first chunk's slot numbers has been popped.
    batch_of: u32,
    /// The chunk that the next sweep examines.
    sweep: u32,
    /// The count of slot numbers in all chains, without those that are in `batch`.
    len: usize,
    /// The count of chunks that are not free.
    in_use: usize,
}

impl Chains {
    /// Makes `chains` empty chains. Only the chain `reading` can be read from its front.
    pub(super) fn new(chains: usize, reading: usize) -> Chains {
        Chains {
            chunks: Vec::new(),
            allocated_for: Vec::new(),
            free: NO_CHUNK,
            ends: alloc::vec![Ends::EMPTY; chains],
            occupied: alloc::vec![0; chains.div_ceil(64)],
            reading,
            batch: ChunkCopy::new(),
            batch_of: NO_CHUNK,
            sweep: 0,
            len: 0,
            in_use: 0,
        }
    }

    /// Adds chains, numbered after the others.
    pub(super) fn add_chains(&mut self, more: usize) {
        let chains = self.ends.len() + more;
        self.ends.resize(chains, Ends::EMPTY);
        self.occupied.resize(chains.div_ceil(64), 0);
    }

    /// Allocates room for this many slot numbers, in whatever order they are added and removed.
    pub(super) fn reserve(&mut self, numbers: usize) {
        // The greatest number of chunks that can be needed. The last chunk of a chain, and the
        // first chunk of the chain that is read, can hold a single number. Any two other
        // neighbouring chunks hold more than `MERGED_MAX` together after a sweep.
        let merged = 2 * numbers.div_ceil(MERGED_MAX as usize) + self.ends.len() + 4;
        let chunks = merged.min(numbers + 1).min(END as usize);
        if chunks > self.chunks.capacity() {
            // `Vec::reserve` is too slow: for elements that are aligned to cache lines it cannot
            // grow the memory in place, and would copy the unused part too.
            let mut roomier = Vec::with_capacity(chunks);
            roomier.extend_from_slice(&self.chunks);
            self.chunks = roomier;
            self.allocated_for.reserve_exact(chunks - self.allocated_for.len());
        }
    }

    #[inline]
    pub(super) fn is_empty(&self, chain: usize) -> bool {
        self.ends[chain].head == NO_CHUNK
    }

    /// Returns the chain to which the slot number at this place was appended. The slot number is
    /// still on that chain, unless `splice` has moved the whole chain to another one.
    #[inline]
    pub(super) fn chain_of(&self, place: u32) -> Option<usize> {
        self.allocated_for.get((place >> 4) as usize).map(|&chain| chain as usize)
    }

    /// Returns a bit for each of the 64 chains from `64 * sixty_fours` on: 1 if it is not empty.
    #[inline]
    pub(super) fn occupied(&self, sixty_fours: usize) -> u64 {
        self.occupied[sixty_fours]
    }

    /// Appends a slot number to a chain. Returns its place: chunk and index.
    #[inline]
    pub(super) fn push(&mut self, chain: usize, slot: u32, records: &mut Records) -> u32 {
        self.len += 1;
        let tail = self.ends[chain].tail;
        if let Some(chunk) = self.chunks.get_mut(tail as usize) {
            if chunk.used() < PER_CHUNK {
                return tail << 4 | chunk.add(slot);
            }
        }
        self.push_on_new(chain, slot, records)
    }

    /// Removes a slot number. Its `place` is the chunk's number times 16, plus its index there.
    #[inline]
    pub(super) fn remove(&mut self, place: u32, slot: u32) {
        let number = place >> 4;
        let within = place & 15;
        if number == self.batch_of {
            return self.remove_from_batch(slot);
        }
        let Some(chunk) = self.chunks.get_mut(number as usize) else { return };
        self.len -= 1;
        chunk.remove(within);
        if chunk.held() == 0 {
            self.release(number);
        }
    }

    /// Appends all slot numbers of the chain `from` to the chain `onto`. O(1).
    pub(super) fn splice(&mut self, from: usize, onto: usize) {
        let Ends { head, tail } = core::mem::replace(&mut self.ends[from], Ends::EMPTY);
        if head == NO_CHUNK {
            return;
        }
        self.occupied[from / 64] &= !(1 << (from % 64));
        self.occupied[onto / 64] |= 1 << (onto % 64);
        match self.ends[onto].tail {
            NO_CHUNK => self.join(END | onto as u32, head),
            last => self.join(last, head),
        }
        self.join(tail, END | onto as u32);
    }

    /// Adds a slot number to a chain whose last chunk has no free place at its end.
    #[inline(never)]
    fn push_on_new(&mut self, chain: usize, slot: u32, records: &mut Records) -> u32 {
        let tail = self.ends[chain].tail;
        let chunk = self.chunks.get(tail as usize);
        if chunk.is_some_and(|chunk| chunk.held() <= PER_CHUNK / 2) {
            // At least half of the chunk's places are holes: move its slot numbers to the front
            // instead of adding a chunk.
            self.squeeze(tail, records);
            return tail << 4 | self.chunks[tail as usize].add(slot);
        }
        let number = self.take_chunk(records);
        let chunk = &mut self.chunks[number as usize];
        *chunk = Chunk::EMPTY;
        chunk.add(slot);
        self.allocated_for[number as usize] = chain as u32;
        match self.ends[chain].tail {
            NO_CHUNK => self.join(END | chain as u32, number),
            tail => self.join(tail, number),
        }
        self.join(number, END | chain as u32);
        self.occupied[chain / 64] |= 1 << (chain % 64);
        self.in_use += 1;
        number << 4
    }

    /// Links two chunks, or a chunk and the end of a chain.
    fn join(&mut self, before: u32, after: u32) {
        match self.chunks.get_mut(before as usize) {
            Some(chunk) => chunk.set_next(after),
            None => self.ends[(before & !END) as usize].head = chunk_or_none(after),
        }
        match self.chunks.get_mut(after as usize) {
            Some(chunk) => chunk.set_prev(before),
            None => self.ends[(after & !END) as usize].tail = chunk_or_none(before),
        }
    }

    /// Unlinks and frees a chunk that holds no slot numbers.
    #[inline(never)]
    fn release(&mut self, number: u32) {
        let Some(chunk) = self.chunks.get_mut(number as usize) else { return };
        let (before, after) = (chunk.prev(), chunk.next());
        chunk.set_next_free(self.free);
        self.free = number;
        self.in_use -= 1;
        self.join(before, after);
        // Both links name the chain instead of a chunk: this was its only chunk.
        if before & after & END != 0 {
            let chain = (before & !END) as usize;
            self.occupied[chain / 64] &= !(1 << (chain % 64));
        }
    }
}

fn chunk_or_none(link: u32) -> u32 {
    if link & END == 0 { link } else { NO_CHUNK }
}

#[cfg(test)]
mod tests {
    use super::super::table::Table;
    use super::*;

    /// Goal: appending never allocates and garbage is bounded. Method: again and again, slot
    /// numbers are added until all are on chains, and then all but one in fourteen are removed.
    /// (`local::histories` tests the order.)
    #[test]
    fn garbage_is_bounded() {
        let numbers: u32 = if cfg!(miri) { 200 } else { 3_000 };
        let mut table = Table::new();
        (0..numbers).for_each(|_| assert!(table.insert(()).is_some()));
        let mut chains = Chains::new(5, 4);
        chains.reserve(numbers as usize);
        let (room, chunks) = (chains.chunks.capacity(), (numbers / PER_CHUNK) as usize);
        assert!(room <= 2 * chunks + 12, "{room} for {chunks}");
        for round in 0..20 {
            for slot in (0..numbers).filter(|slot| round == 0 || slot % 14 != (round - 1) % 14) {
                // One of four chains, in no order (Fibonacci hashing).
                let chain = (slot + numbers * round).wrapping_mul(0x9e37_79b9) >> 30;
                let place = chains.push(chain as usize, slot, &mut table.records);
                table.records.put(slot, place);
            }
            assert_eq!(chains.len, numbers as usize);
            for slot in (0..numbers).filter(|slot| slot % 14 != round % 14) {
                chains.remove(table.records.get(slot).unwrap().place, slot);
            }
            assert_eq!(chains.len, (0..numbers).filter(|slot| slot % 14 == round % 14).count());
        }
        assert_eq!(chains.chunks.capacity(), room);
    }
}
