//! A table of timers, indexed by slot number: an array of records of sixteen bytes, and a separate
//! array of the user's values.

use crate::link::{Values, prefetch};
use crate::time::Ns;
use alloc::vec::Vec;

/// All slot numbers are below this.
pub(crate) const SLOTS_MAX: u32 = 1 << 29;
/// Stored in place of a slot number where there is no slot.
pub(super) const NO_SLOT: u32 = u32::MAX;
/// Stored in place of a level if the timer's slot number is on no chain. All levels are below this.
pub(super) const UNLINKED: u32 = LEVEL_MASK;
const LEVEL_MASK: u32 = (1 << LEVEL_BITS) - 1;
const LEVEL_BITS: u32 = 4;
const PENDING: u32 = 1 << LEVEL_BITS;
/// The state of a free slot. It is the greatest state, so that one comparison rejects free slots
/// and wrong generations.
const FREE: u32 = STATES as u32 - 1;
/// All states are below this. A state is a level with or without [`PENDING`].
pub(super) const STATES: usize = 1 << STATE_BITS;
/// How many bits the state has. A word stores the generation in the bits above the state.
pub(super) const STATE_BITS: u32 = LEVEL_BITS + 1;
/// The first generation of a slot. The low bits of every generation, here and in keys, are zero: in
/// a record, these bits of the word hold the state.
const FIRST_GENERATION: u32 = 1 << STATE_BITS;
/// A slot is not reused after this generation: the next one would wrap around.
const GENERATION_MAX: u32 = u32::MAX << STATE_BITS;
/// A full table grows by an eighth of its size, and by at least this many slots.
const GROWTH_MIN: usize = 64;

/// A slot's number and the generation of the timer in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlotKey {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// The part of a timer that is accessed when the timer is armed, armed again, cancelled or due.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct Record {
    /// The time by which the table's owner orders timers: a deadline, or the start time of a fixed
    /// timeout. In a free slot, the number of the next free one.
    pub(super) time: Ns,
    /// The slot's generation and, in the bits below it, the state: [`FREE`] for a free slot,
    /// otherwise whether the timer is pending, and the level of the chain that has its slot number
    /// ([`UNLINKED`] if none has it). A cancelled timer's slot number can still be on a chain.
    meta: u32,
    /// The position of the timer's slot number in the chain that has it.
    pub(super) place: u32,
}

const _: () = assert!(size_of::<Record>() == 16);

impl Record {
    #[inline]
    pub(super) fn is_pending(self) -> bool {
        self.meta & PENDING != 0
    }

    #[inline]
    pub(super) fn is_on_chain(self) -> bool {
        self.level() < UNLINKED
    }

    #[inline]
    pub(super) fn level(self) -> u32 {
        self.meta & LEVEL_MASK
    }

    #[inline]
    pub(super) fn key(self, slot: u32) -> SlotKey {
        SlotKey { index: slot, generation: self.generation() }
    }

    #[inline]
    fn generation(self) -> u32 {
        self.meta & GENERATION_MAX
    }

    /// Returns the state if `generation` is the slot's generation, otherwise [`FREE`].
    #[inline]
    pub(super) fn state_in(self, generation: u32) -> usize {
        ((self.meta ^ generation) as usize).min(FREE as usize)
    }

    #[inline]
    pub(super) fn set_pending(&mut self) {
        self.meta |= PENDING;
    }

    /// Records that the timer is no longer pending. Its slot number stays on its chain.
    #[inline]
    pub(super) fn cancel(&mut self) {
        self.meta &= !PENDING;
    }

    /// Records that the timer is no longer pending, and that its slot number is on no chain.
    #[inline]
    pub(super) fn rest(&mut self) {
        self.meta = self.generation() | UNLINKED;
    }

    /// Records that the timer is pending, with its slot number on a chain of this level.
    #[inline]
    pub(super) fn arm(&mut self, time: Ns, level: u32, place: u32) {
        *self = Record { time, meta: self.generation() | PENDING | level, place };
    }
}

pub(crate) struct Records(Vec<Record>);

impl Records {
    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<&Record> {
        self.0.get(slot as usize)
    }

    #[inline]
    pub(super) fn record(&mut self, slot: u32) -> Option<&mut Record> {
        self.0.get_mut(slot as usize)
    }

    #[inline]
    pub(super) fn all(&mut self) -> &mut [Record] {
        &mut self.0
    }

    pub(super) fn find(&self, key: SlotKey) -> Option<&Record> {
        let record = self.0.get(key.index as usize)?;
        (record.state_in(key.generation) < FREE as usize).then_some(record)
    }

    #[inline]
    pub(super) fn find_mut(&mut self, key: SlotKey) -> Option<&mut Record> {
        let record = self.0.get_mut(key.index as usize)?;
        (record.state_in(key.generation) < FREE as usize).then_some(record)
    }

