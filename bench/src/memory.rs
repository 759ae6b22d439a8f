//! An allocator that counts the bytes in use, and how many bytes are resident.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    /// Counted for each thread without atomics, which would slow down peers that allocate.
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that the calling thread has allocated and not freed, as asked for.
pub fn bytes_in_use() -> f64 {
    BYTES.get() as f64
}

/// Resident bytes after the allocator has returned its free memory; `None` if unreadable.
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
    // A thread that ends frees memory after its counter is gone.
    let _ = BYTES.try_with(|count| count.set(count.get() + bytes));
}

// SAFETY: all calls are forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller keeps the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of this function.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller keeps the contract of this function.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size as isize - layout.size() as isize);
        // SAFETY: the caller keeps the contract of this function.
        unsafe { System.realloc(at, layout, size) }
    }
}
