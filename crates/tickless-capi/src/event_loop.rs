//! Timers that a loop of the program's drives, by a descriptor that it polls.

use crate::one_thread::{Handle, OneThread, Sort};
use crate::options::Options;
use crate::sized;
use crate::status::{Status, answer, entry, failure, put};
use crate::timers::TimerSet;
use core::ffi::c_int;
use std::os::fd::AsRawFd;
use tickless::driver::EventLoopDriver;
use tickless::time::Instant;

/// What drives one base of a set of timers, in the program's own loop. Opaque.
///
/// The loop polls its descriptor for reading, beside its others, and calls `tickless_loop_run` when
/// that is readable. Callbacks run inside of that, on the loop's thread, one at a time. Timers can
/// be armed and cancelled from all threads; while nobody runs the loop none fires.
///
/// Used by the thread that started it, or the last one that adopted it.
pub struct Loop {
    own: OneThread<EventLoopDriver>,
    descriptor: c_int,
}

impl Handle for Loop {
    type Value = EventLoopDriver;
    const SORT: Sort =
        Sort { mark: 0x6c6f_6f70_6472_6976, name: "loops", remedy: "adopt the loop first" };

    fn own(&self) -> &OneThread<EventLoopDriver> {
        &self.own
    }
}

/// Starts timers on `count` bases without any thread of the library: `loops` receives a loop for
/// each, to be run by the program. For one loop, `count` is 1 and `loops` the address of one
/// pointer. `options` may be null; its `bases` must be 0 or `count`, and what concerns threads of
/// the library (deferral, pinned drivers) is ignored.
///
/// Arming a timer that is due before all others of its base is one system call; nothing else is
/// one. `TICKLESS_PIN(base)` keeps a timer in the loop of that number.
///
/// Stop the timers first, then destroy the loops.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`, `TICKLESS_OUT_OF_RANGE` for a count of
/// 0 or beyond 65,535, `TICKLESS_NO_DESCRIPTOR`.
///
/// # Safety
/// `options` is null or leads to as many readable bytes as its `size` says; `timers` can be
/// written, and `count` pointers at `loops`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_start_in_loops(
    options: *const Options,
    count: u32,
    timers: *mut *mut TimerSet,
    loops: *mut *mut Loop,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { answer(timers, core::ptr::null_mut()) }?;
        // SAFETY: as promised.
        let options = unsafe { sized::read(options) }?;
        let Some(bases) = u16::try_from(count).ok().filter(|&bases| bases > 0) else {
            return Err(failure(
                Status::OutOfRange,
                format_args!("{count} loops; pass 1 to 65,535"),
            ));
        };
        if options.bases != 0 && options.bases != count {
            return Err(failure(
                Status::OutOfRange,
                "there is one loop for each base, no other number",
            ));
        }
        if loops.is_null() {
            return Err(failure(Status::NullPointer, "the pointer for the loops is null"));
        }
        let (set, drivers) = (options.builder()?.bases(bases).start_in_loops())
            .map_err(|error| failure(Status::NoDescriptor, error))?;
        for (at, driver) in drivers.into_iter().enumerate() {
            let descriptor = driver.as_raw_fd();
            let made = Box::new(Loop { own: OneThread::new(&Loop::SORT, driver), descriptor });
            // SAFETY: as promised, and there are `count` of them.
            unsafe { put(loops.add(at), Box::into_raw(made)) };
        }
        // SAFETY: as promised.
        unsafe { answer(timers, TimerSet::hand_out(set)) }
    })
}

/// The descriptor to poll: readable when there is something to do, and not otherwise. For poll,
/// select, epoll in either way of triggering, and what stands on them. Not to be read, set or
/// closed. May be asked for by any thread.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `one` came from `tickless_timers_start_in_loops` and was not destroyed; `descriptor` can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_fd(one: *const Loop, descriptor: *mut c_int) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe {
            Loop::any_thread(one)?;
            answer(descriptor, (*one).descriptor)
        }
    })
}

/// Runs what is due. `fired`, which may be null, receives how many timers fired. Costs a clock
/// reading if nothing is due, so it may be called more often than the descriptor asks for.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback of this.
///
/// # Safety
/// `one` came from `tickless_timers_start_in_loops` and was not destroyed; `fired` is null or can
/// be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_run(one: *mut Loop, fired: *mut u64) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let driver = unsafe { Loop::own_thread(one)?.alone(&Loop::SORT) }?;
        let count = driver.value.run();
        // SAFETY: as promised.
        unsafe { put(fired, count) };
        Ok(())
    })
}

/// For a loop that waits by a timeout: how long it may, in nanoseconds, from now;
/// `TICKLESS_NEVER` if nothing is pending, 0 if something is due. Round it up. While the loop waits
/// the descriptor still has to be polled, as a timer may be armed that is due earlier. No system
/// call.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback.
///
/// # Safety
/// `one` came from `tickless_timers_start_in_loops` and was not destroyed; `timeout_ns` can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_timeout(one: *mut Loop, timeout_ns: *mut u64) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let driver = unsafe { Loop::own_thread(one)?.alone(&Loop::SORT) }?;
        let left = driver.value.timeout().map_or(Instant::NEVER, |left| Instant::ZERO + left);
        // SAFETY: as promised.
        unsafe { answer(timeout_ns, left.as_nanos()) }
    })
}

/// Makes the calling thread the one that runs this loop. The thread before it must be done with it,
/// and have said so, by a lock or a join.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_BUSY` in a callback.
///
/// # Safety
/// `one` came from `tickless_timers_start_in_loops` and was not destroyed; nobody uses it
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_adopt(one: *mut Loop) -> Status {
    // SAFETY: as promised.
    entry(|| unsafe { Loop::adopt(one) })
}

/// Ends a loop, and closes its descriptor; null is nothing to do. Take the descriptor out of what
/// polls it first. Timers of its base never fire from now on.
///
/// Errors: `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback.
///
/// # Safety
/// `one` is null or came from `tickless_timers_start_in_loops` and was not destroyed; nobody uses
/// it later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_destroy(one: *mut Loop) -> Status {
    // SAFETY: as promised.
    entry(|| unsafe { Handle::free(one) })
}
