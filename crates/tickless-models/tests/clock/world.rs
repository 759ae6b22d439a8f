//! The little that a clock needs of a world, as loom has it: words, threads, and a device whose
//! every reading is an event that loom may put anywhere.

use loom::sync::atomic::AtomicU64;
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use tickless_core::clock::combined::{Combined, Patience};
use tickless_core::clock::counter::{Counter, Hertz, Rating, Width};
use tickless_core::word::{Ordering, Word};

/// An atomic word that loom watches.
#[derive(Debug)]
pub struct Watched(AtomicU64);

impl Word for Watched {
    fn new(value: u64) -> Self {
        Watched(AtomicU64::new(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, success, failure)
    }
}

/// How a thread waits in a model: it lets others go on.
pub type Yield = fn(u32);

/// Loom would let two waiters take turns for ever while the one that they wait for stands by,
/// and calls that a model without end. So a schedule in which somebody has waited this long is
/// not followed any further: another one lets the third thread go on earlier.
const ROUNDS_MAX: u32 = 3;

/// A thread that was not followed any further.
struct Cut;

pub fn relax(round: u32) {
    if round >= ROUNDS_MAX {
        resume_unwind(Box::new(Cut));
    }
    thread::yield_now();
}

/// The same for two threads, where whoever waits for ever is stuck, and loom says so.
pub fn relax_for_ever(_round: u32) {
    thread::yield_now();
}

/// Explores a body with so many preemptions per schedule, if the models are to be deep
/// (`TICKLESS_MODELS=deep`), and with two at most if not.
pub fn explore(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let is_deep = std::env::var("TICKLESS_MODELS").is_ok_and(|depth| depth == "deep");
    let preemptions = if is_deep { preemptions } else { preemptions.min(2) };
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(preemptions));
    model.check(body);
}

/// Runs all of these at once and waits for them.
pub fn run_all(bodies: Vec<Box<dyn FnOnce() + Send>>) {
    let to_its_end = |body: Box<dyn FnOnce() + Send>| {
        let Err(payload) = catch_unwind(AssertUnwindSafe(body)) else {
            return;
        };
        if !payload.is::<Cut>() {
            resume_unwind(payload);
        }
    };
    let threads: Vec<_> =
        bodies.into_iter().map(|body| thread::spawn(move || to_its_end(body))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A counter that goes up by one with every reading, so that readings are told apart and time
/// passes only by reading; what it shows for its nth reading is up to the model.
#[derive(Debug)]
pub struct Device {
    width: Width,
    shows: fn(u64) -> u64,
    order: Ordering,
    readings: AtomicU64,
    /// What was done before the nth reading returned.
    done: [AtomicU64; 16],
}

impl Device {
    /// A device whose readings are events in the order of everything else, as those of a real
    /// one are: without that "before the call" means nothing to a model.
    pub fn new(width: Width, shows: fn(u64) -> u64) -> Device {
        let done = std::array::from_fn(|_| AtomicU64::new(0));
        Device { width, shows, order: Ordering::AcqRel, readings: AtomicU64::new(0), done }
    }

    /// A device that orders nothing: what its users see of each other they see by the words.
    pub fn unordered(width: Width, shows: fn(u64) -> u64) -> Device {
        Device { order: Ordering::Relaxed, ..Device::new(width, shows) }
    }

    /// How many readings there were. A read-modify-write, since it alone sees the last of them.
    pub fn readings(&self) -> u64 {
        self.readings.fetch_add(0, Ordering::SeqCst)
    }

    /// Is what was done before the nth reading to be seen by the caller?
    pub fn is_done(&self, reading: u64) -> bool {
        self.done[reading as usize].load(Ordering::Relaxed) == 1
    }
}

impl Counter for Device {
    fn read(&self) -> u64 {
        // Only where it orders nothing, since it is one more thing to explore.
        let reading = self.readings.fetch_add(1, self.order) + 1;
        if self.order == Ordering::Relaxed {
            self.done[reading as usize].store(1, Ordering::Relaxed);
        }
        (self.shows)(reading)
    }

    fn width(&self) -> Width {
        self.width
    }

    fn frequency(&self) -> Hertz {
        Hertz::NANOSECONDS
    }

    fn rating(&self) -> Rating {
        Rating::SLOW
    }

    fn name(&self) -> &str {
        "model"
    }
}

/// A device whose reads are combined.
pub type Shared = Arc<Combined<Watched, Device, Yield>>;

pub fn shared(device: Device, patience: Patience) -> Shared {
    Arc::new(Combined::new(device, relax as Yield).with_patience(patience))
}

/// The same for two readers, of whom one may wait for the other as long as it takes.
pub fn shared_by_two(device: Device) -> Shared {
    Arc::new(Combined::new(device, relax_for_ever as Yield))
}

/// Does it happen under some schedule?
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

/// One thread that reads so many times, and checks each value by itself and against the last.
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
