//! A trace as a script: what was done to which timer, when, on which CPU.
//!
//! What the kernel prints is close to that but not the same:
//! - an interrupt is a pair of records with others of the same CPU, and of other CPUs, in
//!   between. Here it is one item that holds what its CPU did, at the time it began;
//! - re-arming a pending timer prints a cancel and a start (the wheel, and older kernels'
//!   high-resolution timers), as does, in older kernels, an expiry. Those cancels are dropped;
//! - a start says on which CPU it was called, and an expiry on which one the timer really was;
//! - timers that were pending when the recording began show up out of nothing. One that
//!   expires is taken to have been armed for that moment; one that is cancelled first is left
//!   out, since nobody knows what it was armed for;
//! - a CPU on its way into or out of idle may be out of tracing's sight. When an interrupt did
//!   not expire a timer that was due, and the timer is seen again later, it must have been
//!   moved in between: see [`Op::Moved`].

use crate::trace::{Event, JiffyClock, MonotonicOffset, NameId, Record, TimerAddr, Trace};
use std::collections::HashMap;
use tickless_core::queue::Window;
use tickless_core::time::{CpuId, Ns};
use tickless_core::wheel::Wakes;

/// What is to be replayed.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// In order of time.
    pub(super) items: Vec<Item>,
    /// What the items refer to.
    pub(super) ops: Vec<Op>,
    pub(super) timers: Vec<TimerInfo>,
    /// Timers that were pending when the recording began.
    pub(super) pending_at_start: Vec<Start>,
    pub(super) operations: Operations,
    /// Cancels of timers whose start lies before the recording.
    pub(super) unknown_cancels: u64,
    /// Timers that were moved without a record.
    pub(super) unseen_moves: u64,
    pub(super) begins: Ns,
}

/// A moment of the trace on one CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) at: Ns,
    pub(super) cpu: CpuId,
    pub(super) interrupt: bool,
    /// For an interrupt: the earliest expiry of what it expired.
    pub(super) due: Ns,
    /// From and to where in [`Script::ops`].
    pub(super) ops: (u32, u32),
}

/// One operation on one timer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Start(Start),
    Cancel(u32),
    /// The kernel ran the timer's callback.
    Expire(u32),
    /// The kernel armed the timer anew without a record of it or of what it told the device.
    Moved(Start),
    /// What turned out to be part of another operation.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) timer: u32,
    pub(super) window: Window,
    pub(super) base: CpuId,
    pub(super) wakes: Wakes,
}

impl Start {
    /// Of a timer whose real expiry is not known, but only when it was seen.
    fn now(timer: u32, at: Ns, base: CpuId) -> Start {
        Start { timer, window: Window::new(at, at), base, wakes: Wakes::Yes }
    }
}

/// One timer of the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimerInfo {
    pub(super) family: Family,
    pub(super) function: Option<NameId>,
    pub(super) starts: u64,
    /// Where the last start stands, for an expiry to say on which base it was.
    last_start: Option<u32>,
    armed: Option<Start>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Family {
    Wheel,
    Queue,
}

/// How often the trace did what.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Operations {
    pub(super) wheel: Counts,
    pub(super) queue: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) starts: u64,
    /// Starts of timers that were pending.
    pub(super) restarts: u64,
    pub(super) cancels: u64,
    pub(super) expiries: u64,
}

/// Turns a trace into a script. O(n).
pub(super) fn write(trace: &Trace) -> Script {
    let mut writer = Writer {
        ticks: TICK_FUNCTIONS.iter().filter_map(|name| trace.names.find(name)).collect(),
        jiffies: trace.jiffies,
        monotonic: trace.monotonic,
        numbers: HashMap::new(),
        pending: Vec::new(),
        cpus: vec![CpuState::default(); usize::from(trace.cpus)],
        script: Script::default(),
    };
    writer.script.begins = trace.records.first().map_or(Ns::ZERO, |record| record.time);
    for record in &trace.records {
        writer.record(record);
    }
    writer.finish()
}

