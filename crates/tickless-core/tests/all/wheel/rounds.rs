//! Which timers a pass of advance and pops fires: W2, D5, the past, callbacks, deferrable timers.

use super::bed::{BOTH, Bed};
use crate::support::scene::ms;
use tickless_core::queues::wheel::{PushOut, Wakes};
use tickless_core::time::Ns;

/// Goal: due timers beyond the budget stay pending, in order, ahead of later ones, and can be
/// cancelled (W2).
#[test]
fn timers_beyond_the_budget_are_first_in_line_and_can_be_cancelled() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(12, push_out);
        for timer in 0..10 {
            bed.arm(timer, ms(5), ms(0));
        }
        bed.arm(10, ms(6), ms(0));
        bed.wheel.advance(ms(5));
        let mut budget = 3;
        let popped: Vec<_> = std::iter::from_fn(|| bed.pop_within(&mut budget)).collect();
        assert_eq!(popped, [0, 1, 2]);
        assert_eq!((budget, bed.wheel.len()), (0, 8));
        assert!(bed.wheel.next_event() <= ms(5), "the rest is due");

        bed.cancel(4);
        bed.arm(11, ms(1), ms(5));
        assert_eq!(bed.fire(ms(6)), [3, 5, 6, 7, 8, 9, 11, 10]);
    }
}

/// Goal: a budget of zero pops nothing.
#[test]
fn a_budget_of_zero_pops_nothing() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(1, push_out);
        bed.arm(0, ms(1), ms(0));
        bed.wheel.advance(ms(1));
        assert_eq!(bed.pop_within(&mut 0), None);
        assert_eq!(bed.wheel.next_event(), ms(1));
        assert_eq!(bed.pop(), Some(0));
    }
}

/// Goal: advances and armings with an older time do not move the clock back (D5).
#[test]
fn the_clock_is_monotonic() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(2, push_out);
        assert_eq!(bed.fire(ms(100)), []);
        assert_eq!(bed.fire(ms(50)), []);
        assert_eq!(bed.arm(0, ms(60), ms(50)), ms(100), "due already, not at 60 ms");
        assert_eq!(bed.arm(1, ms(105), ms(0)), ms(105), "placed from 100 ms, not from 0");
        assert_eq!(bed.wheel.next_event(), ms(100));
        assert_eq!(bed.fire(ms(70)), [0]);
        assert_eq!(bed.fire(ms(104)), []);
        assert_eq!(bed.fire(ms(105)), [1]);
    }
}

/// Goal: the time of an arming counts for the wheel (D5). Method: an arming at 50 ms, then an
/// advance to 20 ms, which pops the timers that were due by 50 ms.
#[test]
fn an_advance_to_before_an_arming_counts_as_that_time() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(4, push_out);
        bed.arm(0, ms(1), ms(0));
        bed.arm(0, ms(40), ms(0));
        bed.arm(1, ms(40), ms(0));
        bed.arm(2, ms(60), ms(0));
        bed.arm(3, ms(80), ms(50));
        assert_eq!(bed.wheel.next_event(), ms(50), "due since 40 ms");
        let mut fired = bed.fire(ms(20));
        fired.sort_unstable();
        assert_eq!(fired, [0, 1]);
        assert_eq!(bed.fire(ms(60)), [2]);
    }
}

/// Goal: zero and past deadlines fire with the next advance, in the order of arming.
#[test]
fn the_past_fires_with_the_next_advance_in_order() {
    for push_out in BOTH {
        let mut bed = Bed::new(4, push_out, ms(1), ms(1000));
        for (timer, deadline) in [(0, 900), (1, 0), (2, 1000), (3, 500)] {
            assert_eq!(bed.arm(timer, ms(deadline), ms(1000)), ms(1000));
        }
        assert_eq!(bed.pop(), None, "not before the next advance");
        assert_eq!(bed.wheel.next_event(), ms(1000));
        assert_eq!(bed.fire(ms(1000)), [0, 1, 2, 3]);
    }
}

/// Goal: a callback that rearms its own timer for the past does not prolong an advance for ever.
#[test]
fn rearming_for_the_past_from_a_callback_waits_for_the_next_advance() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(2, push_out);
        bed.arm(0, ms(5), ms(0));
        bed.arm(1, ms(9), ms(0));
        for round in 1..5 {
            bed.wheel.advance(ms(10 * round));
            assert_eq!(bed.pop(), Some(0));
            bed.arm(0, ms(5), ms(0));
            assert_eq!(bed.pop(), if round == 1 { Some(1) } else { None });
            assert_eq!(bed.pop(), None);
            assert!(bed.wheel.next_event() <= ms(10 * round));
        }
    }
}

