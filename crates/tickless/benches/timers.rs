//! The wall time of the hot operations of this library's own types.
//!
//! `cargo bench -p tickless --bench timers`, best as `taskset -c 1 ci/benches.sh timers` on an idle
//! machine. For a comparison with other crates: `bench/` in the repository's root. For counts of
//! instructions: `instructions.rs`. Without `--bench` everything runs once, briefly, so that CI
//! executes the code.

// A bench fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tickless::local::Key;
use tickless::time::Instant;
use tickless::{LocalTimers, Timeout, Timers, VirtualTime};

const START: Instant = Instant::from_secs(1);

fn main() {
    divan::main();
}

/// The numbers of pending timers.
fn sizes() -> &'static [u64] {
    if std::env::args().any(|arg| arg == "--bench") { &[1_000, 100_000, 1_000_000] } else { &[100] }
}

/// The numbers of timers that expire at once.
fn bulk() -> &'static [u64] {
    if std::env::args().any(|arg| arg == "--bench") { &[1_000, 1_000_000] } else { &[100] }
}

/// The unit with which other figures are compared.
#[divan::bench]
fn atomic_add(bencher: Bencher) {
    let word = AtomicU64::new(0);
    bencher.bench_local(|| word.fetch_add(1, Ordering::SeqCst));
}

/// Xorshift, below `bound`.
fn below(state: &Cell<u64>, bound: u64) -> u64 {
    let mut x = state.get();
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    state.set(x);
    ((u128::from(x) * u128::from(bound)) >> 64) as u64
}

/// 60 to 120 s.
fn distant(state: &Cell<u64>) -> Duration {
    Duration::from_nanos(60_000_000_000 + below(state, 60_000_000_000))
}

fn random() -> Cell<u64> {
    Cell::new(0x2545_f491_4f6c_dd1d)
}

mod local {
    use super::*;

    fn pending(count: u64, state: &Cell<u64>) -> (LocalTimers<u64>, Vec<Key>) {
        let mut timers = LocalTimers::new(START);
        let keys = (0..count).map(|_| {
            let key = timers.insert(0).expect("room for one more");
            timers.start(key, distant(state)).expect("just inserted");
            key
        });
        let keys = keys.collect();
        (timers, keys)
    }

    #[divan::bench(args = sizes())]
    fn arm_cancel(bencher: Bencher, count: u64) {
        let state = random();
        let (mut timers, _keys) = pending(count, &state);
        let spare = timers.insert(0).expect("room for one more");
        bencher.bench_local(|| {
            timers.start(spare, distant(&state)).expect("its own key");
            assert_eq!(timers.cancel(spare), Ok(true));
        });
        assert_eq!(timers.pending() as u64, count);
    }

    #[divan::bench(args = sizes())]
    fn push_out(bencher: Bencher, count: u64) {
        let state = random();
        let (mut timers, keys) = pending(count, &state);
        let mut later = Duration::from_secs(120);
        bencher.bench_local(|| {
            later += Duration::from_micros(50);
            let key = keys[below(&state, count) as usize];
            timers.start(key, later).expect("its own key");
        });
        assert_eq!(timers.pending() as u64, count);
    }

    #[divan::bench]
    fn next_event(bencher: Bencher) {
        let (timers, _keys) = pending(1_000, &random());
        bencher.bench_local(|| black_box(&timers).next_event());
    }

    #[divan::bench]
    fn empty_advance(bencher: Bencher) {
        let mut timers = LocalTimers::<u64>::new(START);
        let mut now = START;
        bencher.bench_local(|| {
            now += Duration::from_millis(1);
            assert_eq!(timers.advance(now, |_, _| ()), 0);
        });
    }

