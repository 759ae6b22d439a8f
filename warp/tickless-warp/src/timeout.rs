//! What the timeout of a system call means: when the wait ends, what the call returns then, and how
//! the kernel waits without the timeout. Pure: the caller passes the arguments and reads the
//! memory.

use libc::{EAGAIN, ETIMEDOUT, c_int, c_long};

/// When a wait ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// At once: the call only looks, and does not sleep.
    Now,
    /// Nanoseconds after the call.
    After(u64),
    /// When the clock with the number `clock` shows `ns`, in nanoseconds.
    At { clock: u64, ns: u64 },
}

/// How the kernel is made to wait until the tracer ends the wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Endless {
    /// The argument with this index gets this value, which means no timeout.
    Argument(usize, u64),
    /// The call is replaced by pause(2), because it only sleeps.
    Pause,
    /// The call is not changed. The timeout is that of its socket, and only the tracer knows it.
    AsItIs,
}

/// Where the call stores how much of its timeout was left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Remaining {
    No,
    /// The time left is stored as a `timespec`, if a signal interrupts the sleep: nanosleep(2).
    Interrupted(u64),
    /// The time left is stored as a `timespec`, however the call ends: ppoll(2).
    Timespec(u64),
    /// The time left is stored as a `timeval`, however the call ends: select(2).
    Timeval(u64),
}

/// A system call that waits for at most a given time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimedCall {
    pub(crate) when: When,
    /// The result of the call when its time has passed.
    pub(crate) timed_out: i64,
    pub(crate) endless: Endless,
    pub(crate) remaining: Remaining,
}

/// Nanoseconds in a second.
pub(crate) const NS: u64 = 1_000_000_000;
const CLOCK_REALTIME: u64 = libc::CLOCK_REALTIME as u64;
const CLOCK_MONOTONIC: u64 = libc::CLOCK_MONOTONIC as u64;
/// The clocks that exist only where a device can wake the machine.
pub(crate) const ALARM_CLOCKS: [c_int; 2] =
    [libc::CLOCK_REALTIME_ALARM, libc::CLOCK_BOOTTIME_ALARM];
const FUTEX_CLOCK_REALTIME: u64 = libc::FUTEX_CLOCK_REALTIME as u64;
const TIMER_ABSTIME: u64 = libc::TIMER_ABSTIME as u64;
/// futex_wait(2), since Linux 6.7.
pub(crate) const SYS_FUTEX_WAIT: c_long = 455;

/// Converts a `timespec` to nanoseconds; `None` if it is invalid, and the kernel refuses it.
pub(crate) fn timespec(words: [i64; 2]) -> Option<u64> {
    let [seconds, nanos] = words.map(u64::try_from);
    let (seconds, nanos) = (seconds.ok()?, nanos.ok()?);
    (nanos < NS).then(|| seconds.saturating_mul(NS).saturating_add(nanos))
}

/// Converts a `timeval` as select(2) does, which accepts more than a million microseconds.
fn timeval(words: [i64; 2]) -> Option<u64> {
    let [seconds, micros] = words.map(u64::try_from);
    Some(seconds.ok()?.saturating_mul(NS).saturating_add(micros.ok()?.saturating_mul(1_000)))
}

