//! Local timers: keys, operations in callbacks, order, budgets (W1, W2, W4, W5, W6).

use crate::support::random::Random;
use crate::support::timers::Family;
mod fixed;
mod histories;
mod twin;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Duration;
use tickless_core::local::{Key, LocalError, LocalTimers};
use tickless_core::queues::wheel::PushOut;
use tickless_core::time::{Instant, Tick};

const fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn insert<T>(timers: &mut LocalTimers<T>, family: Family, value: T) -> Key {
    let key = match family {
        Family::Coarse => timers.insert(value),
        Family::Precise => timers.insert_precise(value),
    };
    key.expect("there is room")
}

/// Advances with callbacks that do nothing. Returns the values of the fired timers.
fn fire(timers: &mut LocalTimers<usize>, now: Instant) -> Vec<usize> {
    let mut fired = Vec::new();
    timers.advance(now, |timers, key| fired.extend(timers.get(key).copied()));
    fired
}

/// Goal: a removed timer's key finds no timer, also after its slot is reused.
#[test]
fn keys_of_removed_timers_find_nothing() {
    for family in Family::BOTH {
        let mut timers = LocalTimers::new(Instant::ZERO);
        let old = insert(&mut timers, family, 1);
        timers.start_at(old, ms(5)).expect("just inserted");
        assert_eq!(timers.remove(old), Some(1));
        assert_eq!((timers.len(), timers.pending(), timers.next_event()), (0, 0, None));
        let new = insert(&mut timers, family, 2);
        timers.start_at(new, ms(7)).expect("just inserted");
        assert_ne!(old, new);
        for _ in 0..2 {
            let gone = LocalError::NoSuchTimer;
            assert_eq!(timers.start(old, Duration::ZERO), Err(gone));
            assert_eq!(timers.start_range(old, ms(1), ms(2)), Err(gone));
            assert_eq!(timers.cancel(old), Err(gone));
            assert_eq!((timers.remove(old), timers.get(old)), (None, None));
            assert!(!timers.is_pending(old));
        }
        assert!(timers.is_pending(new));
        assert_eq!(fire(&mut timers, ms(10)), [2]);
        assert_eq!(timers.cancel(new), Ok(false));
    }
}

/// Goal: a key made of any number finds its own timer or none, never an empty slot (K1).
/// Method: each bit of a key flipped, and nearby generations, while its timer exists, after it has
/// been removed, and after its slot is reused.
#[test]
fn made_up_keys_find_nothing() {
    for family in Family::BOTH {
        let mut timers = LocalTimers::new(Instant::ZERO);
        let bits = insert(&mut timers, family, Box::new(1)).to_bits();
        let made_up: Vec<u64> = (0..64)
            .map(|bit| bits ^ 1 << bit)
            .chain((1..9).map(|n| bits.wrapping_add(n << 32)))
            .chain((1..9).map(|n| bits.wrapping_sub(n << 32)))
            .chain([0, 1, u64::MAX])
            .collect();
        let find = |timers: &mut LocalTimers<Box<i32>>, number: u64| {
            let key = Key::from_bits(number);
            let gone = LocalError::NoSuchTimer;
            assert_eq!(timers.get(key), None, "{family:?} {number:#x} of {bits:#x}");
            assert_eq!(timers.start(key, Duration::ZERO), Err(gone));
            assert_eq!(timers.start_range(key, ms(1), ms(2)), Err(gone));
            assert_eq!(timers.cancel(key), Err(gone));
            assert_eq!(timers.remove(key), None);
            assert!(!timers.is_pending(key));
        };
        made_up.iter().for_each(|&number| find(&mut timers, number));
        assert_eq!(timers.remove(Key::from_bits(bits)), Some(Box::new(1)));
        made_up.iter().chain([&bits]).for_each(|&number| find(&mut timers, number));
        let again = insert(&mut timers, family, Box::new(2)).to_bits();
        let others = made_up.iter().chain([&bits]).filter(|&&number| number != again);
        others.for_each(|&number| find(&mut timers, number));
        assert_eq!(timers.remove(Key::from_bits(again)), Some(Box::new(2)));
    }
}

