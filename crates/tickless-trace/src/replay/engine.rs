//! Performs a script (the timer operations of a trace) on the timer core, under one policy for
//! programming the event devices.
//!
//! - Time never goes back. Before each item of the script, the simulated devices deliver the events
//!   that are due by then. A device that is armed for a past time delivers its event now.
//! - An event of a simulated device is either a recorded interrupt, which is delivered when it
//!   occurred, or one that the kernel did not have; see [`Engine::is_recorded`].
//! - In an event that the kernel did not have, callbacks do nothing. In particular they restart no
//!   timer, so one pass over the timers that are due suffices.

use super::lateness::Lateness;
use super::platform::ReplayPlatform;
use super::policy::{DEFERRED_MAX, ReplayPolicy};
use super::script::{Item, ItemKind, Op, Script, Start, tick};
use crate::read::{Family, Trace};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tickless_core::bases::expiry::{CallbackResult, Firing};
use tickless_core::bases::{Bases, Options, Settings};
use tickless_core::link::{QueueLink, WheelLink};
use tickless_core::owned::OwnedTimer;
use tickless_core::platform::Platform;
use tickless_core::queues::wheel::PushOut;
use tickless_core::rearm::{DeviceCounts, HandlerEnd, Limits};
use tickless_core::time::{CpuId, Ns};

#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) policy: ReplayPolicy,
    pub(super) device: DeviceCounts,
    pub(super) per_cpu: Vec<DeviceCounts>,
    /// Device writes of inferred operations (those without a record), which the counts above do not
    /// include.
    pub(super) inferred_writes: u64,
    pub(super) expirations: u64,
    /// Timers that fired before their earliest expiry. Must be 0.
    pub(super) early: u64,
    pub(super) late: Lateness,
}

/// If it is unknown which timers a recorded interrupt expired, it is taken for the event of a
/// simulated device that was due at most this long before. Interrupts take some microseconds to
/// begin, and longer if a virtual CPU did not run.
const DELIVERY_MAX: Ns = Ns::from_ms(1);

pub(super) fn run(script: &Script, trace: &Trace, policy: ReplayPolicy) -> Outcome {
    let settings = policy.set(Settings {
        tick: tick(trace),
        push_out: PushOut::Eager,
        limits: Limits { passes: u32::MAX, ..Limits::NONE },
        wheel: script.wheel,
        ..Settings::default()
    });
    let mut engine = Engine::new(script, trace.cpus, settings);
    for start in &script.pending_at_start {
        engine.start(start, start.base);
        engine.seen.borrow_mut().guessed[start.timer as usize] = true;
    }
    let before = engine.devices();
    for item in &script.items {
        engine.deliver_due(item.at);
        engine.perform(item);
    }
    engine.deliver_due(script.ends);
    engine.outcome(policy, &before)
}

struct Engine<'s> {
    script: &'s Script,
    bases: Arc<Bases<ReplayPlatform>>,
    timers: Vec<Timer>,
    /// For each CPU, the recorded interrupts that are still to come; the next one is last.
    interrupts: Vec<Vec<&'s Item>>,
    seen: RefCell<Seen>,
    /// If the policy defers the programming of devices: for each CPU, the time at which its device
    /// must be programmed at the latest.
    deferred: Option<RefCell<Vec<Ns>>>,
}

enum Timer {
    Wheel(OwnedTimer<ReplayPlatform, WheelLink<AtomicU64>>),
    Queue(OwnedTimer<ReplayPlatform, QueueLink>),
}

/// What callbacks and inferred operations (those without a record) count during the replay.
struct Seen {
    early: u64,
    late: Lateness,
    /// For each timer, whether its expiry was guessed, so that its lateness means nothing.
    guessed: Vec<bool>,
    /// For each CPU, the counts of its device that come from inferred operations (those without a
    /// record).
    inferred: Vec<DeviceCounts>,
}

