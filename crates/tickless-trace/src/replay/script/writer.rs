//! From records to operations.

use super::clocks::{Clocks, effective};
use super::interrupt::{Ends, Interrupt};

use super::numbers::Numbers;
use super::{Inference, Interrupts, ItemKind, Op, Script, Start, halves};
use crate::read::{ClockId, Context, Event, EventKind, Jiffy, NameId, Record, Trace};
use crate::replay::policy::SLICE_TIMER;
use tickless_core::queues::wheel::Wakes;
use tickless_core::time::{CpuId, Ns, Window};

/// What the kernel calls the callback of the periodic tick, and what older ones call it.
const TICK_FUNCTIONS: [&str; 2] = ["tick_nohz_handler", "tick_sched_timer"];

pub(super) struct Writer {
    pub(super) inference: Inference,
    clocks: Clocks,
    /// The names of the periodic tick's callback.
    ticks: Vec<NameId>,
    slice_timer: Option<NameId>,
    ends: Ends,
    numbers: Numbers,
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

/// A record of a timer.
#[derive(Clone, Copy)]
struct Seen<'t> {
    record: &'t Record,
    timer: u32,
    at: Ns,
}

/// What an expiry says of when it was.
#[derive(Clone, Copy)]
enum Expiry {
    /// Which of the wheel's jiffies was expired.
    Wheel(Jiffy),
    /// The present, on the timer's own clock.
    Queue(Ns),
}

impl Writer {
    pub(super) fn new(trace: &Trace, inference: Inference) -> Writer {
        let numbers = Numbers::assign(trace);
        let clocks = Clocks::measure(trace, &numbers);
        let unknown = State {
            known: Known::Nothing,
            armed: None,
            idle_since: Ns::ZERO,
            clock: None,
            is_soft: false,
            is_tick: false,
            is_half_way: false,
        };
        Writer {
            inference,
            ticks: TICK_FUNCTIONS.iter().filter_map(|name| trace.names.find(name)).collect(),
            slice_timer: trace.names.find(SLICE_TIMER),
            ends: Ends::of(trace),
            place: 0,
            states: vec![unknown; numbers.families.len()],
            cpus: (0..trace.cpus).map(|_| Cpu::default()).collect(),
            script: Script::new(trace, &clocks, numbers.families.clone()),
            clocks,
            numbers,
        }
    }

    pub(super) fn write(mut self, trace: &Trace) -> Script {
        let halves = halves::find(trace, &self.numbers);
        for (place, (record, is_half)) in trace.records.iter().zip(halves).enumerate() {
            self.place = place as u32;
            if record.cpu.index() >= self.cpus.len() {
                continue;
            }
            let at = self.clocks.present(record.time);
            match self.numbers.of(place) {
                Some(timer) if is_half => self.states[timer as usize].is_half_way = true,
                Some(timer) => self.timer(Seen { record: &record, timer, at }),
                None => self.other(&record, at),
            }
        }
        for cpu in 0..self.cpus.len() {
            self.leave(CpuId(cpu as u16));
        }
        self.script.finish();
        self.script
    }

    fn other(&mut self, record: &Record, at: Ns) {
        self.follow_interrupt(record, at, None);
        match record.event {
            Event::LocalTimerEntry => self.enter(record.cpu, at, self.ends),
            Event::LocalTimerExit => self.leave(record.cpu),
            _ => {}
        }
    }

    fn timer(&mut self, seen: Seen<'_>) {
        let Seen { record, timer, at } = seen;
        let now = match record.event {
            Event::HrtimerExpireEntry { now, .. } => self.present_of(timer, now, record.time),
            _ => None,
        };
        self.follow_interrupt(record, at, now);
        match record.event {
            Event::TimerInit { .. } => self.set_up(seen),
            Event::HrtimerSetup { clock, mode, .. } => {
                self.set_up(seen);
                let state = &mut self.states[timer as usize];
                (state.clock, state.is_soft) = (Some(effective(clock, mode)), mode.is_soft());
            }
            Event::TimerStart { .. } => self.start_wheel(seen),
            Event::HrtimerStart { .. } => self.start_queue(seen),
            Event::TimerCancel { .. } | Event::HrtimerCancel { .. } => self.cancel(seen),
            Event::TimerExpireEntry { base_clock, .. } => {
                self.expire(seen, Expiry::Wheel(base_clock));
            }
            Event::HrtimerExpireEntry { now, .. } => {
                self.states[timer as usize].is_soft |= record.context == Context::SoftIrq;
                self.expire(seen, Expiry::Queue(now));
            }
            _ => {}
        }
    }

    fn start_wheel(&mut self, seen: Seen<'_>) {
        let Seen { record, timer, at } = seen;
        let Event::TimerStart { expires, now, function, base, flags, .. } = record.event else {
            return;
        };
        let base = CpuId(base.0.min(self.cpus.len() as u16 - 1));
        let wakes = if flags.is_deferrable() { Wakes::No } else { Wakes::Yes };
        let due = self.clocks.deadline(at, now, expires);
        let start = due.map(|due| Start { timer, window: Window::new(due, due), base, wakes });
        self.start(seen, function, start);
    }

