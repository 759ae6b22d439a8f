//! What belongs to which round of advance and pop: W2, D5, the past, callbacks, deferrables.

use super::bed::{BOTH, Bed};
use tickless_core::queues::wheel::{PushOut, Wakes};
use tickless_core::time::Ns;

const fn ms(ms: u64) -> Ns {
    Ns::from_ms(ms)
}

/// Goal: W2. Method: more is due than the budget allows; the rest stays pending, in order,
/// ahead of all that comes later, and can be cancelled.
#[test]
fn what_a_budget_leaves_is_first_in_line_and_can_be_cancelled() {
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

/// Goal: no budget, no pop, whatever is due.
#[test]
fn a_budget_of_nothing_pops_nothing() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(1, push_out);
        bed.arm(0, ms(1), ms(0));
        bed.wheel.advance(ms(1));
        assert_eq!(bed.pop_within(&mut 0), None);
        assert_eq!(bed.wheel.next_event(), ms(1));
        assert_eq!(bed.pop(), Some(0));
    }
}

/// Goal: D5. Method: advances and arms that name an older time than one named before.
#[test]
fn the_clock_never_goes_back() {
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

/// Goal: an arm's present counts as the wheel's (D5). Method: the arm names 50 ms, the next
/// advance 20 ms; what fell due by 50 ms is popped.
#[test]
fn an_advance_to_before_an_arm_counts_as_that_arm() {
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

/// Goal: zero and past deadlines fire with the next advance, as armed.
#[test]
fn the_past_fires_with_the_next_advance_in_order() {
    for push_out in BOTH {
        let mut bed = Bed::new(4, push_out, ms(1), ms(1000));
        for (timer, deadline) in [(0, 900), (1, 0), (2, 1000), (3, 500)] {
            assert_eq!(bed.arm(timer, ms(deadline), ms(1000)), ms(1000));
        }
        assert_eq!(bed.pop(), None, "no advance has asked for them");
        assert_eq!(bed.wheel.next_event(), ms(1000));
        assert_eq!(bed.fire(ms(1000)), [0, 1, 2, 3]);
    }
}

/// Goal: a callback that re-arms itself for the past cannot hold up an advance forever.
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

/// Goal: a round takes in what its callbacks arm for it, at its place. Method: one advance
/// over a long time; each callback arms a step further.
#[test]
fn what_callbacks_arm_within_the_round_fires_within_it() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(2, push_out);
        bed.arm(0, ms(10), ms(0));
        bed.arm(1, ms(35), ms(0));
        bed.wheel.advance(ms(40));
        let (mut fired, mut deadline) = (vec![], ms(10));
        while let Some(timer) = bed.pop() {
            fired.push(timer);
            if timer == 0 {
                // As if the present were the callback's own instant.
                bed.arm(0, deadline.after(ms(10)), deadline);
                deadline = deadline.after(ms(10));
            }
        }
        assert_eq!(fired, [0, 0, 0, 1, 0]);
        assert_eq!(bed.wheel.next_event(), ms(50));
    }
}

/// Goal: a callback's present beyond the round's does not pull anything into the round.
/// Method: it arms with 60 ms while the round goes to 20 ms.
#[test]
fn an_arm_from_the_future_adds_nothing_to_the_round() {
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

/// Goal: what waits to be popped can still be cancelled, pushed out, pulled in, reduced.
/// Method: a round with one timer for each, touched by the first one's callback.
#[test]
fn due_timers_obey_until_they_are_popped() {
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

/// Goal: what was armed for the past and then pushed out fires in the round of its new
/// deadline, this one included; with the next advance if it was put off beside the wheel.
#[test]
fn an_overdue_timer_pushed_out_within_the_round() {
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

/// Goal: reduce only ever makes it earlier, and arms what is idle.
#[test]
fn reduce_is_never_later() {
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

/// Goal: deferrable timers wake nobody and miss nothing. Method: beside one that wakes; and
/// timers that turn from one kind into the other while pending.
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

/// Goal: W4. Method: one deadline, armed from coarse to fine and many times over.
#[test]
fn one_instant_fires_as_armed() {
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

/// Goal: a coarse bucket comes by eighths of its granule, whatever order it was armed in. Method: a
/// bucket of level 1, whose eighths are a tick each, filled from behind.
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

/// Goal: a timer that is cancelled while its bucket fires is gone, also where the wheel walks ahead
/// of what it pops. Method: a bucket of more timers than are worth walking; after each of some pops
/// the timers go on which walkers stand, one in each eighth.
#[test]
fn walkers_step_aside_for_what_is_cancelled() {
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

/// Goal: jumps over empty time cost nothing and leave nothing out. Method: one round over a
/// year with a few timers in it, in order.
#[test]
fn one_round_over_a_year_keeps_the_order() {
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
