//! The cost of reading the time, compared with the instruction that it is based on, and the cost of
//! combined reads of a slow counter for a single reader.
//!
//! `cargo bench -p tickless --bench clocks`. Prints the minimum and the median wall time of
//! interleaved rounds; asserts nothing about them. Without `--bench` every case runs briefly and
//! only checks that no clock goes back, so that CI executes the code. For many threads, `tickless
//! study clock --live` shows the effect of combining.

// A bench fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::{Duration, Instant};
use tickless::Timers;
use tickless::clock::{Clock, Combined, Counter, SystemClock, Tsc};

/// A name, and the function that reads.
type Case<'a> = (&'a str, Box<dyn Fn(u64) -> u64 + 'a>);

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (rounds, reads) = if is_bench { (61, 200_000) } else { (2, 50) };
    let (rounds_slow, reads_slow) = if is_bench { (61, 2_000) } else { (2, 20) };
    reading_the_time(rounds, reads);
    reading_a_slow_counter(rounds_slow, reads_slow);
}

/// Goal: reading the time takes at most 1.15 times as long as rdtsc and a multiplication.
fn reading_the_time(rounds: usize, reads: u64) {
    let timers = Timers::process().expect("timers");
    let monotonic = || SystemClock::open(SystemClock::MONOTONIC).expect("CLOCK_MONOTONIC");
    let mut counters: Vec<Box<dyn Counter>> = vec![Box::new(monotonic())];
    counters.extend(Tsc::new().map(|tsc| Box::new(tsc) as Box<dyn Counter>));
    let clock = Clock::over(counters).expect("a clock");
    let mut cases: Vec<Case<'_>> = vec![
        ("Timers::now", Box::new(|n| quickly(n, || timers.now().as_nanos()))),
        ("Clock::monotonic", Box::new(|n| quickly(n, || clock.monotonic().as_nanos()))),
        ("Instant::now", {
            let start = Instant::now();
            Box::new(move |n| quickly(n, || start.elapsed().as_nanos() as u64))
        }),
    ];
    #[cfg(target_arch = "x86_64")]
    if let Ok(tsc) = Tsc::new() {
        let mult = black_box(1u64 << 31);
        let scaled = move || ((u128::from(tsc.read()) * u128::from(mult)) >> 32) as u64;
        cases.insert(0, ("rdtsc and a multiplication", Box::new(move |n| quickly(n, scaled))));
    }
    show("reading the time", &cases, rounds, reads);
}

/// Goal: for a single reader, a combined read takes at most 1.25 times as long as a direct read of
/// a slow device.
fn reading_a_slow_counter(rounds: usize, reads: u64) {
    let cpu_time = || SystemClock::open(SystemClock::PROCESS_CPU).expect("a process has CPU time");
    let direct = cpu_time();
    let combined = Combined::new(cpu_time());
    let cases: Vec<Case<'_>> = vec![
        ("direct", Box::new(|n| quickly(n, || direct.read()))),
        ("combined", Box::new(|n| quickly(n, || combined.read()))),
    ];
    show("a counter behind a system call (CLOCK_PROCESS_CPUTIME_ID)", &cases, rounds, reads);
    let device = || Emulated { takes: Duration::from_micros(1), start: Instant::now() };
    let direct = device();
    let combined = Combined::new(device());
    let cases: Vec<Case<'_>> = vec![
        ("direct", Box::new(|n| quickly(n, || direct.read()))),
        ("combined", Box::new(|n| quickly(n, || combined.read()))),
    ];
    show("an emulated device of 1 us", &cases, rounds, reads);
}

/// A device whose reads take this long.
struct Emulated {
    takes: Duration,
    start: Instant,
}

impl Counter for Emulated {
    fn read(&self) -> u64 {
        let from = Instant::now();
        while from.elapsed() < self.takes {
            std::hint::spin_loop();
        }
        self.start.elapsed().as_nanos() as u64
    }

    fn bits(&self) -> u32 {
        64
    }

    fn hertz(&self) -> u64 {
        1_000_000_000
    }

    fn rating(&self) -> u16 {
        110
    }

    fn name(&self) -> &str {
        "emulated"
    }
}

/// Makes this many reads; returns the nanoseconds for all of them.
fn quickly(reads: u64, read: impl Fn() -> u64) -> u64 {
    let start = Instant::now();
    let mut last = 0;
    for _ in 0..reads {
        let now = black_box(read());
        assert!(now >= last, "a clock went back");
        last = now;
    }
    start.elapsed().as_nanos() as u64
}

/// The first case is the unit of the others.
fn show(title: &str, cases: &[Case<'_>], rounds: usize, reads: u64) {
    let mut figures = vec![Vec::new(); cases.len()];
    for _ in 0..rounds {
        for (figures, case) in figures.iter_mut().zip(cases) {
            figures.push(case.1(reads) as f64 / reads as f64);
        }
    }
    println!("{title} (live; ns: quickest, median; ratio of medians)");
    let medians: Vec<f64> = figures
        .iter_mut()
        .map(|figures| {
            figures.sort_by(f64::total_cmp);
            figures[figures.len() / 2]
        })
        .collect();
    for ((case, figures), median) in cases.iter().zip(&figures).zip(&medians) {
        println!("  {:28} {:8.2} {median:8.2} {:6.3}", case.0, figures[0], median / medians[0]);
    }
}
