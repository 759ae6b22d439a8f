//! Performs a script on the real core, under one policy.
//!
//! Ground rules:
//! - Time never goes back. Items come in order of time, and before each the events that
//!   devices are due to deliver by then; what is due in the past is delivered now.
//! - An interrupt that the trace recorded is delivered when it was, whatever the device here is
//!   armed for: the kernel had it. What a device here is due to deliver is that interrupt, or
//!   an event of its own that the kernel did not have; see [`Engine::is_recorded`].
//! - Within an interrupt the core calls back for each timer that is due, and the callback does
//!   what the kernel's callback of that timer did there. What the core did not find due, but
//!   the kernel did, is done after that.
//! - An event of its own restarts nothing, so the core is through with it in one pass.

use super::family::Family;
use super::lateness::Lateness;
use super::policy::{ReplayPolicy, SETTLES_AFTER};
use super::script::{Item, ItemKind, Op, Script, Start};
use super::world::World;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tickless_core::bases::expiry::{CallbackResult, Firing};
use tickless_core::bases::{Bases, Options, Settings};
use tickless_core::link::{QueueLink, WheelLink};
use tickless_core::owned::OwnedTimer;
use tickless_core::queues::wheel::PushOut;
use tickless_core::rearm::{DeviceCounts, Limits};
use tickless_core::time::{CpuId, Ns, Tick};

/// What came of a replay under one policy.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) policy: ReplayPolicy,
    /// Summed over all devices, from the first recorded event on.
    pub(super) device: DeviceCounts,
    pub(super) per_cpu: Vec<DeviceCounts>,
    /// Writes that are in neither: of operations without a record.
    pub(super) inferred_writes: u64,
    pub(super) expirations: u64,
    /// Timers that fired before the beginning of their window. Must stay 0.
    pub(super) early: u64,
    pub(super) late: Lateness,
}

/// A recorded interrupt this soon after a device was due is that device's event, if it is not
/// known what the interrupt was for: interrupts take some microseconds to begin, and longer
/// where a virtual CPU was not running.
const DELIVERY_MAX: Ns = Ns::from_ms(1);

/// Replays a script. O(n log n); a few microseconds per recorded event.
pub(super) fn run(script: &Script, cpus: u16, tick: Tick, policy: ReplayPolicy) -> Outcome {
    let (engine, before) = performed(script, cpus, tick, policy);
    engine.outcome(policy, &before)
}

/// The same, and which device was written when. Those writes are among them that operations
/// without a record make.
pub(super) fn writes(
    script: &Script,
    cpus: u16,
    tick: Tick,
    policy: ReplayPolicy,
) -> Vec<(Ns, CpuId)> {
    let (engine, _) = performed(script, cpus, tick, policy);
    engine.bases.platform().written()
}

/// An engine that has performed the script, and what devices were put through before it began.
fn performed(
    script: &Script,
    cpus: u16,
    tick: Tick,
    policy: ReplayPolicy,
) -> (Engine<'_>, Vec<DeviceCounts>) {
    let settings = policy.set(Settings {
        tick,
        push_out: PushOut::Eager,
        limits: Limits { passes: u32::MAX, ..Limits::NONE },
        wheel: script.wheel,
        ..Settings::default()
    });
    let world = World::new(cpus, script.begins);
    let bases = Arc::new(Bases::new(world, cpus, settings));
    let mut engine = Engine::new(script, bases, cpus);
    engine.defers = policy.defers();
    for start in &script.pending_at_start {
        engine.start(start, start.base);
        engine.seen.borrow_mut().guessed[start.timer as usize] = true;
    }
    let before = engine.devices();
    engine.bases.platform().forget_written();
    for &item in &script.items {
        engine.deliver_due(item.at);
        engine.perform(item);
    }
    engine.deliver_due(script.ends);
    (engine, before)
}

struct Engine<'s> {
    script: &'s Script,
    bases: Arc<Bases<World>>,
    timers: Vec<Timer>,
    /// For each CPU, the recorded interrupts still ahead, the next one last.
    interrupts: Vec<Vec<Item>>,
    seen: RefCell<Seen>,
    cpus: u16,
    /// Does the end of an interrupt leave the device alone?
    defers: bool,
    /// By CPU, when a device is to be programmed at the latest that was put off.
    settles: RefCell<Vec<Ns>>,
}

enum Timer {
    Wheel(OwnedTimer<World, WheelLink<AtomicU64>>),
    Queue(OwnedTimer<World, QueueLink>),
}

