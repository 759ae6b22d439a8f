//! Phases: timers of one period are spread evenly after any arrivals and departures (P2, P4, P5).

use crate::support::random::{Rng, with_seeds};
use std::collections::BTreeMap;
use std::time::Duration;
use tickless_core::phase::{PERIOD_MAX, Phase, PhaseError, PhaseSlot, Phases};
use tickless_core::time::Ns;

const PERIOD: Ns = Ns::from_ms(100);

fn filled(n: usize, period: Ns, phase: Phase) -> (Phases, Vec<PhaseSlot>) {
    let mut phases = Phases::new();
    let slots = (0..n).map(|_| phases.take(period, phase).unwrap()).collect();
    (phases, slots)
}

/// A list of taken places in units of 2^-64 of a turn.
#[derive(Default)]
struct Twin {
    taken: Vec<u64>,
}

impl Twin {
    /// Returns the start and the length of each gap; a full turn is 2^64.
    fn gaps(&self) -> Vec<(u64, u128)> {
        let mut sorted = self.taken.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let next = |i: usize| sorted[(i + 1) % sorted.len()];
        let length = |i: usize| match next(i).wrapping_sub(sorted[i]) {
            0 => 1 << 64,
            some => u128::from(some),
        };
        (0..sorted.len()).map(|i| (sorted[i], length(i))).collect()
    }

    fn largest(&self) -> u128 {
        self.gaps().into_iter().map(|gap| gap.1).max().unwrap()
    }
}

/// Goal: after any history the largest gap is known, a spread arrival halves it, and taken slots do
/// not move (P2). Method: a period of 2^62, so that phases are turns without rounding.
#[test]
fn histories_match_a_naive_twin() {
    let period = Ns(1 << 62);
    let turn = |slot: &PhaseSlot| slot.phase().0 << 2;
    with_seeds(if cfg!(miri) { 2 } else { 200 }, |seed| {
        let history = || {
            let mut random = Rng::new(seed);
            let (mut phases, mut twin, mut slots) = (Phases::new(), Twin::default(), Vec::new());
            let arrivals = random.pick(&[2, 3, 8]);
            for _ in 0..if cfg!(miri) { 40 } else { 300 } {
                let leaves = !slots.is_empty() && random.below(10) >= arrivals;
                if leaves {
                    let slot: PhaseSlot =
                        slots.swap_remove(random.below(slots.len() as u64) as usize);
                    let place = twin.taken.iter().position(|&t| t == turn(&slot)).unwrap();
                    twin.taken.swap_remove(place);
                    phases.leave(slot);
                } else {
                    let fixed = Phase::Fixed(Duration::from_nanos(random.below(16) << 58));
                    let others = [Phase::Aligned, fixed, Phase::Random(random.next())];
                    let policy =
                        if random.one_in(4) { random.pick(&others) } else { Phase::Spread };
                    let before = (!twin.taken.is_empty()).then(|| twin.gaps());
                    let slot = phases.take(period, policy).unwrap();
                    if policy == Phase::Spread
                        && let Some(before) = before
                    {
                        let longest = before.iter().map(|gap| gap.1).max().unwrap();
                        let splits = |&(start, length): &(u64, u128)| {
                            let to = turn(&slot).wrapping_sub(start);
                            length + 8 >= longest && u128::from(to).abs_diff(length / 2) <= 8
                        };
                        assert!(
                            before.iter().any(splits),
                            "{slot:?} is not in the middle of a largest gap"
                        );
                    }
                    twin.taken.push(turn(&slot));
                    slots.push(slot);
                }
                let view = phases.view(period);
                assert_eq!(view.map_or(0, |view| view.timers), slots.len());
                if let Some(view) = view {
                    assert!(view.gap_max.as_nanos().abs_diff(twin.largest() >> 2) <= 2);
                }
            }
            slots.iter().map(|slot| slot.phase()).collect::<Vec<_>>()
        };
        assert_eq!(history(), history());
    });
}

/// Goal: with random departures spread phases are no worse than random phases on average.
#[test]
fn departures_leave_phases_no_worse_than_random() {
    let steps = if cfg!(miri) { 60 } else { 4_000 };
    for (keep, stay) in [(20, 10), (400, 40), (400, 200)] {
        with_seeds(if cfg!(miri) { 1 } else { 10 }, |seed| {
            let mean = |policy: fn(u64) -> Phase| {
                let mut random = Rng::new(seed);
                let (mut phases, mut slots) = (Phases::new(), Vec::<PhaseSlot>::new());
                let (mut filling, mut sum) = (true, 0.0);
                for _ in 0..steps {
                    if slots.len() >= keep {
                        filling = false;
                    } else if slots.len() <= stay {
                        filling = true;
                    }
                    if random.below(10) < if filling { 7 } else { 3 } || slots.is_empty() {
                        slots.push(phases.take(PERIOD, policy(seed)).unwrap());
                    } else {
                        let place = random.below(slots.len() as u64) as usize;
                        phases.leave(slots.swap_remove(place));
                    }
                    if let Some(view) = phases.view(PERIOD) {
                        sum +=
                            view.gap_max.as_nanos() as f64 * view.timers as f64 / PERIOD.0 as f64;
                    }
                }
                sum / f64::from(steps)
            };
            let spread = mean(|_| Phase::Spread);
            let random = mean(Phase::Random);
            assert!(spread <= random, "seed {seed:#x}: spread {spread}, random {random}");
        });
    }
}

