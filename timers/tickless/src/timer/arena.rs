//! The allocator for timers: packs them into slots of one or two cache lines.
//!
//! A general allocator takes about twice the 64 bytes of a timer, and spreads a million timers over
//! 30,000 pages, so that a timer picked at random costs a walk of the page tables. Here slots are
//! cut from chunks of up to a huge page.
//!
//! Each CPU has a cache of free slots with its own lock; a thread that finds the lock taken uses
//! another CPU's cache. CPUs exchange slots through a common depot, [`BATCH`] at a time, so slots
//! that are freed on one CPU are used again on others. Thus the memory of a set is
//! bounded by the largest number of timers that it had at once, plus two batches for each CPU. (The
//! design is that of J. Bonwick and J. Adams, "Magazines and Vmem", 2001.)

use crate::platform::cpu::CurrentCpu;
use crate::platform::locked::locked;
use crate::platform::relax::relax;
use crate::platform::try_lock::TryLock;
use core::alloc::Layout;
use core::mem::{swap, take};
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use std::sync::Mutex;

/// The size of a cache line. The size of a slot is a multiple of it.
const LINE: usize = 64;
/// How many slot sizes are pooled: one cache line and two. Larger timers are allocated one by one.
const CLASSES: usize = 2;
const FIRST_CHUNK: usize = 16 << 10;
/// The size of the largest chunks: a huge page on x86-64 and most other architectures.
const LAST_CHUNK: usize = 2 << 20;
/// The number of slots that move between a CPU's cache and the depot at once.
const BATCH: u64 = 64;

/// An allocator of slots for timers. All slots must be given back before the arena is dropped.
#[derive(Debug)]
pub struct Arena {
    cpu: CurrentCpu,
    classes: [Class; CLASSES],
}

/// Slots of one size.
#[derive(Debug)]
struct Class {
    /// By CPU; a power of two.
    caches: Box<[Cache]>,
    depot: Mutex<Depot>,
}

/// The free slots of one CPU.
#[derive(Debug)]
#[repr(align(128))]
struct Cache(TryLock<FreeSlots, AtomicU64>);

#[derive(Debug, Default)]
struct FreeSlots {
    /// The batch from which slots are taken, and to which they are given back.
    first: SlotBatch,
    /// A spare batch, always full or empty. Swapped with `first` when `first` has run empty, or has
    /// no room for another slot.
    second: SlotBatch,
}

/// Up to [`BATCH`] free slots, linked through their first words.
#[derive(Debug, Default)]
struct SlotBatch {
    top: Option<NonNull<FreeSlot>>,
    count: u64,
}

struct FreeSlot {
    next: Option<NonNull<FreeSlot>>,
    /// The next batch in the depot. Only the top slot of a batch in the depot uses this field.
    next_batch: Option<NonNull<FreeSlot>>,
}

#[derive(Debug, Default)]
struct Depot {
    batches: Option<NonNull<FreeSlot>>,
    /// The part of the newest chunk from which no slots have been cut yet: its start and size.
    rest: Option<(NonNull<u8>, usize)>,
    chunks: Vec<(NonNull<u8>, Layout)>,
}

// SAFETY: the pointers lead to memory that the arena owns and that is not in use.
unsafe impl Send for SlotBatch {}
// SAFETY: as above.
unsafe impl Send for Depot {}

impl Arena {
    pub fn new(cpu: CurrentCpu, caches: usize) -> Arena {
        Arena { cpu, classes: core::array::from_fn(|_| Class::new(caches)) }
    }

    /// Takes memory of this layout, not initialised. `None` if the system has none left.
    #[inline]
    pub fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
        let Some(class) = class_of(layout) else {
            // SAFETY: a layout that fits no slot size (class) has at least `CLASSES` cache lines,
            // so it is not empty.
            return NonNull::new(unsafe { std::alloc::alloc(layout) });
        };
        self.classes[class].take(self.cpu(), (class + 1) * LINE)
    }

    /// Gives memory back.
    ///
    /// # Safety
    /// `slot` came from [`take`](Arena::take) of this arena with this layout, and is not used.
    #[inline]
    pub unsafe fn give_back(&self, slot: NonNull<u8>, layout: Layout) {
        match class_of(layout) {
            Some(class) => self.classes[class].give_back(self.cpu(), slot),
            // SAFETY: the caller promises the layout that `take` got, so `take` called `alloc`.
            None => unsafe { std::alloc::dealloc(slot.as_ptr(), layout) },
        }
    }

    /// Returns the number of the caller's CPU. With only one cache, returns 0, which is quicker.
    #[inline]
    fn cpu(&self) -> usize {
        if self.classes[0].caches.len() == 1 { 0 } else { self.cpu.number() }
    }
}

