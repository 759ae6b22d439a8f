//! Coarse timers on virtual time fire at their deadlines: exactly, in order, with every setting.

use crate::support::{Log, Rng, SECOND, seed};
use std::time::Duration;
use tickless::callback::Cancel;
use tickless::time::{Instant, Tick};
use tickless::{Builder, Timeout, Timers, VirtualTime};

const START: Instant = Instant::from_secs(1);

/// One base, with and without an expiry thread, and with ticks of several lengths.
fn settings() -> impl Iterator<Item = Builder> {
    [1, 999, 1_000, 1_000_000].into_iter().flat_map(|tick_us| {
        let tick = Tick::new(Duration::from_micros(tick_us)).expect("a tick");
        let plain = move || Timers::builder().bases(1).tick(tick);
        [plain(), plain().expiry_threads()]
    })
}

/// Method: histories with deadlines of every magnitude and with few distinct ones, armed at any
/// distance, cancelled and rearmed, against a sorted list.
#[test]
fn histories_fire_at_their_deadlines() {
    let mut rng = Rng::new(seed("exact_time", "histories_fire_at_their_deadlines"));
    for builder in settings() {
        let time = VirtualTime::with_builder(builder, START);
        let log = Log::<(usize, Instant)>::new();
        let timers: Vec<Timeout> = (0..60)
            .map(|number| {
                let log = log.clone();
                time.timers().timeout(move |f| {
                    assert_eq!(f.now(), f.deadline());
                    log.push((number, f.now()));
                })
            })
            .collect();
        let mut pending = Vec::<(Instant, u64, usize)>::new();
        let mut armed_at = [START; 60];
        let mut expected = Vec::new();
        let mut common = START;
        for step in 0..4_000u64 {
            let number = rng.below(60) as usize;
            match rng.below(8) {
                0 => {
                    let by = Duration::from_nanos(rng.of_any_size(36));
                    time.advance(by);
                    pending.sort();
                    let due = pending.partition_point(|of| of.0 <= time.now());
                    expected.extend(pending.drain(..due).map(|(at, _, number)| (number, at)));
                }
                1 => {
                    let is_pending = pending.iter().any(|of| of.2 == number);
                    pending.retain(|of| of.2 != number);
                    assert_eq!(timers[number].cancel() == Cancel::Pending, is_pending);
                }
                kind => {
                    if kind < 4 || common <= time.now() {
                        common = time.now() + Duration::from_nanos(1 + rng.of_any_size(42));
                    }
                    timers[number].start_at(common).expect("it is not shut down");
                    armed_at[number] = time.now();
                    pending.retain(|of| of.2 != number);
                    pending.push((common, step, number));
                }
            }
        }
        let next = pending.iter().map(|of| of.0).min();
        // Timers armed beyond the wheel's last level, 17 minutes with the shortest tick, have an
        // event before they are due (W3).
        let moves_at = |of: &(Instant, u64, usize)| armed_at[of.2] + 900 * SECOND;
        let first_move = pending.iter().filter(|of| of.0 >= moves_at(of)).map(moves_at).min();
        let event = time.next_event();
        let is_move = event < next && first_move.is_some_and(|at| Some(at) <= event);
        assert!(event == next || is_move, "{event:?} {next:?} {first_move:?}");
        time.advance(Duration::MAX);
        pending.sort();
        expected.extend(pending.iter().map(|&(at, _, number)| (number, at)));
        assert_eq!(log.take(), expected);
    }
}

/// Goal: firing each of a hundred thousand timers with successive deadlines costs no more than
/// firing each of a few. (A scan of a whole list for each timer would take hours.)
#[test]
fn the_cost_of_an_expiry_does_not_grow_with_the_number_of_timers() {
    let time = VirtualTime::new();
    let log = Log::new();
    let timers: Vec<Timeout> = (0..100_000u64)
        .map(|number| {
            let log = log.clone();
            let timer = time.timers().timeout(move |f| log.push(f.now()));
            let spread = Duration::from_micros(number * 7_919 % 100_000);
            timer.start(60 * SECOND + spread).expect("it is not shut down");
            timer
        })
        .collect();
    time.advance(120 * SECOND);
    let fired = log.take();
    assert_eq!(fired.len(), timers.len());
    assert!(fired.is_sorted_by(|a, b| a < b), "each at its own instant");
}
