//! Chains of slot numbers, in the order in which they were put there.
//!
//! A chain is a list of chunks, a cache line each: up to fourteen numbers, and the two neighbours.
//! Whoever walks a chain knows fourteen numbers at once, and those after them a line or two on, so
//! that what they name can be fetched while the first is dealt with. A number's *place* is its
//! chunk's number and where it lies in there; its record knows it, so that taking it out is one
//! store, and leaves a hole. `sweep.rs` keeps holes few.

mod batch;
mod chunk;
mod read;
mod sweep;

use super::table::{NO_SLOT, Records};
use alloc::vec::Vec;
use batch::Batch;
use chunk::{COUNT_MASK, Chunk, NEXT, PREV};

pub(super) use chunk::PER_CHUNK;

/// Two neighbours with no more numbers than that are merged.
const MERGED_MAX: u32 = PER_CHUNK;
/// A link is a chunk's number, or this and the number of the chain that ends here.
const END: u32 = 1 << 27;
/// No chunk.
const NO_CHUNK: u32 = u32::MAX;

/// The first chunk of a chain, and the last.
#[derive(Clone, Copy)]
struct Ends {
    head: u32,
    tail: u32,
}

impl Ends {
    const EMPTY: Ends = Ends { head: NO_CHUNK, tail: NO_CHUNK };
}

/// Numbered chains, all empty at first.
pub(super) struct Chains {
    chunks: Vec<Chunk>,
    /// By chunk: the chain that it was taken for. It may have been spliced to another since.
    taken_for: Vec<u32>,
    /// The chunk that was freed last.
    free: u32,
    ends: Vec<Ends>,
    /// A bit for each chain that is not empty.
    occupied: Vec<u64>,
    /// The chain that is read, and of its first chunk, once that has begun, what is left.
    reading: usize,
    batch: Batch,
    /// That chunk, or `NO_CHUNK`.
    batch_of: u32,
    /// The chunk that the next sweep looks at.
    sweep: u32,
    /// Numbers in all chains but for the batch, and chunks that hold any.
    len: usize,
    in_use: usize,
}

impl Chains {
    /// So many chains, of which one will be read from its front.
    pub(super) fn new(chains: usize, reading: usize) -> Chains {
        Chains {
            chunks: Vec::new(),
            taken_for: Vec::new(),
            free: NO_CHUNK,
            ends: alloc::vec![Ends::EMPTY; chains],
            occupied: alloc::vec![0; chains.div_ceil(64)],
            reading,
            batch: Batch::new(),
            batch_of: NO_CHUNK,
            sweep: 0,
            len: 0,
            in_use: 0,
        }
    }

    /// Adds so many chains behind the others.
    pub(super) fn add_chains(&mut self, more: usize) {
        let chains = self.ends.len() + more;
        self.ends.resize(chains, Ends::EMPTY);
        self.occupied.resize(chains.div_ceil(64), 0);
    }

    /// Makes room for so many numbers, whatever is put in and taken out.
    pub(super) fn reserve(&mut self, numbers: usize) {
        // A chain's last chunk, and the first of that which is read, may hold a single number; any
        // two neighbours of the others hold that many or more after a sweep.
        let merged = 2 * numbers.div_ceil(MERGED_MAX as usize) + self.ends.len() + 4;
        let chunks = merged.min(numbers + 1).min(END as usize);
        if chunks > self.chunks.capacity() {
            // By hand: to grow in place is not for what is aligned to lines, and a copy of it all
            // would touch the part that nobody has used.
            let mut roomier = Vec::with_capacity(chunks);
            roomier.extend_from_slice(&self.chunks);
            self.chunks = roomier;
            self.taken_for.reserve_exact(chunks - self.taken_for.len());
        }
    }

    #[inline]
    pub(super) fn is_empty(&self, chain: usize) -> bool {
        self.ends[chain].head == NO_CHUNK
    }

    /// The chain that the number at this place was put on: it is on that, or on what that was
    /// spliced to.
    #[inline]
    pub(super) fn chain_of(&self, place: u32) -> Option<usize> {
        self.taken_for.get((place >> 4) as usize).map(|&chain| chain as usize)
    }

    /// Which of 64 chains, from a multiple of 64 on, are not empty.
    #[inline]
    pub(super) fn occupied(&self, sixty_fours: usize) -> u64 {
        self.occupied[sixty_fours]
    }