/// Returns the index of the slot size for this layout; `None` if it needs the general allocator.
fn class_of(layout: Layout) -> Option<usize> {
    let lines = layout.size().div_ceil(LINE).max(1);
    (layout.align() <= LINE && lines <= CLASSES).then(|| lines - 1)
}

impl Class {
    fn new(caches: usize) -> Class {
        let cache = |_| Cache(TryLock::new(FreeSlots::default()));
        let caches = (0..caches.next_power_of_two()).map(cache).collect();
        Class { caches, depot: Mutex::default() }
    }

    #[inline]
    fn take(&self, cpu: usize, size: usize) -> Option<NonNull<u8>> {
        self.with_cache(cpu, |free| match free.first.pop() {
            Some(slot) => Some(slot.cast()),
            None => self.refill(free, size),
        })
    }

    #[inline]
    fn give_back(&self, cpu: usize, slot: NonNull<u8>) {
        self.with_cache(cpu, |free| {
            if free.first.count == BATCH {
                self.make_room(free);
            }
            free.first.push(slot.cast());
        });
    }

    /// Calls `body` with the free slots of this CPU, or of another CPU if these are in use.
    #[inline]
    fn with_cache<R>(&self, cpu: usize, body: impl FnOnce(&mut FreeSlots) -> R) -> R {
        let mut round = 0;
        loop {
            let place = (cpu + round) & (self.caches.len() - 1);
            if let Some(mut free) = self.caches[place].0.try_lock() {
                return body(&mut free);
            }
            round += 1;
            if round >= self.caches.len() {
                relax(u32::try_from(round - self.caches.len()).unwrap_or(u32::MAX));
            }
        }
    }

    /// Fills the cache from its second batch or from the depot, and takes a slot.
    #[cold]
    fn refill(&self, free: &mut FreeSlots, size: usize) -> Option<NonNull<u8>> {
        swap(&mut free.first, &mut free.second);
        if free.first.count == 0 {
            free.first = locked(&self.depot).take(size)?;
        }
        free.first.pop().map(NonNull::cast)
    }

    /// Called when the first batch is full: swaps the two batches. If the second was full, too,
    /// gives one to the depot. Either way the first batch is empty afterwards.
    #[cold]
    fn make_room(&self, free: &mut FreeSlots) {
        swap(&mut free.first, &mut free.second);
        if free.first.count > 0 {
            locked(&self.depot).give_back(take(&mut free.first));
        }
    }
}

impl SlotBatch {
    #[inline]
    fn pop(&mut self) -> Option<NonNull<FreeSlot>> {
        let slot = self.top?;
        // SAFETY: a free slot contains a `FreeSlot` until it is taken.
        self.top = unsafe { (*slot.as_ptr()).next };
        self.count -= 1;
        Some(slot)
    }

    #[inline]
    fn push(&mut self, slot: NonNull<FreeSlot>) {
        // SAFETY: a slot is at least a cache line long, aligned to a cache line, and not in use.
        unsafe { slot.write(FreeSlot { next: self.top, next_batch: None }) };
        self.top = Some(slot);
        self.count += 1;
    }
}

impl Depot {
    /// Takes a batch that was given back, or cuts new slots. `None` if there is no memory left.
    fn take(&mut self, size: usize) -> Option<SlotBatch> {
        if let Some(top) = self.batches {
            // SAFETY: the top slot of a batch in the depot is free, so it contains a `FreeSlot`.
            self.batches = unsafe { (*top.as_ptr()).next_batch };
            return Some(SlotBatch { top: Some(top), count: BATCH });
        }
        let (start, left) = match self.rest {
            Some((start, left)) if left >= size => (start, left),
            _ => self.grow()?,
        };
        let mut batch = SlotBatch::default();
        let count = (left / size).min(BATCH as usize);
        // Push the last slot first, so that slots are later taken in the order of their addresses.
        for nth in (0..count).rev() {
            // SAFETY: `left` bytes follow `start` in its chunk, enough for this many slots.
            batch.push(unsafe { start.add(nth * size) }.cast());
        }
        // SAFETY: as above.
        self.rest = Some((unsafe { start.add(count * size) }, left - count * size));
        Some(batch)
    }

    /// Puts a batch on the stack of full ones.
    fn give_back(&mut self, batch: SlotBatch) {
        let Some(top) = batch.top else { return };
        // SAFETY: the top slot of a batch is free, so it contains a `FreeSlot`.
        unsafe { (*top.as_ptr()).next_batch = self.batches };
        self.batches = Some(top);
    }

