//! From records to operations.

use super::clocks::{Clocks, effective};
use super::inference::Inference;
use super::interrupt::{Ends, Interrupt};
use super::{Family, Interrupts, ItemKind, Op, Script, Start, halves};
use crate::trace::{ClockId, Context, Event, EventKind, Jiffy, NameId, Record, TimerAddr, Trace};
use std::collections::HashMap;
use tickless_core::queue::Window;
use tickless_core::time::{CpuId, Ns};
use tickless_core::wheel::Wakes;

/// What the kernel calls the callback of the periodic tick, and has called it before 6.8.
const TICK_FUNCTIONS: [&str; 2] = ["tick_nohz_handler", "tick_sched_timer"];

pub(super) struct Writer {
    pub(super) inference: Inference,
    clocks: Clocks,
    /// The names of the periodic tick's callback.
    ticks: Vec<NameId>,
    ends: Ends,
    numbers: HashMap<(Family, TimerAddr), u32>,
    /// Of the record that is read just now.
    pub(super) place: u32,
    /// By timer.
    pub(super) states: Vec<State>,
    pub(super) cpus: Vec<Cpu>,
    pub(super) script: Script,
}

/// What is known of a timer at this point of the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) known: Known,
    /// Its last arming, if that can be placed in time.
    pub(super) armed: Option<Armed>,
    pub(super) idle_since: Ns,
    /// The clock it is on, if its set-up was recorded.
    clock: Option<ClockId>,
    /// Does its callback run in a softirq, some time after the interrupt?
    pub(super) is_soft: bool,
    pub(super) is_tick: bool,
    /// Was it just taken off, to be armed anew or to expire?
    is_half_way: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    Nothing,
    Pending,
    Idle,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Armed {
    /// The place in [`Script::starts`].
    pub(super) start: u32,
    pub(super) at: Ns,
    pub(super) is_guess: bool,
}

#[derive(Debug, Default)]
pub(super) struct Cpu {
    pub(super) interrupt: Option<Interrupt>,
    /// When the last interrupt that is over began.
    pub(super) last_interrupt: Ns,
}

impl Writer {
    pub(super) fn new(trace: &Trace, inference: Inference) -> Writer {
        let clocks = Clocks::measure(trace);
        Writer {
            inference,
            ticks: TICK_FUNCTIONS.iter().filter_map(|name| trace.names.find(name)).collect(),
            ends: Ends::of(trace),
            numbers: HashMap::new(),
            place: 0,
            states: Vec::new(),
            cpus: (0..trace.cpus).map(|_| Cpu::default()).collect(),
            script: Script::new(trace, &clocks),
            clocks,
        }
    }

    pub(super) fn write(mut self, trace: &Trace) -> Script {
        let halves = halves::find(trace);
        for (place, (record, is_half)) in trace.records.iter().zip(halves).enumerate() {
            self.place = place as u32;
            if record.cpu.index() >= self.cpus.len() {
                continue;
            }
            if is_half {
                self.half(record);
            } else {
                self.record(record);
            }
        }
        for cpu in 0..self.cpus.len() {
            self.leave(CpuId(cpu as u16));
        }
        self.script.finish();
        self.script
    }

    fn half(&mut self, record: &Record) {
        let (Event::TimerCancel { timer } | Event::HrtimerCancel { timer }) = record.event else {
            return;
        };
        let family = family(record);
        let timer = self.number(family, timer) as usize;
        self.states[timer].is_half_way = true;
    }

    fn record(&mut self, record: &Record) {
        let at = self.clocks.present(record.time);
        self.follow_interrupt(record, at);
        match record.event {
            Event::LocalTimerEntry => self.enter(record.cpu, at, self.ends),
            Event::LocalTimerExit => self.leave(record.cpu),
            Event::TimerInit { timer } => self.set_up(record, timer, None, at),
            Event::HrtimerSetup { timer, clock, mode } => {
                self.set_up(record, timer, Some(effective(clock, mode)), at);
                let timer = self.number(Family::Queue, timer) as usize;
                self.states[timer].is_soft = mode.is_soft();
            }
            Event::TimerStart { .. } => self.start_wheel(record, at),
            Event::HrtimerStart { .. } => self.start_queue(record, at),
            Event::TimerCancel { timer } | Event::HrtimerCancel { timer } => {
                let timer = self.number(family(record), timer);
                self.cancel(record, timer, at);
            }
            Event::TimerExpireEntry { timer, base_clock, .. } => {
                let timer = self.number(Family::Wheel, timer);
                self.expire(record, timer, at, Expiry::Wheel(base_clock));
            }
            Event::HrtimerExpireEntry { timer, now, .. } => {
                let timer = self.number(Family::Queue, timer);
                self.states[timer as usize].is_soft |= record.context == Context::SoftIrq;
                self.expire(record, timer, at, Expiry::Queue(now));
            }
            _ => {}
        }
    }

