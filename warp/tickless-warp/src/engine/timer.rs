//! A timer of a program: timerfd_create(2), timer_create(2), setitimer(2) and alarm(2).

use crate::line::Ns;
use crate::timeout::When;
use libc::{c_int, pid_t};
use std::os::fd::OwnedFd;
use tickless_core::local::Key;

/// The name of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum TimerId {
    /// The alarm of a process: setitimer(2) and alarm(2).
    Alarm(pid_t),
    /// A timer of a process, with the number that the kernel gave it.
    Process(pid_t, u64),
    /// A timer that is a file descriptor; the number is the tracer's own count of these.
    Descriptor(u64),
}

/// What a timer does when it expires.
pub(crate) enum Effect {
    Nothing,
    Alarm,
    Signal { number: c_int, value: u64, thread: Option<pid_t> },
    Count(OwnedFd),
}

pub(crate) struct Timer {
    /// The process that set it first.
    pub(crate) owner: pid_t,
    pub(crate) effect: Effect,
    pub(crate) clock: u64,
    pub(crate) when: When,
    pub(crate) deadline: Option<Ns>,
    pub(crate) interval: Ns,
    pub(crate) key: Option<Key>,
    /// How many expiries found their signal still pending, and how many the last signal reported.
    pub(crate) overrun: u64,
    pub(crate) last_overrun: u64,
}

impl Timer {
    pub(crate) fn new(owner: pid_t, effect: Effect, clock: u64) -> Timer {
        let (when, deadline, key) = (When::After(0), None, None);
        Timer {
            owner,
            effect,
            clock,
            when,
            deadline,
            interval: 0,
            key,
            overrun: 0,
            last_overrun: 0,
        }
    }
}
