//! The allocator, with a count of the bytes that are in use; and what of them is in memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    /// By the thread that allocates: no atomic, so that counting does not slow peers down that
    /// allocate.
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that the calling thread has allocated and not freed, as asked for.
pub fn bytes_in_use() -> f64 {
    BYTES.get() as f64
}

/// Bytes of this process that are in memory, once the allocator has given back what it holds for
/// later. `None` where nobody says.
pub fn bytes_resident() -> Option<f64> {
    give_back();
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: f64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as f64)
}

#[cfg(target_env = "gnu")]
fn give_back() {
    unsafe extern "C" {
        fn malloc_trim(keep: usize) -> std::ffi::c_int;
    }
    // SAFETY: it may be called at any time.
    unsafe { malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn give_back() {}

fn note(bytes: isize) {
    // A thread that is ending frees what it can no longer count.
    let _ = BYTES.try_with(|count| count.set(count.get() + bytes));
}

// SAFETY: everything is handed on to the system's allocator, as it came.
unsafe impl GlobalAlloc for Counting {
    /// # Safety
    /// As the trait says.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller's promises are those that are asked for.
        unsafe { System.alloc(layout) }
    }

    /// # Safety
    /// As the trait says.
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: the caller's promises are those that are asked for.
        unsafe { System.dealloc(at, layout) }
    }

    /// # Safety
    /// As the trait says.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller's promises are those that are asked for.
        unsafe { System.alloc_zeroed(layout) }
    }

    /// # Safety
    /// As the trait says.
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size as isize - layout.size() as isize);
        // SAFETY: the caller's promises are those that are asked for.
        unsafe { System.realloc(at, layout, size) }
    }
}
