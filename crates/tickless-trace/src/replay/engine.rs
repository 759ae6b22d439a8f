//! Performs a script on the core, under one policy.
//!
//! - Time never goes back. Before each item, the devices deliver the events that are due by then;
//!   an event that is due in the past is delivered now.
//! - An interrupt that the trace recorded is delivered when it occurred, for whatever time the
//!   device is armed here. An event that a device delivers here is either that interrupt, or one
//!   that the kernel did not have; see [`Engine::is_recorded`].
//! - Within an interrupt the core runs a callback for each timer that is due, and the callback does
//!   what the kernel's callback of that timer did there. What the kernel did in callbacks of timers
//!   that are not due here is done after that.
//! - In an event that the kernel did not have, no callback restarts its timer, so one pass
//!   suffices.

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

/// The outcome of a replay under one policy.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) policy: ReplayPolicy,
    /// The sum over all devices, from the first recorded event on.
    pub(super) device: DeviceCounts,
    pub(super) per_cpu: Vec<DeviceCounts>,
    /// Writes of inferred operations, which the above do not include.
    pub(super) inferred_writes: u64,
    pub(super) expirations: u64,
    /// Timers that fired before the beginning of their window. Must be 0.
    pub(super) early: u64,
    pub(super) late: Lateness,
}

/// A recorded interrupt with an unknown cause is the event of a device that was due at most this
/// long before. Interrupts take some microseconds to begin, and longer where a virtual CPU did not
/// run.
const DELIVERY_MAX: Ns = Ns::from_ms(1);

/// Replays a script. O(n log n); a few microseconds per recorded event.
pub(super) fn run(script: &Script, trace: &Trace, policy: ReplayPolicy) -> Outcome {
    let (engine, before) = perform(script, trace, policy);
    engine.outcome(policy, &before)
}

/// Replays a script, and returns when which device was written. These include writes of inferred
/// operations.
pub(super) fn writes(script: &Script, trace: &Trace, policy: ReplayPolicy) -> Vec<(Ns, CpuId)> {
    perform(script, trace, policy).0.platform().take_writes()
}

/// Returns an engine that has performed the script, and the counts of devices before it began.
fn perform<'s>(
    script: &'s Script,
    trace: &Trace,
    policy: ReplayPolicy,
) -> (Engine<'s>, Vec<DeviceCounts>) {
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
    engine.platform().take_writes();
    for item in &script.items {
        engine.deliver_due(item.at);
        engine.perform(item);
    }
    engine.deliver_due(script.ends);
    (engine, before)
}

struct Engine<'s> {
    script: &'s Script,
    bases: Arc<Bases<ReplayPlatform>>,
    timers: Vec<Timer>,
    /// By CPU: the recorded interrupts still ahead, the next one last.
    interrupts: Vec<Vec<&'s Item>>,
    seen: RefCell<Seen>,
    /// By CPU, if the policy defers the programming of devices: the latest time for it.
    deferred: Option<RefCell<Vec<Ns>>>,
}

enum Timer {
    Wheel(OwnedTimer<ReplayPlatform, WheelLink<AtomicU64>>),
    Queue(OwnedTimer<ReplayPlatform, QueueLink>),
}

/// What callbacks and inferred operations add up.
struct Seen {
    early: u64,
    late: Lateness,
    /// By timer: whether its expiry was guessed, so that its lateness means nothing.
    guessed: Vec<bool>,
    /// By CPU: what inferred operations did to its device.
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

    /// Programs the deferred devices whose latest time is at most `until`.
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

    /// Ends an interrupt, which defers the programming of its device if the policy does.
    fn end_interrupt(&self, cpu: CpuId) {
        if let Some(deferred) = &self.deferred {
            deferred.borrow_mut()[cpu.index()] = self.platform().now().after(DEFERRED_MAX);
        }
    }

    /// Delivers the events that are due before `until` and are no recorded interrupts.
    fn deliver_due(&self, until: Ns) {
        self.program_deferred(until);
        while let Some((due, cpu)) = self.platform().next_event(until) {
            // The event remains that interrupt until the device is programmed again.
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

    /// Returns whether the event that is due here is the next recorded interrupt of its CPU.
    ///
    /// The kernel had that interrupt for the timers that it expired, and it was late. Had its
    /// device been due at `due`, the event would have been as late, or as late as interrupts are.
    /// Both are one interrupt if that is past the expiry.
    fn is_recorded(&self, due: Ns, cpu: CpuId) -> bool {
        self.interrupts[cpu.index()].last().is_some_and(|item| match item.kind {
            ItemKind::Interrupt { due: Ns::NEVER, .. } => item.at <= due.after(DELIVERY_MAX),
            ItemKind::Interrupt { due: expiry, .. } => expiry <= due.after(item.at.since(expiry)),
            ItemKind::Operation => false,
        })
    }

    /// Performs a recorded interrupt: the core fires what is due, and each callback does what the
    /// kernel's callback of that timer did in that interrupt.
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
                    // The handler itself restarts a timer when its callback asks for it.
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
            // The core expires timers itself.
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

    /// Performs an inferred operation. Its writes to the device of its CPU are counted apart, since
    /// the trace does not have them.
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

/// Returns, by timer, the operations that the kernel performed for each of its expiries, from the
/// callback's beginning to the next callback. The first expiry is last.
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