    /// Spread over a second, in steps of a millisecond.
    #[divan::bench(args = bulk(), sample_count = 9, sample_size = 1)]
    fn bulk_expiry(bencher: Bencher, count: u64) {
        let state = random();
        let armed = || {
            let mut timers = LocalTimers::new(START);
            for _ in 0..count {
                let key = timers.insert(0).expect("room for one more");
                let after = Duration::from_nanos(below(&state, 1_000_000_000));
                timers.start(key, after).expect("just inserted");
            }
            timers
        };
        bencher.counter(ItemsCount::new(count)).with_inputs(armed).bench_local_values(
            |mut timers: LocalTimers<u64>| {
                let mut fired = 0;
                for ms in 1..=1_150 {
                    timers.advance(START + Duration::from_millis(ms), |timers, key| {
                        *timers.get_mut(key).expect("it fired") += 1;
                        fired += 1;
                    });
                }
                assert_eq!(fired, count);
                timers
            },
        );
    }
}

mod shared {
    use super::*;

    static TIMERS: LazyLock<Timers> =
        LazyLock::new(|| Timers::process().expect("driver threads can be started"));

    fn pending(count: u64, now: Instant, state: &Cell<u64>) -> Vec<Timeout> {
        let timeout = |_| {
            let timeout = TIMERS.timeout(|_| ());
            timeout.start_from(now, distant(state)).expect("not shut down");
            timeout
        };
        (0..count).map(timeout).collect()
    }

    #[divan::bench(args = sizes())]
    fn arm_cancel(bencher: Bencher, count: u64) {
        let (state, now) = (random(), TIMERS.now());
        let _others = pending(count, now, &state);
        let spare = TIMERS.timeout(|_| ());
        bencher.bench_local(|| {
            spare.start_from(now, distant(&state)).expect("not shut down");
            assert_eq!(spare.cancel(), tickless::callback::Cancel::Pending);
        });
    }

    #[divan::bench]
    fn arm_cancel_reading_the_clock(bencher: Bencher) {
        let state = random();
        let _others = pending(1_000, TIMERS.now(), &state);
        let spare = TIMERS.timeout(|_| ());
        bencher.bench_local(|| {
            spare.start(distant(&state)).expect("not shut down");
            assert_eq!(spare.cancel(), tickless::callback::Cancel::Pending);
        });
    }

    #[divan::bench(args = sizes())]
    fn push_out(bencher: Bencher, count: u64) {
        let (state, now) = (random(), TIMERS.now());
        let timeouts = pending(count, now, &state);
        let mut later = Duration::from_secs(120);
        bencher.bench_local(|| {
            later += Duration::from_micros(50);
            let timeout = &timeouts[below(&state, count) as usize];
            timeout.start_from(now, later).expect("not shut down");
        });
        assert!(timeouts.iter().all(Timeout::is_pending));
    }

    #[divan::bench]
    fn clock_read() -> Instant {
        TIMERS.now()
    }

    /// Spread over a second, on a virtual clock.
    #[divan::bench(args = bulk(), sample_count = 9, sample_size = 1)]
    fn bulk_expiry(bencher: Bencher, count: u64) {
        static FIRED: AtomicU64 = AtomicU64::new(0);
        let state = random();
        let armed = || {
            let time = VirtualTime::with_builder(
                Timers::builder().bases(1).coarse_like_real(),
                Instant::from_secs(1),
            );
            let timeout = |_| {
                let timeout = time.timers().timeout(|_| {
                    FIRED.store(FIRED.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                });
                let after = Duration::from_nanos(below(&state, 1_000_000_000));
                timeout.start(after).expect("not shut down");
                timeout
            };
            let timeouts: Vec<Timeout> = (0..count).map(timeout).collect();
            (time, timeouts)
        };
        bencher.counter(ItemsCount::new(count)).with_inputs(armed).bench_local_values(|armed| {
            let before = FIRED.load(Ordering::Relaxed);
            armed.0.advance(Duration::from_secs(2));
            assert_eq!(FIRED.load(Ordering::Relaxed) - before, count);
            armed
        });
    }
}
