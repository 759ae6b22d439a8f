//! W5 and D7: deadlines beyond the wheel's reach, and the far end of the 64-bit range.

use super::bed::{BOTH, Bed};
use tickless_core::queues::wheel::{PushOut, REACH};
use tickless_core::time::Ns;

const TICKS: &[Ns] = if cfg!(miri) {
    &[Ns::from_ms(1)]
} else {
    &[Ns::from_us(1), Ns::from_ms(1), Ns::from_ms(4), Ns::from_secs(1)]
};
const DAY: Ns = Ns::from_secs(86_400);

/// Advances from event to event until a timer fires. Returns the time and the number of events.
fn sleep_until_something_fires(bed: &mut Bed) -> (Ns, u64) {
    for wakes in 1.. {
        let next = bed.wheel.next_event();
        assert_ne!(next, Ns::NEVER);
        bed.wheel.advance(next);
        if bed.pop().is_some() {
            assert_eq!(bed.wheel.check(), Ok(()));
            return (next, wakes);
        }
    }
    unreachable!()
}

/// Goal: timers fire in time after 12 days, 2 years, 2^36 ms and powers of two.
/// Method: a timer at that distance, from zero and from that point, with each tick.
#[test]
fn timers_fire_in_time_at_any_distance() {
    let year = 365 * DAY.0;
    let far = [12 * DAY.0, 13 * DAY.0, year, 2 * year, 10 * year, 1 << 31, 1 << 32, 1 << 53];
    let powers_of_ms = [31, 32, 36].map(|power| Ns::from_ms(1 << power).0);
    for &tick in TICKS {
        for distance in far.into_iter().chain(powers_of_ms) {
            let rearms = distance / (REACH * tick.0);
            if rearms > if cfg!(miri) { 30 } else { 100_000 } {
                continue;
            }
            for (start, push_out) in [(0, PushOut::Lazy), (distance, PushOut::Eager)] {
                let mut bed = Bed::new(1, push_out, tick, Ns(start));
                let deadline = Ns(start + distance);
                bed.arm(0, deadline, Ns(start));
                let (fired, wakes) = sleep_until_something_fires(&mut bed);
                let late = fired.0.checked_sub(deadline.0).expect("never early");
                let rest = distance.min(REACH * tick.0);
                assert!(late <= rest / 7 + tick.0, "{late} ns late for {deadline:?}");
                assert!(wakes <= rearms + 2, "{wakes} wakes for {deadline:?}");
            }
        }
    }
}

/// Goal: timers beyond the reach are placed again, however late the advance comes, and fire when
/// they are due. Method: a tick of 1 us; single jumps over many reaches.
#[test]
fn far_timers_are_placed_again() {
    let tick = Ns::from_us(1);
    let jumps: &[u64] = if cfg!(miri) { &[3] } else { &[1, 2, 3, 63, 64, 65, 1000] };
    for push_out in BOTH {
        for (&reaches, over) in jumps.iter().flat_map(|jump| [(jump, 1), (jump, 1_000_000)]) {
            let mut bed = Bed::new(2, push_out, tick, Ns::ZERO);
            let deadline = Ns((reaches * REACH + over) * tick.0);
            bed.arm(0, deadline, Ns::ZERO);
            assert!(bed.wheel.next_event() < deadline);
            assert_eq!(bed.fire(Ns(deadline.0 - tick.0)), []);
            let due = bed.wheel.next_event();
            assert!(due >= deadline && due.since(deadline).0 <= REACH / 7 * tick.0);
            assert_eq!(bed.fire(Ns(due.0 - 1)), []);
            assert_eq!(bed.fire(due), [0]);
            assert!(bed.wheel.is_empty());
        }
    }
}

/// Goal: one advance past the deadline fires a far timer.
#[test]
fn one_jump_over_many_reaches_fires_a_far_timer() {
    for push_out in BOTH {
        let mut bed = Bed::new(2, push_out, Ns::from_us(1), Ns::ZERO);
        bed.arm(0, DAY, Ns::ZERO);
        bed.arm(1, Ns(DAY.0 / 3), Ns::ZERO);
        assert_eq!(bed.fire(Ns(DAY.0 * 8 / 7)), [1, 0]);
    }
}

/// Goal: placing far timers again counts towards the budget (W2).
#[test]
fn placing_again_counts_towards_the_budget() {
    let mut bed = Bed::new(100, PushOut::Lazy, Ns::from_us(1), Ns::ZERO);
    for timer in 0..100 {
        bed.arm(timer, DAY, Ns::ZERO);
    }
    let reached = bed.wheel.next_event();
    bed.wheel.advance(reached);
    for left in (0..100).rev().step_by(10) {
        let mut budget = 10;
        assert_eq!(bed.pop_within(&mut budget), None);
        assert_eq!(budget, 0);
        let more_to_do = bed.wheel.next_event() <= reached;
        assert_eq!(more_to_do, left >= 10, "with {left} left");
    }
    assert_eq!(bed.wheel.len(), 100);
}

/// Goal: timers for the last representable instants are neither lost nor early, and can be
/// cancelled.
#[test]
fn the_end_of_the_range() {
    for push_out in BOTH {
        for &tick in TICKS {
            let last_tick = Ns(u64::MAX / tick.0 * tick.0);
            let just_before = Ns(last_tick.0 - 50 * tick.0);
            for start in [Ns::ZERO, Ns(u64::MAX / 2), just_before] {
                let mut bed = Bed::new(3, push_out, tick, start);
                bed.arm(0, Ns::NEVER, start);
                bed.arm(1, Ns(u64::MAX - 1), start);
                bed.arm(2, last_tick, start);
                if start == just_before {
                    assert_eq!(bed.wheel.next_event(), last_tick);
                    assert_eq!(bed.fire(Ns(last_tick.0 - 1)), []);
                    assert_eq!(bed.fire(Ns::NEVER), [2]);
                } else {
                    assert!(bed.wheel.next_event() < just_before, "placed again");
                    assert_eq!(bed.fire(Ns(start.0 + 5 * REACH * Ns::from_us(1).0)), []);
                }
                // No tick begins at or after these two deadlines: the timers stay pending.
                assert!(bed.is_pending(0) && bed.is_pending(1));
                bed.cancel(0);
                bed.cancel(1);
            }
        }
    }
}

/// Goal: operations at the last tick of the range neither wrap nor panic.
#[test]
fn operations_at_the_last_tick() {
    for push_out in BOTH {
        for &tick in TICKS {
            let mut bed = Bed::new(3, push_out, tick, Ns::NEVER);
            bed.arm(0, Ns::ZERO, Ns::NEVER);
            bed.arm(1, Ns(u64::MAX / tick.0 * tick.0), Ns::NEVER);
            bed.arm(2, Ns::NEVER, Ns::NEVER);
            assert_eq!(bed.fire(Ns::NEVER), [0, 1]);
            assert_eq!(bed.fire(Ns::NEVER), []);
            bed.arm(2, Ns::ZERO, Ns::NEVER);
            assert_eq!(bed.fire(Ns::ZERO), [2]);
        }
    }
}
