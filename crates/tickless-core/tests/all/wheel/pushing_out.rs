//! Re-arming a pending timer for a later time, eagerly and lazily.

use super::bed::{BOTH, Bed};
use crate::support::scene::ms;
use tickless_core::queues::wheel::{PushOut, Wakes};
use tickless_core::time::Ns;

/// Goal: pushed-out timers fire in time, and the next event is never late (W3). Method: many timers
/// of one bucket are pushed out; eagerly the next event changes at once; lazily it is early once.
#[test]
fn pushed_out_timers_fire_in_time() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(100, push_out);
        for timer in 0..100 {
            bed.arm(timer, ms(10), ms(0));
        }
        for timer in 0..100 {
            assert_eq!(bed.wheel.next_event(), ms(10));
            bed.arm(timer, ms(10_000), ms(0));
        }
        let left = if push_out == PushOut::Lazy { 10 } else { 10_000 };
        assert!(bed.wheel.next_event() >= ms(left));
        assert_eq!(bed.fire(ms(9)), []);
        assert_eq!(bed.fire(ms(10)), []);
        let due = bed.wheel.next_event();
        assert!(due >= ms(10_000));
        for now in [11, 12, 5000] {
            assert_eq!(bed.fire(ms(now)), []);
            assert_eq!(bed.wheel.next_event(), due);
        }
        assert_eq!(bed.fire(Ns(due.0 - 1)), []);
        assert_eq!(bed.fire(due).len(), 100);
    }
}

/// Goal: a lazily pushed-out timer is moved once, however often it is pushed out.
#[test]
fn a_timer_pushed_out_a_thousand_times_is_moved_once() {
    let mut bed = Bed::in_ms(1, PushOut::Lazy);
    bed.arm(0, ms(50), ms(0));
    for step in 1..1000 {
        bed.arm(0, ms(50 + step), ms(0));
    }
    assert_eq!(bed.fire(ms(60)), []);
    assert_eq!(bed.wheel.relocated(), 1);
    let due = bed.wheel.next_event();
    assert_eq!(bed.fire(due), [0]);
    assert_eq!(bed.wheel.relocated(), 1);
}

/// Goal: an idle timeout that every request pushes out fires once, when the requests stop.
/// Method: a timeout of 30 s, a request every 100 ms for ten minutes.
#[test]
fn an_idle_timeout_fires_when_the_requests_stop() {
    let requests = if cfg!(miri) { 300 } else { 6000 };
    for push_out in BOTH {
        let mut bed = Bed::in_ms(1, push_out);
        for request in 0..requests {
            let now = ms(100 * request);
            assert_eq!(bed.fire(now), []);
            bed.arm(0, now.after(ms(30_000)), now);
        }
        let deadline = bed.deadline(0);
        let mut due = bed.wheel.next_event();
        if push_out == PushOut::Lazy {
            assert!(due < deadline);
            assert_eq!(bed.fire(due), [], "where it was");
            due = bed.wheel.next_event();
        }
        assert!(due >= deadline && due < deadline.after(ms(4096)));
        assert_eq!(bed.fire(Ns(due.0 - 1)), []);
        assert_eq!(bed.fire(due), [0]);
        assert!(bed.wheel.relocated() <= requests / 250 + 1, "one move for each 30 s or so");
    }
}

/// Goal: a timer on the list of an earlier bucket can be changed like any other.
/// Method: push out, then cancel; pull in; push out again; reduce; make deferrable.
#[test]
fn pushed_out_timers_can_be_cancelled_pulled_in_and_pushed_again() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(6, push_out);
        for timer in 0..6 {
            bed.arm(timer, ms(10), ms(0));
            bed.arm(timer, ms(40), ms(0));
        }
        bed.cancel(0);
        assert!(!bed.is_pending(0));
        bed.arm(1, ms(5), ms(0));
        bed.arm(2, ms(60), ms(0));
        bed.reduce(3, ms(20), ms(0));
        bed.arm_as(4, ms(30), ms(0), Wakes::No);
        assert_eq!(bed.wheel.next_event(), ms(5));
        assert_eq!(bed.fire(ms(5)), [1]);
        // 2 and 5 are examined in their old bucket.
        assert_eq!(bed.fire(ms(10)), []);
        assert_eq!(bed.wheel.next_event(), ms(20));
        assert_eq!(bed.fire(ms(20)), [3]);
        assert_eq!(bed.wheel.next_event(), ms(40));
        assert_eq!(bed.fire(ms(39)), [4]);
        assert_eq!(bed.fire(ms(40)), [5]);
        assert_eq!(bed.fire(ms(60)), [2]);
        assert!(bed.wheel.is_empty());
        assert_eq!(bed.wheel.next_event(), Ns::NEVER);
    }
}

/// Goal: the last timer that leaves a bucket clears its bits, and the bucket is reused.
/// Method: over several turns of the finest level, push out, cancel and arm in one slot.
#[test]
fn a_bucket_is_reused_after_its_timers_left_it() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(3, push_out);
        for turn in 0..5 {
            let start = 64 * turn;
            bed.arm(0, ms(start + 9), ms(start));
            bed.arm(0, ms(start + 20), ms(start));
            bed.arm(1, ms(start + 9), ms(start));
            bed.cancel(1);
            bed.arm(2, ms(start + 9), ms(start));
            assert_eq!(bed.wheel.next_event(), ms(start + 9));
            assert_eq!(bed.fire(ms(start + 9)), [2]);
            assert_eq!(bed.wheel.next_event(), ms(start + 20));
            assert_eq!(bed.fire(ms(start + 20)), [0]);
        }
    }
}

/// Goal: eagerly pushed-out timers are ordered by their push-outs; with lazy push-out the other
/// timers keep their order.
#[test]
fn the_order_of_timers_pushed_to_one_instant() {
    for push_out in BOTH {
        let mut bed = Bed::in_ms(4, push_out);
        bed.arm(0, ms(10), ms(0));
        bed.arm(1, ms(11), ms(0));
        bed.arm(0, ms(40), ms(0));
        bed.arm(2, ms(40), ms(0));
        bed.arm(1, ms(40), ms(0));
        bed.arm(3, ms(40), ms(0));
        assert_eq!(bed.fire(ms(20)), []);
        let fired = bed.fire(ms(40));
        match push_out {
            PushOut::Eager => assert_eq!(fired, [0, 2, 1, 3]),
            PushOut::Lazy => assert_eq!(fired, [2, 3, 0, 1]),
        }
    }
}
