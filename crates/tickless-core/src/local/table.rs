//! Timers by number: sixteen bytes each, and the user's values apart from them.

use crate::link::{SlotKey, Values, prefetch};
use crate::time::Ns;
use alloc::vec::Vec;

/// Slots have numbers below this.
pub(crate) const SLOTS_MAX: u32 = 1 << 29;
/// No slot.
pub(super) const NO_SLOT: u32 = u32::MAX;
/// Levels are below this.
pub(super) const LEVELS_MAX: u32 = NOWHERE;
/// Instead of a level: a timer that is on no chain.
const NOWHERE: u32 = LEVEL_MASK;
const LEVEL_MASK: u32 = (1 << LEVEL_BITS) - 1;
const LEVEL_BITS: u32 = 4;
const PENDING: u32 = 1 << LEVEL_BITS;
/// Nobody's slot: the greatest state, so that one comparison tells it and all generations but one
/// from what a key may name.
const FREE: u32 = STATES as u32 - 1;
/// A state is a level and [`PENDING`]; it is below this.
pub(super) const STATES: usize = 1 << STATE_BITS;
/// The generation lies above the state.
pub(super) const STATE_BITS: u32 = LEVEL_BITS + 1;
/// The first generation of a slot. Generations are numbers of which the state's bits are 0, here
/// and in keys.
const FIRST_GENERATION: u32 = 1 << STATE_BITS;
/// A slot that has had so many timers is not used again: its next key would be an old one.
const GENERATION_MAX: u32 = u32::MAX << STATE_BITS;
/// A table grows by an eighth of what it holds, or by so many slots.
const GROWTH_MIN: usize = 64;

/// All that arming, pushing out, cancelling and expiry touch of a timer.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct Record {
    /// When it is to fire, or what else its owner orders timers by. Of a free slot, the number
    /// of the next free one.
    pub(super) time: Ns,
    /// The slot's generation and, below it, the state: whether the timer is pending, and the level
    /// of the chain that its number is on, or `NOWHERE`; or `FREE`. A timer that was cancelled may
    /// be on a chain.
    meta: u32,
    /// Where its number lies in that chain.
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
        self.level() < NOWHERE
    }

    #[inline]
    fn level(self) -> u32 {
        self.meta & LEVEL_MASK
    }

    /// The key of the timer that has this record, which is that slot's.
    #[inline]
    pub(super) fn key(self, slot: u32) -> SlotKey {
        SlotKey { index: slot, generation: self.generation() }
    }

    #[inline]
    fn generation(self) -> u32 {
        self.meta & GENERATION_MAX
    }

    /// The state, if that is the slot's generation; nobody's, if it is not.
    #[inline]
    pub(super) fn state_in(self, generation: u32) -> usize {
        ((self.meta ^ generation) as usize).min(FREE as usize)
    }

    #[inline]
    pub(super) fn set_pending(&mut self) {
        self.meta |= PENDING;
    }

    /// The timer is no longer pending; its number stays where it is.
    #[inline]
    pub(super) fn cancel(&mut self) {
        self.meta &= !PENDING;
    }

    /// The timer is no longer pending, and on no chain.
    #[inline]
    pub(super) fn rest(&mut self) {
        self.meta = self.generation() | NOWHERE;
    }

    /// The timer, on no chain so far, is pending on this level.
    #[inline]
    pub(super) fn arm(&mut self, time: Ns, level: u32, place: u32) {
        *self = Record { time, meta: self.generation() | PENDING | level, place };
    }
}

/// The records of a table.
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

    /// All records, by slot.
    #[inline]
    pub(super) fn all(&mut self) -> &mut [Record] {
        &mut self.0
    }

    /// The record of the timer that a key names.
    #[inline]
    pub(super) fn find(&mut self, key: SlotKey) -> Option<&mut Record> {
        let record = self.0.get_mut(key.index as usize)?;
        (record.state_in(key.generation) < FREE as usize).then_some(record)
    }

    #[inline]
    pub(super) fn key_of(&self, slot: u32) -> SlotKey {
        self.get(slot).map_or(SlotKey { index: slot, generation: 0 }, |record| record.key(slot))
    }

    /// Notes where in its chain a timer's number has gone.
    #[inline]
    pub(super) fn put(&mut self, slot: u32, place: u32) {
        if let Some(record) = self.0.get_mut(slot as usize) {
            record.place = place;
        }
    }

    /// Asks for a record that will be wanted soon.
    #[inline]
    pub(super) fn prefetch(&self, slot: u32) {
        prefetch(&self.0, slot as usize);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Timers with values of type `T`.
pub(crate) struct Table<T> {
    pub(super) records: Records,
    values: Values<T>,
    /// The slot that was emptied last.
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

    /// How many slots fit without another allocation.
    pub(super) fn capacity(&self) -> usize {
        self.records.0.capacity()
    }

    /// Makes room for so many slots more.
    pub(super) fn reserve(&mut self, more: usize) {
        self.records.0.reserve_exact(more.saturating_sub(self.records.len() - self.len));
        self.values.reserve(self.capacity().min(SLOTS_MAX as usize));
    }

    /// Gives a timer, idle, a slot; `None` if there could be no number for it. Allocates when
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

    /// Empties the slot of a timer that is on no chain.
    #[inline]
    pub(super) fn remove(&mut self, key: SlotKey) -> Option<T> {
        let free = self.free;
        let record = self.records.find(key)?;
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

    /// Asks for a record, and for its value, that will be wanted soon.
    #[inline]
    pub(super) fn prefetch(&self, slot: u32) {
        self.records.prefetch(slot);
        self.values.prefetch(slot as usize);
    }

    /// The value of the timer that a key names.
    #[inline]
    pub(super) fn value(&mut self, key: SlotKey) -> Option<&mut T> {
        self.records.find(key)?;
        self.values.value(key.index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_around(key: SlotKey) -> impl Iterator<Item = SlotKey> {
        // No key has a generation that lies among a state's bits: `Key::from_bits`.
        let generations = (STATE_BITS..32).map(move |bit| key.generation ^ 1 << bit);
        generations.map(move |generation| SlotKey { generation, ..key })
    }

    #[test]
    fn keys_find_their_own_timer_only() {
        let mut table = Table::new();
        let count = if cfg!(miri) { 300 } else { 100_000 };
        let keys: Vec<SlotKey> = (0..count).map(|value| table.insert(value).unwrap()).collect();
        for (value, &key) in (0..count).zip(&keys) {
            assert_eq!(table.value(key), Some(&mut { value }));
        }
        assert!(keys_around(keys[7]).all(|key| table.value(key).is_none()));
        assert_eq!(table.remove(keys[7]), Some(7));
        assert_eq!((table.remove(keys[7]), table.len()), (None, count as usize - 1));
        assert!(keys_around(keys[7]).all(|key| table.value(key).is_none()), "an empty slot");
        let again = table.insert(70).unwrap();
        assert_eq!(again.index, keys[7].index, "emptied slots are used again");
        assert_eq!(table.value(keys[7]), None, "an old key");
        assert_eq!(table.value(again), Some(&mut 70));
    }

    /// Goal: a slot whose generations are used up is retired, so that no old key finds another's
    /// timer.
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
        assert!(keys_around(last).chain([first, last]).all(|key| table.value(key).is_none()));
        assert_eq!((table.len(), table.value(next)), (1, Some(&mut 3)));
    }
}
