//! Timers that the program's own event loop drives, by a descriptor that it polls.

use crate::object::{Object, optional_result_of, result_of};
use crate::one_thread::{Exclusive, Handle, HandleKind, OneThread};
use crate::options::Options;
use crate::sized;
use crate::status::{Outcome, Status, entry, failure, write_optional, write_result};
use crate::timers::TimerSet;
use core::ffi::c_int;
use std::os::fd::AsRawFd;
use tickless::driver::EventLoopDriver;
use tickless::time::Instant;

/// Drives one base of a set of timers from the program's own loop. Opaque.
///
/// The loop polls the descriptor for reading, with its other descriptors, and calls
/// `tickless_loop_run` when it is readable. Callbacks run inside that call, on the loop's thread,
/// one at a time. All threads may arm and cancel timers; a timer fires only when the loop runs.
///
/// Only the owner thread may use it: the thread that created it, or the last one that adopted it.
pub struct Loop {
    own: OneThread<EventLoopDriver>,
    descriptor: c_int,
}

impl Handle for Loop {
    type Value = EventLoopDriver;
    const KIND: HandleKind =
        HandleKind { mark: 0x6c6f_6f70_6472_6976, name: "loop", remedy: "adopt it first" };

    fn own(&self) -> &OneThread<EventLoopDriver> {
        &self.own
    }
}

impl Object for Loop {
    type Lent<'a> = Exclusive<'a, EventLoopDriver>;

    unsafe fn lend<'a>(at: *const Loop) -> Outcome<Self::Lent<'a>> {
        // SAFETY: the caller promises that `at` is null or points to a loop that is not destroyed
        // while the result is used.
        unsafe { Loop::own_thread(at)?.exclusive(&Loop::KIND) }
    }
}

/// Starts timers on `count` bases without threads of the library: `loops` receives a loop for each
/// base, which the program runs. For one loop, `count` is 1 and `loops` is the address of one
/// pointer. `options` may be null; its `bases` must be 0 or `count`, and options for threads of the
/// library (deferral, pinned drivers) are ignored.
///
/// Arming a timer makes one system call if its deadline is earlier than all others of its base; no
/// other operation makes one. `TICKLESS_PIN(base)` keeps a timer in the loop of that number.
///
/// Stop the timers first, then destroy the loops.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`, `TICKLESS_OUT_OF_RANGE` for a count of
/// 0 or beyond 65,535, `TICKLESS_NO_DESCRIPTOR`.
///
/// # Safety
/// `options` is null or points to as many readable bytes as its `size` states; `timers` is
/// writable; `loops` points to `count` writable pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_start_in_loops(
    options: *const Options,
    count: u32,
    timers: *mut *mut TimerSet,
    loops: *mut *mut Loop,
) -> Status {
    entry(|| {
        // SAFETY: the caller promises that `timers` is null or writable.
        unsafe { write_result(timers, core::ptr::null_mut()) }?;
        // SAFETY: the caller promises that `options` is null or points to as many readable bytes as
        // its `size` states.
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
                "the number of bases differs from the number of loops",
            ));
        }
        if loops.is_null() {
            return Err(failure(Status::NullPointer, "the pointer for the loops is null"));
        }
        let (set, drivers) = (options.builder()?.bases(bases).start_in_loops())
            .map_err(|error| failure(Status::NoDescriptor, error))?;
        for (at, driver) in drivers.into_iter().enumerate() {
            let descriptor = driver.as_raw_fd();
            let made = Box::new(Loop { own: OneThread::new(&Loop::KIND, driver), descriptor });
            // SAFETY: the caller promises that `loops` points to `count` writable pointers.
            unsafe { write_optional(loops.add(at), Box::into_raw(made)) };
        }
        // SAFETY: the caller promises that `timers` is null or writable.
        unsafe { write_result(timers, Box::into_raw(Box::new(TimerSet::new(set, None)))) }
    })
}

/// Returns the descriptor to poll. It is readable exactly while the loop has something to do. It
/// works with poll, select, epoll (level- or edge-triggered), and libraries built on them. Do not
/// read, set or close it. Any thread may call this function.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `one` came from `tickless_timers_start_in_loops` and was not destroyed; `descriptor` is
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_fd(one: *const Loop, descriptor: *mut c_int) -> Status {
    entry(|| {
        // SAFETY: the caller promises that `one` came from the library and was not destroyed, and
        // that `descriptor` is null or writable.
        unsafe {
            Loop::any_thread(one)?;
            write_result(descriptor, (*one).descriptor)
        }
    })
}

/// Fires the timers that are due. `fired`, which may be null, receives how many fired. Costs one
/// clock reading if none is due, so the program may also call it when the descriptor is not
/// readable.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback that
/// this call runs.
///
/// # Safety
/// `one` came from `tickless_timers_start_in_loops` and was not destroyed; `fired` is null or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_run(one: *mut Loop, fired: *mut u64) -> Status {
    // SAFETY: the caller promises that `one` came from the library and was not destroyed, and that
    // `fired` is null or writable.
    unsafe { optional_result_of(one, fired, |driver| Ok(driver.value.run())) }
}

/// Returns how long a loop that waits with a timeout may wait from now, in nanoseconds;
/// `TICKLESS_NEVER` if no timer is pending, 0 if one is due. Round it up. The loop must still poll
/// the descriptor while it waits, because another thread may arm an earlier timer. No system call.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback.
///
/// # Safety
/// `one` came from `tickless_timers_start_in_loops` and was not destroyed; `timeout_ns` is
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_timeout(one: *mut Loop, timeout_ns: *mut u64) -> Status {
    // SAFETY: the caller promises that `one` came from the library and was not destroyed, and that
    // `timeout_ns` is null or writable.
    unsafe {
        result_of(one, timeout_ns, |driver| {
            let left = driver.value.timeout();
            Ok(left.map_or(Instant::NEVER, |left| Instant::ZERO + left).as_nanos())
        })
    }
}

/// Makes the calling thread the owner of this loop. The previous owner must have finished using it,
/// and a lock or a join must order its last use before this call.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_BUSY` in a callback.
///
/// # Safety
/// `one` came from `tickless_timers_start_in_loops` and was not destroyed; no other thread uses it
/// during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_adopt(one: *mut Loop) -> Status {
    // SAFETY: the caller promises that `one` came from the library and no other thread uses it
    // during the call.
    unsafe { Handle::adopt(one) }
}

/// Destroys a loop and closes its descriptor; does nothing if the pointer is null. First remove the
/// descriptor from the poller. Timers of its base never fire afterwards.
///
/// Errors: `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback.
///
/// # Safety
/// `one` is null or came from `tickless_timers_start_in_loops` and was not destroyed; the caller
/// does not use it afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_loop_destroy(one: *mut Loop) -> Status {
    // SAFETY: the caller promises that `one` is null or came from the library, and is not used
    // afterwards.
    unsafe { Handle::free(one) }
}
