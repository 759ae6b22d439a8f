//! What each CPU did when.

use crate::read::{CPU_IDLE_EXIT, Event, NameId, Trace};
use tickless_core::time::{CpuId, Ns};

/// What a CPU does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Doing {
    /// It runs a thread; 0 is the idle task.
    Thread(u32),
    /// It is in this idle state.
    Idle(u32),
    /// It handles a softirq of this vector.
    Softirq(u32),
    /// It handles this device's interrupt.
    Irq(u32),
    /// It handles the timer interrupt.
    TimerInterrupt,
    /// In that, this function's callback runs.
    Callback(NameId),
}

/// A change of what a CPU does.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: Ns,
    doing: Doing,
}

/// What each CPU did when.
#[derive(Debug)]
pub(super) struct Spans {
    cpus: Vec<Vec<Change>>,
}

/// What a CPU is in the middle of, the innermost last.
#[derive(Clone, Debug)]
struct Stack {
    thread: u32,
    idle: Option<u32>,
    above: Vec<Doing>,
}

impl Stack {
    fn doing(&self) -> Doing {
        let below = || self.idle.map_or(Doing::Thread(self.thread), Doing::Idle);
        self.above.last().copied().unwrap_or_else(below)
    }

    fn begin(&mut self, doing: Doing) {
        // What is nested deeper has lost its ends.
        const DEEPEST: usize = 8;
        if self.above.len() == DEEPEST {
            self.above.clear();
        }
        self.above.push(doing);
    }

    /// Ends the innermost that is so, and what never ended above it.
    fn end(&mut self, is_it: impl Fn(&Doing) -> bool) {
        if let Some(at) = self.above.iter().rposition(is_it) {
            self.above.truncate(at);
        }
    }
}

impl Spans {
    /// Of all CPUs of a trace.
    pub(super) fn of(trace: &Trace) -> Spans {
        let count = usize::from(trace.cpus);
        let mut cpus: Vec<Vec<Change>> = vec![Vec::new(); count];
        let mut stacks = vec![Stack { thread: 0, idle: None, above: Vec::new() }; count];
        for record in &trace.records {
            let cpu = match record.event {
                Event::CpuIdle { cpu, .. } => cpu,
                _ => record.cpu,
            };
            let stack = &mut stacks[cpu.index()];
            if cpus[cpu.index()].is_empty() {
                stack.thread = record.pid;
            }
            follow(stack, &record.event);
            let (changes, doing) = (&mut cpus[cpu.index()], stack.doing());
            if changes.last().is_none_or(|last| last.doing != doing) {
                changes.push(Change { at: record.time, doing });
            }
        }
        Spans { cpus }
    }

    /// What this CPU did from then to then, with how long.
    pub(super) fn during(
        &self,
        cpu: CpuId,
        from: Ns,
        to: Ns,
    ) -> impl Iterator<Item = (Doing, u64)> {
        let changes = self.cpus.get(cpu.index()).map_or(&[][..], Vec::as_slice);
        let first = changes.partition_point(|change| change.at <= from).saturating_sub(1);
        let after = changes.partition_point(|change| change.at < to);
        (first..after.max(first)).filter_map(move |at| {
            let begin = changes[at].at.max(from);
            let end = changes.get(at + 1).map_or(to, |next| next.at.min(to));
            (end > begin).then(|| (changes[at].doing, end.since(begin).0))
        })
    }
}

fn follow(stack: &mut Stack, event: &Event) {
    match *event {
        Event::SchedSwitch { next_pid, .. } => {
            stack.thread = next_pid;
            stack.above.clear();
            if next_pid != 0 {
                stack.idle = None;
            }
        }
        Event::CpuIdle { state: CPU_IDLE_EXIT, .. } => stack.idle = None,
        Event::CpuIdle { state, .. } => stack.idle = Some(state),
        Event::SoftirqEntry { vector } => stack.begin(Doing::Softirq(vector)),
        Event::SoftirqExit { vector } => stack.end(|of| *of == Doing::Softirq(vector)),
        Event::IrqEntry { irq } => stack.begin(Doing::Irq(irq)),
        Event::IrqExit { irq } => stack.end(|of| *of == Doing::Irq(irq)),
        Event::LocalTimerEntry => stack.begin(Doing::TimerInterrupt),
        Event::LocalTimerExit => stack.end(|of| *of == Doing::TimerInterrupt),
        Event::HrtimerExpireEntry { function, .. } | Event::TimerExpireEntry { function, .. } => {
            stack.begin(Doing::Callback(function));
        }
        Event::HrtimerExpireExit { .. } | Event::TimerExpireExit { .. } => {
            stack.end(|of| matches!(of, Doing::Callback(_)));
        }
        _ => {}
    }
}