    #[inline]
    pub(super) fn key_of(&self, slot: u32) -> SlotKey {
        self.get(slot).map_or(SlotKey { index: slot, generation: 0 }, |record| record.key(slot))
    }

    /// Records the new position of a timer's slot number on its chain.
    #[inline]
    pub(super) fn put(&mut self, slot: u32, place: u32) {
        if let Some(record) = self.0.get_mut(slot as usize) {
            record.place = place;
        }
    }

    #[inline]
    pub(super) fn prefetch(&self, slot: u32) {
        prefetch(&self.0, slot as usize);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

pub(crate) struct Table<T> {
    pub(super) records: Records,
    values: Values<T>,
    /// The slot that was freed last.
    free: u32,
    len: usize,
}

impl<T> Table<T> {
    pub(super) const fn new() -> Table<T> {
        Table { records: Records(Vec::new()), values: Values::new(), free: NO_SLOT, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn capacity(&self) -> usize {
        self.records.0.capacity()
    }

    pub(super) fn reserve(&mut self, more: usize) {
        self.records.0.reserve_exact(more.saturating_sub(self.records.len() - self.len));
        self.values.reserve(self.capacity().min(SLOTS_MAX as usize));
    }

    /// Puts a timer that is not armed into a free slot; `None` if all slots are taken. Allocates if
    /// no slot is free.
    #[inline]
    pub(super) fn insert(&mut self, value: T) -> Option<SlotKey> {
        let slot = self.free;
        match self.records.record(slot) {
            Some(record) => {
                self.free = record.time.0 as u32;
                record.rest();
            }
            None => return self.insert_new(value),
        }
        self.values.put(slot as usize, value);
        self.len += 1;
        Some(self.records.key_of(slot))
    }

    /// Adds a record at the end of the table. `None` if all slot numbers are in use.
    fn insert_new(&mut self, value: T) -> Option<SlotKey> {
        let slot = u32::try_from(self.records.len()).ok().filter(|&slot| slot < SLOTS_MAX)?;
        if self.records.len() == self.capacity() {
            self.reserve((self.len / 8).max(GROWTH_MIN) + self.records.len() - self.len);
        }
        let mut record = Record { time: Ns::ZERO, meta: FIRST_GENERATION, place: 0 };
        record.rest();
        self.records.0.push(record);
        self.values.put(slot as usize, value);
        self.len += 1;
        Some(self.records.key_of(slot))
    }

    /// Removes a timer whose slot number is on no chain, and frees its slot.
    #[inline]
    pub(super) fn remove(&mut self, key: SlotKey) -> Option<T> {
        let free = self.free;
        let record = self.records.find_mut(key)?;
        if record.generation() < GENERATION_MAX {
            *record = Record {
                time: Ns(free.into()),
                meta: (record.generation() + FIRST_GENERATION) | FREE,
                place: 0,
            };
            self.free = key.index;
        } else {
            record.meta = FREE;
        }
        self.len -= 1;
        self.values.take(key.index as usize)
    }

    #[inline]
    pub(super) fn prefetch(&self, slot: u32) {
        self.records.prefetch(slot);
        self.values.prefetch(slot as usize);
    }

    pub(super) fn get(&self, key: SlotKey) -> Option<&T> {
        self.records.find(key)?;
        self.values.get(key.index as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: SlotKey) -> Option<&mut T> {
        self.records.find_mut(key)?;
        self.value_at(key.index)
    }

    #[inline]
    pub(super) fn value_at(&mut self, slot: u32) -> Option<&mut T> {
        self.values.get_mut(slot as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_around(key: SlotKey) -> impl Iterator<Item = SlotKey> {
        // Change only the upper bits: the lower bits, in which a record has its state, are zero in
        // every key that `Key::from_bits` returns.
        let generations = (STATE_BITS..32).map(move |bit| key.generation ^ 1 << bit);
        generations.map(move |generation| SlotKey { generation, ..key })
    }

    #[test]
    fn worn_out_slots_are_retired() {
        let mut table = Table::new();
        let first = table.insert(1).unwrap();
        assert_eq!(table.remove(first), Some(1));
        table.records.0[0].meta = GENERATION_MAX | FREE;
        let last = table.insert(2).unwrap();
        assert_eq!(last, SlotKey { index: 0, generation: GENERATION_MAX });
        assert_eq!(table.remove(last), Some(2));
        let next = table.insert(3).unwrap();
        assert_eq!(next.index, 1);
        assert!(keys_around(last).chain([first, last]).all(|key| table.get(key).is_none()));
        assert_eq!((table.len(), table.get(next)), (1, Some(&3)));
    }
}
