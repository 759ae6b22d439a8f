//! What the tracer records for the report.

use super::state::{Due, Engine};
use super::timer::TimerId;
use crate::filter::call_name;
use crate::options::Process;
use crate::report::{Ending, Waiter, What};
use crate::thread::Wait;
use libc::pid_t;
use std::fs;
use std::time::Duration;

impl Engine<'_> {
    /// Records a wait that ends now.
    pub(crate) fn log_wait(&mut self, tid: pid_t, wait: &Wait, how: Ending) {
        if self.log.is_none() {
            return;
        }
        let begin = self.clock.since_begin(wait.since);
        let now = self.clock.passed();
        let row = self.log_row(tid, What::Call(wait.in_call().0));
        if let Some((log, row)) = self.log.as_mut().zip(row) {
            log.waited(row, begin, now, how);
        }
    }

    /// Records that the clock jumped to a deadline.
    pub(crate) fn log_jump(&mut self, due: Due, by: Duration) {
        let call = |wait: Wait| What::Call(wait.in_call().0);
        let timer = |id| match id {
            TimerId::Alarm(_) => What::Timer("alarm"),
            TimerId::Process(..) => What::Timer("timer_create"),
            TimerId::Descriptor(_) => What::Timer("timerfd"),
        };
        let waiter = match due {
            Due::Until => None,
            Due::Wait(tid) => self.tree.state(tid).wait().map(|wait| (tid, call(wait))),
            Due::Timer(id) => self.timers.get(&id).map(|of| (of.owner, timer(id))),
        };
        let row = waiter.and_then(|(tid, what)| self.log_row(tid, what));
        if let Some((log, row)) = self.log.as_mut().zip(row) {
            log.jumped(row, by);
        }
    }

    fn log_row(&mut self, tid: pid_t, what: What) -> Option<usize> {
        let Process { pid, name: process } = self.tree.name_of(tid);
        let names = || {
            let thread = fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default();
            let what = match what {
                What::Call(number) => call_name(number),
                What::Timer(name) => name,
            };
            [process, thread.trim().to_string(), what.to_string()]
        };
        Some(self.log.as_mut()?.row(Waiter { pid, tid, what }, names))
    }
}
