//! Timers that the program's own event loop drives, by a descriptor that it polls.

use crate::object::{Handle, Marked, create, handles, optional_result_of, result_of, value};
use crate::one_thread::{OneThread, adopt, free, lendable};
use crate::options::Options;
use crate::sized;
use crate::status::{Status, entry, failure, write_optional, write_result};
use crate::timers::{Set, TimerSet};
use core::ffi::c_int;
use std::os::fd::AsRawFd;
use tickless::driver::EventLoopDriver;
use tickless::time::Instant;

/// Drives one base of a set of timers from the program's own loop. Opaque.
///
/// The program's loop polls the descriptor for reading, with its own descriptors, and calls
/// `tickless_loop_run` when it is readable. Callbacks run inside that call, on the loop's thread,
/// one at a time. All threads may arm and cancel timers; a timer fires only when the loop runs.
///
/// Only the owner thread may use it: the thread that created it, or the last one that adopted it.
pub struct Loop(Marked<OneThread<EventLoopDriver, c_int>>);

// The `c_int` is the loop's descriptor, which all threads are allowed to read.
handles! {
    Loop(OneThread<EventLoopDriver, c_int>), 0x6c6f_6f70_6472_6976,
        "loop; adopt it in this thread",
        lendable => (&'a OneThread<EventLoopDriver, c_int>, &'a mut EventLoopDriver);
}

/// Starts timers on `count` bases without threads of the library: `loops` receives a loop for each
/// base, which the program runs. For one loop, `count` is 1 and `loops` is the address of one
/// pointer. `options` may be null; its `bases` must be 0 or `count`, and options for threads of the
/// library (expiry threads, pinned drivers) are ignored.
///
/// Arming a timer makes one system call if its deadline is earlier than all others of its base; no
/// other operation makes one. `TICKLESS_PIN(base)` keeps a timer in the loop of that number.
///
/// Stop the timers first, then destroy the loops.
///
/// Errors: `TICKLESS_UNSUPPORTED`, `TICKLESS_OUT_OF_RANGE` for a count of 0 or beyond 65,535,
/// `TICKLESS_NO_DESCRIPTOR`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_start_in_loops(
    options: *const Options,
    count: u32,
    timers: *mut *mut TimerSet,
    loops: *mut *mut Loop,
) -> Status {
    create(timers, || {
        let options = sized::read(options)?;
        let Some(bases) = u16::try_from(count).ok().filter(|&bases| bases > 0) else {
            let what = format!("{count} loops; pass 1 to 65,535");
            return Err(failure(Status::OutOfRange, what));
        };
        if options.bases != 0 && options.bases != count {
            let what = "the number of bases differs from the number of loops";
            return Err(failure(Status::OutOfRange, what));
        }
        if loops.is_null() {
            return Err(failure(Status::NullPointer, "the pointer for the loops is null"));
        }
        let (set, drivers) = (options.builder()?.bases(bases).start_in_loops())
            .map_err(|error| failure(Status::NoDescriptor, error))?;
        for (at, driver) in drivers.into_iter().enumerate() {
            let descriptor = driver.as_raw_fd();
            write_optional(loops.add(at), Loop::boxed(OneThread::new::<Loop>(driver, descriptor)));
        }
        Ok(Set::new(set, None))
    })
}

/// Returns the descriptor to poll. It is readable exactly while the loop has something to do. It
/// works with poll, select, epoll (level- or edge-triggered), and libraries built on them. Do not
/// read, set or close it. Any thread may call this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_fd(one: *const Loop, descriptor: *mut c_int) -> Status {
    entry(|| write_result(descriptor, value(one)?.facts))
}

/// Fires the timers that are due. `fired`, which may be null, receives how many fired. Costs one
/// clock reading if none is due, so the program may also call it when the descriptor is not
/// readable.
///
/// Errors: `TICKLESS_BUSY` in a callback that this call runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_run(one: *mut Loop, fired: *mut u64) -> Status {
    optional_result_of(one, fired, |(own, driver)| {
        let _refuses = own.refuse_calls();
        Ok(driver.run())
    })
}

/// Returns how long a loop that waits with a timeout may wait from now, in nanoseconds;
/// `TICKLESS_NEVER` if no timer is pending, 0 if one is due. Round this time up. The loop must
/// still poll the descriptor while it waits: another thread can arm an earlier timer. No system
/// call.
///
/// Errors: `TICKLESS_BUSY` in a callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_timeout(one: *mut Loop, timeout_ns: *mut u64) -> Status {
    result_of(one, timeout_ns, |(_, driver)| {
        let left = driver.timeout();
        Ok(left.map_or(Instant::NEVER, |left| Instant::ZERO + left).as_nanos())
    })
}

/// Makes the calling thread the owner of this loop. The previous owner must have finished using it,
/// and a lock or a join must order its last use before this call.
///
/// Errors: `TICKLESS_BUSY` in a callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_adopt(one: *mut Loop) -> Status {
    adopt(one)
}

/// Destroys a loop and closes its descriptor; does nothing if the pointer is null. First remove the
/// descriptor from the poller. Timers of its base never fire afterwards.
///
/// Errors: `TICKLESS_BUSY` in a callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_destroy(one: *mut Loop) -> Status {
    free(one)
}
