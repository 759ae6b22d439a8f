//! The operations of a trace, for other replay engines: what was done to each timer, when, and on
//! which CPU, and what its callback did each time.
//!
//! Every timer has a home: the CPU on which it was armed first. An engine can perform the events of
//! some homes only, or shift each home in time. All events of a timer are at its home, in order of
//! time, so every timer is armed before it is cancelled. If an engine begins in the middle of a
//! trace, [`Streams::pending`] returns the timers that are pending there.

use super::script::{self, Inference, ItemKind, Op};
use crate::read::Trace;
use tickless_core::bases::WheelEvents;
use tickless_core::time::{CpuId, Ns, Tick};

pub use super::script::Start;
pub use crate::read::Family;

#[derive(Clone, Debug)]
pub struct Streams {
    pub cpus: u16,
    pub tick: Tick,
    pub wheel: WheelEvents,
    /// When the trace begins, on a clock on which ticks begin at multiples of the tick's length.
    pub begins: Ns,
    pub ends: Ns,
    /// The recorded writes to event devices; `None` if they were not recorded.
    pub recorded_writes: Option<u64>,
    /// For each CPU, the timers whose home it is: those that were first armed on it.
    pub homes: Vec<Vec<u32>>,
    pub lives: Vec<Vec<Event>>,
    pub families: Vec<Family>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    pub at: Ns,
    pub cpu: CpuId,
    pub timer: u32,
    pub what: What,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum What {
    Arm(Start),
    Cancel,
    /// The timer expired. If its callback armed the timer again, this is the new arming.
    Expire(Option<Start>),
    /// The timer was armed, or cancelled if `None`, but the trace has no record of that. So it is
    /// also unknown whether the operation wrote to an event device.
    Unseen(Option<Start>),
}

impl Streams {
    /// Converts a trace to operations on timers, and sorts them by the homes of the timers.
    pub fn of(trace: &Trace, inference: Inference) -> Streams {
        let script = script::writer(trace, inference).write(trace);
        let start_at = |place: u32| script.starts[place as usize];
        let mut events = Vec::new();
        for &start in &script.pending_at_start {
            let what = What::Unseen(Some(start));
            events.push(Event { at: script.begins, cpu: start.base, timer: start.timer, what });
        }
        for item in script.items.iter() {
            let at = match item.kind {
                ItemKind::Interrupt { now } => now,
                ItemKind::Operation => item.at,
            };
            let first = events.len();
            for &op in &script.ops[item.ops()] {
                let (timer, what) = match op {
                    Op::Start(place) => (start_at(place).timer, What::Arm(start_at(place))),
                    Op::InferredStart(place) => {
                        (start_at(place).timer, What::Unseen(Some(start_at(place))))
                    }
                    Op::Cancel(timer) => (timer, What::Cancel),
                    Op::InferredCancel(timer) => (timer, What::Unseen(None)),
                    Op::Expire(timer) => (timer, What::Expire(None)),
                    Op::Settle => continue,
                };
                // If a callback arms its own timer in its interrupt, that is part of the expiry.
                let mut same = events[first..].iter_mut().rev();
                let last: Option<&mut Event> = same.find(|event| event.timer == timer);
                match (last.map(|event| &mut event.what), what) {
                    (Some(What::Expire(again @ None)), What::Arm(arming)) => *again = Some(arming),
                    _ => events.push(Event { at, cpu: item.cpu, timer, what }),
                }
            }
        }
        events.sort_by_key(|event| event.at);
        let writes = trace.device_writes();
        let cpus = usize::from(trace.cpus);
        let mut streams = Streams {
            cpus: trace.cpus,
            tick: script::tick(trace),
            wheel: script.wheel,
            begins: script.begins,
            ends: script.ends,
            recorded_writes: (writes > 0).then_some(writes as u64),
            homes: vec![Vec::new(); cpus],
            lives: vec![Vec::new(); cpus],
            families: script.families,
        };
        streams.settle(&events);
        streams
    }

    /// Finds the home of each timer (the CPU on which it was first armed), with its events.
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
        for (timer, home) in (0..).zip(&home) {
            if let Some(home) = home {
                self.homes[home.index()].push(timer);
            }
        }
    }

    /// Returns the timers that are pending at `at`, each with its arming, in the order of their
    /// numbers: only those whose home (the CPU on which they were first armed) is `home`.
    pub fn pending(&self, home: CpuId, at: Ns) -> Vec<(u32, Start)> {
        let Some(life) = self.lives.get(home.index()) else { return Vec::new() };
        let mut pending = vec![None; self.families.len()];
        for event in life.iter().take_while(|event| event.at < at) {
            pending[event.timer as usize] = match event.what {
                What::Arm(arming) => Some(arming),
                What::Expire(arming) | What::Unseen(arming) => arming,
                What::Cancel => None,
            };
        }
        let timers = (0..).zip(pending);
        timers.filter_map(|(timer, arming)| Some((timer, arming?))).collect()
    }
}
