//! Measures prices of this host on one CPU. A price is the time of an operation, such as a load.

use crate::effort::Effort;
use crate::error::LabError;
use crate::measure::{Spread, interleave, stay_on};
use crate::progress::Progress;
use rustix::fd::OwnedFd;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use rustix::time::{Timespec, timerfd_create, timerfd_settime};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tickless::clock::{Counter, SystemClock};

/// The key of a parameter, its value, and how it was measured.
pub type Price = (&'static str, Spread, &'static str);

/// Returns the time of one call of `work` in ns.
fn each(count: u32, mut work: impl FnMut()) -> f64 {
    let begun = Instant::now();
    for _ in 0..count {
        work();
    }
    begun.elapsed().as_nanos() as f64 / f64::from(count)
}

type Raw = fn(&Tools) -> f64;

const RAW: [(&str, Raw); 11] = [
    ("load", |_| load()),
    ("store", |_| store()),
    ("atomic", |_| atomic()),
    ("pause", |_| each(20_000, spin_loop)),
    ("clock", |_| each(20_000, || _ = black_box(Instant::now()))),
    ("chain", |_| chain()),
    ("syscall", |_| each(5_000, || _ = black_box(rustix::process::getppid()))),
    ("counter", |tools| each(5_000, || _ = black_box(tools.counter.read()))),
    ("near", |tools| middle_of_time(tools.pairs(Duration::from_micros(300)))),
    ("far", |tools| Spread::of(tools.pairs(Duration::from_secs(100))).median),
    ("switch", |_| switch()),
];

struct Tools {
    timer: OwnedFd,
    counter: SystemClock,
}

impl Tools {
    fn open() -> Result<Tools, LabError> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::empty())
            .map_err(LabError::system("a timerfd was refused; raise the limit of files"))?;
        let counter = SystemClock::open(SystemClock::PROCESS_CPU)
            .map_err(LabError::other("the clock of CPU time could not be read"))?;
        Ok(Tools { timer, counter })
    }

    /// Arms and disarms the timer many times. Returns the nanoseconds of each such pair.
    fn pairs(&self, ahead: Duration) -> Vec<f64> {
        // The longest is 100 s.
        let ahead = Timespec::try_from(ahead).unwrap_or_default();
        let pair = || {
            let begun = Instant::now();
            // An error is ignored, because the kernel never refuses a time in range.
            for it_value in [ahead, Timespec::default()] {
                let time = Itimerspec { it_interval: Timespec::default(), it_value };
                let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time);
            }
            begun.elapsed().as_nanos() as f64
        };
        (0..2_000).map(|_| pair()).collect()
    }
}

/// Returns the median weighted by duration: all shorter durations take half of the total time.
///
/// A duration is the time of a pair: an arming and a disarming of a timer. Arming writes the device
/// only if the timer is earlier than the next tick. Just before a tick it is not, and pairs without
/// a write are much shorter. At 250 Hz, seven of ten pairs have no write, but take a thirteenth of
/// the total time. The plain mean would be a third of the time of a pair with writes.
fn middle_of_time(mut durations: Vec<f64>) -> f64 {
    durations.sort_by(f64::total_cmp);
    let half = durations.iter().sum::<f64>() / 2.0;
    let mut passed = 0.0;
    let shorter = durations.iter().take_while(|&duration| {
        passed += duration;
        passed < half
    });
    let at = shorter.count();
    durations.get(at).copied().unwrap_or_default()
}

/// Loads four words, adds the values, and compares the sum. Instructions have no price of their own
/// on the simulated machine, so the price of a load includes the addition of the loaded value.
fn load() -> f64 {
    let words: [AtomicU64; 4] = Default::default();
    let words = black_box(&words);
    let mut zeros = 0;
    let ns = each(20_000, || {
        let sum: u64 = words.iter().map(|word| word.load(Ordering::Acquire)).sum();
        zeros += u32::from(sum == 0);
    });
    black_box(zeros);
    ns / words.len() as f64
}

fn store() -> f64 {
    let words: [AtomicU64; 4] = Default::default();
    let words = black_box(&words);
    let mut number = 0;
    let ns = each(20_000, || {
        number += 1;
        words.iter().for_each(|word| word.store(number, Ordering::Release));
    });
    ns / words.len() as f64
}

fn atomic() -> f64 {
    let word = AtomicU64::new(0);
    each(20_000, || _ = black_box(&word).fetch_add(1, Ordering::AcqRel))
}

/// Returns the nanoseconds of a CPU cycle, measured with a chain of shifts and exclusive-ors. Each
/// needs the result of the previous one, so each takes one cycle.
fn chain() -> f64 {
    const STEPS: f64 = 6.0;
    let mut value = black_box(1_u64);
    let ns = each(100_000, || {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    });
    black_box(value);
    ns / STEPS
}

/// Measures a yield between two threads of one CPU: a system call and a context switch.
fn switch() -> f64 {
    const YIELDS: u32 = 2_000;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // The thread inherits the binding to one CPU from the caller.
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        });
        let ns = each(YIELDS, thread::yield_now);
        stop.store(true, Ordering::Relaxed);
        ns
    })
}

/// Measures the price (the time) of each primitive operation on a CPU, in interleaved turns.
pub fn prices(effort: Effort, cpu: usize, progress: &dyn Progress) -> Result<Vec<Price>, LabError> {
    let turns = effort.pick(3, 31, 31);
    let raw = thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            stay_on(cpu)?;
            let tools = Tools::open()?;
            interleave("prices", RAW.len(), turns, progress, |at| Ok(RAW[at].1(&tools)))
        });
        crate::measure::joined(measuring, "that measures prices")
    })?;
    let of = |name: &str| {
        let at = RAW.iter().position(|(known, _)| *known == name);
        at.map_or(&[][..], |at| raw[at].as_slice())
    };
    let plain = |name: &str| Spread::of(of(name).iter().copied());
    let less = |name: &str, off: &str| {
        let off = plain(off).median;
        Spread::of(of(name).iter().map(move |ns| (ns - off).max(0.0)))
    };
    // Compute the price of one write of the timer device. A near timer is the first to expire, so
    // both arming and disarming it write the device, except shortly before a tick. A far timer
    // causes no write. So half of the difference between a near and a far pair is one write.
    let Spread { median, low, high, count } = less("near", "far");
    let program = Spread { median: median / 2.0, low: low / 2.0, high: high / 2.0, count };
    let cycles = Spread::of(of("chain").iter().map(|ns| 1.0 / ns));
    Ok(vec![
        ("line.hit_ns", plain("load"), "loads of four words, one after the other"),
        ("line.store_ns", plain("store"), "stores to four words"),
        ("line.atomic_ns", less("atomic", "load"), "an addition less a load"),
        ("cpu.pause_ns", plain("pause"), "a pause instruction"),
        ("cpu.tsc_ns", plain("clock"), "a reading of the monotonic clock, no call"),
        ("cpu.ghz", cycles, "shifts that wait for each other"),
        ("os.syscall_ns", plain("syscall"), "getppid"),
        ("counter.latency_ns", plain("counter"), "the clock of CPU time, a system call"),
        ("event.program_ns", program, "half of a near timerfd pair less a far one"),
        ("os.switch_ns", less("switch", "syscall"), "giving the CPU away less a system call"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_short_pairs_do_not_hide_the_pairs_that_write() {
        let mut durations = vec![0.7; 430];
        durations.extend([20.0; 185]);
        durations.push(900.0);
        assert_eq!(middle_of_time(durations), 20.0);
        assert_eq!(middle_of_time(vec![]), 0.0);
    }
}
