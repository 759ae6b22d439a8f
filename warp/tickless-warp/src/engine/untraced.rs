//! Untraced waits: system calls that wait with the kernel's own timeout. The begin of one leads to
//! a notice (a message to the tracer) or, where an eBPF program follows the sleeps of threads, to
//! nothing. Its end leads to nothing.
//!
//! A busy server makes many waits with a timeout, nearly all of which end by an event. While the
//! clock flows as real time does, the kernel's timeout is right, so the call is made as it is. The
//! tracer records the deadline. When the clock has jumped to the deadline, the tracer interrupts
//! the call, if the thread is still in it, and gives it the result of a timeout.
//!
//! A census (the check whether all threads sleep) finds the waits that have begun without a notice,
//! and those that have ended, before the clock jumps.

use super::state::{Due, Engine, arguments};
use super::waits::{ERESTARTSYS, is_interrupted, wait_of, write_remaining};
use crate::asleep::{InCall, UntracedWait, untraced_wait};
use crate::filter::WITH_NUMBERS;
use crate::look::in_call;
use crate::options::{Options, Pace};
use crate::sys::events::clock;
use crate::sys::notices::{Answer, Notice};
use crate::sys::ptrace;
use crate::timeout::{Endless, TimedCall, When, timed_call};
use crate::tree::{State, Untraced};
use libc::{c_long, pid_t};
use tickless_core::local::Key;

/// Returns whether time flows as in reality while a thread computes: the kernel's timeouts are
/// right then. The report needs the end of each wait, so with a report no wait is untraced.
pub(super) fn flows(options: &Options) -> bool {
    options.pace == Pace::Jump && !options.reports
}

