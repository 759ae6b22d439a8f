//! What the ordered queue costs: the column "this" of the table at the top of `queues/tree.rs`.
//!
//! `cargo bench -p tickless-core --bench queue`, best as `taskset -c 1 cargo bench ...` on a
//! machine with nothing else to do. Each row is the median of several repetitions, with the
//! spread, and the ratio to an uncontended atomic add in the same run. Wall time: every result
//! is asserted, no figure is.

#![expect(unsafe_code, reason = "benches own the nodes that they pass in")]
// It fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tickless_core::link::{QueueLink, QueueRef};
use tickless_core::queues::tree::Queue;
use tickless_core::time::{Ns, Window};

/// Timers expire within a second, after the first second.
const SPAN: u64 = 1_000_000_000;

/// What a timer is around its node: 64 bytes in all.
#[derive(Default)]
#[repr(C)]
struct Timer {
    link: QueueLink,
    fired: Cell<u64>,
    _rest: [u64; 2],
}

fn main() {
    let full = std::env::args().any(|arg| arg == "--bench");
    let (sizes, rounds, repetitions) =
        if full { (&[0, 10, 1_000, 100_000][..], 200_000, 9) } else { (&[0, 10][..], 20, 1) };
    let mut rows: BTreeMap<(&str, usize), Vec<f64>> = BTreeMap::new();
    let mut atomic = Vec::new();
    for _ in 0..repetitions {
        atomic.push(atomic_add(rounds));
        for &pending in sizes {
            let mut row = |name, ns| rows.entry((name, pending)).or_default().push(ns);
            row("insert + remove, soonest", pair(pending, rounds, |_| SPAN / 2));
            row("insert + remove, latest", pair(pending, rounds, |_| SPAN * 3));
            row("insert + remove, random", pair(pending, rounds, |r| SPAN + r.u64(..SPAN)));
            if pending > 0 {
                row("move a random one later", move_later(pending, rounds));
                row("pop all, per timer", pop_all(pending, rounds));
            }
        }
    }
    if full {
        print(rows, median(&mut atomic));
    }
}

fn print(rows: BTreeMap<(&str, usize), Vec<f64>>, unit: f64) {
    println!("{:28} {:>8} {unit:9.1} ns", "atomic add", "");
    for ((name, pending), mut samples) in rows {
        let ns = median(&mut samples);
        let (least, most) = (samples[0], samples[samples.len() - 1]);
        println!("{name:28} {pending:8} {ns:9.1} ns ({least:.1} to {most:.1}) {:6.1}x", ns / unit);
    }
}

/// A queue with `pending` timers in it, at random times and in random order in memory.
struct FilledQueue {
    /// Before the timers: dropped first.
    queue: Queue,
    timers: Vec<Timer>,
    random: fastrand::Rng,
}

impl FilledQueue {
    fn new(pending: usize) -> FilledQueue {
        let timers = (0..=pending).map(|_| Timer::default()).collect();
        let mut filled =
            FilledQueue { queue: Queue::new(), timers, random: fastrand::Rng::with_seed(7) };
        filled.fill();
        filled
    }

    /// Queues all timers but the last, which is kept for the caller.
    fn fill(&mut self) {
        for timer in 0..self.timers.len() - 1 {
            let hard = SPAN + self.random.u64(..SPAN);
            self.queue.insert(self.node(timer), Window::new(Ns(hard - 50_000), Ns(hard)));
        }
    }

    fn node(&self, timer: usize) -> QueueRef {
        // SAFETY: the timers never leave their vector while queued, one thread uses them, and
        // they are freed together with their queue.
        unsafe { QueueRef::new(NonNull::from(&self.timers[timer]).cast()) }
    }
}

/// One timer comes and goes, `rounds` times; ns per pair.
fn pair(pending: usize, rounds: usize, when: impl Fn(&mut fastrand::Rng) -> u64) -> f64 {
    let mut filled = FilledQueue::new(pending);
    let times: Vec<Ns> = (0..8192).map(|_| Ns(when(&mut filled.random))).collect();
    let node = filled.node(pending);
    let start = Instant::now();
    for round in 0..rounds {
        let at = times[round % times.len()];
        black_box(filled.queue.insert(node, Window::at(at)));
        black_box(filled.queue.remove(node));
    }
    let ns = per(start, rounds);
    assert_eq!((filled.queue.len(), filled.queue.check()), (pending, Ok(())));
    ns
}

/// A random pending timer gets a random later time; ns per move.
fn move_later(pending: usize, rounds: usize) -> f64 {
    let mut filled = FilledQueue::new(pending);
    let plan: Vec<(usize, Ns)> = (0..rounds)
        .map(|_| (filled.random.usize(..pending), Ns(filled.random.u64(..SPAN))))
        .collect();
    let start = Instant::now();
    for &(timer, delta) in &plan {
        let node = filled.node(timer);
        let Window { soft, hard } = node.window();
        filled.queue.remove(node);
        filled.queue.insert(node, Window::new(soft.after(delta), hard.after(delta)));
    }
    let ns = per(start, rounds);
    assert_eq!((filled.queue.len(), filled.queue.check()), (pending, Ok(())));
    ns
}

/// Everything expires, and each timer is touched as a callback would; ns per timer.
fn pop_all(pending: usize, rounds: usize) -> f64 {
    let mut filled = FilledQueue::new(pending);
    let fills = rounds.div_ceil(pending);
    let mut ns = 0.0;
    for fill in 0..fills {
        if fill > 0 {
            filled.fill();
        }
        let start = Instant::now();
        while let Some(node) = filled.queue.pop_expired(Ns::NEVER) {
            // SAFETY: `FilledQueue::node` made it of a pointer to a whole timer that is still
            // there.
            let timer: &Timer = unsafe { node.as_ptr().cast().as_ref() };
            timer.fired.set(timer.fired.get() + 1);
        }
        ns += per(start, pending);
    }
    let fired: u64 = filled.timers.iter().map(|timer| timer.fired.get()).sum();
    assert_eq!(fired, (fills * pending) as u64);
    ns / fills as f64
}

/// The unit that the other figures are compared with; ns.
fn atomic_add(rounds: usize) -> f64 {
    let word = AtomicU64::new(0);
    let start = Instant::now();
    for _ in 0..rounds {
        black_box(&word).fetch_add(1, Ordering::SeqCst);
    }
    let ns = per(start, rounds);
    assert_eq!(word.into_inner(), rounds as u64);
    ns
}

fn per(start: Instant, count: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / count as f64
}

/// Sorts the samples; the middle one.
fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
