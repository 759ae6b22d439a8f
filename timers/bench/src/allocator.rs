//! The system's allocator, which counts the bytes of each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

thread_local! {
    /// The bytes that this thread has allocated. Atomics would slow down timers that allocate.
    static ALLOCATED: Cell<i64> = const { Cell::new(0) };
}

/// Returns the bytes that the calling thread has allocated and not freed, in the sizes that it
/// requested.
pub fn bytes_in_use() -> i64 {
    ALLOCATED.get()
}

fn count(bytes: isize) {
    // A thread that ends can free memory after its thread-local counter has been dropped.
    let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + bytes as i64));
}

// SAFETY: each call is passed on to the system's allocator, which fulfils the trait's contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller of this function promises what the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller of this function promises what the system's allocator requires.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller of this function promises what the system's allocator requires.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed() - layout.size().cast_signed());
        // SAFETY: the caller of this function promises what the system's allocator requires.
        unsafe { System.realloc(memory, layout, size) }
    }
}
