//! Timers that live in a table of their own and are named by keys.
//!
//! The table grows by chunks that never move and are freed with it, so that a node's address
//! holds for as long as the table does. A key carries a generation: one that outlived its timer
//! finds nothing, instead of somebody else's.
//!
//! Only [`LocalTimers`](crate::local::LocalTimers) uses it, and takes a node off its wheel or
//! queue before the slot is given away: references to nodes never leave the crate.

use super::Link;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::ptr::NonNull;

/// Slots a chunk.
const CHUNK: usize = 256;
/// No slot.
const NONE: u32 = u32::MAX;

/// A slot's number and the generation of the timer in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(crate) struct SlotKey {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// A table of timers with values of type `T`.
pub(crate) struct Slab<L, T> {
    chunks: Vec<NonNull<Slot<L, T>>>,
    free: u32,
    len: usize,
}

/// A node and what belongs to it. The link comes first: a node's address is its slot's.
#[repr(C)]
struct Slot<L, T> {
    link: L,
    own: UnsafeCell<Own<T>>,
}

struct Own<T> {
    /// This slot's key; the generation goes up when the timer is removed.
    key: SlotKey,
    next_free: u32,
    value: Option<T>,
}

// SAFETY: the slots belong to the table alone; its nodes are only used by who holds it.
unsafe impl<L, T: Send> Send for Slab<L, T> {}

impl<L: Link, T> Slab<L, T> {
    pub(crate) const fn new() -> Self {
        Slab { chunks: Vec::new(), free: NONE, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Puts a value into a slot. Allocates a chunk when no slot is free; `None` when there
    /// could be no number for another one.
    pub(crate) fn insert(&mut self, value: T) -> Option<SlotKey> {
        if self.free == NONE {
            self.grow()?;
        }
        let own = self.own_at(self.free)?;
        own.value = Some(value);
        let (key, next_free) = (own.key, own.next_free);
        self.free = next_free;
        self.len += 1;
        Some(key)
    }

    /// Empties a slot whose node is on no list.
    pub(crate) fn remove(&mut self, key: SlotKey) -> Option<T> {
        let free = self.free;
        let own = self.own(key)?;
        let value = own.value.take()?;
        own.key.generation = own.key.generation.wrapping_add(1);
        own.next_free = free;
        self.free = key.index;
        self.len -= 1;
        Some(value)
    }

    /// The value that belongs to a key.
    pub(crate) fn value(&mut self, key: SlotKey) -> Option<&mut T> {
        self.own(key)?.value.as_mut()
    }

    /// The node and the value that belong to a key.
    #[inline]
    pub(crate) fn both(&mut self, key: SlotKey) -> Option<(L::Ref, &mut T)> {
        Some((self.node(key)?, self.value(key)?))
    }

    /// The node that belongs to a key.
    #[inline]
    pub(crate) fn node(&mut self, key: SlotKey) -> Option<L::Ref> {
        self.own(key)?.value.as_ref()?;
        let slot = self.slot(key.index)?;
        // SAFETY: the slot stays where it is as long as the table; the table's one user takes
        // nodes off their lists first; and `&mut self` serialises the uses.
        Some(unsafe { L::node(slot.cast()) })
    }

    /// The key of a node of this table.
    #[inline]
    pub(crate) fn key_of(&self, node: L::Ref) -> SlotKey {
        let slot = L::address(node).cast::<Slot<L, T>>();
        // SAFETY: a node of this table is the first field of one of its slots, which is
        // `repr(C)`; no reference to its `own` part is alive while the table is borrowed.
        unsafe { (*(*slot.as_ptr()).own.get()).key }
    }

    #[inline]
    fn own(&mut self, key: SlotKey) -> Option<&mut Own<T>> {
        self.own_at(key.index).filter(|own| own.key.generation == key.generation)
    }

    #[inline]
    fn own_at(&mut self, index: u32) -> Option<&mut Own<T>> {
        let slot = self.slot(index)?;
        // SAFETY: a slot of this table; `&mut self` makes the reference the only one.
        Some(unsafe { &mut *(*slot.as_ptr()).own.get() })
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<NonNull<Slot<L, T>>> {
        let chunk = self.chunks.get(index as usize / CHUNK)?;
        // SAFETY: each chunk has `CHUNK` slots.
        Some(unsafe { chunk.add(index as usize % CHUNK) })
    }

    #[cold]
    fn grow(&mut self) -> Option<()> {
        let first = u32::try_from(self.chunks.len() * CHUNK).ok()?;
        let last = first.checked_add(CHUNK as u32)?;
        let slot = |index: u32| Slot {
            link: L::unlinked(),
            own: UnsafeCell::new(Own {
                key: SlotKey { index, generation: 0 },
                next_free: if index + 1 == last { self.free } else { index + 1 },
                value: None,
            }),
        };
        let chunk: Box<[Slot<L, T>]> = (first..last).map(slot).collect();
        self.chunks.push(NonNull::from(Box::leak(chunk)).cast());
        self.free = first;
        Some(())
    }
}

impl<L, T> Drop for Slab<L, T> {
    fn drop(&mut self) {
        for chunk in &self.chunks {
            let slots = core::ptr::slice_from_raw_parts_mut(chunk.as_ptr(), CHUNK);
            // SAFETY: `grow` leaked exactly this slice.
            drop(unsafe { Box::from_raw(slots) });
        }
    }
}