/// Goal: each period has its own circle; periods that divide each other do not meet (P5).
#[test]
fn periods_do_not_disturb_each_other() {
    let mut phases = Phases::new();
    let periods = [10, 20, 40, 97, 100, 103, 1_000].map(Ns::from_ms);
    let alone = periods.map(|period| Phases::new().take(period, Phase::Spread).unwrap());
    let together = periods.map(|period| phases.take(period, Phase::Spread).unwrap());
    assert_eq!(alone, together);
    for (i, a) in together.iter().enumerate() {
        assert!(a.phase() < a.period());
        for b in &together[i + 1..] {
            let (short, long) = (a.period().0, b.period().0);
            if long % short == 0 {
                let apart = (b.phase().0 % short).abs_diff(a.phase().0);
                let apart = apart.min(short - apart);
                assert!(apart * 50 > short, "{a:?} and {b:?} meet");
            }
        }
    }
    // An aligned timer counts as a neighbour.
    let zero = phases.take(Ns::from_ms(7), Phase::Aligned).unwrap();
    let half = phases.take(Ns::from_ms(7), Phase::Spread).unwrap();
    assert_eq!((zero.phase(), half.phase()), (Ns::ZERO, Ns(3_500_000)));
    let empty = together.into_iter().chain([zero, half]);
    empty.for_each(|slot| phases.leave(slot));
    assert_eq!(phases.view(Ns::from_ms(10)), None);
}

/// Goal: the first expiry is at most a period ahead, at k x period + phase (P1, P2).
#[test]
fn the_first_expiry_is_on_the_series() {
    with_seeds(if cfg!(miri) { 20 } else { 20_000 }, |seed| {
        let mut random = Rng::new(seed);
        let period = Ns((random.next() >> 1 >> random.below(60)).max(1));
        let wanted = Ns(random.below(period.0));
        let slot = Phases::new().take(period, Phase::Fixed(wanted.to_duration())).unwrap();
        assert_eq!(slot.phase(), wanted);
        let now = Ns(random.next() >> random.below(60));
        let first = slot.first_after(now);
        if first == Ns::NEVER {
            assert!(u128::from(now.0) + u128::from(period.0) >= u128::from(u64::MAX));
        } else {
            assert!(first > now && first.0 - now.0 <= period.0);
            assert_eq!(first.0 % period.0, wanted.0);
        }
    });
}

#[test]
fn random_phases_are_reproducible() {
    let phases = |seed| -> Vec<Ns> {
        filled(100, PERIOD, Phase::Random(seed)).1.iter().map(PhaseSlot::phase).collect()
    };
    assert_eq!(phases(1), phases(1));
    assert_ne!(phases(1), phases(2));
    let mut again = Phases::new();
    let alone = [(); 2].map(|()| {
        let slot = again.take(PERIOD, Phase::Random(1)).unwrap();
        let phase = slot.phase();
        again.leave(slot);
        phase
    });
    assert_eq!(alone, [phases(1)[0]; 2], "an empty circle begins again");
    let mut tenths = BTreeMap::<u64, u32>::new();
    phases(1).iter().for_each(|phase| *tenths.entry(phase.0 / 10_000_000).or_default() += 1);
    assert!(tenths.len() == 10 && tenths.values().all(|&count| count < 25), "{tenths:?}");
}

#[test]
fn invalid_requests_are_refused() {
    let mut phases = Phases::new();
    let (too_long, period) = (PERIOD_MAX.after(Ns(1)), PERIOD.to_duration());
    for (period, phase, error) in [
        (Ns::ZERO, Phase::Spread, PhaseError::PeriodZero),
        (too_long, Phase::Aligned, PhaseError::PeriodTooLong(too_long.to_duration())),
        (PERIOD, Phase::Fixed(period), PhaseError::BeyondPeriod { phase: period, period }),
    ] {
        assert_eq!(phases.take(period, phase), Err(error));
        assert_eq!(phases.view(period), None);
        assert!(!error.to_string().is_empty());
    }
    assert!(phases.take(PERIOD_MAX, Phase::Spread).is_ok());
    // A period with fewer nanoseconds than timers: they share phases evenly.
    let (_, slots) = filled(12, Ns(3), Phase::Spread);
    for phase in 0..3 {
        let here = slots.iter().filter(|slot| slot.phase() == Ns(phase)).count();
        assert!((3..=5).contains(&here), "{here} at {phase}");
    }
}