impl<'s> Engine<'s> {
    fn new(script: &'s Script, cpus: u16, settings: Settings) -> Engine<'s> {
        let defers = settings.handler_end == HandlerEnd::Defers;
        let platform = ReplayPlatform::new(cpus, script.begins);
        let bases = Arc::new(Bases::new(platform, cpus, settings));
        let timer = |(number, family): (usize, &Family)| match family {
            Family::Wheel => Timer::Wheel(OwnedTimer::new(&bases, number as u32)),
            Family::Queue if script.slices[number] => {
                Timer::Queue(OwnedTimer::lazy(&bases, number as u32))
            }
            Family::Queue => Timer::Queue(OwnedTimer::new(&bases, number as u32)),
        };
        let timers: Vec<Timer> = script.families.iter().enumerate().map(timer).collect();
        let cpus = usize::from(cpus);
        let mut interrupts = vec![Vec::new(); cpus];
        for item in script.items.iter().rev() {
            if let ItemKind::Interrupt { .. } = item.kind {
                interrupts[item.cpu.index()].push(item);
            }
        }
        let seen = RefCell::new(Seen {
            early: 0,
            late: Lateness::new(),
            guessed: vec![false; timers.len()],
            inferred: vec![DeviceCounts::default(); cpus],
        });
        let deferred = defers.then(|| RefCell::new(vec![Ns::NEVER; cpus]));
        Engine { script, bases, timers, interrupts, seen, deferred }
    }

    fn platform(&self) -> &ReplayPlatform {
        self.bases.platform()
    }

    fn perform(&mut self, item: &Item) {
        self.platform().go(item.at, item.cpu);
        if let ItemKind::Interrupt { now, .. } = item.kind {
            self.interrupts[item.cpu.index()].pop();
            self.platform().go(now, item.cpu);
            self.handle(item);
        } else {
            for op in self.script.ops(item) {
                self.op(*op, item.cpu);
            }
        }
    }

    /// Programs the devices whose deferred programming must happen at `until` or before.
    fn program_deferred(&self, until: Ns) {
        let Some(deferred) = &self.deferred else { return };
        for (cpu, latest) in (0..).map(CpuId).zip(deferred.borrow_mut().iter_mut()) {
            if *latest <= until {
                self.platform().go(*latest, cpu);
                self.bases.settle_device(cpu);
                *latest = Ns::NEVER;
            }
        }
    }

    /// Ends an interrupt. If the policy defers the programming of devices, sets the time at which
    /// the device of `cpu` must be programmed at the latest.
    fn end_interrupt(&self, cpu: CpuId) {
        if let Some(deferred) = &self.deferred {
            deferred.borrow_mut()[cpu.index()] = self.platform().now().after(DEFERRED_MAX);
        }
    }

    /// Delivers the events of simulated devices that are due before `until`, except those that are
    /// recorded interrupts.
    fn deliver_due(&self, until: Ns) {
        self.program_deferred(until);
        while let Some((due, cpu)) = self.platform().next_event(until) {
            // Skip this event: the recorded interrupt will deliver it, unless the device is
            // programmed again before that.
            if self.is_recorded(due, cpu) {
                continue;
            }
            self.platform().go(due, cpu);
            self.platform().deliver(cpu);
            self.bases.expire(cpu, |firing| {
                self.fired(firing);
                CallbackResult::Done
            });
            self.end_interrupt(cpu);
            self.program_deferred(until);
        }
    }

    /// Returns whether a simulated device's event, due at `due`, is the next recorded interrupt of
    /// its CPU.
    ///
    /// The recorded interrupt came with some delay after the earliest expiry that it handled. With
    /// the same delay, the simulated event would come at `due` plus the delay. If that time is
    /// not before the expiry, the simulated event would have handled the same timer, so both are
    /// one interrupt. If the expiry is not known, the delay may be up to [`DELIVERY_MAX`].
    fn is_recorded(&self, due: Ns, cpu: CpuId) -> bool {
        self.interrupts[cpu.index()].last().is_some_and(|item| match item.kind {
            ItemKind::Interrupt { due: Ns::NEVER, .. } => item.at <= due.after(DELIVERY_MAX),
            ItemKind::Interrupt { due: expiry, .. } => expiry <= due.after(item.at.since(expiry)),
            ItemKind::Operation => false,
        })
    }

    /// Performs a recorded interrupt: the core fires the timers that are due, and each callback
    /// repeats what the kernel's callback of that timer did in the interrupt.
    fn handle(&self, item: &Item) {
        let all = self.script.ops(item);
        let mut ops: Vec<Option<Op>> = all.iter().copied().map(Some).collect();
        let mut callbacks = callbacks(all);
        self.platform().deliver(item.cpu);
        self.bases.expire(item.cpu, |firing| {
            self.fired(firing);
            let part = callbacks.get_mut(&firing.task).and_then(Vec::pop).unwrap_or_default();
            let mut result = CallbackResult::Done;
            for op in &mut ops[part] {
                match op.take() {
                    // If a callback restarts its own timer, the handler does so when the callback
                    // has returned.
                    Some(Op::Start(place)) if self.script_start(place).timer == firing.task => {
                        result = CallbackResult::Restart(self.script_start(place).window);
                    }
                    Some(Op::Cancel(timer)) if timer == firing.task => {
                        result = CallbackResult::Done;
                    }
                    Some(op) => self.op(op, item.cpu),
                    None => {}
                }
            }
            result
        });
        self.end_interrupt(item.cpu);
        for op in ops.into_iter().flatten() {
            self.op(op, item.cpu);
        }
    }

    fn op(&self, op: Op, cpu: CpuId) {
        match op {
            Op::Start(place) => {
                let start = self.script_start(place);
                self.start(start, cpu);
                self.seen.borrow_mut().guessed[start.timer as usize] = false;
            }
            Op::Cancel(timer) => self.cancel(timer),
            Op::InferredStart(place) => {
                let start = self.script_start(place);
                self.inferred(start.base, || self.start(start, start.base));
                self.seen.borrow_mut().guessed[start.timer as usize] = true;
            }
            Op::InferredCancel(timer) => self.inferred(cpu, || self.cancel(timer)),
            // There is nothing to perform: the core expires timers itself.
            Op::Expire(_) => {}
        }
    }

    fn script_start(&self, place: u32) -> &'s Start {
        &self.script.starts[place as usize]
    }

