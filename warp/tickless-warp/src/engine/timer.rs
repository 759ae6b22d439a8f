//! A timer of a program: timerfd_create(2), timer_create(2), setitimer(2) and alarm(2).

use crate::line::Ns;
use crate::sys::events;
use crate::timeout::When;
use libc::{c_int, pid_t};
use std::os::fd::OwnedFd;

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
    /// The expiry for which a signal was sent that has perhaps not been taken yet, or for which the
    /// descriptor has perhaps been made ready.
    pub(crate) signalled: Option<Ns>,
    /// How many expiries came between that of the last signal and the moment at which it was taken.
    pub(crate) overrun: u64,
}

impl Timer {
    pub(crate) fn new(owner: pid_t, effect: Effect, clock: u64) -> Timer {
        let (when, deadline) = (When::After(0), None);
        Timer { owner, effect, clock, when, deadline, interval: 0, signalled: None, overrun: 0 }
    }

    /// Returns whether the timer's last signal has yet to be taken.
    pub(crate) fn is_signal_pending(&self, id: TimerId) -> bool {
        let (Effect::Signal { number, thread, .. }, TimerId::Process(process, _)) =
            (&self.effect, id)
        else {
            return false;
        };
        let tid = thread.unwrap_or(process);
        let waits = |name| events::signal_mask(tid, name).unwrap_or(0) >> (number - 1) & 1 != 0;
        waits("SigPnd:") || waits("ShdPnd:")
    }

    /// Counts the overrun of the timer's last signal, which has been taken at a time.
    pub(crate) fn has_delivered(&mut self, at: Ns) {
        if let Some(expiry) = self.signalled.take() {
            let overrun = at.saturating_sub(expiry).checked_div(self.interval).unwrap_or(0);
            self.overrun = overrun.min(i32::MAX as u64);
        }
    }
}
