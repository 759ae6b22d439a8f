//! What the tracer records for the report.

use super::state::{Due, Engine};
use super::timer::TimerId;
use crate::filter::call_name;
use crate::options::Process;
use crate::report::{Ending, Waiter};
use crate::thread::Wait;
use libc::pid_t;
use std::fs;
use std::time::Duration;

/// The call numbers and names in the report's rows of timers, for which no thread waits.
const TIMERS: [(i64, &str); 3] = [(-1, "alarm"), (-2, "timer_create"), (-3, "timerfd")];

impl Engine<'_> {
    /// Records a wait that ends now.
    pub(crate) fn log_wait(&mut self, tid: pid_t, wait: &Wait, how: Ending) {
        if self.log.is_none() {
            return;
        }
        let begin = self.clock.since_begin(wait.since);
        let now = self.clock.passed();
        let row = self.log_row(tid, wait.in_call().0);
        if let Some((log, row)) = self.log.as_mut().zip(row) {
            log.waited(row, begin, now, how);
        }
    }

    /// Records that the clock jumped to a deadline.
    pub(crate) fn log_jump(&mut self, due: Due, by: Duration) {
        let waiter = match due {
            Due::Until => None,
            Due::Wait(tid) => self.tree.state(tid).wait().map(|wait| (tid, wait.in_call().0)),
            Due::Timer(id) => self.timers.get(&id).map(|timer| match id {
                TimerId::Alarm(_) => (timer.owner, -1),
                TimerId::Process(..) => (timer.owner, -2),
                TimerId::Descriptor(_) => (timer.owner, -3),
            }),
        };
        let row = waiter.and_then(|(tid, call)| self.log_row(tid, call));
        if let Some((log, row)) = self.log.as_mut().zip(row) {
            log.jumped(row, by);
        }
    }

    fn log_row(&mut self, tid: pid_t, call: i64) -> Option<usize> {
        let Process { pid, name: process } = self.tree.name_of(tid);
        let names = || {
            let thread = fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default();
            let timer = TIMERS.iter().find(|(number, _)| *number == call);
            let call = timer.map_or_else(|| call_name(call), |(_, name)| name);
            [process, thread.trim().to_string(), call.to_string()]
        };
        Some(self.log.as_mut()?.row(Waiter { pid, tid, call }, names))
    }
}
