//! Performs a script (the timer operations of a trace) on the timer core, under one policy for
//! programming the event devices.
//!
//! - Time never goes back. Before each item of the script, the simulated devices deliver the events
//!   that are due by then. A device that is armed for a past time delivers its event now.
//! - An event of a simulated device is either a recorded interrupt, which is delivered when it
//!   occurred, or one that the kernel did not have; see [`Engine::is_recorded`].
//! - In an event that the kernel did not have, callbacks do nothing. In particular they restart no
//!   timer, so one pass over the timers that are due suffices.

use super::lateness::{Lateness, Quantiles};
use super::platform::ReplayPlatform;
use super::policy::ReplayPolicy;
use super::script::{Choice, Delivery, Item, ItemKind, Op, Script, Start, Turn, Turned, tick};
use crate::read::{Family, Trace};
use serde::Serialize;
use std::cell::RefCell;
use std::iter;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tickless_core::bases::firing::{CallbackResult, Firing};
use tickless_core::bases::{Bases, Options, Settings, WheelEvents};
use tickless_core::link::{QueueLink, WheelLink};
use tickless_core::owned::OwnedTimer;
use tickless_core::platform::Platform;
use tickless_core::queues::wheel::{PushOut, Wakes};
use tickless_core::rearm::{DeviceCounts, Limits};
use tickless_core::time::{CpuId, Ns, Tick, Window};

#[derive(Debug, Serialize)]
pub struct PolicyResult {
    pub policy: &'static str,
    pub device_writes: u64,
    /// Device writes of inferred operations (those without a record), not counted in
    /// `device_writes`.
    pub inferred_writes: u64,
    pub wakeups: u64,
    pub expirations: u64,
    pub spurious_wakeups: u64,
    /// Timers that fired before their earliest expiry. Must be 0.
    pub early: u64,
    pub lateness_ns: Quantiles,
    pub wheel_lateness_ns: Option<Quantiles>,
    pub queue_lateness_ns: Option<Quantiles>,
    /// Events of devices whose CPU was idle. Counted only with [`OtherTicks`].
    #[serde(skip)]
    pub(super) idle_wakeups: u64,
}

/// Ticks that the engine provides, for a script without the recorded ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct OtherTicks<'s> {
    pub(super) length: Tick,
    /// Whether a CPU stops its tick while it is idle for at least the length of a tick.
    pub(super) stop: bool,
    pub(super) turns: &'s [Turn],
}

/// What differs from the recording, beside the policy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changes<'s> {
    pub(super) ticks: Option<OtherTicks<'s>>,
    /// The slice timers of Linux 7.2, for a script without the recorded ones. Such a kernel does
    /// not queue a timer whose expiry has passed, and has no interrupt for it.
    pub(super) slices: Option<&'s [Choice]>,
}

/// A recorded interrupt of which the expired timers are unknown is taken for the event of a
/// simulated device that was due at most this long before. Interrupts take some microseconds to
/// begin, and longer if a virtual CPU did not run.
const DELIVERY_MAX: Ns = Ns::from_ms(1);

/// Replays a script. Between its operations, also delivers the events that only the simulated
/// devices cause, and that the kernel did not have.
pub(super) fn run(
    script: &Script,
    trace: &Trace,
    policy: ReplayPolicy,
    changes: Changes<'_>,
) -> PolicyResult {
    let ticks = changes.ticks;
    let settings = policy.set(Settings {
        tick: ticks.map_or_else(|| tick(trace), |ticks| ticks.length),
        push_out: PushOut::Eager,
        limits: Limits { passes: u32::MAX, ..Limits::NONE },
        // A CPU that has stopped its tick programs its device for the wheel. While the tick runs,
        // the next tick comes no later than the wheel's next bucket, so the wheel programs nothing.
        wheel: if ticks.is_some() { WheelEvents::Device } else { script.wheel },
        ..Settings::default()
    });
    let mut engine = Engine::new(script, trace.cpus, settings, changes);
    for start in &script.pending_at_start {
        engine.start(start, start.base);
        engine.seen.borrow_mut().guessed[start.timer as usize] = true;
    }
    (0..trace.cpus).map(CpuId).for_each(|cpu| engine.start_tick(cpu));
    let before = engine.devices();
    for item in script.items.iter() {
        engine.follow_idle(item.at);
        engine.follow_choices(item.at);
        engine.deliver_due(item.at);
        engine.perform(item);
    }
    engine.follow_idle(script.ends);
    engine.follow_choices(script.ends);
    engine.deliver_due(script.ends);
    engine.result(policy, &before)
}

