//! Untraced waits: system calls that wait with the kernel's own timeout. The begin of one leads to
//! a notice or, where an eBPF program follows the sleeps of threads, to nothing. Its end leads to
//! nothing.
//!
//! A busy server makes many waits with a timeout, nearly all of which end by an event. While the
//! clock flows as real time does, the kernel's timeout is right, so the call is made as it is. The
//! tracer records the deadline. When the clock has jumped to the deadline, the tracer interrupts
//! the call, if the thread is still in it, and gives it the result of a timeout.
//!
//! A census finds the waits that have begun without a notice, and those that have ended, before the
//! clock jumps.

use super::state::Engine;
use super::waits::{ERESTARTSYS, is_interrupted, wait_of, write_remaining};
use crate::line::Ns;
use crate::look::in_call;
use crate::options::{Options, Pace};
use crate::sys::events::clock;
use crate::sys::notices::Notice;
use crate::sys::ptrace;
use crate::thread::{Before, Change, InCall, Progress, Sleep, Then, Untraced, Woken, call_of};
use crate::timeout::{Endless, TimedCall, When};
use libc::pid_t;

/// Returns whether time flows as in reality while a thread computes: the kernel's timeouts are
/// right then. The report needs the end of each wait, so with a report no wait is untraced.
pub(super) fn flows(options: &Options) -> bool {
    options.pace == Pace::Jump && !options.reports
}

impl Engine<'_> {
    /// Begins the wait of a thread that has sent a notice and is blocked until the answer. A sleep
    /// that is held (see `holds`) is answered at its deadline, and never made. Any other call is
    /// answered at once, and the thread then makes it.
    pub(crate) fn begin_by_notice(&mut self, notice: Notice) {
        let Notice { tid, call, .. } = notice;
        let before = Before::Notice(notice);
        match wait_of(tid, &call) {
            Some(call) if call.when != When::Now || self.holds(&call) => {
                self.begin_wait(tid, call, before);
            }
            _ => self.on(tid, Change::IsAnswered(Then::MakeCall(before))),
        }
        self.last = tid;
    }

    /// Returns whether untraced waits begin without a notice.
    pub(crate) fn hides_waits(&self) -> bool {
        self.thread_events.is_some() && flows(self.options)
    }

    /// Arms the deadlines of waits that have begun without a notice, and cancels those of waits
    /// that have ended. Must be called when all threads are asleep: only then is the stored expiry
    /// of a thread that of its current wait.
    pub(crate) fn find_waits(&mut self) {
        let times = self.times();
        let mut found = Vec::new();
        for (tid, in_call) in std::mem::take(&mut self.tree.fell_asleep) {
            let Some(thread) = self.tree.threads.get_mut(&tid) else { continue };
            thread.call_asleep = in_call;
            found.extend(self.found(tid, in_call, times).map(|change| (tid, change)));
        }
        found.sort_by_key(|(_, change)| match change {
            Change::WaitsUntraced(wait, _) => Some(wait.deadline),
            _ => None,
        });
        for (tid, change) in found {
            self.on(tid, change);
        }
    }

    /// Returns the time, and that of the kernel's clock.
    pub(crate) fn times(&self) -> (Ns, Ns) {
        (self.clock.now(), clock(libc::CLOCK_MONOTONIC))
    }

    /// Returns what has changed for a thread that was in a call at these times.
    pub(crate) fn found(&self, tid: pid_t, call: InCall, times: (Ns, Ns)) -> Option<Change> {
        let (now, kernels_now) = times;
        let events = self.thread_events.as_ref().filter(|_| self.hides_waits());
        let sleep = events.map(|events| Sleep { expiry: events.expiry(tid), now, kernels_now });
        self.tree.state(tid).found(call, sleep)
    }

    /// Returns whether an untraced wait is perhaps the last one that a thread began.
    fn is_last(&self, tid: pid_t, wait: &Untraced) -> bool {
        wait.is_last(self.thread_events.as_ref().and_then(|events| events.expiry(tid)))
    }

    /// Returns whether a sleep is held: answered at its deadline, and never made. If threads are
    /// many, sleeps are made, because each notice costs the kernel time for each held thread.
    pub(crate) fn holds(&self, call: &TimedCall) -> bool {
        const HELD_MAX: usize = 64;
        let is_held = self.tree.threads.len() <= HELD_MAX || !flows(self.options);
        // An absolute sleep is always held: the kernel's realtime can be ahead of virtual time.
        call.endless == Endless::Pause
            && (is_held || call.takes_no_time() || matches!(call.when, When::At { .. }))
    }

    /// Ends the wait of a thread whose deadline has come, unless it has ended.
    pub(crate) fn end_wait(&mut self, tid: pid_t) {
        let last = self.tree.state(tid).untraced();
        let progress = match last {
            Some(wait) if self.is_last(tid, &wait) => self.progress(tid, &wait),
            _ => Progress::Ended,
        };
        self.on(tid, Change::IsDue(progress));
    }

    fn progress(&mut self, tid: pid_t, wait: &Untraced) -> Progress {
        let thread = self.tree.threads.get_mut(&tid);
        thread.map_or(Progress::Ended, |thread| wait.progress(in_call(thread)))
    }

    /// Gives the untraced wait of a thread that has stopped, after the wait's deadline has come,
    /// the result of a timeout.
    pub(crate) fn finish_untraced(&mut self, tid: pid_t, wait: Untraced, woken: Woken) {
        let is_last = self.is_last(tid, &wait);
        let Some(mut registers) = ptrace::registers(tid) else { return };
        let in_call = call_of(&registers);
        let result = registers.rax.cast_signed();
        // ERESTARTSYS: the thread was interrupted while it waited for the answer to the notice of a
        // later wait. The kernel repeats that call.
        if !is_interrupted(result) || result == ERESTARTSYS {
            return;
        }
        // The interrupted call is this wait if the interruption has woken the thread, and the last
        // expiry of the thread is still this wait's. Otherwise, the thread has begun a later wait.
        let is_this = wait.expiry.is_none() || (woken == Woken::Yes && is_last);
        if is_this && wait.is_at(&in_call) {
            registers.rax = wait.call.timed_out.cast_unsigned();
        } else if matches!(in_call.0, libc::SYS_epoll_wait | libc::SYS_epoll_pwait) {
            // The tracer has interrupted a later wait of the thread, which must go on: the kernel
            // does not repeat this call by itself, so make the thread repeat it.
            ptrace::repeat_call(&mut registers);
        }
        ptrace::set_registers(tid, &registers);
    }

    /// Stores the time that is left of the untraced wait of a thread that has stopped for a signal.
    /// Returns whether the thread is in that wait.
    pub(crate) fn interrupts_untraced(&mut self, tid: pid_t) -> bool {
        let Some(wait) = self.tree.state(tid).untraced() else { return false };
        let lasts = self.progress(tid, &wait) == Progress::Lasts;
        if lasts {
            let left = wait.deadline.saturating_sub(self.clock.now());
            write_remaining(tid, wait.call.remaining, left);
        }
        lasts
    }
}
