//! A clock that can be set, for timers that read the system's: this program defines the function of
//! the C library by which `std` and libraries in C read it.

use core::cell::Cell;
use core::ffi::{c_int, c_long};

/// The time at time zero: three years, so that threads which read the system's clock fire nothing.
const START_NS: u64 = 100_000_000_000_000_000;

thread_local! {
    /// The time on this thread; `None` is the system's.
    static NOW: Cell<Option<u64>> = const { Cell::new(None) };
}

#[repr(C)]
struct Timespec {
    secs: i64,
    nanos: i64,
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

/// The number of the system call on x86-64 and on others.
const CLOCK_GETTIME: c_long = if cfg!(target_arch = "x86_64") { 228 } else { 113 };

/// Replaces the C library's function, so that peers see the time of the test.
#[unsafe(no_mangle)]
extern "C" fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int {
    if let Ok(Some(now)) = NOW.try_with(Cell::get) {
        let (secs, nanos) = ((now / 1_000_000_000) as i64, (now % 1_000_000_000) as i64);
        // SAFETY: the caller passes a place for the time, as the C library requires.
        unsafe { time.write(Timespec { secs, nanos }) };
        return 0;
    }
    // SAFETY: the arguments are those of the system call.
    unsafe { syscall(CLOCK_GETTIME, clock, time) as c_int }
}

/// Calls `f` at a time of the suite: whatever reads the clock in it reads that time.
pub fn at<R>(now: u64, f: impl FnOnce() -> R) -> R {
    NOW.set(Some(START_NS + now));
    let result = f();
    NOW.set(None);
    result
}
