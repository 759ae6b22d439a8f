//! What the tracer does at each stop of a thread.

use super::state::{Due, Engine};
use super::timer::TimerId;
use super::timers::correct_alarm;
use super::waits::{is_interrupted, wait_of};
use crate::filter::{TIOCSPTLCK, VHOST_SET_OWNER};
use crate::options::{Ended, Note};
use crate::sys::events::Event;
use crate::sys::{events, memory, ptrace};
use crate::thread::{Before, Change, Last, Signals, State, Then, call_of, is_untraced};
use libc::{c_int, pid_t};
use std::sync::atomic::Ordering;

impl Engine<'_> {
    /// Handles an event of a thread.
    pub(crate) fn handle(&mut self, tid: pid_t, event: Event) {
        let state = self.tree.appears(tid).state;
        match event {
            Event::Ended(status) => self.has_ended(tid, status),
            Event::Call => self.before_call(tid),
            Event::Exit if matches!(state, State::Free(_)) => self.at_next_call(tid),
            Event::Exit => self.after_call(tid, state),
            Event::NewThread | Event::NewBorrower => {
                if let Some(new) = ptrace::message(tid) {
                    self.tree.announce(new);
                    self.turns.iter().for_each(|turns| turns.release(new));
                }
                let lends = event == Event::NewBorrower;
                self.on(tid, if lends { Change::Lends } else { Change::GoesOn });
            }
            Event::NewProgram => self.has_new_program(tid),
            Event::GroupStop => self.on(tid, Change::IsStopped),
            Event::Stop => {
                // The child of a fork has its parent's memory, but perhaps other clocks.
                if matches!(state, State::New) && self.tree.is_in_time_namespace(tid) {
                    self.patch(tid, None);
                }
                self.on(tid, Change::Stops);
            }
            Event::Signal(signal) => self.deliver(tid, signal),
        }
    }

    fn has_ended(&mut self, tid: pid_t, status: c_int) {
        // Its parent gets a signal.
        self.tree.signals = Signals::UnderWay;
        self.deadlines.cancel(Due::Wait(tid));
        if self.tree.remove(tid).is_some_and(|thread| thread.process == tid) {
            self.forget_timers(tid, None);
        }
        if tid == self.root && self.ended.is_none() {
            self.ended = Some(if libc::WIFSIGNALED(status) {
                Ended::Signal(libc::WTERMSIG(status))
            } else {
                Ended::Status(libc::WEXITSTATUS(status) as u8)
            });
        }
    }

    fn before_call(&mut self, tid: pid_t) {
        let Some(registers) = ptrace::registers(tid) else { return };
        let call = call_of(&registers);
        let before = Before::Stop(registers);
        if let Some(call) = wait_of(tid, &call) {
            return self.begin_wait(tid, call, before);
        }
        let is_answered = self.answer_clock(tid, &registers)
            || self.answer_timer(tid, &registers)
            || self.answer_socket_option(tid, &registers);
        if is_answered {
            return;
        }
        if let Some(call) = self.socket_wait(tid, &registers) {
            return self.begin_wait(tid, call, before);
        }
        match call.0 {
            libc::SYS_kill => {
                let sender = if (call.2[0] as c_int) > 0 { 0 } else { self.tree.process_of(tid) };
                events::GROUP_SENDER.store(sender, Ordering::Relaxed);
                return self.on(tid, Change::SendsSignal);
            }
            libc::SYS_tkill
            | libc::SYS_tgkill
            | libc::SYS_rt_sigqueueinfo
            | libc::SYS_rt_tgsigqueueinfo
            | libc::SYS_pidfd_send_signal => return self.on(tid, Change::SendsSignal),
            libc::SYS_ioctl if registers.rsi as u32 == VHOST_SET_OWNER => {
                self.note(Note::Refused(self.tree.name_of(tid), "a device of vhost"));
                return self.answer(tid, registers, -i64::from(libc::ENOTTY));
            }
            libc::SYS_ioctl if registers.rsi as u32 == TIOCSPTLCK => self.has_terminals = true,
            libc::SYS_ioctl
            | libc::SYS_fcntl
            | libc::SYS_mq_notify
            | libc::SYS_timer_create
            | libc::SYS_setitimer => self.tree.signals_of_kernel = Signals::UnderWay,
            libc::SYS_sched_getaffinity | libc::SYS_sched_setaffinity => self.end_turns(),
            libc::SYS_seccomp | libc::SYS_prctl => self.has_filters = true,
            libc::SYS_ptrace => self.note_once(Note::Tracer(self.tree.name_of(tid))),
            libc::SYS_io_setup => {
                self.note(Note::Refused(self.tree.name_of(tid), "requests of io_submit"));
                return self.answer(tid, registers, -i64::from(libc::ENOSYS));
            }
            libc::SYS_connect => self.connects(tid, &registers, registers.rsi),
            libc::SYS_sendto if registers.r8 != 0 => self.connects(tid, &registers, registers.r8),
            libc::SYS_listen => self.listens(tid, registers.rdi),
            _ => {}
        }
        self.on(tid, Change::GoesOn);
    }

    /// Handles the stop of a thread at its first call after a wait, which it does not make unless
    /// the tracer has it make the call again.
    fn at_next_call(&mut self, tid: pid_t) {
        let Some(registers) = ptrace::registers(tid) else { return };
        // It makes this call, which perhaps repeats the wait that a signal has interrupted.
        let is_made = matches!(self.tree.state(tid).last(), Last::Interrupted(..));
        let before = if is_made { Before::Stop(registers) } else { Before::Skipped(registers) };
        // Other ways into the kernel than this instruction have other numbers of calls.
        let is_native = registers.rcx == registers.rip && (!is_made || is_untraced(&registers));
        match wait_of(tid, &call_of(&registers)).filter(|_| is_native) {
            Some(call) => self.begin_wait(tid, call, before),
            None => self.on(tid, Change::IsAnswered(Then::MakeCall(before))),
        }
    }

    fn after_call(&mut self, tid: pid_t, state: State) {
        let result = || ptrace::registers(tid).map_or(-1, |registers| registers.rax.cast_signed());
        if let (State::CreatingTimer, Some(registers)) = (state, ptrace::registers(tid)) {
            self.timer_was_created(tid, &registers);
        }
        let is_interrupted = matches!(state, State::Waiting(_)) && is_interrupted(result());
        self.on(tid, Change::EndsCall { is_interrupted });
    }

    /// A thread has started a new program by execve(2). From here on it has the number of its
    /// process, and the process's other threads have ended.
    fn has_new_program(&mut self, tid: pid_t) {
        for (thread, _) in self.tree.threads.extract_if(|_, thread| thread.process == tid) {
            self.deadlines.cancel(Due::Wait(thread));
        }
        self.forget_timers(tid, Some(TimerId::Alarm(tid)));
        self.tree.processes.remove(&tid);
        self.tree.add(tid);
        self.has_begun = true;
        if self.prepare(tid) {
            self.on(tid, Change::GoesOn);
        }
    }

    fn deliver(&mut self, tid: pid_t, signal: c_int) {
        if signal == libc::SIGSEGV && self.options.is_counter_virtual() && self.answer_counter(tid)
        {
            return;
        }
        if signal == libc::SIGALRM {
            correct_alarm(tid);
        }
        if !self.timers.is_empty()
            && let Some(mut info) = ptrace::signal_info(tid)
            && self.complete_timer_signal(tid, &mut info)
        {
            ptrace::set_signal_info(tid, &info);
        }
        self.keep_call(tid, signal);
        let is_interrupted = matches!(self.tree.state(tid).last(), Last::Interrupted(..));
        let has_handler = is_interrupted && has_handler(tid, signal);
        let lasts = self.interrupts_untraced(tid);
        self.on(tid, Change::GetsSignal { number: signal, has_handler, lasts });
    }

    /// Answers a trapped `rdtsc` or `rdtscp`. Returns whether it caused the thread's SIGSEGV.
    fn answer_counter(&mut self, tid: pid_t) -> bool {
        const RDTSC: [u8; 2] = [0x0f, 0x31];
        const RDTSCP: [u8; 3] = [0x0f, 0x01, 0xf9];
        let Some(mut registers) = ptrace::registers(tid) else { return false };
        let mut code = [0; 3];
        if !memory::read(tid, registers.rip, &mut code) {
            return false;
        }
        let length = match code {
            RDTSCP => 3,
            [first, second, _] if [first, second] == RDTSC => 2,
            _ => return false,
        };
        let counter = self.clock.virtual_counter();
        (registers.rax, registers.rdx) = (counter & u64::from(u32::MAX), counter >> 32);
        if length == 3 {
            registers.rcx = 0;
        }
        registers.rip += length;
        ptrace::set_registers(tid, &registers);
        self.on(tid, Change::GoesOn);
        true
    }

    /// Ends all processes that are left after the program itself has ended.
    pub(crate) fn end_leftovers(&mut self) {
        let processes: Vec<pid_t> = self.tree.processes.keys().copied().collect();
        if let Some(&first) = processes.first() {
            self.note(Note::LeftOver(processes.len(), self.tree.name_of(first)));
        }
        for process in processes {
            events::kill(process, libc::SIGKILL);
        }
    }
}

/// Returns whether a process has a handler for a signal.
fn has_handler(tid: pid_t, signal: c_int) -> bool {
    events::signal_mask(tid, "SigCgt:").is_none_or(|mask| mask >> (signal - 1) & 1 != 0)
}