    /// Puts a number behind all others of a chain. Returns its place.
    #[inline]
    pub(super) fn push(&mut self, chain: usize, slot: u32, records: &mut Records) -> u32 {
        self.len += 1;
        let tail = self.ends[chain].tail;
        if let Some(chunk) = self.chunks.get_mut(tail as usize)
            && chunk.used() < PER_CHUNK
        {
            return tail << 4 | chunk.add(slot);
        }
        self.push_on_new(chain, slot, records)
    }

    /// Takes a number out that is at this place.
    #[inline]
    pub(super) fn remove(&mut self, place: u32, slot: u32) {
        let number = place >> 4;
        let within = place & COUNT_MASK;
        if number == self.batch_of {
            return self.remove_from_batch(slot);
        }
        let Some(chunk) = self.chunks.get_mut(number as usize) else { return };
        self.len -= 1;
        chunk.0[within as usize] = NO_SLOT;
        chunk.0[PREV] -= 1;
        if chunk.used() == within + 1 {
            chunk.0[NEXT] -= 1;
        }
        if chunk.held() == 0 {
            self.release(number);
        }
    }

    /// Puts all numbers of one chain behind those of another. O(1).
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

    /// The first number of a chain.
    pub(super) fn first(&self, chain: usize) -> Option<u32> {
        let head = self.ends[chain].head;
        if head == self.batch_of {
            return self.batch.waiting().first().copied();
        }
        let chunk = self.chunks.get(head as usize)?;
        chunk.0[..NEXT].iter().copied().find(|&slot| slot != NO_SLOT)
    }

    #[inline(never)]
    fn push_on_new(&mut self, chain: usize, slot: u32, records: &mut Records) -> u32 {
        let tail = self.ends[chain].tail;
        if let Some(chunk) = self.chunks.get_mut(tail as usize)
            && chunk.held() <= PER_CHUNK / 2
        {
            // More holes than numbers: the numbers move up, and there is room behind them.
            self.squeeze(tail, records);
            return tail << 4 | self.chunks[tail as usize].add(slot);
        }
        let number = self.take_chunk(records);
        let chunk = &mut self.chunks[number as usize];
        chunk.0 = [NO_SLOT; 16];
        (chunk.0[NEXT], chunk.0[PREV]) = (0, 0);
        chunk.add(slot);
        self.taken_for[number as usize] = chain as u32;
        match self.ends[chain].tail {
            NO_CHUNK => self.join(END | chain as u32, number),
            tail => self.join(tail, number),
        }
        self.join(number, END | chain as u32);
        self.occupied[chain / 64] |= 1 << (chain % 64);
        self.in_use += 1;
        number << 4
    }

    /// Makes two links neighbours: chunks, or a chunk and the end of a chain.
    fn join(&mut self, before: u32, after: u32) {
        match self.chunks.get_mut(before as usize) {
            Some(chunk) => chunk.set_link(NEXT, after),
            None => self.ends[(before & !END) as usize].head = chunk_or_none(after),
        }
        match self.chunks.get_mut(after as usize) {
            Some(chunk) => chunk.set_link(PREV, before),
            None => self.ends[(after & !END) as usize].tail = chunk_or_none(before),
        }
    }