/// A tick this late was stopped meanwhile, not delayed.
const TICK_LATE_MAX: Ns = Ns::from_ms(1);
/// What the kernel calls the callback of the periodic tick, and has called it before 6.8.
const TICK_FUNCTIONS: [&str; 2] = ["tick_nohz_handler", "tick_sched_timer"];

struct Writer {
    /// The names of the periodic tick's callback.
    ticks: Vec<NameId>,
    jiffies: Option<JiffyClock>,
    monotonic: Option<MonotonicOffset>,
    numbers: HashMap<(Family, TimerAddr), u32>,
    /// By timer: is it armed, as far as the trace tells?
    pending: Vec<Known>,
    cpus: Vec<CpuState>,
    script: Script,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    Nothing,
    Pending,
    Idle,
}

#[derive(Clone, Default)]
struct CpuState {
    interrupt: Option<Interrupt>,
    /// When the interrupt before that began.
    last_interrupt: Ns,
    /// A cancel that may turn out to be part of the next operation.
    cancel: Option<Cancelled>,
}

/// The interrupt that a CPU is in.
#[derive(Clone)]
struct Interrupt {
    began: Ns,
    due: Ns,
    ops: Vec<Op>,
}

#[derive(Clone, Copy)]
struct Cancelled {
    timer: u32,
    stands: Stands,
    /// What was known of the timer before.
    before: Known,
}

#[derive(Clone, Copy)]
enum Stands {
    InScript(u32),
    InInterrupt(usize),
}

impl Writer {
    fn record(&mut self, record: &Record) {
        let at = record.time;
        if record.cpu.index() >= self.cpus.len() {
            return;
        }
        match record.event {
            Event::LocalTimerEntry => {
                self.leave(record.cpu);
                let interrupt = Interrupt { began: at, due: Ns::NEVER, ops: Vec::new() };
                self.cpus[record.cpu.index()].interrupt = Some(interrupt);
            }
            Event::LocalTimerExit => self.leave(record.cpu),
            Event::TimerStart { timer, expires, function, base, flags, .. } => {
                let Some(clock) = self.jiffies else { return };
                let due = clock.time(expires);
                let wakes = if flags.is_deferrable() { Wakes::No } else { Wakes::Yes };
                let timer = self.number(Family::Wheel, timer, Some(function));
                let base = CpuId(base.0.min(self.cpus.len() as u16 - 1));
                let start = Start { timer, window: Window::new(due, due), base, wakes };
                self.start(record, start, None);
            }
            Event::HrtimerStart { timer, expires, soft_expires, function, was_armed, .. } => {
                let window = Window::new(self.ns(soft_expires), self.ns(expires));
                let timer = self.number(Family::Queue, timer, Some(function));
                let start = Start { timer, window, base: record.cpu, wakes: Wakes::Yes };
                self.start(record, start, was_armed);
            }
            Event::TimerCancel { timer } => {
                let timer = self.number(Family::Wheel, timer, None);
                self.cancel(record, timer);
            }
            Event::HrtimerCancel { timer } => {
                let timer = self.number(Family::Queue, timer, None);
                self.cancel(record, timer);
            }
            Event::TimerExpireEntry { timer, function, .. } => {
                let timer = self.number(Family::Wheel, timer, Some(function));
                self.expire(record, timer);
            }
            Event::HrtimerExpireEntry { timer, function, .. } => {
                let timer = self.number(Family::Queue, timer, Some(function));
                self.expire(record, timer);
            }
            _ => {}
        }
    }

