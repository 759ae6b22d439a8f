//! Carries out what the tracer has to do when it has learnt something of a thread.

use super::state::{Due, Engine, PAUSE};
use super::waits::wait_in_kernel;
use crate::report::Ending;
use crate::sys::notices::Notice;
use crate::sys::ptrace::{self, Registers};
use crate::thread::{Before, Change, Deadline, Effects, Finish, Last, Then, is_untraced};
use libc::pid_t;

impl Engine<'_> {
    /// Changes the state of a thread by what the tracer has learnt, and carries out the effects.
    pub(crate) fn on(&mut self, tid: pid_t, change: Change) {
        let Effects { deadline, finish, then, .. } = self.tree.on(tid, change, self.clock.now());
        match deadline {
            Deadline::Keep => {}
            Deadline::Arm(at) => self.deadlines.arm(at, Due::Wait(tid)),
            Deadline::Cancel => self.deadlines.cancel(Due::Wait(tid)),
        }
        match finish {
            Finish::Nothing => {}
            Finish::Wait(wait, end) => self.finish_wait(tid, wait, end),
            Finish::Untraced(wait, woken) => self.finish_untraced(tid, wait, woken),
        }
        if !matches!(then, Then::Nothing | Then::Listen) {
            self.last = tid;
        }
        self.has_resumed = matches!(then, Then::Resume(_) | Then::ResumeToNextCall);
        match then {
            Then::Nothing => {}
            // Where the kernel perhaps repeats a wait unseen, with all of its timeout.
            Then::Resume(signal) => match self.tree.state(tid).last() {
                Last::Interrupted(of, _) if is_untraced(&of) => ptrace::resume_to_exit(tid, signal),
                _ => ptrace::resume(tid, signal),
            },
            Then::ResumeToExit => ptrace::resume_to_exit(tid, 0),
            Then::ResumeToNextCall => self.resume_to_next_call(tid),
            Then::Wait(wait) => wait_in_kernel(tid, &wait),
            Then::MakeCall(Before::Stop(_)) => ptrace::resume(tid, 0),
            Then::MakeCall(Before::Skipped(mut registers)) => {
                self.stops_in = PAUSE;
                ptrace::repeat_call(&mut registers);
                ptrace::set_registers(tid, &registers);
                ptrace::resume(tid, 0);
            }
            Then::MakeCall(Before::Notice(notice)) => {
                self.answer_notice(&notice, None);
            }
            Then::Return(Before::Stop(registers), result) => self.answer(tid, registers, result),
            Then::Return(Before::Skipped(registers), result) => {
                skip_call(tid, registers, result);
                self.resume_to_next_call(tid);
            }
            Then::Return(Before::Notice(notice), result) => {
                let wait = self.tree.state(tid).wait();
                if self.answer_notice(&notice, Some(result)) {
                    if let Some(wait) = wait {
                        self.log_wait(tid, &wait, Ending::Timeout);
                    }
                    self.on(tid, Change::IsReleased);
                }
            }
            Then::Listen => ptrace::listen(tid),
            Then::Interrupt => ptrace::interrupt(tid),
            Then::Wake => match &self.thread_events {
                Some(events) if !events.is_woken_by(tid, || ptrace::interrupt(tid)) => {
                    self.on(tid, Change::WasAwake);
                }
                Some(_) => {}
                None => ptrace::interrupt(tid),
            },
        }
    }

    /// Answers a notice. Returns false if a signal has interrupted or killed the thread.
    fn answer_notice(&self, notice: &Notice, result: Option<i64>) -> bool {
        self.listener.as_ref().is_some_and(|listener| listener.answer(notice, result))
    }

    /// Makes a stopped thread's system call return `result`, without making the call.
    pub(crate) fn answer(&mut self, tid: pid_t, registers: Registers, result: i64) {
        skip_call(tid, registers, result);
        self.on(tid, Change::GoesOn);
    }
}

fn skip_call(tid: pid_t, mut registers: Registers, result: i64) {
    registers.orig_rax = u64::MAX;
    registers.rax = result.cast_unsigned();
    ptrace::set_registers(tid, &registers);
}