/// Goal: large tables in which each slot is reused.
#[test]
fn slots_are_reused() {
    let (mut timers, count) =
        (LocalTimers::new(Instant::ZERO), if cfg!(miri) { 300 } else { 5_000 });
    let mut keys = Vec::new();
    for round in 0..3 {
        for number in 0..count {
            let key = insert(&mut timers, Family::BOTH[number % 2], number);
            timers.start_at(key, ms(1 + (number % 50) as u64 + 100 * round)).expect("inserted");
            keys.push(key);
        }
        assert_eq!((timers.len(), timers.pending()), (count, count));
        let all = fire(&mut timers, ms(60 + 100 * round));
        assert_eq!(all.len(), count);
        let removed = keys.drain(..).filter_map(|key| timers.remove(key)).count();
        assert_eq!((removed, timers.is_empty()), (count, true));
    }
}

/// Goal: a callback may operate on its own timer, on due timers and on others.
#[test]
fn callbacks_may_operate_on_any_timer() {
    for family in Family::BOTH {
        let mut timers = LocalTimers::new(Instant::ZERO);
        let keys: Vec<Key> = (0..6).map(|n| insert(&mut timers, family, n)).collect();
        for &key in &keys {
            timers.start_at(key, ms(5)).expect("inserted");
        }
        let mut fired = Vec::new();
        timers.advance(ms(5), |timers, key| {
            let number = timers.get(key).copied().expect("it has not been removed");
            fired.push(number);
            assert!(!timers.is_pending(key));
            match number {
                0 => {
                    assert_eq!(timers.cancel(keys[1]), Ok(true));
                    assert_eq!(timers.remove(keys[2]), Some(2));
                    assert_eq!(timers.remove(key), Some(0));
                    assert_eq!(timers.cancel(key), Err(LocalError::NoSuchTimer));
                    let new = insert(timers, family, 7);
                    assert_eq!(timers.start_at(new, Instant::ZERO), Ok(()));
                }
                3 => {
                    assert_eq!(timers.start_at(keys[4], ms(9)), Ok(()));
                    assert_eq!(timers.start_at(key, ms(8)), Ok(()));
                }
                _ => assert_eq!(timers.start(key, Duration::ZERO), Ok(())),
            }
        });
        assert_eq!(fired, [0, 3, 5], "{family:?}");
        assert!(
            timers.next_event().is_some_and(|next| next <= ms(5)),
            "7 and 5 wait for the next advance"
        );
        let mut again = fire(&mut timers, ms(9));
        again.sort();
        assert_eq!(again, [3, 4, 5, 7]);
    }
}

/// Goal: a timer that a callback arms for the past fires with the next advance and delays no other
/// timer of either family.
#[test]
fn timers_armed_for_the_past_fire_with_the_next_advance() {
    for (family, other) in [(Family::Coarse, Family::Precise), (Family::Precise, Family::Coarse)] {
        let mut timers = LocalTimers::new(ms(1));
        let greedy = insert(&mut timers, family, 0);
        let sibling = insert(&mut timers, family, 1);
        let across = insert(&mut timers, other, 2);
        for key in [greedy, sibling] {
            timers.start_at(key, ms(5)).expect("inserted");
        }
        for round in 0..2 {
            let mut fired = Vec::new();
            timers.advance(ms(5), |timers, key| {
                fired.extend(timers.get(key).copied());
                if key == greedy {
                    assert_eq!(timers.start_at(greedy, Instant::ZERO), Ok(()));
                }
                if key == greedy && !timers.is_pending(across) {
                    assert_eq!(timers.start_at(across, Instant::ZERO), Ok(()));
                }
            });
            fired.sort();
            let expected: &[usize] = if round == 0 { &[0, 1] } else { &[0, 2] };
            assert_eq!(fired, expected, "{family:?}, advance {round}");
        }
    }
}

/// Goal: zero and past deadlines fire with the next advance, precise ones in order of deadline,
/// equal ones in order of arming (W4).
#[test]
fn past_deadlines_fire_in_order() {
    let mut timers = LocalTimers::new(ms(100));
    for (number, at) in [(0, 50), (1, 0), (2, 50), (3, 100), (4, 20), (5, 0)] {
        let key = insert(&mut timers, Family::Precise, number);
        timers.start_at(key, ms(at)).expect("inserted");
    }
    for number in 10..13 {
        let key = insert(&mut timers, Family::Coarse, number);
        timers.start_at(key, Instant::ZERO).expect("inserted");
    }
    assert!(timers.next_event().is_some_and(|next| next <= ms(100)));
    assert_eq!(
        fire(&mut timers, Instant::ZERO),
        [1, 5, 4, 0, 2, 3, 10, 11, 12],
        "the time does not go back"
    );
    assert_eq!((timers.now(), timers.next_event()), (ms(100), None));
}

