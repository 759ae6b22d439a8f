//! Performs a script on the real core, under one policy.

use super::script::{Family, Item, Op, Script, Start};
use super::world::World;
use hdrhistogram::Histogram;
use std::cell::RefCell;
use std::sync::Arc;
use tickless_core::base::{Bases, Options, Settings, WheelEvents};
use tickless_core::expiry::{Firing, Verdict};
use tickless_core::link::{OwnedTimer, QueueLink, WheelLink};
use tickless_core::queue::Window;
use tickless_core::rearm::{DeviceCounts, Limits, Policy};
use tickless_core::tick::Tick;
use tickless_core::time::{CpuId, Ns};
use tickless_core::wheel::PushOut;

/// What came of a replay under one policy.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) policy: Policy,
    /// Summed over all devices, from the first recorded event on.
    pub(super) device: DeviceCounts,
    pub(super) per_cpu: Vec<DeviceCounts>,
    pub(super) expirations: u64,
    /// Timers that fired before the beginning of their window. Must stay 0.
    pub(super) early: u64,
    pub(super) late_wheel: Histogram<u64>,
    pub(super) late_queue: Histogram<u64>,
}

/// A recorded interrupt this soon after a device was due is that device's event, whatever it
/// expired: interrupts take some microseconds to begin, and longer where a virtual CPU was not
/// running.
const DELIVERY_MAX: Ns = Ns::from_ms(1);

/// Replays a script. O(n log n); a few microseconds per recorded event.
pub(super) fn run(script: &Script, cpus: u16, tick: Tick, policy: Policy) -> Outcome {
    let settings = Settings {
        tick,
        push_out: PushOut::Eager,
        policy,
        limits: Limits { passes: u32::MAX, ..Limits::NONE },
        wheel: WheelEvents::Tick,
    };
    let world = World::new(cpus, script.begins);
    let bases = Arc::new(Bases::new(world, cpus, settings));
    let mut engine = Engine::new(script, bases, cpus);
    for start in &script.pending_at_start {
        engine.start(start, start.base, script.begins);
    }
    let before = engine.devices();
    for place in 0..script.items.len() {
        engine.perform(place);
    }
    engine.outcome(policy, &before)
}

struct Engine<'s> {
    script: &'s Script,
    bases: Arc<Bases<World>>,
    timers: Vec<Timer>,
    /// For each CPU, the recorded interrupts still ahead, the next one last.
    interrupts: Vec<Vec<u32>>,
    seen: RefCell<Seen>,
    cpus: u16,
}

enum Timer {
    Wheel(OwnedTimer<World, WheelLink>),
    Queue(OwnedTimer<World, QueueLink>),
}

/// What callbacks note down.
struct Seen {
    early: u64,
    late_wheel: Histogram<u64>,
    late_queue: Histogram<u64>,
    /// By timer: armed before the recording began, for a moment that was guessed, so that its
    /// first lateness says nothing.
    guessed: Vec<bool>,
    /// By CPU: what its device was put through without a record.
    unseen: Vec<DeviceCounts>,
}

