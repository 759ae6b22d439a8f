//! Waits with a deadline: how they begin, and how each of their ends looks to the program.
//!
//! A call that only sleeps sends the tracer a notice (a seccomp message). The tracer answers when
//! the deadline comes, and the call is never made. Where the kernel has no notices, and for all
//! calls that can wait for an event, the call is made without its timeout. When the deadline comes,
//! the tracer interrupts the call, and gives it the result of a timeout at its end.
//!
//! A signal interrupts a wait as the tracer does, but before the deadline. The thread gets its own
//! registers back, so the kernel can repeat the call: the filter then traps the call again, which
//! continues with its old deadline. If the signal has a handler, the call returns `EINTR`. If the
//! call stores the time that is left, the tracer writes the rest of the virtual time there.

use super::state::{Due, Engine, FAULT};
use crate::filter::SOCKET_CALLS;
use crate::line::Ns;
use crate::look::EPOLLS;
use crate::report::Ending;
use crate::sys::events::has_clock;
use crate::sys::{descriptors, memory, ptrace};
use crate::thread::{
    Before, Change, InCall, Last, State, Then, Untraced, Wait, arguments, call_of,
};
use crate::timeout::{
    ALARM_CLOCKS, Endless, Remaining, TimedCall, When, is_futex_wait, remaining_words, timed_call,
};
use libc::{c_int, c_long, pid_t};
use ptrace::{Call, Registers};

// What an interrupted system call returns inside the kernel; see `include/linux/errno.h`.
pub(super) const ERESTARTSYS: i64 = -512;
const ERESTARTNOHAND: i64 = -514;
const ERESTART_RESTARTBLOCK: i64 = -516;
const EINTR: i64 = -(libc::EINTR as i64);

/// Returns whether a call returns EINTR if a signal interrupts it that has no handler: the kernel
/// repeats other calls. Of sockets, those with a timeout.
fn fails_by_signal(number: c_long) -> bool {
    let waits = [libc::SYS_semop, libc::SYS_semtimedop, libc::SYS_rt_sigtimedwait];
    let sockets = SOCKET_CALLS.iter().map(|(number, ..)| *number);
    EPOLLS.into_iter().chain(waits).chain(sockets).any(|of| of == number)
}

pub(super) fn is_interrupted(result: i64) -> bool {
    (ERESTART_RESTARTBLOCK..=ERESTARTSYS).contains(&result) || result == EINTR
}

/// Returns the wait of a thread's system call; `None` if the kernel has to answer the call.
pub(super) fn wait_of(tid: pid_t, &(number, _, args): &Call) -> Option<TimedCall> {
    let clock = args[0] as c_int;
    let is_alarm = number == libc::SYS_clock_nanosleep && ALARM_CLOCKS.contains(&clock);
    if is_alarm && !has_clock(clock) {
        return None;
    }
    let read = |at| memory::words(tid, at).map(|words: [u64; 2]| words.map(u64::cast_signed));
    timed_call(number, args, read)
}

/// Has a thread that is stopped before a call make the call without its timeout.
pub(super) fn wait_in_kernel(tid: pid_t, wait: &Wait) {
    let mut registers = wait.registers;
    match wait.call.endless {
        Endless::Pause => registers.orig_rax = libc::SYS_pause.cast_unsigned(),
        Endless::Argument(index, value) => {
            let Registers { rdi, rsi, rdx, r10, r8, r9, .. } = &mut registers;
            *[rdi, rsi, rdx, r10, r8, r9][index] = value;
        }
        Endless::AsItIs => {}
    }
    if wait.call.endless != Endless::AsItIs {
        ptrace::set_registers(tid, &registers);
    }
    ptrace::resume_to_exit(tid, 0);
}