    /// Allocates the next chunk, four times as large as the last one up to a limit.
    #[cold]
    fn grow(&mut self) -> Option<(NonNull<u8>, usize)> {
        let last = self.chunks.last().map_or(FIRST_CHUNK / 4, |(_, layout)| layout.size());
        let size = (last * 4).min(LAST_CHUNK);
        let layout = Layout::from_size_align(size, size).ok()?;
        // SAFETY: the layout is not empty.
        let chunk = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
        #[cfg(linux_platform)]
        if size == LAST_CHUNK && !cfg!(miri) {
            // SAFETY: the range is the chunk that was just allocated, and the advice does not
            // change its contents. If the kernel refuses, only speed is lost.
            let _ = unsafe {
                let advice = rustix::mm::Advice::LinuxHugepage;
                rustix::mm::madvise(chunk.as_ptr().cast(), size, advice)
            };
        }
        self.chunks.push((chunk, layout));
        Some((chunk, size))
    }
}

impl Drop for Depot {
    fn drop(&mut self) {
        for (chunk, layout) in self.chunks.drain(..) {
            // SAFETY: `grow` allocated the chunk with this layout, and all its slots are back.
            unsafe { std::alloc::dealloc(chunk.as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::cpu::CpuMap;
    use std::sync::mpsc::sync_channel;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 64).unwrap()
    }

    fn arena(caches: usize) -> Arena {
        Arena::new(CpuMap::of_this_process().current(), caches)
    }

    fn held(class: &Class) -> usize {
        locked(&class.depot).chunks.iter().map(|(_, layout)| layout.size()).sum()
    }

    #[test]
    fn slots_are_apart_aligned_and_used_again() {
        let arena = arena(1);
        let count = if cfg!(miri) { 300 } else { 100_000 };
        for size in [1, 64, 65, 128] {
            let mut slots: Vec<usize> =
                (0..count).map(|_| arena.take(layout(size)).unwrap().as_ptr() as usize).collect();
            slots.sort_unstable();
            assert!(slots.iter().all(|slot| slot % 64 == 0));
            assert!(slots.windows(2).all(|pair| pair[1] - pair[0] >= size));
            let slot = arena.take(layout(size)).unwrap();
            // SAFETY: the slot was taken just now, with this layout.
            unsafe { arena.give_back(slot, layout(size)) };
            assert_eq!(arena.take(layout(size)), Some(slot));
        }
    }

    #[test]
    fn large_slots_are_allocated_one_by_one() {
        let arena = arena(2);
        let slot = arena.take(layout(129)).unwrap();
        assert_eq!(arena.classes.each_ref().map(held), [0, 0]);
        // SAFETY: the slot was taken just now, with this layout.
        unsafe { arena.give_back(slot, layout(129)) };
    }

    #[test]
    fn a_cache_in_use_is_passed_over() {
        let class = Class::new(2);
        let held = class.caches[0].0.try_lock();
        let slot = class.take(0, 64).unwrap();
        class.give_back(0, slot);
        drop(held);
        assert_eq!(class.take(1, 64), Some(slot));
    }

    /// Method: one thread takes slots as CPU 0 and fills them; another checks their contents and
    /// gives them back as CPU 1.
    #[test]
    fn memory_is_flat_when_one_cpu_frees_what_another_made() {
        const IN_FLIGHT: usize = if cfg!(miri) { 50 } else { 500 };
        let rounds = if cfg!(miri) { 500 } else { 1_000_000 };
        let class = &Class::new(2);
        let (sender, receiver) = sync_channel::<usize>(IN_FLIGHT);
        std::thread::scope(|s| {
            s.spawn(move || {
                for round in 0..rounds {
                    let slot = class.take(0, 64).unwrap().cast::<[usize; 8]>();
                    // SAFETY: the slot was taken just now, and has 64 bytes.
                    unsafe { slot.write([round; 8]) };
                    sender.send(slot.as_ptr().expose_provenance()).unwrap();
                }
            });
            for (round, slot) in receiver.into_iter().enumerate() {
                let slot = core::ptr::with_exposed_provenance_mut::<[usize; 8]>(slot);
                let slot = NonNull::new(slot).unwrap();
                // SAFETY: the other thread wrote the slot before it sent it, and no longer uses it.
                assert_eq!(unsafe { slot.read() }, [round; 8], "used by another thread");
                class.give_back(1, slot.cast());
            }
        });
        // No more slots exist at once than those in the channel, one in each thread, and two
        // batches in the cache of each CPU. Allow for a newest chunk that is used only in part.
        let slots = IN_FLIGHT + 2 + 2 * 2 * BATCH as usize;
        assert!(held(class) <= (slots * 64).next_power_of_two() * 4, "{} bytes", held(class));
    }
}
