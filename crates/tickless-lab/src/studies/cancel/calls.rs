//! Measures how long it takes to cancel a timer on the caller's own base.

use crate::LabError;
use crate::measure::{Evictor, Stopwatch};
use std::thread;
use std::time::Duration;
use tickless::callback::Cancel;
use tickless::policy::Scan;
use tickless::{Timeout, Timers};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    Plain,
    Sync,
    /// A cancel that waits for the callback, for timers that do not arm themselves again.
    SingleShot,
}

impl Call {
    /// Cancels `timer` with this kind of call. Returns `None` if the call is refused.
    #[inline]
    pub fn make(self, timer: &Timeout) -> Option<Cancel> {
        match self {
            Call::Plain => Some(timer.cancel()),
            // A cancel that waits is refused only inside a callback, and no callback runs this
            // code.
            Call::Sync => timer.cancel_sync().ok(),
            Call::SingleShot => timer.cancel_single_shot().ok(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finds {
    Pending,
    /// An idle timer: it was armed and cancelled before the call.
    Idle,
}

/// Timers are armed this far ahead, so that none of them fires.
const FAR: Duration = Duration::from_secs(3_600);
/// The number of warm calls that are timed together, so that the stopwatch's cost is negligible.
const BATCH: usize = 64;

/// The measured timers: an instance of the library with a given number of timer bases, and a batch
/// of its timers.
pub struct Subject {
    _timers: Timers,
    batch: Vec<Timeout>,
}

impl Subject {
    /// Starts the timers. Returns when the driver threads of the bases that the timers use are
    /// asleep, because a thread that starts would disturb the measurement.
    pub fn start(bases: u16, scan: Scan) -> Result<Subject, LabError> {
        let timers = Timers::builder().bases(bases).scan(scan).start()?;
        let batch: Vec<Timeout> = (0..BATCH).map(|_| timers.timeout(|_| ())).collect();
        let subject = Subject { _timers: timers, batch };
        // Arm and cancel every timer once before the measurement, so that each timer has a base. A
        // base's driver thread starts when the first of its timers is armed.
        set_up(&subject.batch, Finds::Idle);
        thread::park_timeout(Duration::from_millis(10));
        Ok(subject)
    }

    pub fn warm(&self, watch: &Stopwatch, call: Call, finds: Finds, batches: usize) -> f64 {
        let one_batch = |_: usize| {
            set_up(&self.batch, finds);
            let all = || self.batch.iter().filter(|timer| call.make(timer).is_some()).count();
            watch.counts(all)
        };
        // Warms the caches and the branch predictor.
        for at in 0..5 {
            one_batch(at);
        }
        median((0..batches).map(one_batch).collect()) / BATCH as f64
    }

    pub fn cold(
        &self,
        watch: &Stopwatch,
        evictor: &mut Evictor,
        call: Call,
        finds: Finds,
        calls: usize,
    ) -> f64 {
        let one_call = |at: usize| {
            set_up(&self.batch, finds);
            let timer = &self.batch[at % BATCH];
            evictor.evict();
            watch.counts(|| call.make(timer))
        };
        median((0..calls).map(one_call).collect())
    }
}

pub fn median(mut counts: Vec<u64>) -> f64 {
    counts.sort_unstable();
    counts.get(counts.len() / 2).map_or(0.0, |&count| count as f64)
}

fn set_up(batch: &[Timeout], finds: Finds) {
    for timer in batch {
        // This fails only after a shut-down.
        let _ = timer.start(FAR);
        if finds == Finds::Idle {
            timer.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_find_what_was_set_up() {
        let subject = Subject::start(3, Scan::AllBases).unwrap();
        for call in [Call::Plain, Call::Sync, Call::SingleShot] {
            for (finds, want) in [(Finds::Pending, Cancel::Pending), (Finds::Idle, Cancel::Idle)] {
                set_up(&subject.batch, finds);
                assert!(subject.batch.iter().all(|timer| call.make(timer) == Some(want)));
            }
        }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![9, 1, 5]), 5.0);
        assert_eq!(median(vec![]), 0.0);
    }
}