/// Goal: a budget bounds an advance; the remaining timers fire first with the next one, can be
/// cancelled, and make the next event pass (W2). A timer that keeps restarting does not overtake
/// them.
#[test]
fn a_budget_leaves_the_rest_first_in_line() {
    for family in Family::BOTH {
        let mut timers = LocalTimers::with_push_out(ms(0), Tick::default(), PushOut::Eager);
        let keys: Vec<Key> = (0..6).map(|n| insert(&mut timers, family, n)).collect();
        for &key in &keys {
            timers.start_at(key, ms(5)).expect("inserted");
        }
        assert_eq!(timers.advance_at_most(ms(5), 0, |_, _| panic!("no budget")), 0);
        let mut fired = Vec::new();
        for round in 0..6 {
            assert!(timers.next_event().is_some_and(|next| next <= ms(5)), "something is due");
            let count = timers.advance_at_most(ms(5 + round), 1, |timers, key| {
                fired.extend(timers.get(key).copied());
                if key == keys[0] {
                    timers.start_at(key, Instant::ZERO).expect("inserted");
                }
            });
            assert_eq!(count, 1);
            if round == 2 {
                assert_eq!(timers.cancel(keys[4]), Ok(true));
            }
        }
        assert_eq!(fired, [0, 1, 2, 3, 5, 0], "{family:?}");
    }
}

/// Goal: a timer that was armed for the past fires with the next advance, behind the timers that
/// the previous advance has left.
#[test]
fn overdue_timers_fire_with_the_next_advance() {
    for family in Family::BOTH {
        let mut timers = LocalTimers::new(ms(0));
        let keys: Vec<Key> = (0..4).map(|n| insert(&mut timers, family, n)).collect();
        for &key in &keys[..3] {
            timers.start_at(key, ms(5)).expect("inserted");
        }
        assert_eq!(timers.advance_at_most(ms(5), 1, |_, _| ()), 1);
        timers.start_at(keys[3], ms(1)).expect("inserted");
        timers.start_at(keys[0], ms(2)).expect("inserted");
        let fired = fire(&mut timers, ms(5));
        assert_eq!(fired[..2], [1, 2], "{family:?}: what was left is first in line");
        assert_eq!((fired.len(), timers.pending()), (4, 0), "{family:?}: all of them fire");
    }
}

/// Goal: far deadlines and the end of the range (W1, W5).
#[test]
fn far_deadlines_are_kept() {
    let tick = Tick::new(Duration::from_micros(1)).expect("the shortest tick");
    for family in Family::BOTH {
        let mut timers = LocalTimers::with_push_out(Instant::from_nanos(7), tick, PushOut::Lazy);
        let year = Instant::from_secs(86_400 * 365);
        for (number, at) in
            [Instant::from_secs(2_000), year, Instant::from_nanos(u64::MAX - 1), Instant::NEVER]
                .iter()
                .enumerate()
        {
            let key = insert(&mut timers, family, number);
            timers.start_at(key, *at).expect("inserted");
        }
        let mut fired = Vec::new();
        let mut rounds = 0;
        while fired.len() < 2 && rounds < 100_000 {
            rounds += 1;
            let next = timers.next_event().expect("one is pending");
            fired.extend(fire(&mut timers, next));
        }
        assert_eq!(fired, [0, 1]);
        assert!(
            timers.now() >= year && timers.now().as_nanos() <= year.as_nanos() / 7 * 8,
            "{:?}",
            timers.now()
        );
        assert_eq!(timers.pending(), 2);
    }
}

/// Goal: a panic in a callback affects no other timer.
#[test]
fn a_panic_in_a_callback_leaves_the_others() {
    for family in Family::BOTH {
        let mut timers = LocalTimers::new(Instant::ZERO);
        for number in 0..3 {
            let key = insert(&mut timers, family, number);
            timers.start_at(key, ms(5)).expect("inserted");
        }
        let advance = || timers.advance(ms(5), |_, _| resume_unwind(Box::new(())));
        assert!(catch_unwind(AssertUnwindSafe(advance)).is_err());
        assert_eq!(timers.pending(), 2);
        assert_eq!(fire(&mut timers, ms(5)), [1, 2], "{family:?}");
    }
}