    fn start(&mut self, record: &Record, start: Start, was_armed: Option<bool>) {
        // A cancel just before is the first half of a re-arm, unless the kernel says that the
        // timer was not armed when this start found it.
        let cancelled = self.take_cancel(record.cpu, start.timer);
        let is_restart = match (cancelled, was_armed) {
            (Some(_), Some(false)) => false,
            (Some(cancelled), _) => {
                self.strike(record.cpu, cancelled.stands);
                self.counts(start.timer).cancels -= 1;
                true
            }
            (None, _) => self.pending[start.timer as usize] == Known::Pending,
        };
        if is_restart {
            self.notice_move(start.timer, record.time);
        }
        let counts = self.counts(start.timer);
        counts.starts += 1;
        counts.restarts += u64::from(is_restart);
        self.pending[start.timer as usize] = Known::Pending;
        let stands = self.push(record, Op::Start(start));
        let info = &mut self.script.timers[start.timer as usize];
        info.starts += 1;
        info.armed = Some(start);
        info.last_start = match stands {
            Stands::InScript(place) => Some(place),
            Stands::InInterrupt(_) => None,
        };
    }

    fn cancel(&mut self, record: &Record, timer: u32) {
        if self.pending[timer as usize] == Known::Nothing {
            // Unless it is the first half of an expiry, this start lies before the recording.
            self.script.unknown_cancels += 1;
        }
        self.counts(timer).cancels += 1;
        let before = self.pending[timer as usize];
        let stands = self.push(record, Op::Cancel(timer));
        self.cpus[record.cpu.index()].cancel = Some(Cancelled { timer, stands, before });
        if before == Known::Pending {
            self.notice_move(timer, record.time);
            self.pending[timer as usize] = Known::Idle;
        }
    }

    fn expire(&mut self, record: &Record, timer: u32) {
        if let Some(cancelled) = self.take_cancel(record.cpu, timer) {
            self.strike(record.cpu, cancelled.stands);
            self.counts(timer).cancels -= 1;
            self.pending[timer as usize] = cancelled.before;
            self.script.unknown_cancels -= u64::from(cancelled.before == Known::Nothing);
        }
        self.counts(timer).expiries += 1;
        let cpu = record.cpu;
        if self.pending[timer as usize] == Known::Nothing {
            let at = self.began(cpu, record.time);
            let start = Start { timer, window: Window::new(at, at), base: cpu, wakes: Wakes::Yes };
            self.script.pending_at_start.push(start);
        } else if let Some(place) = self.script.timers[timer as usize].last_start.take()
            && let Op::Start(start) = &mut self.script.ops[place as usize]
        {
            start.base = cpu;
        }
        match self.pending[timer as usize] {
            Known::Pending => self.notice_move(timer, record.time),
            Known::Idle => {
                let at = self.began(cpu, record.time);
                self.move_unseen(timer, at, Start::now(timer, at, cpu));
            }
            Known::Nothing => {}
        }
        self.pending[timer as usize] = Known::Idle;
        self.push(record, Op::Expire(timer));
        let info = self.script.timers[timer as usize];
        if let Some(interrupt) = &mut self.cpus[cpu.index()].interrupt
            && let (Some(start), Family::Queue) = (info.armed, info.family)
        {
            interrupt.due = interrupt.due.min(start.window.hard);
        }
    }

    /// A pending timer is seen at `now`. If an interrupt has passed over its expiry, or if it
    /// is the tick and far too late, it was moved without a record, to about here.
    fn notice_move(&mut self, timer: u32, now: Ns) {
        let info = self.script.timers[timer as usize];
        let Some(armed) = info.armed else { return };
        if info.family != Family::Queue {
            return;
        }
        let now = self.began(armed.base, now);
        let expiry = armed.window.hard;
        let passed_over = expiry < self.cpus[armed.base.index()].last_interrupt;
        let is_tick = info.function.is_some_and(|function| self.ticks.contains(&function));
        if passed_over || is_tick && now.since(expiry) > TICK_LATE_MAX {
            self.move_unseen(timer, expiry, Start::now(timer, now, armed.base));
        }
    }

