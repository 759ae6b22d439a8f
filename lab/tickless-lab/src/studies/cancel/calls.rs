//! Measures how long it takes to cancel a timer on the caller's own base.

use crate::error::LabError;
use crate::measure::{self, Evictor, Spread, Stopwatch, joined};
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
            // A cancel that waits is refused only in a callback, and this code does not run in one.
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
pub const BATCH: usize = 64;

/// The measured timers: an instance of the library with a given number of timer bases, and a batch
/// of its timers.
pub struct Subject {
    _timers: Timers,
    batch: Vec<Timeout>,
}

impl Subject {
    /// Starts the timers. Waits 10 ms, in which the driver threads that the timers use start and
    /// fall asleep: a thread that starts later would disturb the measurement.
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
            watch.counts(all) as f64
        };
        // Warms the caches and the branch predictor.
        for at in 0..5 {
            one_batch(at);
        }
        Spread::of((0..batches).map(one_batch)).median / BATCH as f64
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
            watch.counts(|| call.make(timer)) as f64
        };
        Spread::of((0..calls).map(one_call)).median
    }
}

const OWNER: u32 = 0;
const OTHER: u32 = 1;

/// Lets one thread, the owner, arm `batch` timers and a second thread cancel them, `turns` times.
/// Returns the median time of a cancel, in counts of the stopwatch. Each cancel gets its timer's
/// cache line from the owner's CPU. The lines of the timer base come from there once in a batch.
pub fn cancel_across(
    watch: &Stopwatch,
    cpus: [usize; 2],
    finds: Finds,
    batch: usize,
    turns: usize,
) -> Result<f64, LabError> {
    const WHO: &str = "that cancels";
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
                }) as f64);
                hand_over(turn, OWNER);
            }
            stays.map(|()| counts)
        });
        joined(owner, WHO)?;
        joined(other, WHO)
    })?;
    Ok(Spread::of(counts).median / batch.len() as f64)
}

/// Arms the timers far ahead. If the measured calls should find idle timers, cancels them again.
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

/// Spins until it is this thread's turn. Yields at times, in case the other thread needs this CPU.
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
    fn turns_are_taken() {
        let watch = Stopwatch::calibrated();
        let cpus = measure::cpus();
        let cpus = [cpus[0], *cpus.last().unwrap()];
        for batch in [1, BATCH] {
            let counts = cancel_across(&watch, cpus, Finds::Pending, batch, 20).unwrap();
            assert!(counts > 0.0, "{batch}");
        }
    }
}