struct Engine<'s> {
    script: &'s Script,
    bases: Arc<Bases<ReplayPlatform>>,
    timers: Vec<Timer>,
    /// For each CPU, its next recorded interrupt, and those after it.
    interrupts: Vec<Option<&'s Delivery>>,
    later: Vec<Box<dyn Iterator<Item = &'s Delivery> + 's>>,
    seen: RefCell<Seen>,
    /// The engine's own ticks. Their timers, one for each CPU, are numbered after the script's.
    ticks: Option<OtherTicks<'s>>,
    /// The engine's own slice timers, numbered like its own ticks: it has only one of both.
    slices: Option<&'s [Choice]>,
    /// For each CPU, how long the next task may run, if tasks wait.
    next_slice: Vec<Option<Ns>>,
    is_idle: Vec<bool>,
    /// The operations of an interrupt while it is performed: those that are still to come.
    handled: RefCell<Vec<Option<Op>>>,
}

enum Timer {
    Wheel(OwnedTimer<ReplayPlatform, WheelLink<AtomicU64>>),
    Queue(OwnedTimer<ReplayPlatform, QueueLink>),
}

/// What callbacks and inferred operations (those without a record) count during the replay.
#[derive(Default)]
struct Seen {
    early: u64,
    late: Lateness,
    /// For each timer, whether its expiry was guessed: then its lateness means nothing.
    guessed: Vec<bool>,
    /// For each CPU, its device's counts from inferred operations (those without a record).
    inferred: Vec<DeviceCounts>,
    idle_wakeups: u64,
    spurious_wakeups: u64,
    /// Whether a timer for which devices are programmed has fired in the current event.
    has_fired: bool,
}