    /// Takes a chunk that holds nothing out of its chain.
    #[inline(never)]
    fn release(&mut self, number: u32) {
        let Some(chunk) = self.chunks.get_mut(number as usize) else { return };
        let (before, after) = (chunk.link(PREV), chunk.link(NEXT));
        chunk.0[0] = self.free;
        self.free = number;
        self.in_use -= 1;
        self.join(before, after);
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
    use alloc::vec;

    const CHAINS: usize = 5;
    const READ: usize = 4;

    /// Chains, and a naive twin of them.
    struct Bed {
        chains: Chains,
        table: Table<()>,
        twin: Vec<Vec<u32>>,
        random: u64,
    }

    impl Bed {
        fn new(numbers: usize, random: u64) -> Bed {
            let mut table = Table::new();
            (0..numbers).for_each(|_| assert!(table.insert(()).is_some()));
            let mut chains = Chains::new(CHAINS, READ);
            chains.reserve(numbers);
            Bed { chains, table, twin: vec![Vec::new(); CHAINS], random }
        }

        /// Numerical Recipes' generator; the high bits are good.
        fn below(&mut self, end: usize) -> usize {
            self.random = self
                .random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((self.random >> 33) as usize) % end
        }

        fn push(&mut self, chain: usize, slot: u32) {
            let place = self.chains.push(chain, slot, &mut self.table.records);
            self.table.records.put(slot, place);
            self.twin[chain].push(slot);
        }

        fn remove(&mut self, slot: u32) {
            let place = self.table.records.get(slot).unwrap().place;
            self.chains.remove(place, slot);
            self.twin.iter_mut().for_each(|chain| chain.retain(|&other| other != slot));
        }

        fn check(&self) {
            for (number, twin) in self.twin.iter().enumerate() {
                let first = self.chains.chunks.get(self.chains.ends[number].head as usize);
                let next = |chunk: &&Chunk| self.chains.chunks.get(chunk.link(NEXT) as usize);
                let chunks: Vec<&Chunk> = core::iter::successors(first, next).collect();
                let held = |chunk: &Chunk| {
                    chunk.0[..NEXT].iter().copied().filter(|&slot| slot != NO_SLOT).collect()
                };
                let mut slots: Vec<Vec<u32>> = chunks.iter().map(|chunk| held(chunk)).collect();
                let batch = self.chains.batch.waiting().to_vec();
                let read = usize::from(number == READ && self.chains.is_amid_chunk());
                slots.iter_mut().take(read).for_each(|first| first.clone_from(&batch));
                assert_eq!(slots.concat(), *twin);
                assert!(slots.iter().all(|slots| !slots.is_empty()));
                for (chunk, slots) in chunks.iter().zip(&slots).skip(read) {
                    assert_eq!(chunk.held() as usize, slots.len());
                    assert!(chunk.used() >= chunk.held());
                }
                assert_eq!(self.chains.occupied(0) >> number & 1 == 1, !twin.is_empty());
                assert_eq!(self.chains.first(number), twin.first().copied());
                assert_eq!(self.chains.is_empty(number), twin.is_empty());
            }
            let len = self.chains.len + self.chains.batch.waiting().len();
            assert_eq!(len, self.twin.iter().map(Vec::len).sum());
        }
    }

    /// Goal: chains keep numbers and their order, whatever is put in, taken out, moved and popped.
    #[test]
    fn chains_keep_their_order() {
        for seed in 0..if cfg!(miri) { 2 } else { 60 } {
            let numbers = [20, 120, 400][seed as usize % 3];
            let mut bed = Bed::new(numbers, seed);
            for _ in 0..if cfg!(miri) { 60 } else { 1_500 } {
                let (chain, slot) = (bed.below(CHAINS - 1), bed.below(numbers) as u32);
                match bed.below(40) {
                    0 => {
                        bed.chains.splice(chain, READ);
                        let moved = core::mem::take(&mut bed.twin[chain]);
                        bed.twin[READ].extend(moved);
                    }
                    1..5 => {
                        let expected =
                            (!bed.twin[READ].is_empty()).then(|| bed.twin[READ].remove(0));
                        assert_eq!(bed.chains.pop(|_| ()), expected);
                    }
                    5 if !bed.chains.is_amid_chunk() => {
                        let none = (&[NO_SLOT; NEXT], 0);
                        let (chunk, held) = bed.chains.first_chunk(|_| ()).unwrap_or(none);
                        assert_eq!(held, chunk.iter().filter(|&&slot| slot != NO_SLOT).count());
                        bed.chains.drop_first_chunk();
                        bed.twin[READ].drain(..held);
                    }
                    _ if bed.twin.iter().any(|chain| chain.contains(&slot)) => bed.remove(slot),
                    _ => bed.push(chain, slot),
                }
                bed.check();
            }
        }
    }

    /// Goal: putting a number into a chain never allocates, and garbage is bounded, though all but
    /// one in fourteen numbers are taken out again and again.
    #[test]
    fn garbage_is_bounded() {
        let numbers = if cfg!(miri) { 200 } else { 3_000 };
        let mut bed = Bed::new(numbers, 1);
        let (room, chunks) = (bed.chains.chunks.capacity(), numbers / PER_CHUNK as usize);
        assert!(room <= 2 * chunks + 12, "{room} for {chunks}");
        for round in 0..20 {
            for slot in 0..numbers as u32 {
                if bed.twin.iter().all(|chain| !chain.contains(&slot)) {
                    let chain = bed.below(CHAINS - 1);
                    bed.push(chain, slot);
                }
            }
            bed.check();
            for slot in (0..numbers as u32).filter(|slot| slot % 14 != round % 14) {
                bed.remove(slot);
            }
            bed.check();
        }
        assert_eq!(bed.chains.chunks.capacity(), room);
    }
}