/// Goal: a pass fires timers that its callbacks arm for its time span, in order. Method: one
/// advance over a long time; each callback arms a step further.
#[test]
fn timers_that_callbacks_arm_within_a_pass_fire_in_it() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(2, push_out);
        bed.arm(0, ms(10), ms(0));
        bed.arm(1, ms(35), ms(0));
        bed.wheel.advance(ms(40));
        let (mut fired, mut deadline) = (vec![], ms(10));
        while let Some(timer) = bed.pop() {
            fired.push(timer);
            if timer == 0 {
                // With the callback's own time as the current time.
                bed.arm(0, deadline.after(ms(10)), deadline);
                deadline = deadline.after(ms(10));
            }
        }
        assert_eq!(fired, [0, 0, 0, 1, 0]);
        assert_eq!(bed.wheel.next_event(), ms(50));
    }
}

/// Goal: an arming with a time beyond the pass adds no timer to the pass.
/// Method: a callback arms at 60 ms while the pass goes to 20 ms.
#[test]
fn an_arming_from_the_future_adds_no_timer_to_the_pass() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(5, push_out);
        bed.arm(0, ms(10), ms(0));
        bed.arm(1, ms(15), ms(0));
        bed.arm(2, ms(15), ms(0));
        bed.arm(2, ms(30), ms(0));
        bed.arm(3, ms(31), ms(0));
        bed.wheel.advance(ms(20));
        assert_eq!(bed.pop(), Some(0));
        bed.arm(4, ms(60), ms(60));
        assert_eq!(bed.pop_all(), [1], "{push_out:?}");
        let mut next = bed.fire(ms(60));
        next.sort_unstable();
        assert_eq!(next, [2, 3, 4]);
    }
}

/// Goal: due timers can be cancelled, pushed out, pulled in and reduced until they are popped.
/// Method: a pass with one timer for each, changed by the first one's callback.
#[test]
fn due_timers_can_be_changed_until_they_are_popped() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(8, push_out);
        for timer in 0..8 {
            bed.arm(timer, ms(10), ms(0));
        }
        bed.wheel.advance(ms(20));
        assert_eq!(bed.pop(), Some(0));
        bed.cancel(1);
        assert_eq!(bed.arm(2, ms(15), ms(10)), ms(15), "later in this round");
        assert_eq!(bed.arm(3, ms(30), ms(10)), ms(30), "in a later round");
        assert_eq!(bed.arm(4, ms(5), ms(10)), ms(10), "for the past");
        assert_eq!(bed.reduce(5, ms(3), ms(10)), ms(10), "from due to due");
        assert_eq!(bed.reduce(6, ms(50), ms(10)), ms(10), "never later");
        assert_eq!(bed.pop_all(), [6, 7, 2], "{push_out:?}");
        assert_eq!(bed.wheel.next_event(), ms(20), "4 and 5 are due");
        assert_eq!(bed.fire(ms(20)), [4, 5]);
        assert_eq!(bed.fire(ms(30)), [3]);
        assert!(bed.wheel.is_empty());
    }
}

/// Goal: a timer that was armed for the past and then pushed out fires in the pass of its new
/// deadline; with lazy push-out with the next advance.
#[test]
fn an_overdue_timer_may_be_pushed_out_within_the_pass() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(3, push_out);
        bed.arm(0, ms(10), ms(0));
        bed.arm(1, ms(40), ms(0));
        bed.wheel.advance(ms(50));
        assert_eq!(bed.pop(), Some(0));
        bed.arm(2, ms(1), ms(10));
        bed.arm(2, ms(30), ms(10));
        match push_out {
            PushOut::Eager => assert_eq!(bed.pop_all(), [2, 1]),
            PushOut::Lazy => {
                assert_eq!(bed.pop_all(), [1]);
                assert!(bed.wheel.next_event() <= ms(50), "at once");
                assert_eq!(bed.fire(ms(50)), [2]);
            }
        }
    }
}

/// Goal: reducing arms an idle timer, and only makes a pending one earlier.
#[test]
fn reducing_never_makes_a_timer_later() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(1, push_out);
        assert_eq!(bed.reduce(0, ms(40), ms(0)), ms(40));
        assert_eq!(bed.reduce(0, ms(41), ms(0)), ms(40));
        assert_eq!(bed.reduce(0, ms(40), ms(0)), ms(40));
        assert_eq!(bed.reduce(0, ms(39), ms(0)), ms(39));
        assert_eq!(bed.deadline(0), ms(39));
        assert_eq!(bed.fire(ms(39)), [0]);
    }
}