    /// Adds an arming that the trace has no record of.
    fn move_unseen(&mut self, timer: u32, at: Ns, moved: Start) {
        self.script.timers[timer as usize].armed = Some(moved);
        let place = self.script.ops.len() as u32;
        self.script.ops.push(Op::Moved(moved));
        let ops = (place, place + 1);
        let item = Item { at, cpu: moved.base, interrupt: false, due: Ns::NEVER, ops };
        self.script.items.push(item);
        self.script.unseen_moves += 1;
    }

    /// When the interrupt that a CPU is in began; `now` if it is in none.
    fn began(&self, cpu: CpuId, now: Ns) -> Ns {
        self.cpus[cpu.index()].interrupt.as_ref().map_or(now, |interrupt| interrupt.began)
    }

    fn number(&mut self, family: Family, timer: TimerAddr, function: Option<NameId>) -> u32 {
        let script = &mut self.script;
        let number = *self.numbers.entry((family, timer)).or_insert_with(|| {
            self.pending.push(Known::Nothing);
            let info =
                TimerInfo { family, function: None, starts: 0, last_start: None, armed: None };
            script.timers.push(info);
            script.timers.len() as u32 - 1
        });
        if function.is_some() {
            script.timers[number as usize].function = function;
        }
        number
    }

    /// Adds an operation to its CPU's interrupt, or as an item of its own.
    fn push(&mut self, record: &Record, op: Op) -> Stands {
        let cpu = &mut self.cpus[record.cpu.index()];
        cpu.cancel = None;
        // An interrupt whose end was lost ends where its CPU is seen elsewhere.
        if cpu.interrupt.is_some() && record.context.in_hard_irq() == Some(false) {
            self.leave(record.cpu);
        }
        let cpu = &mut self.cpus[record.cpu.index()];
        if let Some(interrupt) = &mut cpu.interrupt {
            interrupt.ops.push(op);
            return Stands::InInterrupt(interrupt.ops.len() - 1);
        }
        let place = self.script.ops.len() as u32;
        self.script.ops.push(op);
        let ops = (place, place + 1);
        let (at, cpu) = (record.time, record.cpu);
        self.script.items.push(Item { at, cpu, interrupt: false, due: Ns::NEVER, ops });
        Stands::InScript(place)
    }

    /// The CPU's interrupt ends, if it is in one: it becomes an item.
    fn leave(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        state.cancel = None;
        let Some(Interrupt { began, due, ops }) = state.interrupt.take() else { return };
        state.last_interrupt = began;
        let from = self.script.ops.len() as u32;
        self.script.ops.extend(ops);
        let ops = (from, self.script.ops.len() as u32);
        self.script.items.push(Item { at: began, cpu, interrupt: true, due, ops });
    }

    fn take_cancel(&mut self, cpu: CpuId, timer: u32) -> Option<Cancelled> {
        self.cpus[cpu.index()].cancel.take().filter(|cancelled| cancelled.timer == timer)
    }

    fn strike(&mut self, cpu: CpuId, stands: Stands) {
        let place = match stands {
            Stands::InScript(place) => self.script.ops.get_mut(place as usize),
            Stands::InInterrupt(place) => {
                let interrupt = self.cpus[cpu.index()].interrupt.as_mut();
                interrupt.and_then(|interrupt| interrupt.ops.get_mut(place))
            }
        };
        if let Some(op) = place {
            *op = Op::Nothing;
        }
    }

    fn counts(&mut self, timer: u32) -> &mut Counts {
        match self.script.timers[timer as usize].family {
            Family::Wheel => &mut self.script.operations.wheel,
            Family::Queue => &mut self.script.operations.queue,
        }
    }

    fn ns(&self, time: Ns) -> Ns {
        self.monotonic.map_or(time, |offset| offset.trace_time(time))
    }

    fn finish(mut self) -> Script {
        for cpu in 0..self.cpus.len() {
            self.leave(CpuId(cpu as u16));
        }
        // An interrupt stands where it ended; it belongs where it began. Stable, so what one
        // CPU did in one instant stays in order.
        self.script.items.sort_by_key(|item| item.at);
        self.script
    }
}
