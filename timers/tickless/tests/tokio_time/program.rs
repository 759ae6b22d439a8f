//! Random programs of timers, for `programs` to run on tokio's timers and on ours.

use crate::histories::Rng;
use std::sync::Arc;
use std::time::Duration;

/// One step of a task.
#[derive(Debug)]
pub enum Step {
    Sleep(Duration),
    /// Until this long after the program's beginning.
    SleepUntil(Duration),
    /// A sleep that is polled, and reset after a while to end that much later.
    Reset(Duration, Duration, Duration),
    Timeout(Duration, Program),
    /// Until this long after the program's beginning.
    TimeoutAt(Duration, Program),
    /// Ticks of an interval, with a pause after each, and a reset after the second.
    Ticks {
        start: Duration,
        period: Duration,
        behavior: usize,
        pauses: Vec<Duration>,
        reset: u64,
    },
    /// Runs both until one of them ends.
    Select(Program, Program),
    /// Joined at the end of the task.
    Spawn(Program),
    Advance(Duration),
    Yield,
}

pub type Program = Arc<[Step]>;

/// What a program can do, and how exact its durations are.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub unit: Duration,
    pub units_max: u64,
    pub advances: bool,
    /// Whether pending timers are reset.
    pub resets: bool,
    pub yields: bool,
}

impl Kind {
    pub fn program(self, random: &mut Rng, depth: u64) -> Program {
        let steps = 1 + random.below(4);
        (0..steps).map(|_| self.step(random, depth)).collect()
    }

    fn step(self, random: &mut Rng, depth: u64) -> Step {
        let inner = |random: &mut Rng| self.program(random, depth - 1);
        match random.below(if depth == 0 { 6 } else { 11 }) {
            0 => Step::Sleep(self.duration(random)),
            1 => Step::SleepUntil(self.duration(random) * 2),
            2 if self.resets => {
                Step::Reset(self.some(random), self.duration(random), self.some(random))
            }
            3 if self.advances => Step::Advance(self.duration(random)),
            4 => Step::Ticks {
                start: self.duration(random),
                period: self.some(random).max(Duration::from_millis(5)),
                behavior: random.below(3) as usize,
                pauses: (0..random.below(6)).map(|_| self.duration(random)).collect(),
                reset: if self.resets { random.below(8) } else { u64::MAX },
            },
            2 | 3 | 5 if self.yields => Step::Yield,
            2 | 3 | 5 => Step::Sleep(self.some(random)),
            6 => Step::TimeoutAt(self.duration(random) * 2, inner(random)),
            7 => Step::Timeout(self.duration(random), inner(random)),
            8 => Step::Select(inner(random), inner(random)),
            _ => Step::Spawn(inner(random)),
        }
    }

    /// Short durations are as frequent as long ones.
    fn duration(self, random: &mut Rng) -> Duration {
        let end = 1 + random.below(self.units_max);
        self.unit * random.below(end) as u32
    }

    /// A duration that is not zero.
    fn some(self, random: &mut Rng) -> Duration {
        self.duration(random) + self.unit
    }
}