    fn start_wheel(&mut self, record: &Record, at: Ns) {
        let Event::TimerStart { timer, expires, now, function, base, flags, .. } = record.event
        else {
            return;
        };
        let timer = self.number(Family::Wheel, timer);
        let base = CpuId(base.0.min(self.cpus.len() as u16 - 1));
        let wakes = if flags.is_deferrable() { Wakes::No } else { Wakes::Yes };
        let due = self.clocks.deadline(at, now, expires);
        let start = due.map(|due| Start { timer, window: Window::new(due, due), base, wakes });
        self.start(record, timer, function, at, start);
    }

    fn start_queue(&mut self, record: &Record, at: Ns) {
        let Event::HrtimerStart { timer, expires, soft_expires, function, was_armed, .. } =
            record.event
        else {
            return;
        };
        let timer = self.number(Family::Queue, timer);
        let state = &mut self.states[timer as usize];
        state.is_tick = self.ticks.contains(&function);
        if was_armed == Some(false) {
            // Unless an interrupt has shown already that it is not where it was.
            self.notice_cancel(timer, record.cpu, at);
            self.states[timer as usize].known = Known::Idle;
        } else if was_armed == Some(true) {
            self.states[timer as usize].is_half_way = true;
        }
        let clock = self.clocks.clock_of(self.states[timer as usize].clock, expires, record.time);
        let (soft, hard) =
            (self.clocks.place(clock, soft_expires), self.clocks.place(clock, expires));
        let start = soft.zip(hard).map(|(soft, hard)| Start {
            timer,
            window: Window::new(soft, hard),
            base: record.cpu,
            wakes: Wakes::Yes,
        });
        self.start(record, timer, function, at, start);
    }

    fn start(
        &mut self,
        record: &Record,
        timer: u32,
        function: NameId,
        at: Ns,
        start: Option<Start>,
    ) {
        let family = self.script.families[timer as usize];
        let state = &mut self.states[timer as usize];
        let is_restart = std::mem::take(&mut state.is_half_way) || state.known == Known::Pending;
        self.notice_move(timer, at);
        let counts = self.script.counts(family);
        counts.starts += 1;
        counts.restarts += u64::from(is_restart);
        *self.script.starts_by_function.entry((function, family)).or_default() += 1;
        self.states[timer as usize].known = Known::Pending;
        self.states[timer as usize].armed = start.map(|start| {
            let place = self.script.starts.len() as u32;
            self.script.starts.push(start);
            Armed { start: place, at, is_guess: false }
        });
        match self.states[timer as usize].armed {
            Some(armed) => self.push(record.cpu, at, Op::Start(armed.start)),
            None => self.script.unplaced += 1,
        }
    }

    fn cancel(&mut self, record: &Record, timer: u32, at: Ns) {
        let family = self.script.families[timer as usize];
        self.script.counts(family).cancels += 1;
        if self.states[timer as usize].known == Known::Nothing {
            self.script.unknown_cancels += 1;
        }
        self.notice_move(timer, at);
        self.rest(timer, at);
        self.push(record.cpu, at, Op::Cancel(timer));
    }

    fn expire(&mut self, record: &Record, timer: u32, at: Ns, expiry: Expiry) {
        let family = self.script.families[timer as usize];
        self.script.counts(family).expiries += 1;
        let state = self.states[timer as usize];
        let cpu = record.cpu;
        match (state.known, state.armed) {
            (Known::Nothing, _) => {
                let guess = self.guess(timer, cpu, at, expiry);
                self.script.pending_at_start.push(guess);
            }
            (Known::Idle, _) => {
                let guess = self.guess(timer, cpu, at, expiry);
                self.notice_start(guess, at);
            }
            (Known::Pending, Some(armed)) => {
                self.script.starts[armed.start as usize].base = cpu;
                self.notice_move(timer, at);
            }
            (Known::Pending, None) => {}
        }
        if let (Known::Pending, Some(armed)) = (state.known, self.states[timer as usize].armed)
            && !armed.is_guess
        {
            let hard = self.script.starts[armed.start as usize].window.hard;
            let now = match expiry {
                Expiry::Wheel(_) => at,
                Expiry::Queue(now) => self.present_of(timer, now, record.time).unwrap_or(at),
            };
            self.script.late.record(family, now.since(hard));
            if let (Family::Queue, Some(interrupt)) =
                (family, &mut self.cpus[cpu.index()].interrupt)
            {
                interrupt.due = interrupt.due.min(hard);
            }
        }
        self.rest(timer, at);
        self.push(cpu, at, Op::Expire(timer));
    }