impl Engine<'_> {
    /// Begins a wait, which perhaps takes no time.
    pub(crate) fn begin_wait(&mut self, tid: pid_t, mut call: TimedCall, at: Before) {
        if call.takes_no_time() {
            self.pass_no_time(tid);
        }
        call.when = self.tree.outside_of_namespace(tid, call.when);
        let now = self.clock.now();
        let deadline = match call.when {
            When::Now => Some(now),
            When::After(ns) => now.checked_add(ns),
            When::At { clock, ns } => Some(self.clock.offsets.to_monotonic(clock, ns)),
        };
        let deadline = deadline.filter(|at| *at < u64::MAX);
        let registers = at.registers();
        let is_new = !matches!(self.tree.state(tid).last(), Last::Interrupted(..));
        let change = match (deadline, at) {
            (Some(deadline), _)
                if is_new
                    && !call.takes_no_time()
                    && self.jump_alone(tid, &call_of(&registers), deadline) =>
            {
                clear(tid, call.remaining, &registers);
                let at = if let Before::Stop(of) = at { Before::Skipped(of) } else { at };
                Change::IsAnswered(Then::Return(at, call.timed_out))
            }
            (Some(deadline), Before::Notice(notice)) if !self.holds(&call) => {
                let wait = Untraced { call, at: notice.call, deadline, expiry: None };
                Change::WaitsUntraced(wait, Some(notice))
            }
            _ => Change::Waits(call, deadline, at),
        };
        self.on(tid, change);
    }

    /// For a thread that has stopped for a signal: a traced thread is interrupted also by a signal
    /// that does nothing, and some calls then fail by themselves. Has the kernel repeat such a call
    /// unless a handler runs, as it does for others. A stop of the process makes these calls fail.
    pub(crate) fn keep_call(&mut self, tid: pid_t, signal: c_int) {
        const STOPS: [c_int; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
        let Some(registers) = ptrace::registers(tid) else { return };
        let call = call_of(&registers);
        if registers.rax.cast_signed() != EINTR || !fails_by_signal(call.0) {
            return;
        }
        if STOPS.contains(&signal) {
            // So that the SIGCONT that follows does not count.
            return ptrace::set_registers(tid, &Registers { orig_rax: u64::MAX, ..registers });
        }
        let rax = ERESTARTNOHAND.cast_unsigned();
        ptrace::set_registers(tid, &Registers { rax, ..registers });
        if !matches!(self.tree.state(tid).last(), Last::Interrupted(..))
            && let Some(change) = self.found(tid, InCall::Waits(call), self.times())
        {
            self.on(tid, change);
        }
        self.on(tid, Change::IsInterrupted(registers));
    }

    /// Sets the result of a call that waited.
    pub(crate) fn finish_wait(&mut self, tid: pid_t, wait: Wait, end: Ending) {
        let Some(now) = ptrace::registers(tid) else { return };
        // Of a sleep that was held, the notice does not have all registers, and none has changed.
        let before = if wait.is_held { now } else { wait.registers };
        self.log_wait(tid, &wait, end);
        let left = wait.deadline.map_or(Ns::MAX, |at| at.saturating_sub(self.clock.now()));
        let mut result = now.rax.cast_signed();
        let mut registers = Registers { rax: now.rax, ..before };
        // The kernel has stored the next instruction's address in `rcx`, the flags in `r11`.
        (registers.rcx, registers.r11) = (now.rcx, now.r11);
        let is_interrupted = is_interrupted(result);
        if end == Ending::Timeout && is_interrupted {
            result = wait.call.timed_out;
            clear(tid, wait.call.remaining, &wait.registers);
        } else if is_interrupted {
            result = match result {
                // The kernel would repeat this as restart_syscall(2), which is not trapped.
                ERESTART_RESTARTBLOCK => ERESTARTNOHAND,
                ERESTARTSYS if wait.call.endless == Endless::AsItIs => EINTR,
                // The thread waited for the answer to a notice, or for a futex, whose timeout the
                // tracer has removed. With its timeout, the call would not go on after a handler.
                ERESTARTSYS
                    if wait.call.endless == Endless::Pause
                        || is_futex_wait(before.orig_rax.cast_signed(), arguments(&before)) =>
                {
                    ERESTARTNOHAND
                }
                result => result,
            };
            let is_stored = write_remaining(tid, wait.call.remaining, left);
            // A sleep fails there; the other calls have had their effect, and ignore it.
            if !is_stored && matches!(wait.call.remaining, Remaining::Interrupted(_)) {
                result = FAULT;
            }
        } else {
            if !matches!(wait.call.remaining, Remaining::Interrupted(_)) {
                write_remaining(tid, wait.call.remaining, left);
            }
            self.complete_taken_signal(tid, &wait.registers, result);
            self.inherit_timeouts(tid, &wait.registers, result);
        }
        registers.rax = result.cast_unsigned();
        ptrace::set_registers(tid, &registers);
    }

    /// Completes the signal that sigtimedwait(2) has returned.
    fn complete_taken_signal(&mut self, tid: pid_t, call: &Registers, result: i64) {
        if call.orig_rax.cast_signed() == libc::SYS_rt_sigtimedwait
            && result > 0
            && let Some(mut info) = memory::words::<3>(tid, call.rsi)
            && self.complete_timer_signal(tid, &mut info)
        {
            memory::write_words(tid, call.rsi, &info);
        }
    }

    /// Computes the deadlines of waits on the realtime clock again, after that clock has been set.
    pub(crate) fn realtime_has_been_set(&mut self) {
        self.rearm_realtime_timers();
        for thread in self.tree.threads.values_mut() {
            let (State::Held(wait, _) | State::Waiting(wait)) = &mut thread.state else {
                continue;
            };
            if let When::At { clock, ns } = wait.call.when {
                let at = self.clock.offsets.to_monotonic(clock, ns);
                wait.deadline = Some(at);
                self.deadlines.arm(at, Due::Wait(thread.tid));
            }
        }
    }
}

/// Stores the time that is left where the call stores it. Returns false if that address cannot be
/// written.
pub(super) fn write_remaining(tid: pid_t, remaining: Remaining, left: Ns) -> bool {
    remaining_words(remaining, left).is_none_or(|(at, words)| memory::write_words(tid, at, &words))
}

/// Stores what a timeout leaves: no time, and empty sets of descriptors of select(2). Like the
/// kernel, clears no more of a set than the process's table of descriptors has room for.
fn clear(tid: pid_t, remaining: Remaining, registers: &Registers) {
    let [count, read, write, except, ..] = arguments(registers);
    let number = registers.orig_rax.cast_signed();
    let mut places = Vec::new();
    if matches!(number, libc::SYS_select | libc::SYS_pselect6) {
        // The smallest table has room for as many descriptors as one word.
        let count = if count > 64 { count.min(descriptors::table_size(tid)) } else { count };
        let words = count.div_ceil(64) as usize;
        let sets = [read, write, except].into_iter().filter(|set| *set != 0);
        places.extend(sets.map(|set| (set, words)));
    }
    if let Remaining::Timespec(at) | Remaining::Timeval(at) = remaining {
        places.push((at, 2));
    }
    if !places.is_empty() {
        memory::clear(tid, &places);
    }
}