impl Engine<'_> {
    /// Begins the wait of a thread that has sent a notice (the seccomp message about a call) and is
    /// blocked until the answer. A sleep that is held (see `holds`) is answered at its deadline,
    /// and never made. Any other call is answered at once, and the thread then makes it.
    pub(crate) fn begin_by_notice(&mut self, notice: Notice) {
        let Notice { tid, number, ip, args, .. } = notice;
        self.forget_untraced(tid);
        self.sleep_is_repeated(tid);
        let call = wait_of(tid, number, args);
        self.last = tid;
        if let Some(TimedCall { when: When::After(0), endless: Endless::Pause, .. }) = call {
            self.pass_no_time(tid);
            if let Some(listener) = &self.listener {
                listener.answer(&notice, Answer::Result(0));
            }
            return;
        }
        if let Some(call) = call.filter(|call| self.holds(call)) {
            return self.begin_wait(tid, notice.registers(), call, Some(notice));
        }
        if let (Some(thread), Some(call @ TimedCall { when: When::After(ns), .. })) =
            (self.tree.threads.get_mut(&tid), call)
        {
            let deadline = self.clock.now().saturating_add(ns);
            let key = self.deadlines.arm(deadline, Due::Wait(tid));
            let (expiry, was_asleep) = (None, false);
            thread.untraced =
                Some(Untraced { call, number, ip, args, deadline, key, expiry, was_asleep });
        }
        if let Some(listener) = &self.listener {
            listener.answer(&notice, Answer::MakeCall);
        }
    }

    /// Returns whether untraced waits begin without a notice.
    pub(crate) fn hides_waits(&self) -> bool {
        self.thread_events.is_some() && flows(self.options)
    }

    /// Arms the deadlines of waits that have begun without a notice. Must be called when all
    /// threads are asleep: only then is the stored expiry of a thread that of its current wait.
    pub(crate) fn find_waits(&mut self) {
        let fell_asleep = std::mem::take(&mut self.tree.fell_asleep);
        let Some(events) = self.thread_events.as_ref().filter(|_| self.hides_waits()) else {
            return;
        };
        let (now, kernels_now) = (self.clock.now(), clock(libc::CLOCK_MONOTONIC));
        let mut found = Vec::new();
        for tid in fell_asleep {
            let Some(thread) = self.tree.threads.get_mut(&tid) else { continue };
            let InCall::Waits(call) = in_call(thread) else { continue };
            let (number, ip, args) = call;
            let expiry = events.expiry(tid);
            let lasts = |wait: Untraced| {
                wait.is_at(&call) && (wait.expiry.is_none() || wait.expiry == expiry)
            };
            if thread.untraced.is_some_and(lasts) {
                continue;
            }
            if let Some(key) = thread.untraced.take().and_then(|wait| wait.key) {
                self.deadlines.cancel(key);
            }
            // An interrupted poll(2) is repeated under another number.
            let number = if number == libc::SYS_restart_syscall { libc::SYS_poll } else { number };
            let timed = timed_call(number, args, |_| None);
            let Some(call) = timed.filter(|_| WITH_NUMBERS.contains(&number)) else { continue };
            let When::After(timeout) = call.when else { continue };
            let left = expiry.map_or(timeout, |at| at.saturating_sub(kernels_now));
            let (deadline, key, was_asleep) = (now.saturating_add(left), None, false);
            found.push((
                tid,
                Untraced { call, number, ip, args, deadline, key, expiry, was_asleep },
            ));
        }
        found.sort_by_key(|(_, wait)| wait.deadline);
        for (tid, mut wait) in found {
            wait.key = self.deadlines.arm(wait.deadline, Due::Wait(tid));
            if let Some(thread) = self.tree.threads.get_mut(&tid) {
                thread.untraced = Some(wait);
            }
        }
    }

    /// Returns whether an untraced wait is perhaps the last one that a thread began.
    fn is_last(&self, tid: pid_t, wait: &Untraced) -> bool {
        let expiry = || self.thread_events.as_ref()?.expiry(tid);
        wait.expiry.is_none() || expiry() == wait.expiry
    }

    /// Returns whether a sleep is held: answered at its deadline, and never made. If threads are
    /// many, sleeps are made, because each notice costs the kernel time for each held thread.
    fn holds(&self, call: &TimedCall) -> bool {
        const HELD_MAX: usize = 64;
        let is_held = self.tree.threads.len() <= HELD_MAX || !flows(self.options);
        // An absolute sleep is always held: the kernel's realtime can be ahead of virtual time.
        call.endless == Endless::Pause && (is_held || matches!(call.when, When::At { .. }))
    }

    /// Interrupts an untraced wait whose deadline has come, unless the wait has ended.
    pub(crate) fn interrupt_untraced(&mut self, tid: pid_t, key: Key) {
        /// When to check again whether a thread that runs is in its wait.
        const CHECK_NS: u64 = 1_000_000;
        let wait = self.tree.threads.get(&tid).and_then(|thread| thread.untraced);
        let is_last = wait.is_some_and(|wait| self.is_last(tid, &wait));
        let Some(thread) = self.tree.threads.get_mut(&tid) else { return };
        let progress = match is_last {
            true => {
                let call = in_call(thread);
                untraced_wait(thread, call)
            }
            false => UntracedWait::Ended,
        };
        let Some(wait) = thread.untraced.as_mut().filter(|wait| wait.key == Some(key)) else {
            return;
        };
        match progress {
            UntracedWait::Ended => thread.untraced = None,
            UntracedWait::Unknown => {
                let again = self.clock.now().saturating_add(CHECK_NS);
                wait.key = self.deadlines.arm(again, Due::Wait(tid));
            }
            UntracedWait::Lasts => {
                wait.key = None;
                // A process that is stopped gets the result when it continues.
                wait.was_asleep = true;
                if matches!(thread.state, State::Free) {
                    self.last = tid;
                    let interrupt = || ptrace::interrupt(tid);
                    match &self.thread_events {
                        Some(events) => wait.was_asleep = events.is_woken_by(tid, interrupt),
                        None => interrupt(),
                    }
                }
            }
        }
    }

    /// Gives the untraced wait of a thread that has stopped the result of a timeout. Does nothing
    /// if the wait's deadline has not come.
    pub(crate) fn end_untraced(&mut self, tid: pid_t) {
        let Some(thread) = self.tree.threads.get_mut(&tid) else { return };
        let Some(wait) = thread.untraced.take_if(|wait| wait.key.is_none()) else { return };
        let is_last = self.is_last(tid, &wait);
        let Some(mut registers) = ptrace::registers(tid) else { return };
        let number = registers.orig_rax.cast_signed() as c_long;
        let result = registers.rax.cast_signed();
        // ERESTARTSYS: the thread was interrupted while it waited for the answer to the notice of a
        // later wait. The kernel repeats that call.
        if !is_interrupted(result) || result == ERESTARTSYS {
            return;
        }
        // The interrupted call is this wait if the interruption has woken the thread, and the last
        // expiry of the thread is still this wait's. Otherwise, the thread has begun a later wait.
        let is_this = wait.expiry.is_none() || (wait.was_asleep && is_last);
        if is_this && wait.is_at(&(number, registers.rip, arguments(&registers))) {
            registers.rax = wait.call.timed_out.cast_unsigned();
        } else if matches!(number, libc::SYS_epoll_wait | libc::SYS_epoll_pwait) {
            // The tracer has interrupted a later wait of the thread, which must go on: the kernel
            // does not repeat this call by itself, so make the thread repeat it.
            const SYSCALL_LENGTH: u64 = 2;
            registers.rax = registers.orig_rax;
            registers.rip -= SYSCALL_LENGTH;
        }
        ptrace::set_registers(tid, &registers);
    }

    /// Called for a thread that has stopped because a signal has interrupted its untraced wait:
    /// stores the time that is left. If the deadline has come, arms it again, because the stop for
    /// the signal has cancelled the tracer's interruption.
    pub(crate) fn signal_untraced(&mut self, tid: pid_t) {
        let Some(thread) = self.tree.threads.get_mut(&tid) else { return };
        let call = in_call(thread);
        let lasts = untraced_wait(thread, call) == UntracedWait::Lasts;
        let Some(wait) = thread.untraced.as_mut().filter(|_| lasts) else { return };
        let left = wait.deadline.saturating_sub(self.clock.now());
        write_remaining(tid, wait.call.remaining, left);
        if wait.key.is_none() {
            wait.key = self.deadlines.arm(wait.deadline, Due::Wait(tid));
        }
    }

    /// Forgets a wait that has ended.
    pub(crate) fn forget_untraced(&mut self, tid: pid_t) {
        let thread = self.tree.threads.get_mut(&tid);
        if let Some(key) = thread.and_then(|thread| thread.untraced.take()).and_then(|of| of.key) {
            self.deadlines.cancel(key);
        }
    }
}