    /// What a timer may have been armed for that expires at `at`.
    fn guess(&self, timer: u32, cpu: CpuId, at: Ns, expiry: Expiry) -> Start {
        let at = self.began(cpu, at);
        match expiry {
            Expiry::Queue(_) => Start::guessed(timer, at, cpu),
            Expiry::Wheel(bucket) => {
                Start::guessed(timer, self.clocks.bucket(bucket).unwrap_or(at), cpu)
            }
        }
    }

    fn set_up(&mut self, record: &Record, timer: TimerAddr, clock: Option<ClockId>, at: Ns) {
        let (timer, cpu) = (self.number(family(record), timer), record.cpu);
        self.notice_cancel(timer, cpu, at);
        self.rest(timer, at);
        self.states[timer as usize].clock = clock;
    }

    fn rest(&mut self, timer: u32, at: Ns) {
        let state = &mut self.states[timer as usize];
        (state.known, state.idle_since, state.is_half_way) = (Known::Idle, at, false);
    }

    fn number(&mut self, family: Family, timer: TimerAddr) -> u32 {
        let script = &mut self.script;
        *self.numbers.entry((family, timer)).or_insert_with(|| {
            script.families.push(family);
            self.states.push(State {
                known: Known::Nothing,
                armed: None,
                idle_since: Ns::ZERO,
                clock: None,
                is_soft: false,
                is_tick: false,
                is_half_way: false,
            });
            script.families.len() as u32 - 1
        })
    }

    /// Adds an operation to its CPU's interrupt, or as an item of its own.
    fn push(&mut self, cpu: CpuId, at: Ns, op: Op) {
        match &mut self.cpus[cpu.index()].interrupt {
            Some(interrupt) => interrupt.ops.push(op),
            None => self.script.push((at, self.place), cpu, ItemKind::Operation, &[op]),
        }
    }

    /// Ends the CPU's interrupt where the record is not part of it, and begins one that has no
    /// record of its own.
    fn follow_interrupt(&mut self, record: &Record, at: Ns) {
        let now = match record.event {
            Event::HrtimerExpireEntry { timer, now, .. } => {
                let timer = self.number(Family::Queue, timer);
                self.present_of(timer, now, record.time)
            }
            _ => None,
        };
        let interrupt = self.cpus[record.cpu.index()].interrupt.as_ref();
        if interrupt.is_some_and(|interrupt| !interrupt.holds(record, at, now)) {
            self.leave(record.cpu);
        }
        let is_expiry = record.event.kind() == EventKind::HrtimerExpireEntry;
        let in_interrupt = match record.context.in_hard_irq() {
            Some(in_interrupt) => in_interrupt,
            None => self.script.interrupts == Interrupts::Implied,
        };
        if self.cpus[record.cpu.index()].interrupt.is_none() && is_expiry && in_interrupt {
            self.enter(record.cpu, at, self.ends.without_interrupt());
        }
        if let Some(interrupt) = &mut self.cpus[record.cpu.index()].interrupt {
            interrupt.follow(record, at, now);
        }
    }

    /// The present that the handler went by when it expired a timer.
    fn present_of(&self, timer: u32, now: Ns, time: Ns) -> Option<Ns> {
        let clock = self.clocks.clock_of(self.states[timer as usize].clock, now, time);
        self.clocks.place(clock, now)
    }

    fn enter(&mut self, cpu: CpuId, at: Ns, ends: Ends) {
        self.leave(cpu);
        self.cpus[cpu.index()].interrupt = Some(Interrupt::new((at, self.place), ends));
    }

    /// The CPU's interrupt ends, if it is in one.
    fn leave(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        let Some(interrupt) = state.interrupt.take() else { return };
        state.last_interrupt = interrupt.began;
        interrupt.finish(cpu, &mut self.script);
    }

    /// When the interrupt that a CPU is in began; `at` if it is in none.
    pub(super) fn began(&self, cpu: CpuId, at: Ns) -> Ns {
        self.cpus[cpu.index()].interrupt.as_ref().map_or(at, |interrupt| interrupt.began)
    }
}

/// What an expiry says of when it was.
#[derive(Clone, Copy)]
enum Expiry {
    /// Which of the wheel's jiffies was expired.
    Wheel(Jiffy),
    /// The present, on the timer's own clock.
    Queue(Ns),
}

fn family(record: &Record) -> Family {
    if record.event.kind().is_wheel() { Family::Wheel } else { Family::Queue }
}