/// Goal: deferrable timers cause no event and fire with the next advance, also if a pending timer
/// becomes deferrable or stops being so.
#[test]
fn deferrable_timers_fire_with_the_next_advance_and_cause_none() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(2, push_out);
        assert_eq!(bed.arm_as(0, ms(10), ms(0), Wakes::No), Ns::NEVER);
        assert_eq!(bed.wheel.next_event(), Ns::NEVER);
        assert_eq!(bed.wheel.len(), 1);
        bed.arm(1, ms(20), ms(0));
        assert_eq!(bed.wheel.next_event(), ms(20));
        assert_eq!(bed.fire(ms(20)), [0, 1]);

        bed.arm_as(0, ms(30), ms(20), Wakes::No);
        assert_eq!(bed.arm(0, ms(31), ms(20)), ms(31));
        assert_eq!(bed.wheel.next_event(), ms(31));
        assert_eq!(bed.arm_as(0, ms(32), ms(20), Wakes::No), Ns::NEVER);
        assert_eq!(bed.wheel.next_event(), Ns::NEVER);
        assert_eq!(bed.arm_as(1, ms(0), ms(20), Wakes::No), Ns::NEVER);
        assert_eq!(bed.wheel.next_event(), Ns::NEVER, "not even when it is due");
        assert_eq!(bed.fire(ms(31)), [1]);
        assert_eq!(bed.fire(ms(32)), [0]);
    }
}

/// Goal: equal deadlines fire in the order of arming (W4), whatever the level.
#[test]
fn equal_deadlines_fire_as_armed() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(40, push_out);
        let deadline = ms(4096);
        let clocks = [0, 100, 3000, 3700, 4000, 4050, 4090, 4095];
        for (timer, &clock) in (0..40).zip(clocks.iter().flat_map(|clock| [clock; 5])) {
            assert_eq!(bed.arm(timer, deadline, ms(clock)), deadline);
        }
        assert_eq!(bed.fire(deadline), (0..40).collect::<Vec<_>>());
    }
}

/// Goal: a coarse bucket fires by eighths of its granule, whatever the order of arming. Method: a
/// bucket of level 1, whose eighths are a tick each, filled in reverse order.
#[test]
fn a_coarse_bucket_fires_by_eighths() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(8, push_out);
        for timer in 0..8 {
            assert_eq!(bed.arm(timer, ms(112 - timer as u64), ms(0)), ms(112), "one bucket");
        }
        assert_eq!(bed.fire(ms(112)), [7, 6, 5, 4, 3, 2, 1, 0]);
    }
}

/// Goal: timers can be cancelled while their bucket fires and is read ahead. Method: a bucket large
/// enough to be read ahead; after some pops the timers are cancelled that the walkers have reached.
#[test]
fn walkers_do_not_follow_cancelled_timers() {
    const TIMERS: usize = 640;
    let mut bed = Bed::in_ms(TIMERS, PushOut::Eager);
    // One bucket of half a second; the n-th of an eighth has the number 8 n + the eighth.
    let eighth = |timer: usize| (timer % 8) as u64;
    for timer in 0..TIMERS {
        bed.arm(timer, ms(10_240 + 64 * eighth(timer) + 1), ms(0));
    }
    bed.wheel.advance(ms(10_752));
    let (mut popped, mut cancelled) = (Vec::new(), Vec::new());
    for nth in 0..TIMERS / 8 {
        popped.extend(bed.pop());
        for ahead in 1..8 {
            if nth % 3 == 2 && nth + 1 < TIMERS / 8 {
                let timer = 8 * (nth + 1) + ahead;
                bed.cancel(timer);
                cancelled.push(timer);
            }
        }
    }
    popped.extend(bed.pop_all());
    let mut expected: Vec<_> = (0..TIMERS).filter(|timer| !cancelled.contains(timer)).collect();
    expected.sort_by_key(|&timer| eighth(timer));
    assert_eq!(popped, expected);
    assert!(bed.wheel.is_empty());
}

/// Goal: one pass over a year fires its timers in order.
#[test]
fn one_pass_over_a_year_keeps_the_order() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(4, push_out);
        let days = |days: u64| Ns::from_secs(86_400 * days);
        for (timer, day) in [(0, 300), (1, 1), (2, 40), (3, 11)] {
            bed.arm(timer, days(day), ms(0));
        }
        assert_eq!(bed.fire(days(365)), [1, 3, 2, 0]);
    }
}

/// Goal: cancelling a timer that is not pending changes nothing.
#[test]
fn cancelling_twice_is_cancelling_once() {
    let bed = &mut Bed::in_ms(2, PushOut::Lazy);
    assert!(!bed.wheel.cancel(bed.node(0)), "never armed");
    bed.arm(0, ms(10), ms(0));
    bed.arm(1, ms(10), ms(0));
    assert!(bed.wheel.cancel(bed.node(0)) && !bed.wheel.cancel(bed.node(0)));
    assert_eq!((bed.wheel.len(), bed.wheel.check()), (1, Ok(())));
    assert_eq!(bed.fire(ms(10)), [1]);
    assert!(!bed.wheel.cancel(bed.node(1)), "fired");
}