    fn start(&self, start: &Start, cpu: CpuId) {
        self.platform().go(Ns::ZERO, cpu);
        let options =
            Options { pinned: Some(start.base), wakes: start.wakes, ..Options::default() };
        let now = self.platform().now();
        let started = match &self.timers[start.timer as usize] {
            Timer::Wheel(timer) => timer.start(start.window, now, options),
            Timer::Queue(timer) => timer.start(start.window, now, options),
        };
        debug_assert!(started.is_ok(), "every base of the trace exists");
    }

    fn cancel(&self, timer: u32) {
        match &self.timers[timer as usize] {
            Timer::Wheel(timer) => timer.cancel(),
            Timer::Queue(timer) => timer.cancel(),
        };
    }

    /// Performs an inferred operation. Its device writes are counted separately, because the trace
    /// does not show them.
    fn inferred(&self, cpu: CpuId, operation: impl FnOnce()) {
        let before = self.device(cpu);
        operation();
        let inferred = &mut self.seen.borrow_mut().inferred[cpu.index()];
        *inferred = inferred.plus(self.device(cpu).since(before));
    }

    fn fired(&self, firing: &Firing<ReplayPlatform>) {
        let mut seen = self.seen.borrow_mut();
        let number = firing.task as usize;
        seen.early += u64::from(firing.now < firing.window.soft);
        if !std::mem::take(&mut seen.guessed[number]) {
            seen.late.record(self.script.families[number], firing.now.since(firing.window.hard));
        }
    }

    fn device(&self, cpu: CpuId) -> DeviceCounts {
        self.bases.view(cpu).map(|view| view.device).unwrap_or_default()
    }

    fn devices(&self) -> Vec<DeviceCounts> {
        (0..).map(|cpu| self.device(CpuId(cpu))).take(self.interrupts.len()).collect()
    }

    fn outcome(self, policy: ReplayPolicy, before: &[DeviceCounts]) -> Outcome {
        let after = self.devices();
        let views = (0..).map(CpuId).take(after.len()).filter_map(|cpu| self.bases.view(cpu));
        let expirations = views.map(|view| view.counts.fired).sum();
        let Seen { early, late, inferred, .. } = self.seen.into_inner();
        let per_cpu: Vec<DeviceCounts> = (after.iter().zip(before).zip(&inferred))
            .map(|((after, before), inferred)| after.since(*before).since(*inferred))
            .collect();
        let device = per_cpu.iter().fold(DeviceCounts::default(), |sum, cpu| sum.plus(*cpu));
        let inferred_writes = inferred.iter().map(|inferred| inferred.writes).sum();
        Outcome { policy, device, per_cpu, inferred_writes, expirations, early, late }
    }
}

/// Returns, for each timer, which operations the kernel performed in each expiry of the timer:
/// those from the beginning of the timer's callback up to the next callback. The first expiry is
/// last in the list, so that `pop` returns it first.
fn callbacks(ops: &[Op]) -> HashMap<u32, Vec<Range<usize>>> {
    let mut callbacks = HashMap::<u32, Vec<Range<usize>>>::new();
    let mut to = ops.len();
    for (place, op) in ops.iter().enumerate().rev() {
        if let Op::Expire(timer) = op {
            callbacks.entry(*timer).or_default().push(place..to);
            to = place;
        }
    }
    callbacks
}
