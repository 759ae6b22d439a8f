//! Bytes in use, which an allocator counts, and how many bytes are resident.

use tickless_conformance::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

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
