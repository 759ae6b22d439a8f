//! A trace's operations for others to perform: what was done to each timer, when, and on which
//! CPU, and what its callback did each time.
//!
//! Every timer has a home: the CPU on which it was armed first. Its life is in order of time, so
//! that whoever performs some CPUs' lives, moved in time, has every timer armed before it is
//! cancelled, and knows which were pending when they began ([`Streams::pending`]).

use super::family::Family as ScriptFamily;
use super::script::{self, Inference, ItemKind, Op, Start};
use crate::read::Trace;
use tickless_core::bases::WheelEvents;
use tickless_core::queues::wheel::Wakes;
use tickless_core::time::{CpuId, Ns, Tick, Window};

/// The operations of a trace.
#[derive(Clone, Debug)]
pub struct Streams {
    /// How many CPUs the trace has.
    pub cpus: u16,
    /// From one tick of its kernel to the next.
    pub tick: Tick,
    /// Who advances the wheel.
    pub wheel: WheelEvents,
    /// When it begins, on a clock on which ticks are multiples of the period.
    pub begins: Ns,
    /// When it ends.
    pub ends: Ns,
    /// Writes to event devices that the trace recorded; `None` if it did not record them.
    pub recorded_writes: Option<u64>,
    /// By CPU: the timers that are at home there.
    pub homes: Vec<Vec<u32>>,
    /// By CPU: what happened to the timers that are at home there, in order of time.
    pub lives: Vec<Vec<Event>>,
    /// By timer.
    pub families: Vec<Family>,
}

/// What holds a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// The wheel.
    Coarse,
    /// The ordered queue.
    Precise,
}

/// Something that happened to a timer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    /// When.
    pub at: Ns,
    /// On which CPU.
    pub cpu: CpuId,
    /// To which.
    pub timer: u32,
    /// What.
    pub what: What,
}

/// What happened to a timer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum What {
    /// It was armed.
    Arm(Arming),
    /// It was cancelled.
    Cancel,
    /// It expired, and its callback armed it again or not.
    Expire(Option<Arming>),
    /// It was armed, or cancelled if there is none, without a record; what that wrote to a device
    /// is not in the record either.
    Unseen(Option<Arming>),
}

/// An arming.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arming {
    /// When it may fire, and should have.
    pub window: Window,
    /// The CPU on which it is to fire.
    pub base: CpuId,
    /// Does it keep a CPU awake?
    pub wakes: Wakes,
}

impl Streams {
    /// The operations of a trace. O(n log n).
    pub fn of(trace: &Trace, inference: Inference) -> Streams {
        let script = script::write(trace, inference);
        let writes = trace.device_writes().count();
        let cpus = usize::from(trace.cpus);
        let mut streams = Streams {
            cpus: trace.cpus,
            tick: trace
                .hz
                .and_then(|hz| Tick::new(hz.tick().to_duration()).ok())
                .unwrap_or_default(),
            wheel: script.wheel,
            begins: script.begins,
            ends: script.ends,
            recorded_writes: (writes > 0).then_some(writes as u64),
            homes: vec![Vec::new(); cpus],
            lives: vec![Vec::new(); cpus],
            families: script.families.iter().map(family).collect(),
        };
        let mut events = Vec::new();
        for start in &script.pending_at_start {
            let what = What::Unseen(Some(arming(start)));
            events.push(Event { at: script.begins, cpu: start.base, timer: start.timer, what });
        }
        for item in &script.items {
            let ops = &script.ops[item.ops.0 as usize..item.ops.1 as usize];
            let at = match item.kind {
                ItemKind::Interrupt { now, .. } => now,
                ItemKind::Operation => item.at,
            };
            let first = events.len();
            for &op in ops {
                let (timer, what) = match op {
                    Op::Start(place) => {
                        let start = &script.starts[place as usize];
                        (start.timer, What::Arm(arming(start)))
                    }
                    Op::Moved(place) => {
                        let start = &script.starts[place as usize];
                        (start.timer, What::Unseen(Some(arming(start))))
                    }
                    Op::Cancel(timer) => (timer, What::Cancel),
                    Op::Gone(timer) => (timer, What::Unseen(None)),
                    Op::Expire(timer) => (timer, What::Expire(None)),
                };
                // A restart by the callback itself, in the same interrupt, is its verdict.
                let mut same = events[first..].iter_mut().rev();
                let last: Option<&mut Event> = same.find(|event| event.timer == timer);
                match (last.map(|event| &mut event.what), what) {
                    (Some(What::Expire(again @ None)), What::Arm(arming)) => *again = Some(arming),
                    _ => events.push(Event { at, cpu: item.cpu, timer, what }),
                }
            }
        }
        events.sort_by_key(|event| event.at);
        streams.settle(&events);
        streams
    }

    /// Finds each timer's home, and puts its life there.
    fn settle(&mut self, events: &[Event]) {
        let mut home: Vec<Option<CpuId>> = vec![None; self.families.len()];
        for event in events {
            let at = *home[event.timer as usize].get_or_insert_with(|| {
                let first = match event.what {
                    What::Arm(arming) | What::Unseen(Some(arming)) => arming.base,
                    _ => event.cpu,
                };
                CpuId(first.0.min(self.cpus.saturating_sub(1)))
            });
            self.lives[at.index()].push(*event);
        }
        for (timer, home) in home.iter().enumerate() {
            if let Some(home) = home {
                self.homes[home.index()].push(timer as u32);
            }
        }
    }

    /// The timers at home on a CPU that are pending at this moment, each with its arming, in order
    /// of their numbers.
    pub fn pending(&self, home: CpuId, at: Ns) -> Vec<(u32, Arming)> {
        let Some(life) = self.lives.get(home.index()) else { return Vec::new() };
        let mut pending = vec![None; self.families.len()];
        for event in life.iter().take_while(|event| event.at < at) {
            pending[event.timer as usize] = match event.what {
                What::Arm(arming) | What::Expire(Some(arming)) | What::Unseen(Some(arming)) => {
                    Some(arming)
                }
                What::Cancel | What::Expire(None) | What::Unseen(None) => None,
            };
        }
        let timers = (0..).zip(pending);
        timers.filter_map(|(timer, arming)| Some((timer, arming?))).collect()
    }
}

fn family(family: &ScriptFamily) -> Family {
    match family {
        ScriptFamily::Wheel => Family::Coarse,
        ScriptFamily::Queue => Family::Precise,
    }
}

fn arming(start: &Start) -> Arming {
    Arming { window: start.window, base: start.base, wakes: start.wakes }
}
