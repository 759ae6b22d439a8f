//! Converts the records of a trace to the operations of a script.

use super::clocks::{Clocks, effective};
use super::deferral::is_deferred;
use super::interrupt::{Ends, Interrupt};
use super::paired::Paired;
use super::timers::Timers;
use super::{Delivery, Inference, ItemKind, LeftOut, Moment, Op, Script, Start};
use crate::read::{ClockId, Context, Event, EventKind, Family, Gap, NameId, Record, Trace};
use tickless_core::queues::wheel::Wakes;
use tickless_core::time::{CpuId, Ns, Window};

pub(in crate::replay) struct Writer {
    pub(super) inference: Inference,
    pub(super) clocks: Clocks,
    left_out: LeftOut,
    /// Whether the trace records when a device is programmed that an interrupt has left alone.
    pub(super) has_deferred: bool,
    ends: Ends,
    pub(super) timers: Timers,
    paired: Paired,
    pub(super) place: u32,
    pub(super) states: Vec<TimerState>,
    pub(super) cpus: Vec<Cpu>,
    pub(super) script: Script,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimerState {
    pub(super) known: Known,
    /// The timer's last arming; `None` without one, or if its expiry is on an unknown clock.
    pub(super) armed: Option<Armed>,
    pub(super) idle_since: Ns,
    /// The clock of the timer's expiry; `None` if the timer's set-up was not recorded.
    clock: Option<ClockId>,
    /// Whether the timer's callback runs in a softirq, some time after the interrupt.
    pub(super) is_soft: bool,
    pub(super) is_tick: bool,
    /// Whether the kernel has just removed the timer, in order to restart or expire it.
    is_removed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Known {
    #[default]
    Nothing,
    Pending,
    Idle,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Armed {
    pub(super) start: u32,
    pub(super) at: Ns,
    pub(super) is_guess: bool,
}

#[derive(Debug, Default)]
pub(super) struct Cpu {
    pub(super) interrupt: Option<Interrupt>,
    /// The beginning of the last interrupt that has already ended on this CPU.
    pub(super) last_interrupt: Ns,
    /// If the device is yet to be programmed after the last interrupt: the last operation that the
    /// one write covers, at first the interrupt.
    pub(super) deferral: Option<Moment>,
    /// Whether the scheduler runs at the end of the last interrupt, as far as it is recorded.
    pub(super) schedules: bool,
    /// The time for which the kernel has programmed the device, if that is recorded.
    programmed: Option<Ns>,
    /// When the CPU's last gap ended.
    resumed: Option<Ns>,
    /// Whether the last interrupt has expired nothing so far, and is over.
    is_empty: bool,
    is_over: bool,
}

#[derive(Clone, Copy)]
struct Seen<'t> {
    record: &'t Record,
    timer: u32,
    at: Ns,
}

impl Writer {
    /// Prepares the state of each timer and CPU: nothing is known of them yet.
    pub(super) fn new(trace: &Trace, inference: Inference, left_out: LeftOut) -> Writer {
        let (mut timers, mut clocks) = (Timers::new(&trace.names), Clocks::new(trace));
        let (mut paired, mut has_deferred) = (Paired::new(trace.cpus), false);
        let mut gaps = trace.gaps_in_order();
        for (place, record) in trace.records.iter().enumerate() {
            gaps(place).iter().for_each(|gap| paired.forget(gap.cpu));
            let timer = timers.number(record);
            timer.into_iter().for_each(|timer| clocks.follow(record, timer));
            paired.follow(record, timer);
            has_deferred |= is_deferred(&record.event);
        }
        let state = |&is_tick: &bool| TimerState { is_tick, ..TimerState::default() };
        Writer {
            inference,
            left_out,
            has_deferred,
            ends: Ends::of(trace),
            place: 0,
            states: timers.ticks.iter().map(state).collect(),
            cpus: (0..trace.cpus).map(|_| Cpu::default()).collect(),
            script: Script::new(trace, &clocks, &timers),
            clocks,
            paired,
            timers,
        }
    }

    /// Turns the trace's records into operations, in the order of their times.
    pub(in crate::replay) fn write(mut self, trace: &Trace) -> Script {
        let mut gaps = trace.gaps_in_order();
        for (place, record) in trace.records.iter().enumerate() {
            self.place = place as u32;
            self.paired.found.pass(place);
            gaps(place).iter().for_each(|gap| self.forget(gap));
            if record.cpu.index() >= self.cpus.len() {
                continue;
            }
            let at = self.clocks.replay_time(record.time);
            self.follow_spurious(record);
            self.follow_deferral(record, at);
            match self.timers.of(place) {
                Some(timer) if self.paired.found[place] => {
                    self.states[timer as usize].is_removed = true
                }
                Some(timer) => self.timer(Seen { record, timer, at }),
                None => self.other(record, at),
            }
        }
        self.place = trace.records.len() as u32;
        gaps(trace.records.len()).iter().for_each(|gap| self.forget(gap));
        for cpu in 0..self.cpus.len() {
            self.leave(CpuId(cpu as u16));
            self.settle(CpuId(cpu as u16));
        }
        self.script.finish();
        self.script
    }

    /// Forgets what was known of a CPU before a gap. Nothing shows what its timers did in the gap,
    /// so they are not pending there, and what their removal writes is not counted.
    fn forget(&mut self, gap: &Gap) {
        self.leave(gap.cpu);
        let [from, to] = [gap.from, gap.to].map(|at| self.clocks.replay_time(at));
        let mut removed = Vec::new();
        for (timer, state) in (0..).zip(&mut self.states) {
            let base = state.armed.map(|armed| self.script.starts[armed.start as usize].base);
            match state.known {
                Known::Pending if base.is_some_and(|base| base != gap.cpu) => continue,
                Known::Pending if base.is_some() => removed.push(Op::InferredCancel(timer)),
                _ => {}
            }
            *state = TimerState { known: Known::Nothing, armed: None, is_removed: false, ..*state };
        }
        if !removed.is_empty() {
            self.script.push((from, self.place), gap.cpu, ItemKind::Operation, &removed);
        }
        let cpu = &mut self.cpus[gap.cpu.index()];
        (cpu.resumed, cpu.last_interrupt) = (Some(to), to);
        (cpu.deferral, cpu.programmed) = (None, None);
    }

    /// Counts the timer interrupts that expire no timer. The callbacks of soft timers, under
    /// `PREEMPT_RT` of nearly all, run after the interrupt.
    fn follow_spurious(&mut self, record: &Record) {
        let Cpu { is_empty, is_over, .. } = &mut self.cpus[record.cpu.index()];
        match record.event {
            Event::LocalTimerEntry => (*is_empty, *is_over) = (true, false),
            Event::LocalTimerExit => {
                self.script.spurious += u64::from(*is_empty);
                *is_over = true;
            }
            Event::HrtimerExpireEntry { .. } => {
                self.script.spurious -= u64::from(std::mem::take(is_empty) && *is_over);
            }
            _ => {}
        }
    }

    fn other(&mut self, record: &Record, at: Ns) {
        self.follow_interrupt(record, at, None);
        match record.event {
            Event::LocalTimerEntry => self.enter(record.cpu, at, self.ends),
            Event::LocalTimerExit => {
                self.leave(record.cpu);
                self.cpus[record.cpu.index()].schedules = record.context != Context::HardIrq;
            }
            Event::HrtimerRearm { next, .. } => {
                let next = self.clocks.convert(ClockId::Monotonic, next);
                self.cpus[record.cpu.index()].programmed = next;
            }
            _ => {}
        }
    }

    fn timer(&mut self, seen: Seen<'_>) {
        let Seen { record, timer, at } = seen;
        self.follow_interrupt(record, at, self.handler_now(seen));
        let is_left_out = match self.left_out {
            LeftOut::Nothing => false,
            LeftOut::Ticks => self.states[timer as usize].is_tick,
            LeftOut::Slices => self.script.slices[timer as usize],
        };
        if is_left_out {
            return;
        }
        match record.event {
            Event::TimerInit { .. } => self.set_up(seen),
            Event::HrtimerSetup { clock, mode, .. } => {
                self.set_up(seen);
                let state = &mut self.states[timer as usize];
                (state.clock, state.is_soft) = (Some(effective(clock, mode)), mode.is_soft());
            }
            Event::TimerStart { .. } => self.start_wheel(seen),
            Event::HrtimerStart { .. } => self.start_queue(seen),
            Event::HrtimerStartExpired { .. } => self.take_back(seen),
            Event::TimerCancel { .. } | Event::HrtimerCancel { .. } => self.cancel(seen),
            Event::TimerExpireEntry { .. } => self.expire(seen),
            Event::HrtimerExpireEntry { .. } => {
                self.states[timer as usize].is_soft |= record.context == Context::SoftIrq;
                self.expire(seen);
            }
            _ => {}
        }
    }

    fn start_wheel(&mut self, seen: Seen<'_>) {
        let Seen { record, timer, at } = seen;
        let Event::TimerStart { expires, now, function, base, is_deferrable, .. } = record.event
        else {
            return;
        };
        let base = CpuId(base.0.min(self.cpus.len() as u16 - 1));
        let wakes = if is_deferrable { Wakes::No } else { Wakes::Yes };
        let due = self.clocks.deadline(at, now, expires);
        let start = due.map(|due| Start { timer, window: Window::at(due), base, wakes });
        self.start(seen, function, start);
    }

    /// Follows the arming of a high-resolution timer, whose expiry can be on any clock.
    fn start_queue(&mut self, seen: Seen<'_>) {
        let Seen { record, timer, at } = seen;
        let Event::HrtimerStart { expires, soft_expires, function, was_armed, .. } = record.event
        else {
            return;
        };
        if was_armed == Some(false) {
            self.infer_cancel(timer, record.cpu, at);
            self.states[timer as usize].known = Known::Idle;
        }
        let state = &mut self.states[timer as usize];
        state.is_removed |= was_armed == Some(true);
        let clock = self.clocks.clock_of(state.clock, expires, record.time);
        let soft = self.clocks.convert(clock, soft_expires);
        let start = soft.zip(self.clocks.convert(clock, expires)).map(|(soft, hard)| {
            let window = Window::new(soft, hard);
            Start { timer, window, base: record.cpu, wakes: Wakes::Yes }
        });
        self.start(seen, function, start);
    }

    /// Adds a start. `start` is `None` if the expiry cannot be converted to the replay's clock.
    fn start(
        &mut self,
        Seen { record, timer, at }: Seen<'_>,
        function: NameId,
        start: Option<Start>,
    ) {
        self.infer_restart(timer, at);
        let state = &mut self.states[timer as usize];
        let is_restart = std::mem::take(&mut state.is_removed) || state.known == Known::Pending;
        let was_seen = state.known == Known::Pending;
        let was_placed = state.known == Known::Pending && state.armed.is_some();
        state.known = Known::Pending;
        let start = start.map(|start| self.script.push_start(start));
        state.armed = start.map(|start| Armed { start, at, is_guess: false });
        let family = self.script.families[timer as usize];
        self.script.starts_by_function[function.index()][family as usize] += 1;
        let counts = self.script.counts(timer);
        counts.start += 1;
        counts.restart += u64::from(is_restart);
        counts.not_to_fire += u64::from(is_restart && was_seen);
        match start {
            Some(start) => self.push(record.cpu, at, Op::Start(start)),
            None => {
                self.script.unplaced += 1;
                // The new expiry is unknown, and the old one no longer holds: cancel the timer.
                if was_placed {
                    self.push(record.cpu, at, Op::Cancel(timer));
                }
            }
        }
    }

    /// Takes back the start just before: the kernel did not queue the timer, because its expiry had
    /// passed. If the timer was pending, the start has removed it.
    fn take_back(&mut self, Seen { record, timer, at }: Seen<'_>) {
        let armed = self.states[timer as usize].armed;
        let ops = match &mut self.cpus[record.cpu.index()].interrupt {
            Some(interrupt) => &mut interrupt.ops,
            None => &mut self.script.ops[..],
        };
        let is_start = |op: &&mut Op| armed.is_some_and(|armed| **op == Op::Start(armed.start));
        if let Some(op) = ops.iter_mut().rev().find(is_start) {
            *op = Op::Cancel(timer);
        }
        self.set_idle(timer, at);
    }

    /// Adds a cancel. Its effect is unknown if it is unknown whether the timer was pending.
    fn cancel(&mut self, Seen { record, timer, at }: Seen<'_>) {
        let known = self.states[timer as usize].known;
        self.script.unknown_cancels += u64::from(known == Known::Nothing);
        let counts = self.script.counts(timer);
        counts.cancel += 1;
        counts.not_to_fire += u64::from(known == Known::Pending);
        self.infer_restart(timer, at);
        self.set_idle(timer, at);
        self.push(record.cpu, at, Op::Cancel(timer));
    }

    /// Follows an expiry. It shows that the timer was pending, even if no arming was recorded.
    fn expire(&mut self, seen: Seen<'_>) {
        let Seen { record, timer, at } = seen;
        self.script.counts(timer).expire += 1;
        let state = self.states[timer as usize];
        match (state.known, state.armed) {
            (Known::Nothing, _) => {
                let guess = self.guess(seen);
                match self.cpus[record.cpu.index()].resumed {
                    Some(resumed) => self.push_inferred(resumed.min(at), guess),
                    None => self.script.pending_at_start.push(guess),
                }
            }
            (Known::Idle, _) => self.infer_start(self.guess(seen), at),
            (Known::Pending, Some(armed)) => {
                self.script.starts[armed.start as usize].base = record.cpu;
                self.infer_restart(timer, at);
                self.record_lateness(seen);
            }
            (Known::Pending, None) => {}
        }
        self.set_idle(timer, at);
        self.push(record.cpu, at, Op::Expire(timer));
    }

    /// Records how late the kernel expired a timer, unless its expiry was guessed.
    fn record_lateness(&mut self, seen: Seen<'_>) {
        let Seen { record, timer, at } = seen;
        let Some(Armed { start, is_guess: false, .. }) = self.states[timer as usize].armed else {
            return;
        };
        let hard = self.script.starts[start as usize].window.hard;
        let now = self.handler_now(seen).unwrap_or(at);
        self.script.late.record(self.script.families[timer as usize], now.since(hard));
        if let (Event::HrtimerExpireEntry { .. }, Some(interrupt)) =
            (record.event, &mut self.cpus[record.cpu.index()].interrupt)
        {
            interrupt.due = interrupt.due.min(hard);
        }
    }

    /// Returns an assumed start for a timer that expires now and whose real start was not recorded.
    fn guess(&self, Seen { record, timer, at }: Seen<'_>) -> Start {
        let due = match record.event {
            Event::TimerExpireEntry { base_clock, .. } => self.clocks.bucket(base_clock),
            _ => None,
        };
        let due = due.unwrap_or_else(|| self.interrupt_began(record.cpu, at));
        Start::guessed(timer, due, record.cpu)
    }

    fn set_up(&mut self, Seen { record, timer, at }: Seen<'_>) {
        self.infer_cancel(timer, record.cpu, at);
        self.set_idle(timer, at);
    }

    fn set_idle(&mut self, timer: u32, at: Ns) {
        let state = &mut self.states[timer as usize];
        (state.known, state.idle_since, state.is_removed) = (Known::Idle, at, false);
    }

    /// Adds an operation: to the interrupt that its CPU is in, or else as an item of its own.
    fn push(&mut self, cpu: CpuId, at: Ns, op: Op) {
        match &mut self.cpus[cpu.index()].interrupt {
            Some(interrupt) => interrupt.ops.push(op),
            None => self.script.push((at, self.place), cpu, ItemKind::Operation, &[op]),
        }
    }

    /// Ends the CPU's interrupt if the record does not belong to it. If the record can only be in
    /// an interrupt whose entry the trace lacks, begins an interrupt. `now` is the current time
    /// with which the handler expired a timer.
    fn follow_interrupt(&mut self, record: &Record, at: Ns, now: Option<Ns>) {
        let interrupt = self.cpus[record.cpu.index()].interrupt.as_ref();
        if interrupt.is_some_and(|interrupt| !interrupt.holds(record, at, now)) {
            self.leave(record.cpu);
        }
        let is_expiry = record.event.kind() == EventKind::HrtimerExpireEntry;
        let in_interrupt = record.context.in_hard_irq().unwrap_or(!self.script.has_interrupts);
        if self.cpus[record.cpu.index()].interrupt.is_none() && is_expiry && in_interrupt {
            self.enter(record.cpu, at, Ends { of_interrupts: false, ..self.ends });
        }
        if let Some(interrupt) = &mut self.cpus[record.cpu.index()].interrupt {
            interrupt.follow(record, at, now);
        }
    }

    /// Returns the current time that the interrupt handler used when it expired a high-resolution
    /// timer, on the replay's clock.
    fn handler_now(&self, Seen { record, timer, .. }: Seen<'_>) -> Option<Ns> {
        let Event::HrtimerExpireEntry { now, .. } = record.event else { return None };
        let set_up = self.states[timer as usize].clock;
        self.clocks.convert(self.clocks.clock_of(set_up, now, record.time), now)
    }

    fn enter(&mut self, cpu: CpuId, at: Ns, ends: Ends) {
        self.leave(cpu);
        let state = &mut self.cpus[cpu.index()];
        state.schedules = true;
        let due = state.programmed.take().unwrap_or(Ns::NEVER);
        state.interrupt = Some(Interrupt::new((at, self.place), due, ends));
    }

    /// Ends the interrupt of a CPU, and adds it to the script, with its operations.
    pub(super) fn leave(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        let Some(Interrupt { moment, now, due, ops, .. }) = state.interrupt.take() else { return };
        state.last_interrupt = moment.0;
        state.deferral = Some(moment);
        let families = &self.script.families;
        let expires =
            |op: &Op| matches!(op, Op::Expire(of) if families[*of as usize] == Family::Queue);
        // Without the timers that are left out, an interrupt that expired no others would not have
        // happened. The other operations of its CPU remain.
        if self.left_out == LeftOut::Nothing || ops.iter().any(expires) {
            self.script.push(moment, cpu, ItemKind::Interrupt { now }, &ops);
            self.script.interrupts[cpu.index()].push(Delivery { at: moment.0, due });
        } else if !ops.is_empty() {
            self.script.push(moment, cpu, ItemKind::Operation, &ops);
        }
    }

    /// Returns when the interrupt that a CPU is in began; `at` if it is in none.
    pub(super) fn interrupt_began(&self, cpu: CpuId, at: Ns) -> Ns {
        self.cpus[cpu.index()].interrupt.as_ref().map_or(at, |interrupt| interrupt.moment.0)
    }
}