/// Returns what the timeout of a system call means. `None` if the call must run as it is, because
/// it has no timeout or does not wait, or because the kernel refuses its arguments. `read` reads
/// two words at an address of the thread that makes the call.
pub(crate) fn timed_call(
    number: c_long,
    args: [u64; 6],
    read: impl Fn(u64) -> Option<[i64; 2]>,
) -> Option<TimedCall> {
    let spec = |at: u64| read(at).and_then(timespec);
    // These calls only look if their time is zero; the others below sleep.
    let after = |ns: u64| if ns > 0 { When::After(ns) } else { When::Now };
    let millis = |arg: u64| Some(after(u64::try_from(arg as i32).ok()? * 1_000_000));
    let none = Remaining::No;
    let no_pointer = |index| Endless::Argument(index, 0);
    let [first, op, _, fourth, fifth, _] = args;
    let (when, timed_out, endless, remaining) = match number {
        libc::SYS_nanosleep => {
            (When::After(spec(first)?), 0, Endless::Pause, Remaining::Interrupted(op))
        }
        libc::SYS_clock_nanosleep => {
            let (clock, ns) = (sleeping_clock(first)?, spec(args[2])?);
            if op & TIMER_ABSTIME != 0 {
                (When::At { clock, ns }, 0, Endless::Pause, none)
            } else {
                (When::After(ns), 0, Endless::Pause, Remaining::Interrupted(fourth))
            }
        }
        libc::SYS_poll => (millis(args[2])?, 0, Endless::Argument(2, u64::MAX), none),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => {
            (millis(fourth)?, 0, Endless::Argument(3, u64::MAX), none)
        }
        libc::SYS_epoll_pwait2 => (after(spec(fourth)?), 0, no_pointer(3), none),
        libc::SYS_ppoll => (after(spec(args[2])?), 0, no_pointer(2), Remaining::Timespec(args[2])),
        libc::SYS_select => {
            (after(read(fifth).and_then(timeval)?), 0, no_pointer(4), Remaining::Timeval(fifth))
        }
        libc::SYS_pselect6 => (after(spec(fifth)?), 0, no_pointer(4), Remaining::Timespec(fifth)),
        libc::SYS_recvmmsg => {
            (after(spec(fifth)?), -i64::from(EAGAIN), no_pointer(4), Remaining::Timespec(fifth))
        }
        libc::SYS_futex => (futex(op, spec(fourth)?)?, -i64::from(ETIMEDOUT), no_pointer(3), none),
        libc::SYS_futex_waitv => {
            let when = When::At { clock: futex_clock(fifth)?, ns: spec(fourth)? };
            (when, -i64::from(ETIMEDOUT), no_pointer(3), none)
        }
        SYS_FUTEX_WAIT => {
            let when = When::At { clock: futex_clock(args[5])?, ns: spec(fifth)? };
            (when, -i64::from(ETIMEDOUT), no_pointer(4), none)
        }
        // Without a time, for the overrun of a timer's signal, which is known when it is taken.
        libc::SYS_rt_sigtimedwait if args[2] == 0 => {
            (When::After(u64::MAX), -i64::from(EAGAIN), Endless::AsItIs, none)
        }
        libc::SYS_rt_sigtimedwait => {
            (after(spec(args[2])?), -i64::from(EAGAIN), no_pointer(2), none)
        }
        libc::SYS_semtimedop => {
            (When::After(spec(fourth)?), -i64::from(EAGAIN), no_pointer(3), none)
        }
        libc::SYS_mq_timedsend | libc::SYS_mq_timedreceive => {
            let when = When::At { clock: CLOCK_REALTIME, ns: spec(fifth)? };
            (when, -i64::from(ETIMEDOUT), no_pointer(4), none)
        }
        _ => return None,
    };
    Some(TimedCall { when, timed_out, endless, remaining })
}

/// Returns the clock of a sleep from the argument of clock_nanosleep(2), an `int`; `None` for one
/// on which the kernel lets nobody sleep.
fn sleeping_clock(argument: u64) -> Option<u64> {
    let clock = argument & u64::from(u32::MAX);
    matches!(clock, 0 | 1 | 7 | 8 | 9 | 11).then_some(clock)
}

/// Returns the clock of a newer call for futexes; `None` for one that the kernel refuses.
fn futex_clock(argument: u64) -> Option<u64> {
    let clock = argument & u64::from(u32::MAX);
    matches!(clock, CLOCK_REALTIME | CLOCK_MONOTONIC).then_some(clock)
}

/// Returns when a futex(2) operation times out: `FUTEX_WAIT` has a relative timeout, the others
/// have an absolute one on the monotonic clock, unless they choose the realtime clock.
fn futex(op: u64, ns: u64) -> Option<When> {
    let realtime = op & FUTEX_CLOCK_REALTIME != 0;
    let clock = if realtime { CLOCK_REALTIME } else { CLOCK_MONOTONIC };
    match (op & 0x7f) as i32 {
        libc::FUTEX_WAIT => Some(When::After(ns)),
        libc::FUTEX_WAIT_BITSET | libc::FUTEX_WAIT_REQUEUE_PI | libc::FUTEX_LOCK_PI2 => {
            Some(When::At { clock, ns })
        }
        libc::FUTEX_LOCK_PI => Some(When::At { clock: CLOCK_REALTIME, ns }),
        _ => None,
    }
}

/// Returns whether a call with these first arguments is a FUTEX_WAIT or FUTEX_WAIT_BITSET.
pub(crate) fn is_futex_wait(number: c_long, [_, op, ..]: [u64; 6]) -> bool {
    let op = (op & 0x7f) as c_int;
    number == libc::SYS_futex && matches!(op, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET)
}

/// Returns where the call stores the time that was left, and the two words to store there.
pub(crate) fn remaining_words(remaining: Remaining, ns: u64) -> Option<(u64, [u64; 2])> {
    match remaining {
        Remaining::No | Remaining::Interrupted(0) => None,
        Remaining::Interrupted(at) | Remaining::Timespec(at) => Some((at, [ns / NS, ns % NS])),
        Remaining::Timeval(at) => Some((at, [ns / NS, ns % NS / 1_000])),
    }
}