impl<'s> Engine<'s> {
    fn new(script: &'s Script, bases: Arc<Bases<World>>, cpus: u16) -> Engine<'s> {
        let timer = |(number, info): (usize, &super::script::TimerInfo)| match info.family {
            Family::Wheel => Timer::Wheel(OwnedTimer::new(&bases, number as u32)),
            Family::Queue => Timer::Queue(OwnedTimer::new(&bases, number as u32)),
        };
        let timers = script.timers.iter().enumerate().map(timer).collect();
        let mut interrupts = vec![Vec::new(); usize::from(cpus)];
        for (place, item) in script.items.iter().enumerate().rev() {
            if item.interrupt {
                interrupts[item.cpu.index()].push(place as u32);
            }
        }
        let mut guessed = vec![false; script.timers.len()];
        for start in &script.pending_at_start {
            guessed[start.timer as usize] = true;
        }
        let (late_wheel, late_queue) = (histogram(), histogram());
        let unseen = vec![DeviceCounts::default(); usize::from(cpus)];
        let seen = RefCell::new(Seen { early: 0, late_wheel, late_queue, guessed, unseen });
        Engine { script, bases, timers, interrupts, seen, cpus }
    }

    fn perform(&mut self, place: usize) {
        let item = self.script.items[place];
        self.deliver_due(item.at);
        self.bases.platform().go(item.at, item.cpu);
        if item.interrupt {
            self.interrupts[item.cpu.index()].pop();
            self.handle(item);
        } else {
            self.ops(item.ops, item.cpu, item.at);
        }
    }

    /// Delivers the events that are due before `until` and that no recorded interrupt is.
    fn deliver_due(&self, until: Ns) {
        let devices = (0..self.cpus).map(CpuId);
        let next = || {
            devices
                .clone()
                .map(|cpu| (self.bases.platform().armed(cpu), cpu))
                .filter(|&(due, cpu)| due < until && !self.is_recorded(due, cpu))
                .min()
        };
        while let Some((due, cpu)) = next() {
            self.bases.platform().go(due, cpu);
            self.bases.platform().deliver(cpu);
            self.bases.expire(cpu, |firing| {
                self.note(firing);
                Verdict::Done
            });
        }
    }

    /// Is the event that is due here the next interrupt which the trace recorded there?
    fn is_recorded(&self, due: Ns, cpu: CpuId) -> bool {
        self.interrupts[cpu.index()].last().is_some_and(|&place| {
            let item = self.script.items[place as usize];
            item.at <= due.after(DELIVERY_MAX) || item.due <= due
        })
    }

    /// A recorded interrupt: the core fires what is due, and each callback does what the
    /// kernel's callback of that timer did in that interrupt.
    fn handle(&self, item: Item) {
        let (from, to) = item.ops;
        let mut ops = self.script.ops[from as usize..to as usize].to_vec();
        self.bases.platform().deliver(item.cpu);
        self.bases.expire(item.cpu, |firing| {
            self.note(firing);
            let Some(part) = part_of(&ops, firing.task) else { return Verdict::Done };
            let mut verdict = Verdict::Done;
            for op in &mut ops[part.0..part.1] {
                match core::mem::replace(op, Op::Nothing) {
                    // The handler itself restarts what asks for it when its callback returns.
                    Op::Start(start) if start.timer == firing.task => {
                        verdict = Verdict::Restart(start.window);
                    }
                    op => self.op(&op, item.cpu, item.at),
                }
            }
            verdict
        });
        for op in ops {
            self.op(&op, item.cpu, item.at);
        }
    }

    fn ops(&self, (from, to): (u32, u32), cpu: CpuId, now: Ns) {
        for op in &self.script.ops[from as usize..to as usize] {
            self.op(op, cpu, now);
        }
    }

    fn op(&self, op: &Op, cpu: CpuId, now: Ns) {
        match op {
            Op::Start(start) => self.start(start, cpu, now),
            Op::Cancel(timer) => {
                match &self.timers[*timer as usize] {
                    Timer::Wheel(timer) => timer.cancel(),
                    Timer::Queue(timer) => timer.cancel(),
                };
            }
            Op::Moved(start) => {
                let before = self.devices();
                self.start(start, cpu, now);
                let mut seen = self.seen.borrow_mut();
                seen.guessed[start.timer as usize] = true;
                for (unseen, (after, before)) in
                    seen.unseen.iter_mut().zip(self.devices().iter().zip(&before))
                {
                    *unseen = unseen.plus(after.since(*before));
                }
            }
            // Expiry is the core's own business.
            Op::Expire(_) | Op::Nothing => {}
        }
    }

    fn start(&self, start: &Start, cpu: CpuId, now: Ns) {
        self.bases.platform().go(now, cpu);
        let options =
            Options { pinned: Some(start.base), wakes: start.wakes, ..Options::default() };
        let started = match &self.timers[start.timer as usize] {
            Timer::Wheel(timer) => timer.start(start.window, now, options),
            Timer::Queue(timer) => timer.start(start.window, now, options),
        };
        debug_assert!(started.is_ok(), "every base of the trace exists");
    }

    fn note(&self, firing: &Firing<World>) {
        let mut seen = self.seen.borrow_mut();
        let number = firing.task as usize;
        let Window { soft, hard } = firing.window;
        seen.early += u64::from(firing.now < soft);
        if std::mem::take(&mut seen.guessed[number]) {
            return;
        }
        let late = firing.now.since(hard).0;
        match self.script.timers[number].family {
            Family::Wheel => seen.late_wheel.saturating_record(late),
            Family::Queue => seen.late_queue.saturating_record(late),
        }
    }

    fn devices(&self) -> Vec<DeviceCounts> {
        let view = |cpu| self.bases.view(CpuId(cpu)).map(|view| view.device);
        (0..self.cpus).filter_map(view).collect()
    }

    fn outcome(self, policy: Policy, before: &[DeviceCounts]) -> Outcome {
        let views = (0..self.cpus).filter_map(|cpu| self.bases.view(CpuId(cpu)));
        let expirations = views.map(|view| view.counts.fired).sum();
        let after = self.devices();
        let seen = self.seen.into_inner();
        let per_cpu: Vec<DeviceCounts> = (after.iter().zip(before).zip(&seen.unseen))
            .map(|((after, before), unseen)| after.since(*before).since(*unseen))
            .collect();
        let device = per_cpu.iter().fold(DeviceCounts::default(), |sum, cpu| sum.plus(*cpu));
        Outcome {
            policy,
            device,
            per_cpu,
            expirations,
            early: seen.early,
            late_wheel: seen.late_wheel,
            late_queue: seen.late_queue,
        }
    }
}

/// Which operations the kernel performed for a timer's expiry: from its callback's beginning to
/// the next callback.
fn part_of(ops: &[Op], timer: u32) -> Option<(usize, usize)> {
    let from = ops.iter().position(|op| matches!(op, Op::Expire(t) if *t == timer))?;
    let next = ops[from + 1..].iter().position(|op| matches!(op, Op::Expire(_)));
    Some((from, next.map_or(ops.len(), |next| from + 1 + next)))
}

/// From 1 ns to 18 minutes, to three digits.
fn histogram() -> Histogram<u64> {
    const HIGHEST: u64 = 1 << 40;
    Histogram::new_with_max(HIGHEST, 3).unwrap_or_else(|_| unreachable!("valid bounds"))
}