/// Goal: a callback may advance the timers, and replace them.
#[test]
fn a_callback_may_advance() {
    let mut timers = LocalTimers::new(Instant::ZERO);
    for number in 0..8 {
        let key = insert(&mut timers, Family::BOTH[number % 2], number);
        timers.start_at(key, ms(1 + number as u64)).expect("inserted");
    }
    let mut fired = Vec::new();
    timers.advance(ms(4), |timers, key| {
        fired.extend(timers.get(key).copied());
        if fired.len() == 1 {
            fired.extend(fire(timers, ms(8)));
            *timers = LocalTimers::new(ms(8));
        }
    });
    fired.sort();
    assert_eq!((fired, timers.len()), ((0..8).collect(), 0));
}

/// Goal: dropping a table drops every value once, pending or not.
#[test]
fn values_are_dropped_once() {
    let value = Rc::new(());
    let mut timers = LocalTimers::new(Instant::ZERO);
    for number in 0..600 {
        let key = insert(&mut timers, Family::BOTH[number % 2], Rc::clone(&value));
        if number % 3 > 0 {
            timers.start_at(key, ms(number as u64)).expect("inserted");
        }
        if number % 5 == 0 {
            drop(timers.remove(key));
        }
    }
    assert_eq!(Rc::strong_count(&value), 1 + 480);
    drop(timers);
    assert_eq!(Rc::strong_count(&value), 1);
}

/// Goal: thousands of timers that are started, cancelled and removed at random fire once, not
/// before their deadlines and within the bound on lateness (W1, W9).
#[test]
fn thousands_of_timers_fire_once_and_in_time() {
    for push_out in [PushOut::Lazy, PushOut::Eager] {
        let mut random = Random::new(7);
        let count = if cfg!(miri) { 40 } else { 4_000 };
        let mut timers = LocalTimers::with_push_out(ms(3), Tick::default(), push_out);
        let mut keys: Vec<Key> =
            (0..count).map(|n| insert(&mut timers, Family::Coarse, n)).collect();
        let mut armed: Vec<Option<(Instant, Instant)>> = vec![None; count];
        for _ in 0..if cfg!(miri) { 20 } else { 400 } {
            for _ in 0..random.below(if cfg!(miri) { 40 } else { 2_000 }) {
                let id = random.below(count as u64) as usize;
                match random.below(8) {
                    0 => assert_eq!(timers.cancel(keys[id]), Ok(armed[id].take().is_some())),
                    1 => {
                        assert_eq!(timers.remove(keys[id]), Some(id));
                        keys[id] = insert(&mut timers, Family::Coarse, id);
                        armed[id] = None;
                    }
                    _ => {
                        let reach = random.pick(&[100, 5_000, 60_000]);
                        let after = Duration::from_nanos(random.below(reach * 1_000_000));
                        assert_eq!(timers.start(keys[id], after), Ok(()));
                        let deadline = timers.now() + after;
                        armed[id] =
                            Some((deadline, deadline + after * 10 / 77 + Duration::from_millis(1)));
                    }
                }
            }
            let step = random.pick(&[2, 50, 3_000]);
            let now = timers.now() + Duration::from_nanos(random.below(step * 1_000_000));
            timers.advance(now, |timers, key| {
                let id = *timers.get(key).expect("it fired");
                let (deadline, _) = armed[id].take().expect("it was armed");
                assert!(deadline <= now, "early");
            });
            let pending = armed.iter().flatten().count();
            assert_eq!(timers.pending(), pending);
            assert!(armed.iter().flatten().all(|&(_, latest)| latest > now), "late");
        }
    }
}

/// Goal: a wakeup that finds only pushed-out timers is counted; the settled next event avoids it.
#[test]
fn idle_wakeups_are_counted() {
    for settle in [false, true] {
        let mut timers = LocalTimers::new(Instant::ZERO);
        let key = insert(&mut timers, Family::Coarse, 0);
        timers.start_at(key, ms(60)).expect("inserted");
        assert_eq!(fire(&mut timers, ms(40)), []);
        timers.start_at(key, ms(100)).expect("inserted");
        assert_eq!(timers.next_event(), Some(ms(60)), "the time of its bucket");
        if settle {
            assert_eq!(timers.settled_next_event(), Some(ms(100)));
            assert_eq!(timers.next_event(), Some(ms(100)));
        }
        let mut wakeups = 0;
        while let Some(next) = timers.next_event() {
            wakeups += 1;
            fire(&mut timers, next);
        }
        assert_eq!((wakeups, timers.idle_wakeups()), if settle { (1, 0) } else { (2, 1) });
        assert_eq!(timers.now(), ms(100));
        timers.start(key, Duration::from_millis(5)).expect("inserted");
        assert_eq!(timers.cancel(key), Ok(true));
        assert_eq!(timers.next_event(), None, "nothing is pending");
    }
}