    fn start_queue(&mut self, seen: Seen<'_>) {
        let Seen { record, timer, at } = seen;
        let Event::HrtimerStart { expires, soft_expires, function, was_armed, .. } = record.event
        else {
            return;
        };
        if was_armed == Some(false) {
            self.notice_cancel(timer, record.cpu, at);
            self.states[timer as usize].known = Known::Idle;
        }
        self.script.slices[timer as usize] |= self.slice_timer == Some(function);
        let state = &mut self.states[timer as usize];
        state.is_half_way |= was_armed == Some(true);
        state.is_tick = self.ticks.contains(&function);
        let clock = self.clocks.clock_of(state.clock, expires, record.time);
        let soft = self.clocks.place(clock, soft_expires);
        let start = soft.zip(self.clocks.place(clock, expires)).map(|(soft, hard)| {
            let window = Window::new(soft, hard);
            Start { timer, window, base: record.cpu, wakes: Wakes::Yes }
        });
        self.start(seen, function, start);
    }

    fn start(
        &mut self,
        Seen { record, timer, at }: Seen<'_>,
        function: NameId,
        start: Option<Start>,
    ) {
        self.notice_move(timer, at);
        let state = &mut self.states[timer as usize];
        let is_restart = std::mem::take(&mut state.is_half_way) || state.known == Known::Pending;
        let was_placed = state.known == Known::Pending && state.armed.is_some();
        state.known = Known::Pending;
        state.armed = start.map(|_| {
            let start = self.script.starts.len() as u32;
            Armed { start, at, is_guess: false }
        });
        let family = self.script.families[timer as usize];
        let by_function = &mut self.script.starts_by_function[function.index()];
        by_function.0 = function;
        by_function.1[family as usize] += 1;
        let counts = self.script.counts(timer);
        counts.starts += 1;
        counts.restarts += u64::from(is_restart);
        match start {
            Some(start) => {
                self.script.starts.push(start);
                let place = self.script.starts.len() as u32 - 1;
                self.push(record.cpu, at, Op::Start(place));
            }
            None => {
                self.script.unplaced += 1;
                // At least it is not where it was.
                if was_placed {
                    self.push(record.cpu, at, Op::Cancel(timer));
                }
            }
        }
    }

    fn cancel(&mut self, Seen { record, timer, at }: Seen<'_>) {
        self.script.counts(timer).cancels += 1;
        if self.states[timer as usize].known == Known::Nothing {
            self.script.unknown_cancels += 1;
        }
        self.notice_move(timer, at);
        self.rest(timer, at);
        self.push(record.cpu, at, Op::Cancel(timer));
    }

    fn expire(&mut self, seen: Seen<'_>, expiry: Expiry) {
        let Seen { record, timer, at } = seen;
        self.script.counts(timer).expiries += 1;
        let state = self.states[timer as usize];
        match (state.known, state.armed) {
            (Known::Nothing, _) => {
                let guess = self.guess(seen, expiry);
                self.script.pending_at_start.push(guess);
            }
            (Known::Idle, _) => self.notice_start(self.guess(seen, expiry), at),
            (Known::Pending, Some(armed)) => {
                self.script.starts[armed.start as usize].base = record.cpu;
                self.notice_move(timer, at);
                self.note_lateness(seen, expiry);
            }
            (Known::Pending, None) => {}
        }
        self.rest(timer, at);
        self.push(record.cpu, at, Op::Expire(timer));
    }

    /// How late the kernel was with a timer, unless it was moved to an unknown expiry.
    fn note_lateness(&mut self, Seen { record, timer, at }: Seen<'_>, expiry: Expiry) {
        let Some(Armed { start, is_guess: false, .. }) = self.states[timer as usize].armed else {
            return;
        };
        let hard = self.script.starts[start as usize].window.hard;
        let now = match expiry {
            Expiry::Wheel(_) => at,
            Expiry::Queue(now) => self.present_of(timer, now, record.time).unwrap_or(at),
        };
        self.script.late.record(self.script.families[timer as usize], now.since(hard));
        if let (Expiry::Queue(_), Some(interrupt)) =
            (expiry, &mut self.cpus[record.cpu.index()].interrupt)
        {
            interrupt.due = interrupt.due.min(hard);
        }
    }

    /// What a timer may have been armed for that expires now.
    fn guess(&self, Seen { record, timer, at }: Seen<'_>, expiry: Expiry) -> Start {
        let seen = self.began(record.cpu, at);
        let due = match expiry {
            Expiry::Queue(_) => None,
            Expiry::Wheel(bucket) => self.clocks.bucket(bucket),
        };
        Start::guessed(timer, due.unwrap_or(seen), record.cpu)
    }

    fn set_up(&mut self, Seen { record, timer, at }: Seen<'_>) {
        self.notice_cancel(timer, record.cpu, at);
        self.rest(timer, at);
    }

    fn rest(&mut self, timer: u32, at: Ns) {
        let state = &mut self.states[timer as usize];
        (state.known, state.idle_since, state.is_half_way) = (Known::Idle, at, false);
    }

    /// Adds an operation to its CPU's interrupt, or as an item of its own.
    fn push(&mut self, cpu: CpuId, at: Ns, op: Op) {
        match &mut self.cpus[cpu.index()].interrupt {
            Some(interrupt) => interrupt.ops.push(op),
            None => self.script.push((at, self.place), cpu, ItemKind::Operation, &[op]),
        }
    }

    /// Ends the CPU's interrupt where the record is not part of it, and begins one that has no
    /// record of its own. `now` is the present that an expiry went by.
    fn follow_interrupt(&mut self, record: &Record, at: Ns, now: Option<Ns>) {
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