/// What callbacks note down.
struct Seen {
    early: u64,
    late: Lateness,
    /// By timer: armed for a moment that was guessed, so that its lateness says nothing.
    guessed: Vec<bool>,
    /// By CPU: what its device was put through without a record.
    unseen: Vec<DeviceCounts>,
}

/// What the kernel's callbacks did in one interrupt: by timer, for each time it expired, the
/// range of operations, the first last.
type Callbacks = HashMap<u32, Vec<Range<usize>>>;

impl<'s> Engine<'s> {
    fn new(script: &'s Script, bases: Arc<Bases<World>>, cpus: u16) -> Engine<'s> {
        let timer = |(number, family): (usize, &Family)| match family {
            Family::Wheel => Timer::Wheel(OwnedTimer::new(&bases, number as u32)),
            Family::Queue if script.slices[number] => {
                Timer::Queue(OwnedTimer::lazy(&bases, number as u32))
            }
            Family::Queue => Timer::Queue(OwnedTimer::new(&bases, number as u32)),
        };
        let timers: Vec<Timer> = script.families.iter().enumerate().map(timer).collect();
        let mut interrupts = vec![Vec::new(); usize::from(cpus)];
        for item in script.items.iter().rev().filter(|item| item.is_interrupt()) {
            interrupts[item.cpu.index()].push(*item);
        }
        let guessed = vec![false; timers.len()];
        let unseen = vec![DeviceCounts::default(); usize::from(cpus)];
        let seen = RefCell::new(Seen { early: 0, late: Lateness::new(), guessed, unseen });
        let settles = RefCell::new(vec![Ns::NEVER; usize::from(cpus)]);
        Engine { script, bases, timers, interrupts, seen, cpus, defers: false, settles }
    }

    fn perform(&mut self, item: Item) {
        self.bases.platform().go(item.at, item.cpu);
        if let ItemKind::Interrupt { now, .. } = item.kind {
            self.interrupts[item.cpu.index()].pop();
            self.bases.platform().go(now, item.cpu);
            self.handle(item);
        } else {
            for op in self.ops(item) {
                self.op(*op, item.cpu);
            }
        }
    }

    /// Programs the devices that were put off and are to be programmed by `until`.
    fn settle(&self, until: Ns) {
        if !self.defers {
            return;
        }
        for (cpu, settles) in (0..).map(CpuId).zip(self.settles.borrow_mut().iter_mut()) {
            if *settles <= until {
                self.bases.platform().go(*settles, cpu);
                self.bases.settle_device(cpu);
                *settles = Ns::NEVER;
            }
        }
    }

    /// Notes that an interrupt ends now which leaves its device to be programmed later.
    fn defer(&self, cpu: CpuId) {
        if self.defers {
            let now = tickless_core::platform::Platform::now(self.bases.platform());
            self.settles.borrow_mut()[cpu.index()] = now.after(SETTLES_AFTER);
        }
    }

    /// Delivers the events that are due before `until` and that no recorded interrupt is.
    fn deliver_due(&self, until: Ns) {
        self.settle(until);
        while let Some((due, cpu)) = self.bases.platform().next_event(until) {
            // It is the same interrupt for as long as the device is not told anything else.
            if self.is_recorded(due, cpu) {
                continue;
            }
            self.bases.platform().go(due, cpu);
            self.bases.platform().deliver(cpu);
            self.bases.expire(cpu, |firing| {
                self.note(firing);
                CallbackResult::Done
            });
            self.defer(cpu);
            self.settle(until);
        }
    }

    /// Is the event that is due here the next interrupt which the trace recorded there?
    ///
    /// The kernel had that interrupt for what it expired, and it was late by so much. Had its
    /// device been due here, that would have been late by as much, or as late as interrupts
    /// are: one interrupt, if that is past the expiry.
    fn is_recorded(&self, due: Ns, cpu: CpuId) -> bool {
        self.interrupts[cpu.index()].last().is_some_and(|item| match item.kind {
            ItemKind::Interrupt { due: Ns::NEVER, .. } => item.at <= due.after(DELIVERY_MAX),
            ItemKind::Interrupt { due: expiry, .. } => expiry <= due.after(item.at.since(expiry)),
            ItemKind::Operation => false,
        })
    }

    /// A recorded interrupt: the core fires what is due, and each callback does what the
    /// kernel's callback of that timer did in that interrupt.
    fn handle(&self, item: Item) {
        let mut ops: Vec<Option<Op>> = self.ops(item).iter().copied().map(Some).collect();
        let mut callbacks = callbacks(self.ops(item));
        self.bases.platform().deliver(item.cpu);
        self.bases.expire(item.cpu, |firing| {
            self.note(firing);
            let part = callbacks.get_mut(&firing.task).and_then(Vec::pop).unwrap_or_default();
            let mut result = CallbackResult::Done;
            for op in &mut ops[part] {
                match op.take() {
                    // The handler itself restarts what asks for it when its callback returns.
                    Some(Op::Start(place)) if self.timer(place) == firing.task => {
                        result = CallbackResult::Restart(self.script.starts[place as usize].window);
                    }
                    Some(Op::Cancel(timer)) if timer == firing.task => {
                        result = CallbackResult::Done
                    }
                    Some(op) => self.op(op, item.cpu),
                    None => {}
                }
            }
            result
        });
        self.defer(item.cpu);
        for op in ops.into_iter().flatten() {
            self.op(op, item.cpu);
        }
    }

    fn op(&self, op: Op, cpu: CpuId) {
        match op {
            Op::Start(place) => {
                let start = &self.script.starts[place as usize];
                self.start(start, cpu);
                self.seen.borrow_mut().guessed[start.timer as usize] = false;
            }
            Op::Cancel(timer) => self.cancel(timer),
            Op::Moved(place) => {
                let start = &self.script.starts[place as usize];
                self.unseen(start.base, || self.start(start, start.base));
                self.seen.borrow_mut().guessed[start.timer as usize] = true;
            }
            Op::Gone(timer) => self.unseen(cpu, || self.cancel(timer)),
            // Expiry is the core's own business.
            Op::Expire(_) => {}
        }
    }

    fn start(&self, start: &Start, cpu: CpuId) {
        let world = self.bases.platform();
        world.go(Ns::ZERO, cpu);
        let options =
            Options { pinned: Some(start.base), wakes: start.wakes, ..Options::default() };
        let now = tickless_core::platform::Platform::now(world);
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

    /// Does something that the trace has no record of: what it writes to the device of its CPU
    /// is not counted, since the trace does not count it either.
    fn unseen(&self, cpu: CpuId, change: impl FnOnce()) {
        let before = self.device(cpu);
        change();
        let unseen = &mut self.seen.borrow_mut().unseen[cpu.index()];
        *unseen = unseen.plus(self.device(cpu).since(before));
    }

    fn note(&self, firing: &Firing<World>) {
        let mut seen = self.seen.borrow_mut();
        let number = firing.task as usize;
        seen.early += u64::from(firing.now < firing.window.soft);
        if !std::mem::take(&mut seen.guessed[number]) {
            seen.late.record(self.script.families[number], firing.now.since(firing.window.hard));
        }
    }

    fn ops(&self, item: Item) -> &'s [Op] {
        let (from, to) = item.ops;
        &self.script.ops[from as usize..to as usize]
    }

    fn timer(&self, start: u32) -> u32 {
        self.script.starts[start as usize].timer
    }

    fn device(&self, cpu: CpuId) -> DeviceCounts {
        self.bases.view(cpu).map(|view| view.device).unwrap_or_default()
    }

    fn devices(&self) -> Vec<DeviceCounts> {
        (0..self.cpus).map(|cpu| self.device(CpuId(cpu))).collect()
    }

    fn outcome(self, policy: ReplayPolicy, before: &[DeviceCounts]) -> Outcome {
        let views = (0..self.cpus).filter_map(|cpu| self.bases.view(CpuId(cpu)));
        let expirations = views.map(|view| view.counts.fired).sum();
        let after = self.devices();
        let seen = self.seen.into_inner();
        let per_cpu: Vec<DeviceCounts> = (after.iter().zip(before).zip(&seen.unseen))
            .map(|((after, before), unseen)| after.since(*before).since(*unseen))
            .collect();
        let device = per_cpu.iter().fold(DeviceCounts::default(), |sum, cpu| sum.plus(*cpu));
        let inferred_writes = seen.unseen.iter().map(|unseen| unseen.writes).sum();
        let Seen { early, late, .. } = seen;
        Outcome { policy, device, per_cpu, inferred_writes, expirations, early, late }
    }
}

/// Which operations the kernel performed for each expiry: from the callback's beginning to the
/// next callback.
fn callbacks(ops: &[Op]) -> Callbacks {
    let mut callbacks = Callbacks::new();
    let mut to = ops.len();
    for (place, op) in ops.iter().enumerate().rev() {
        if let Op::Expire(timer) = op {
            callbacks.entry(*timer).or_default().push(place..to);
            to = place;
        }
    }
    callbacks
}
