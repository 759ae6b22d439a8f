//! The slow counters that the live study reads: an emulated one, and one of this machine.

use crate::error::LabError;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use tickless::Timers;
use tickless::clock::{Counter, OpenClockError, SystemClock};
use tickless_core::platform::OwnLine;

thread_local! {
    static READS: Cell<u64> = const { Cell::new(0) };
}

/// Returns how often the calling thread has read a slow counter. Each thread counts its own reads,
/// because a shared count would cost as much as the measured reads.
pub fn device_reads() -> u64 {
    READS.get()
}

pub struct Counted(Box<dyn Counter>);

impl Counted {
    pub fn new(counter: Box<dyn Counter>) -> Counted {
        Counted(counter)
    }
}

impl Counter for Counted {
    fn read(&self) -> u64 {
        READS.set(READS.get() + 1);
        self.0.read()
    }

    fn bits(&self) -> u32 {
        self.0.bits()
    }
}

/// An emulated device that serves one read at a time. Each takes 1 us, if no other time is set, as
/// with a device on a bus.
///
/// A read reserves the next free time and waits until it has passed. So the queue is in the device,
/// as in hardware: a reader that loses its CPU does not delay the others.
pub struct Emulated {
    clock: Timers,
    read_ns: u64,
    /// The time until which reads have reserved the device, in nanoseconds.
    free_at: OwnLine<AtomicU64>,
}

pub const EMULATED_READ_NS: u64 = 1_000;

impl Emulated {
    pub fn new(clock: Timers) -> Emulated {
        Emulated::with_read_ns(clock, EMULATED_READ_NS)
    }

    /// Makes a device with another time for each read, in nanoseconds.
    pub fn with_read_ns(clock: Timers, read_ns: u64) -> Emulated {
        Emulated { clock, read_ns, free_at: OwnLine(AtomicU64::new(0)) }
    }

    fn now(&self) -> u64 {
        self.clock.now().as_nanos()
    }
}

impl Counter for Emulated {
    fn read(&self) -> u64 {
        let asked = self.now();
        let book = |free_at: u64| Some(free_at.max(asked) + self.read_ns);
        let booked = self.free_at.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, book);
        // `Ok` and `Err` of `fetch_update` both contain the previous value.
        let done = booked.unwrap_or_else(|free_at| free_at).max(asked) + self.read_ns;
        while self.now() < done {
            std::hint::spin_loop();
        }
        done
    }

    fn bits(&self) -> u32 {
        64
    }
}

pub struct Slow {
    pub id: &'static str,
    pub name: String,
    pub open: Box<Opener>,
}

type Opener = dyn Fn() -> Result<Box<dyn Counter>, OpenClockError>;

/// Starts a set of timers, of which only the clock is used: it times the reads.
pub fn clock() -> Result<Timers, LabError> {
    const NO_TIMERS: &str = "the timers whose clock times the reads did not start; raise the limit \
                             of threads (ulimit -u)";
    Timers::process().map_err(LabError::other(NO_TIMERS))
}

pub fn emulated(clock: &Timers) -> Slow {
    let clock = clock.clone();
    Slow {
        id: "emulated",
        name: "an emulated device, 1 us a reading, one at a time".to_string(),
        open: Box::new(move || Ok(Box::new(Emulated::new(clock.clone())))),
    }
}

/// Returns a slow counter of this machine: a PTP clock, or otherwise a clock whose reading is a
/// system call, with the reason why there is no PTP clock.
pub fn real() -> (Slow, Option<String>) {
    let cpu_time = Slow {
        id: "syscall",
        name: "CLOCK_PROCESS_CPUTIME_ID, a system call".to_string(),
        open: Box::new(|| Ok(Box::new(SystemClock::open(SystemClock::PROCESS_CPU)?))),
    };
    match SystemClock::open_ptp(PTP) {
        Ok(clock) => {
            let open = || Ok(Box::new(SystemClock::open_ptp(PTP)?) as Box<dyn Counter>);
            (Slow { id: "ptp", name: clock.name().to_string(), open: Box::new(open) }, None)
        }
        Err(why) => (cpu_time, Some(why.to_string())),
    }
}

const PTP: &str = "/dev/ptp0";

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the emulated device serves one read at a time: reads by several threads take as long
    /// in total as reads by one thread, and no two return the same value.
    #[test]
    fn the_device_serves_one_at_a_time() {
        let clock = clock().unwrap();
        let device = Counted::new(Box::new(Emulated::new(clock.clone())));
        let from = clock.now();
        let mut values: Vec<u64> = std::thread::scope(|s| {
            let reader = || {
                let values = (0..200).map(|_| device.read()).collect::<Vec<u64>>();
                assert_eq!(device_reads(), 200);
                values
            };
            let readers = [s.spawn(reader), s.spawn(reader), s.spawn(reader)];
            readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
        });
        assert!((clock.now() - from).as_nanos() as u64 >= 600 * EMULATED_READ_NS);
        values.sort_unstable();
        assert!(values.windows(2).all(|pair| pair[1] - pair[0] >= EMULATED_READ_NS));
    }
}
