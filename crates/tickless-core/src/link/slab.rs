//! Timers that live in a table of their own and are named by keys.
//!
//! The table grows by chunks that never move and are freed with it, so that a node's address
//! holds for as long as the table does. A key carries a generation: one that outlived its timer
//! finds nothing, instead of somebody else's.
//!
//! Only [`LocalTimers`](crate::local::LocalTimers) uses it, and takes a node off its wheel or
//! queue before the slot is given away: references to nodes never leave the crate.
//!
//! # Layout
//!
//! A slot begins at a cache line and fills whole ones, so that touching a timer at random is one
//! miss: a single line for a coarse timer with a value of up to 24 bytes. Chunks grow to the size
//! of a huge page, so that few pointers lead to all of a million timers; each is an eighth of
//! what there was before it, so that at most so much is room that nobody uses.

use super::node::Link;
use alloc::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// Slots of the first chunk...
const FIRST_CHUNK: u32 = 64;
/// ...and of the largest, a power of two: 2 MiB of cache lines.
const LAST_CHUNK: u32 = 1 << CHUNK_BITS;
/// A slot's number is its chunk's, and in that many low bits its place there.
const CHUNK_BITS: u32 = 15;
/// No slot.
const NONE: u32 = u32::MAX;

/// A slot's number and the generation of the timer in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(crate) struct SlotKey {
    pub(crate) index: u32,
    /// Odd, unless somebody made the key up.
    pub(crate) generation: u32,
}

impl SlotKey {
    /// Does it name the timer in a slot of this generation? Never one in an empty slot.
    #[inline]
    fn names(self, generation: u32) -> bool {
        generation == self.generation && generation % 2 == 1
    }
}

/// A table of timers with values of type `T`.
pub(crate) struct Slab<L, T> {
    chunks: Vec<Chunk<L, T>>,
    /// Slots in all chunks.
    capacity: usize,
    /// The slot that was emptied last, or `NONE`.
    free: u32,
    len: usize,
}

struct Chunk<L, T> {
    slots: NonNull<Slot<L, T>>,
    /// How many slots have been used so far: the rest is not initialised.
    used: u32,
    size: u32,
}

/// A node and what belongs to it. The link comes first: a node's address is its slot's.
#[repr(C, align(64))]
struct Slot<L, T> {
    link: L,
    own: UnsafeCell<Own<T>>,
}

#[repr(C)]
struct Own<T> {
    /// This slot's number; of an empty slot, the next empty one's.
    index: u32,
    /// Odd while there is a timer, so that no key ever names an empty slot.
    generation: u32,
    /// Initialised while there is a timer.
    value: MaybeUninit<T>,
}

// SAFETY: the slots belong to the table alone; its nodes are only used by who holds it.
unsafe impl<L, T: Send> Send for Slab<L, T> {}

impl<L: Link, T> Slab<L, T> {
    /// Every slot's number is below this power of two.
    pub(crate) const SLOTS_MAX: u32 = 1 << 31;

