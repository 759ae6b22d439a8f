//! Where timers live: slots of one or two cache lines, packed.
//!
//! A general allocator gives a 64-byte object that must be aligned to 64 bytes about twice that
//! (80 bytes and the gap before the next boundary, with glibc), and spreads a million of them
//! over 30,000 pages, so that a timer picked at random costs a walk of the page tables besides
//! the cache miss. Here slots are cut from chunks that grow up to the size of a huge page, and
//! the kernel is asked to use one.
//!
//! Taking and giving back a slot takes a mutex: it is what creating and dropping a timer cost,
//! not arming one. Memory goes back to the system when the last timer and the last
//! [`Timers`](crate::Timers) are gone.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// A cache line, and what slots are multiples of.
const LINE: usize = 64;
/// Slot sizes that are pooled, in lines. Larger ones come from the general allocator.
const CLASSES: usize = 2;
const FIRST_CHUNK: usize = 16 << 10;
/// The size of a huge page on x86-64 and on most others.
const LAST_CHUNK: usize = 2 << 20;

/// Slots for timers. All of them must be given back before it is dropped.
#[derive(Debug, Default)]
pub struct Arena {
    classes: [Mutex<Class>; CLASSES],
}

/// Slots of one size.
#[derive(Debug, Default)]
struct Class {
    /// Slots that were given back, linked through their first words.
    free: Option<NonNull<FreeSlot>>,
    /// The rest of the newest chunk.
    rest: Option<(NonNull<u8>, usize)>,
    chunks: Vec<(NonNull<u8>, Layout)>,
}

struct FreeSlot {
    next: Option<NonNull<FreeSlot>>,
}

// SAFETY: the pointers lead to memory that the class owns and that is not in use.
unsafe impl Send for Class {}

impl Arena {
    /// Takes memory of this layout, not initialised. `None` if the system has none left.
    pub fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
        let Some(class) = class_of(layout) else {
            // SAFETY: a layout that no class fits has at least `CLASSES` lines.
            return NonNull::new(unsafe { std::alloc::alloc(layout) });
        };
        self.class(class).take((class + 1) * LINE)
    }

    /// Gives memory back.
    ///
    /// # Safety
    /// `slot` came from [`take`](Arena::take) of this arena with this layout, and is no longer
    /// used.
    pub unsafe fn give_back(&self, slot: NonNull<u8>, layout: Layout) {
        match class_of(layout) {
            Some(class) => self.class(class).give_back(slot),
            // SAFETY: as promised, and by the same decision as in `take`.
            None => unsafe { std::alloc::dealloc(slot.as_ptr(), layout) },
        }
    }

    fn class(&self, class: usize) -> std::sync::MutexGuard<'_, Class> {
        self.classes[class].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the class of a layout, if it is pooled.
fn class_of(layout: Layout) -> Option<usize> {
    let lines = layout.size().div_ceil(LINE).max(1);
    (layout.align() <= LINE && lines <= CLASSES).then(|| lines - 1)
}

impl Class {
    fn take(&mut self, size: usize) -> Option<NonNull<u8>> {
        if let Some(slot) = self.free {
            // SAFETY: a slot that was given back holds a link until it is taken again.
            self.free = unsafe { slot.read().next };
            return Some(slot.cast());
        }
        let (start, left) = match self.rest {
            Some((start, left)) if left >= size => (start, left),
            _ => self.grow()?,
        };
        // SAFETY: `left` bytes follow `start` in its chunk, at least `size` of them.
        self.rest = Some((unsafe { start.add(size) }, left - size));
        Some(start)
    }

    fn give_back(&mut self, slot: NonNull<u8>) {
        let slot = slot.cast::<FreeSlot>();
        // SAFETY: a slot is at least a line long, aligned to a line, and not in use.
        unsafe { slot.write(FreeSlot { next: self.free }) };
        self.free = Some(slot);
    }

    #[cold]
    fn grow(&mut self) -> Option<(NonNull<u8>, usize)> {
        let last = self.chunks.last().map_or(FIRST_CHUNK / 4, |(_, layout)| layout.size());
        let size = (last * 4).min(LAST_CHUNK);
        let layout = Layout::from_size_align(size, size).ok()?;
        // SAFETY: the layout is not empty.
        let chunk = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
        #[cfg(linux_platform)]
        if size == LAST_CHUNK && !cfg!(miri) {
            // SAFETY: the range is a chunk of ours, and the advice changes nothing in it. A
            // refusal costs speed only.
            let _ = unsafe {
                let advice = rustix::mm::Advice::LinuxHugepage;
                rustix::mm::madvise(chunk.as_ptr().cast(), size, advice)
            };
        }
        self.chunks.push((chunk, layout));
        Some((chunk, size))
    }
}

impl Drop for Class {
    fn drop(&mut self) {
        for (chunk, layout) in self.chunks.drain(..) {
            // SAFETY: `grow` allocated it with this layout, and its slots have been given back.
            unsafe { std::alloc::dealloc(chunk.as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 64).unwrap()
    }

    #[test]
    fn slots_are_apart_aligned_and_used_again() {
        let arena = Arena::default();
        let count = if cfg!(miri) { 300 } else { 100_000 };
        for size in [1, 64, 65, 128] {
            let slots: HashSet<usize> =
                (0..count).map(|_| arena.take(layout(size)).unwrap().as_ptr() as usize).collect();
            assert_eq!(slots.len(), count);
            let mut sorted: Vec<usize> = slots.iter().copied().collect();
            sorted.sort_unstable();
            assert!(sorted.iter().all(|slot| slot % 64 == 0));
            assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= size));
            let slot = arena.take(layout(size)).unwrap();
            // SAFETY: it was taken just now, with this layout.
            unsafe { arena.give_back(slot, layout(size)) };
            assert_eq!(arena.take(layout(size)), Some(slot));
        }
    }

    #[test]
    fn large_slots_are_allocated_one_by_one() {
        let arena = Arena::default();
        let slot = arena.take(layout(129)).unwrap();
        assert!(arena.class(0).chunks.is_empty() && arena.class(1).chunks.is_empty());
        // SAFETY: it was taken just now, with this layout.
        unsafe { arena.give_back(slot, layout(129)) };
    }
}
