//! What the models of the clocks share: words and threads under loom, and a device whose readings
//! loom may order anywhere.

use crate::word::word;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use tickless_core::clock::combined::{Combined, Patience};
use tickless_core::clock::counter::Counter;
use tickless_core::word::{Ordering, Word};

#[derive(Debug)]
pub struct Watched(AtomicU64);

impl Watched {
    fn turn(&self) -> &AtomicU64 {
        &self.0
    }
}

word!(Watched, |value| Watched(AtomicU64::new(value)));

pub type Yield = fn(u32);

/// Loom would let two waiters take turns for ever while the third thread does not run, and reports
/// a model without end. So a schedule in which a thread has waited this long is abandoned: in
/// another one the third thread runs earlier.
const ROUNDS_MAX: u32 = 3;

struct Abandoned;

pub fn relax(round: u32) {
    if round >= ROUNDS_MAX {
        resume_unwind(Box::new(Abandoned));
    }
    thread::yield_now();
}

/// A round of waiting between two threads. Loom reports a thread that waits for ever.
pub fn relax_for_ever(_round: u32) {
    thread::yield_now();
}

/// Explores a body with so many preemptions if models are deep, and with two at most otherwise.
pub fn explore(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let is_deep = std::env::var("TICKLESS_MODELS").is_ok_and(|depth| depth == "deep");
    let preemptions = if is_deep { preemptions } else { preemptions.min(2) };
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(preemptions));
    model.check(body);
}

pub fn run_all(bodies: Vec<Box<dyn FnOnce() + Send>>) {
    let until_abandoned = |body: Box<dyn FnOnce() + Send>| {
        let Err(payload) = catch_unwind(AssertUnwindSafe(body)) else {
            return;
        };
        if !payload.is::<Abandoned>() {
            resume_unwind(payload);
        }
    };
    let threads: Vec<_> =
        bodies.into_iter().map(|body| thread::spawn(move || until_abandoned(body))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A counter of its own readings. The model defines the value of the nth reading.
pub struct Device {
    bits: u32,
    shows: Box<dyn Fn(u64) -> u64 + Send + Sync>,
    order: Ordering,
    readings: AtomicU64,
    done: [AtomicU64; 16],
}

impl Device {
    /// Makes a device whose readings are ordered with all other events, as those of a real device:
    /// otherwise "before the call" would have no meaning in a model.
    pub fn new(bits: u32, shows: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Device {
        let (shows, readings) = (Box::new(shows), AtomicU64::new(0));
        let done = std::array::from_fn(|_| AtomicU64::new(0));
        Device { bits, shows, order: Ordering::AcqRel, readings, done }
    }

    /// Makes a device that orders nothing, so that only the words order its readers.
    pub fn unordered(bits: u32, shows: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Device {
        Device { order: Ordering::Relaxed, ..Device::new(bits, shows) }
    }

    /// Returns the number of readings. By a read-modify-write, which returns the last value.
    pub fn readings(&self) -> u64 {
        self.readings.fetch_add(0, Ordering::SeqCst)
    }

    pub fn is_done(&self, reading: u64) -> bool {
        self.done[reading as usize].load(Ordering::Relaxed) == 1
    }
}

impl Counter for Device {
    fn read(&self) -> u64 {
        // Only for a device that orders nothing, because it adds to the schedules.
        let reading = self.readings.fetch_add(1, self.order) + 1;
        if self.order == Ordering::Relaxed {
            self.done[reading as usize].store(1, Ordering::Relaxed);
        }
        (self.shows)(reading)
    }

    fn bits(&self) -> u32 {
        self.bits
    }
}

pub type Shared = Arc<Combined<Watched, Device, Yield>>;

pub fn shared(device: Device, patience: Patience) -> Shared {
    Arc::new(Combined::new(device, relax as Yield).with_patience(patience))
}

/// Makes a combined counter for two readers, of which one may wait for the other for ever.
pub fn shared_by_two(device: Device) -> Shared {
    Arc::new(Combined::new(device, relax_for_ever as Yield))
}

#[derive(Clone, Default)]
pub struct Sometimes(Arc<std::sync::atomic::AtomicBool>);

impl Sometimes {
    pub fn saw(&self, it_is_so: bool) {
        self.0.fetch_or(it_is_so, Ordering::Relaxed);
    }

    pub fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

pub fn reader(
    counter: &Shared,
    reads: usize,
    check: impl Fn(&Shared, u64, u64) + Send + 'static,
) -> Box<dyn FnOnce() + Send> {
    let counter = Arc::clone(counter);
    Box::new(move || {
        let mut last = 0;
        for _ in 0..reads {
            let readings_before = counter.counter().readings();
            let value = counter.read();
            assert!(value >= last, "C8: {value} after {last}");
            last = value;
            check(&counter, readings_before, value);
        }
    })
}