    pub(crate) const fn new() -> Self {
        Slab { chunks: Vec::new(), capacity: 0, free: NONE, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Puts a value into a slot. Allocates a chunk when no slot is free; `None` when there
    /// could be no number for another one.
    pub(crate) fn insert(&mut self, value: T) -> Option<SlotKey> {
        let key = if self.free == NONE { self.insert_new(value)? } else { self.reuse(value)? };
        self.len += 1;
        Some(key)
    }

    /// Empties a slot whose node is on no list. One whose generations are used up is not used
    /// again: its first key would find somebody else's timer.
    pub(crate) fn remove(&mut self, key: SlotKey) -> Option<T> {
        let next_free = self.free;
        let own = self.own(key)?;
        own.generation = own.generation.wrapping_add(1);
        let retired = own.generation == 0;
        if !retired {
            own.index = next_free;
        }
        // SAFETY: the key's generation was the slot's, so there was a timer, and now that the
        // generation is even nobody takes its value again.
        let value = unsafe { own.value.assume_init_read() };
        if !retired {
            self.free = key.index;
        }
        self.len -= 1;
        Some(value)
    }

    /// The value that belongs to a key.
    #[inline]
    pub(crate) fn value(&mut self, key: SlotKey) -> Option<&mut T> {
        // SAFETY: the key's generation is the slot's, so there is a timer.
        self.own(key).map(|own| unsafe { own.value.assume_init_mut() })
    }

    /// The node and the value that belong to a key.
    #[inline]
    pub(crate) fn both(&mut self, key: SlotKey) -> Option<(L::Ref, &mut T)> {
        Some((self.node(key)?, self.value(key)?))
    }

    /// The node that belongs to a key.
    #[inline]
    pub(crate) fn node(&mut self, key: SlotKey) -> Option<L::Ref> {
        let slot = self.slot(key.index)?;
        // SAFETY: a slot of this table, and no reference to its `own` part is alive.
        let generation = unsafe { (*(*slot.as_ptr()).own.get()).generation };
        // SAFETY: the slot stays where it is as long as the table; the table's one user takes
        // nodes off their lists first; and `&mut self` serialises the uses.
        key.names(generation).then(|| unsafe { L::node(slot.cast()) })
    }

    /// The key of a node of this table.
    #[inline]
    pub(crate) fn key_of(&self, node: L::Ref) -> SlotKey {
        let slot = L::address(node).cast::<Slot<L, T>>();
        // SAFETY: a node of this table is the first field of one of its slots, which is
        // `repr(C)`; no reference to its `own` part is alive while the table is borrowed.
        let own = unsafe { &*(*slot.as_ptr()).own.get() };
        SlotKey { index: own.index, generation: own.generation }
    }

    #[inline]
    fn own(&mut self, key: SlotKey) -> Option<&mut Own<T>> {
        self.own_at(key.index).filter(|own| key.names(own.generation))
    }

    #[inline]
    fn own_at(&mut self, index: u32) -> Option<&mut Own<T>> {
        let slot = self.slot(index)?;
        // SAFETY: a slot of this table; `&mut self` makes the reference the only one.
        Some(unsafe { &mut *(*slot.as_ptr()).own.get() })
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<NonNull<Slot<L, T>>> {
        let chunk = self.chunks.get((index >> CHUNK_BITS) as usize)?;
        let place = index & (LAST_CHUNK - 1);
        // SAFETY: the chunk has that many slots.
        (place < chunk.used).then(|| unsafe { chunk.slots.add(place as usize) })
    }

    /// Puts a value into the slot that was emptied last.
    fn reuse(&mut self, value: T) -> Option<SlotKey> {
        let index = self.free;
        let own = self.own_at(index)?;
        let next_free = core::mem::replace(&mut own.index, index);
        own.generation = own.generation.wrapping_add(1);
        own.value.write(value);
        let generation = own.generation;
        self.free = next_free;
        Some(SlotKey { index, generation })
    }

    /// Puts a value into a slot that was never used.
    fn insert_new(&mut self, value: T) -> Option<SlotKey> {
        if self.chunks.last().is_none_or(|chunk| chunk.used == chunk.size) {
            self.grow()?;
        }
        let number = self.chunks.len() as u32 - 1;
        let chunk = self.chunks.last_mut()?;
        let index = number << CHUNK_BITS | chunk.used;
        let key = SlotKey { index, generation: 1 };
        let own = Own { index, generation: key.generation, value: MaybeUninit::new(value) };
        // SAFETY: the chunk has more slots than are used, so this one is within it, and nobody
        // has a reference to it yet.
        unsafe {
            let slot = chunk.slots.add(chunk.used as usize);
            slot.write(Slot { link: L::unlinked(), own: UnsafeCell::new(own) });
        }
        chunk.used += 1;
        Some(key)
    }

    #[cold]
    fn grow(&mut self) -> Option<()> {
        if self.chunks.len() as u32 >= Self::SLOTS_MAX >> CHUNK_BITS {
            return None;
        }
        let size = (self.capacity / 8).clamp(FIRST_CHUNK as usize, LAST_CHUNK as usize) as u32;
        let layout = Self::layout(size)?;
        // SAFETY: the layout is not empty: there is a link in each slot.
        let Some(slots) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout)
        };
        self.chunks.push(Chunk { slots: slots.cast(), used: 0, size });
        self.capacity += size as usize;
        Some(())
    }
}

impl<L, T> Slab<L, T> {
    fn layout(size: u32) -> Option<Layout> {
        Layout::array::<Slot<L, T>>(size as usize).ok()
    }
}

impl<L, T> Drop for Slab<L, T> {
    fn drop(&mut self) {
        for chunk in &self.chunks {
            for place in 0..chunk.used {
                // SAFETY: that many slots are initialised, an odd one with a value, and nobody
                // uses them any more.
                unsafe {
                    let own = &mut *(*chunk.slots.add(place as usize).as_ptr()).own.get();
                    if core::mem::needs_drop::<T>() && own.generation % 2 == 1 {
                        own.value.assume_init_drop();
                    }
                }
            }
            if let Some(layout) = Self::layout(chunk.size) {
                // SAFETY: `grow` allocated it with this layout; links need no drop.
                unsafe { dealloc(chunk.slots.as_ptr().cast(), layout) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::rc::Rc;
    use core::sync::atomic::AtomicU64;

    type WheelLink = crate::link::WheelLink<AtomicU64>;

    const _: () = assert!(size_of::<Slot<WheelLink, [u64; 3]>>() == 64);

    #[test]
    fn keys_find_their_own_timer_only() {
        let mut slab: Slab<WheelLink, u32> = Slab::new();
        let count = if cfg!(miri) { 300 } else { 200_000 };
        let keys: Vec<SlotKey> = (0..count).map(|value| slab.insert(value).unwrap()).collect();
        for (value, &key) in (0..count).zip(&keys) {
            assert_eq!(slab.value(key), Some(&mut { value }));
            let node = slab.node(key).unwrap();
            assert_eq!(node.node().as_ptr().addr().get() % 64, 0, "a slot is a line");
            assert_eq!(slab.key_of(node), key);
        }
        assert_eq!(slab.remove(keys[7]), Some(7));
        assert_eq!((slab.remove(keys[7]), slab.value(keys[7])), (None, None));
        let again = slab.insert(70).unwrap();
        assert_eq!(again.index, keys[7].index, "emptied slots are used again");
        assert_eq!(slab.value(keys[7]), None, "an old key");
        assert_eq!(slab.node(keys[7]), None, "an old key");
        assert_eq!(slab.value(again), Some(&mut 70));
        assert_eq!(slab.len(), count as usize);
    }

    /// Goal: a key of another table finds nothing where this one has nothing.
    #[test]
    fn empty_slots_have_no_key() {
        let mut other: Slab<WheelLink, ()> = Slab::new();
        let mut slab: Slab<WheelLink, ()> = Slab::new();
        let key = slab.insert(()).unwrap();
        assert_eq!(other.node(key), None, "never used");
        let first = other.insert(()).unwrap();
        other.remove(first);
        for generation in [0, 1, 2, 3, 4, u32::MAX - 1, u32::MAX] {
            assert_eq!(other.node(SlotKey { generation, ..key }), None, "empty");
        }
    }

    /// Goal: a slot whose generations are used up is retired, so that no old key finds another's
    /// timer.
    #[test]
    fn worn_out_slots_are_retired() {
        let mut slab: Slab<WheelLink, u32> = Slab::new();
        let first = slab.insert(1).unwrap();
        assert_eq!(slab.remove(first), Some(1));
        slab.own_at(first.index).unwrap().generation = u32::MAX - 1;
        let last = slab.insert(2).unwrap();
        assert_eq!(last, SlotKey { index: first.index, generation: u32::MAX });
        assert_eq!(slab.remove(last), Some(2));
        let next = slab.insert(3).unwrap();
        assert_ne!(next.index, first.index);
        for generation in [0, 1, 2, u32::MAX] {
            assert_eq!(slab.value(SlotKey { generation, ..first }), None);
        }
        assert_eq!((slab.len(), slab.value(next)), (1, Some(&mut 3)));
    }

    #[test]
    fn values_are_dropped_once() {
        let value = Rc::new(());
        let mut slab: Slab<WheelLink, Rc<()>> = Slab::new();
        let keys: Vec<SlotKey> = (0..100).map(|_| slab.insert(value.clone()).unwrap()).collect();
        drop(slab.remove(keys[3]));
        assert_eq!(Rc::strong_count(&value), 100);
        drop(slab);
        assert_eq!(Rc::strong_count(&value), 1);
    }
}