impl<'s> Engine<'s> {
    /// Creates the timers of the script, and with `ticks` one more for each CPU: its tick.
    fn new(
        script: &'s Script,
        cpus: u16,
        settings: Settings,
        Changes { ticks, slices }: Changes<'s>,
    ) -> Engine<'s> {
        let platform = ReplayPlatform::new(cpus, script.begins);
        let bases = Arc::new(Bases::new(platform, cpus, settings));
        let timer = |(number, family): (usize, &Family)| match family {
            Family::Wheel => Timer::Wheel(OwnedTimer::new(&bases, number as u32)),
            Family::Queue if *script.slices.get(number).unwrap_or(&slices.is_some()) => {
                Timer::Queue(OwnedTimer::lazy(&bases, number as u32))
            }
            Family::Queue => Timer::Queue(OwnedTimer::new(&bases, number as u32)),
        };
        let cpus = usize::from(cpus);
        let own = if ticks.is_some() || slices.is_some() { cpus } else { 0 };
        let families = script.families.iter().chain(iter::repeat_n(&Family::Queue, own));
        let timers: Vec<Timer> = families.enumerate().map(timer).collect();
        let mut later: Vec<Box<dyn Iterator<Item = _>>> =
            script.interrupts.iter().map(|of_cpu| Box::new(of_cpu.iter()) as _).collect();
        let seen = RefCell::new(Seen {
            guessed: vec![false; timers.len()],
            inferred: vec![DeviceCounts::default(); cpus],
            ..Seen::default()
        });
        let (is_idle, next_slice) = (vec![false; cpus], vec![None; cpus]);
        Engine {
            script,
            bases,
            timers,
            interrupts: later.iter_mut().map(Iterator::next).collect(),
            later,
            seen,
            ticks,
            slices,
            next_slice,
            is_idle,
            handled: RefCell::default(),
        }
    }

    fn platform(&self) -> &ReplayPlatform {
        self.bases.platform()
    }

    /// Performs an operation, or an interrupt at the time at which its handler read the clock.
    fn perform(&mut self, item: &Item) {
        self.platform().go(item.at, item.cpu);
        if let ItemKind::Interrupt { now } = item.kind {
            self.interrupts[item.cpu.index()] = self.later[item.cpu.index()].next();
            self.platform().go(now, item.cpu);
        }
        let is_interrupt = matches!(item.kind, ItemKind::Interrupt { .. });
        if is_interrupt && (self.slices.is_none() || self.platform().is_due(item.cpu)) {
            self.handle(item);
        } else {
            for op in self.ops(item) {
                self.op(*op, item.cpu);
            }
        }
    }

    /// Follows which CPUs are idle until `until`, and stops and starts their ticks.
    fn follow_idle(&mut self, until: Ns) {
        while let Some(ticks) = &mut self.ticks
            && let Some((turn, rest)) = ticks.turns.split_first()
            && turn.at <= until
        {
            ticks.turns = rest;
            let stops = ticks.stop && turn.lasts >= Ns::from_duration(ticks.length.length());
            self.deliver_due(turn.at);
            self.platform().go(turn.at, turn.cpu);
            self.is_idle[turn.cpu.index()] = turn.to == Turned::Idle;
            match turn.to {
                Turned::Idle | Turned::Busy if !stops => {}
                // A gap has no ticks: nothing shows what the CPU did there.
                Turned::Idle | Turned::Unseen => self.cancel(self.own_timer(turn.cpu)),
                Turned::Busy | Turned::Seen => self.start_tick(turn.cpu),
            }
        }
    }

    /// Follows the scheduler's choices of tasks until `until`, and starts the slice timers.
    fn follow_choices(&mut self, until: Ns) {
        while let Some((&Choice { at, cpu, starts, next }, rest)) =
            self.slices.and_then(<[Choice]>::split_first)
            && at <= until
        {
            self.slices = Some(rest);
            self.deliver_due(at);
            self.platform().go(at, cpu);
            self.next_slice[cpu.index()] = next;
            if let Some(slice) = starts {
                let window = Window::at(self.platform().now().after(slice));
                let timer = self.own_timer(cpu);
                self.start(&Start { timer, window, base: cpu, wakes: Wakes::Yes }, cpu);
            }
        }
    }

    /// Starts the engine's own tick of a CPU, if it has one.
    fn start_tick(&self, cpu: CpuId) {
        if let Some(window) = self.next_tick() {
            let timer = self.own_timer(cpu);
            self.start(&Start { timer, window, base: cpu, wakes: Wakes::Yes }, cpu);
        }
    }

    fn own_timer(&self, cpu: CpuId) -> u32 {
        self.script.families.len() as u32 + u32::from(cpu.0)
    }

    fn next_tick(&self) -> Option<Window> {
        let length = self.ticks?.length;
        Some(Window::at(length.start(length.floor(self.platform().now()) + 1)))
    }

    /// Performs an interrupt, in which `callback` decides about each timer that fires. On an idle
    /// CPU it counts as a wakeup. It is spurious if it fires no timer for which devices are
    /// programmed: a wheel timer fires in the next event after the end of its tick, whatever the
    /// event is for.
    fn interrupt(
        &self,
        cpu: CpuId,
        callback: impl FnMut(&Firing<ReplayPlatform>) -> CallbackResult,
    ) {
        self.platform().deliver(cpu);
        self.seen.borrow_mut().has_fired = false;
        self.bases.expire(cpu, callback);
        let mut seen = self.seen.borrow_mut();
        seen.idle_wakeups += u64::from(self.is_idle[cpu.index()]);
        seen.spurious_wakeups += u64::from(!seen.has_fired);
    }

    /// Delivers the simulated devices' events due before `until`, except recorded interrupts.
    fn deliver_due(&self, until: Ns) {
        while let Some((due, cpu)) = self.platform().next_event(until) {
            // Skip this event: the recorded interrupt will deliver it, unless the device is
            // programmed again before that.
            if self.is_recorded(due, cpu) {
                continue;
            }
            self.platform().go(due, cpu);
            self.interrupt(cpu, |firing| self.fired(firing));
            self.bases.settle_device(cpu);
        }
    }

    /// Returns whether a simulated device's event, due at `due`, is the next recorded interrupt of
    /// its CPU.
    ///
    /// The recorded interrupt came with some delay after the earliest expiry that it handled. With
    /// the same delay, the simulated event would come at `due` plus the delay. If that time is not
    /// before the expiry, the simulated event would have handled the same timer, so both are one
    /// interrupt. If the expiry is not known, any delay up to [`DELIVERY_MAX`] is accepted. The
    /// engine's own ticks never wait longer than that for a recorded interrupt.
    fn is_recorded(&self, due: Ns, cpu: CpuId) -> bool {
        self.interrupts[cpu.index()].is_some_and(|&Delivery { at, due: expiry }| {
            let is_near = at <= due.after(DELIVERY_MAX);
            let is_same = expiry <= due.after(at.since(expiry));
            match expiry {
                Ns::NEVER => is_near,
                _ => is_same && (is_near || self.ticks.is_none()),
            }
        })
    }

    /// Performs a recorded interrupt: the core fires the timers that are due, and each callback
    /// repeats what the kernel's callback of that timer did in the interrupt.
    fn handle(&self, item: &Item) {
        let mut ops = self.handled.take();
        ops.extend(self.ops(item).iter().copied().map(Some));
        self.interrupt(item.cpu, |firing| {
            let mut result = self.fired(firing);
            // What the callback did is between its own beginning and that of the next one.
            let begins = |op: &Option<Op>| *op == Some(Op::Expire(firing.task));
            let from = ops.iter().position(begins).unwrap_or(ops.len());
            let is_next = |op: &Option<Op>| matches!(op, Some(Op::Expire(_)));
            let next = ops.iter().skip(from + 1).position(is_next);
            let to = next.map_or(ops.len(), |next| from + 1 + next);
            for op in &mut ops[from..to] {
                match op.take() {
                    // A callback that restarts its own timer returns the restart, and the core
                    // performs it.
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
        ops.drain(..).flatten().for_each(|op| self.op(op, item.cpu));
        self.handled.replace(ops);
    }

    /// Returns the operations of an item. Gives the memory back of those before it.
    fn ops(&self, item: &Item) -> &'s [Op] {
        item.ops().for_each(|place| self.script.ops.pass(place));
        &self.script.ops[item.ops()]
    }

    /// Performs an operation on a timer. Counts inferred operations separately, as guesses.
    fn op(&self, op: Op, cpu: CpuId) {
        match op {
            Op::Start(place) => {
                let start = self.script_start(place);
                if self.slices.is_some() && start.window.hard <= self.platform().now() {
                    return self.cancel(start.timer);
                }
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
            // Does nothing under a policy that programs the device in the interrupt.
            Op::Settle => self.bases.settle_device(cpu),
            // There is nothing to perform: the core expires timers itself.
            Op::Expire(_) => {}
        }
    }

    fn script_start(&self, place: u32) -> &'s Start {
        self.script.starts.pass(place as usize);
        &self.script.starts[place as usize]
    }

    /// Arms a timer on the base where the kernel armed it.
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

    /// Performs an inferred operation (one without a record). Counts its device writes separately,
    /// because the trace does not show them.
    fn inferred(&self, cpu: CpuId, operation: impl FnOnce()) {
        let before = self.bases.device_counts(cpu);
        operation();
        let inferred = &mut self.seen.borrow_mut().inferred[cpu.index()];
        *inferred = inferred.plus(self.bases.device_counts(cpu).since(before));
    }

    /// Counts a timer that fires. Returns a restart for the engine's own ticks, and `Done` for
    /// recorded timers, whose restarts the caller takes from the trace.
    fn fired(&self, firing: &Firing<ReplayPlatform>) -> CallbackResult {
        let mut seen = self.seen.borrow_mut();
        let number = firing.task as usize;
        let family = self.script.families.get(number).copied();
        seen.has_fired |= family != Some(Family::Wheel) || self.script.wheel == WheelEvents::Device;
        let Some(family) = family else {
            let cpu = number - self.script.families.len();
            // The next task runs: which one is not known, and does not matter here.
            let slice = self.next_slice[cpu].map(|slice| Window::at(firing.now.after(slice)));
            let next = self.next_tick().or(slice);
            return next.map_or(CallbackResult::Done, CallbackResult::Restart);
        };
        seen.early += u64::from(firing.now < firing.window.soft);
        if !std::mem::take(&mut seen.guessed[number]) {
            seen.late.record(family, firing.now.since(firing.window.hard));
        }
        CallbackResult::Done
    }

    fn devices(&self) -> Vec<DeviceCounts> {
        (0..).map(|cpu| self.bases.device_counts(CpuId(cpu))).take(self.interrupts.len()).collect()
    }

    /// Counts what the devices did since `before`, without what inferred operations caused.
    fn result(self, policy: ReplayPolicy, before: &[DeviceCounts]) -> PolicyResult {
        let after = self.devices();
        let views = (0..).map(CpuId).take(after.len()).filter_map(|cpu| self.bases.view(cpu));
        let expirations = views.map(|view| view.counts.fired).sum();
        let Seen { early, late, inferred, idle_wakeups, spurious_wakeups, .. } =
            self.seen.into_inner();
        let per_cpu = (after.iter().zip(before).zip(&inferred))
            .map(|((after, before), inferred)| after.since(*before).since(*inferred));
        let device = per_cpu.fold(DeviceCounts::default(), DeviceCounts::plus);
        PolicyResult {
            policy: policy.name(),
            device_writes: device.writes,
            inferred_writes: inferred.iter().map(|inferred| inferred.writes).sum(),
            wakeups: device.events,
            expirations,
            spurious_wakeups,
            early,
            lateness_ns: late.of_all().unwrap_or_default(),
            wheel_lateness_ns: late.of(Family::Wheel),
            queue_lateness_ns: late.of(Family::Queue),
            idle_wakeups,
        }
    }
}
