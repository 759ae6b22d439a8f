//! Measures how long it takes to cancel a timer on the caller's own base.

use crate::LabError;
use crate::measure::{self, Evictor, Stopwatch, joined};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
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
            // A cancel that waits is refused only in a callback, and no callback runs this.
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

    /// Returns the median time of a call with warm caches, in counts of the stopwatch.
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

    /// Returns the median time of a call after the caches were evicted, in stopwatch counts.
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rhythm {
    /// One thread, the owner, arms a single timer, and the other thread cancels it. The cancel gets
    /// every cache line, of the timer and of its base, from the cache of the owner's CPU.
    OneByOne,
    /// The owner arms a batch of timers, and the other thread cancels all of them. The cancels get
    /// each timer's cache line from the owner's CPU, but those of the base only once in a batch.
    InBatches,
}

const OWNER: u32 = 0;
const OTHER: u32 = 1;

/// Lets the two threads arm and cancel alternately, `turns` times. Returns the median time of a
/// cancel, in counts of the stopwatch.
pub fn cancel_across(
    watch: &Stopwatch,
    cpus: [usize; 2],
    finds: Finds,
    rhythm: Rhythm,
    turns: usize,
) -> Result<f64, LabError> {
    const WHO: &str = "that cancels";
    let batch = match rhythm {
        Rhythm::OneByOne => 1,
        Rhythm::InBatches => 64,
    };
    let timers = Timers::builder().start()?;
    let batch: Vec<Timeout> = (0..batch).map(|_| timers.timeout(|_| ())).collect();
    let turn = AtomicU32::new(OWNER);
    let counts = thread::scope(|scope| {
        let (batch, turn) = (&batch, &turn);
        let owner = scope.spawn(move || {
            measure::stay_on(cpus[0])?;
            for _ in 0..turns {
                set_up(batch, finds);
                hand_over(turn, OTHER);
                wait_for(turn, OWNER);
            }
            Ok(())
        });
        let other = scope.spawn(move || {
            let stays = measure::stay_on(cpus[1]);
            let mut counts = Vec::with_capacity(turns);
            for _ in 0..turns {
                wait_for(turn, OTHER);
                counts.push(watch.counts(|| {
                    batch.iter().filter(|timer| Call::Sync.make(timer).is_some()).count()
                }));
                hand_over(turn, OWNER);
            }
            stays.map(|()| counts)
        });
        joined(owner, WHO)?;
        joined(other, WHO)
    })?;
    Ok(median(counts) / batch.len() as f64)
}

/// Arms the timers far ahead, and cancels them again if the calls are to find them idle.
fn set_up(batch: &[Timeout], finds: Finds) {
    for timer in batch {
        // This fails only after a shut-down.
        let _ = timer.start(FAR);
        if finds == Finds::Idle {
            timer.cancel();
        }
    }
}

fn hand_over(turn: &AtomicU32, to: u32) {
    // Release: pairs with the Acquire in `wait_for`.
    turn.store(to, Ordering::Release);
}

/// Spins until it is this thread's turn. Yields at times: the other thread may need this CPU.
fn wait_for(turn: &AtomicU32, me: u32) {
    const SPINS: u32 = 500;
    let mut spins = 0;
    while turn.load(Ordering::Acquire) != me {
        spins += 1;
        if spins % SPINS == 0 {
            thread::yield_now();
        }
        spin_loop();
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

    #[test]
    fn turns_are_taken() {
        let watch = Stopwatch::calibrated();
        let cpus = measure::cpus();
        let cpus = [cpus[0], *cpus.last().unwrap()];
        for rhythm in [Rhythm::OneByOne, Rhythm::InBatches] {
            let counts = cancel_across(&watch, cpus, Finds::Pending, rhythm, 20).unwrap();
            assert!(counts > 0.0, "{rhythm:?}");
        }
    }
}
