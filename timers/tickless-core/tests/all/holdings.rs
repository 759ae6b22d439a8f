//! W8: one holding of a base's lock examines a bounded number of timers, and other threads get the
//! lock between two holdings.

use crate::support::scene::{HERE, START, Scene, THERE, ms};
use crate::support::timers::{AnyTimer, Family, exactly};
use crate::support::{before_each_lock, on, while_locks_are_wanted};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::bases::pending::Walk;
use tickless_core::bases::{Deferral, HOLDING, Options, Settings, Started};
use tickless_core::rearm::Limits;
use tickless_core::time::Ns;

const MANY: usize = if cfg!(miri) { 200 } else { 3_000 };

fn scenes() -> impl Iterator<Item = Scene> {
    [Deferral::None, Deferral::OnExpiry]
        .into_iter()
        .map(|deferral| Scene::new(Settings { deferral, ..Settings::default() }, 2))
}

fn crowd(scene: &Scene, family: Family, after: Ns) -> Vec<Rc<AnyTimer>> {
    let timer = |task| {
        let timer = Rc::new(scene.timer(family, task));
        scene.start(&timer, HERE, after);
        timer
    };
    (0..MANY).map(timer).collect()
}

fn longest(scene: &Scene) -> usize {
    scene.bases.view(HERE).expect("a base").longest_holding
}

/// Goal: while pushed-out timers are moved, other threads start and cancel, and none is lost.
#[test]
fn pushed_out_timers_are_moved_a_few_at_a_time() {
    for scene in scenes() {
        let timers = crowd(&scene, Family::Coarse, ms(1_000));
        for timer in &timers {
            scene.start(timer, HERE, ms(10_000));
        }
        let other = Rc::new(scene.timer(Family::Coarse, MANY));
        // An expiry thread is only called if a timer is due.
        let due = scene.timer(Family::Coarse, MANY + 1);
        scene.start(&due, HERE, ms(4_000));
        let cancelled = Rc::new(RefCell::new(Vec::new()));
        scene.go(ms(5_000));
        let (of_act, starts) = (timers.clone(), Rc::clone(&other));
        let note = Rc::clone(&cancelled);
        let act = move |lock: usize| {
            // At the end of the bucket, not examined yet.
            let victim = MANY - lock;
            if victim > MANY / 2 {
                assert_eq!(on(THERE, || of_act[victim].cancel()), Cancel::Pending);
                note.borrow_mut().push(victim);
                let at = exactly(START.after(ms(20_000)));
                let started =
                    on(HERE, || starts.start(at, START.after(ms(5_000)), Options::default()));
                assert!(matches!(started, Ok(Started::Idle | Started::Pending)));
            }
        };
        let locks = before_each_lock(act, || assert_eq!(scene.fire(HERE), [MANY + 1]));
        assert!(locks >= MANY / HOLDING, "{locks} holdings for {MANY} timers");
        assert!((2..=HOLDING).contains(&longest(&scene)), "{}", longest(&scene));
        scene.bases.check(HERE).expect("a sound base");
        scene.go(ms(12_000));
        let cancelled = cancelled.borrow();
        let fired = scene.fire(HERE);
        assert_eq!(fired.len(), MANY - cancelled.len());
        assert!(!fired.iter().any(|task| cancelled.contains(task)));
        scene.go(ms(30_000));
        assert_eq!(scene.fire(HERE), [MANY]);
        assert!(longest(&scene) <= HOLDING);
    }
}

/// Goal: a thread that waits for the lock gets it after one pushed-out timer or one callback.
#[test]
fn a_wanted_lock_is_given_back_after_the_timer_in_hand() {
    for scene in scenes() {
        let timers = crowd(&scene, Family::Coarse, ms(1_000));
        for timer in &timers {
            scene.start(timer, HERE, ms(10_000));
        }
        let due = scene.timer(Family::Coarse, MANY);
        scene.start(&due, HERE, ms(4_000));
        scene.go(ms(5_000));
        let let_in = while_locks_are_wanted(|| assert_eq!(scene.fire(HERE), [MANY]));
        assert!(let_in >= MANY as u64, "let in {let_in} times between {MANY} timers");
        scene.bases.check(HERE).expect("a sound base");
        scene.go(ms(12_000));
        let let_in = while_locks_are_wanted(|| assert_eq!(scene.fire(HERE).len(), MANY));
        assert!(let_in >= MANY as u64, "let in {let_in} times between {MANY} callbacks");
    }
}

/// Goal: timers that are read ahead (in buckets of more than 256) count towards the bound.
#[test]
fn reading_ahead_counts_towards_the_bound() {
    for scene in scenes() {
        let timers = crowd(&scene, Family::Coarse, ms(1_000));
        for (nth, timer) in timers.iter().enumerate() {
            scene.start(timer, HERE, ms(1_000 + nth as u64 % 60));
        }
        scene.go(ms(5_000));
        assert_eq!(scene.fire(HERE).len(), MANY);
        assert!(longest(&scene) <= HOLDING, "{}", longest(&scene));
    }
}

/// Goal: precise timers armed for the past are queued for the next pass in short holdings.
#[test]
fn late_timers_are_queued_a_few_at_a_time() {
    for scene in scenes() {
        let timers = crowd(&scene, Family::Precise, ms(1));
        scene.go(ms(2));
        let again = Cell::new(MANY);
        let act = |_| ();
        let mut fired = 0;
        let locks = before_each_lock(act, || {
            let expired = scene.handle(HERE, |firing| {
                fired += 1;
                match again.get() {
                    0 => CallbackResult::Done,
                    left => {
                        again.set(left - 1);
                        CallbackResult::Restart(exactly(firing.now))
                    }
                }
            });
            assert_eq!(expired.fired, 2 * MANY as u64);
        });
        assert_eq!(fired, 2 * MANY);
        assert!(locks >= 2 * MANY + MANY / HOLDING, "{locks}");
        assert!((2..=HOLDING).contains(&longest(&scene)), "{}", longest(&scene));
        drop(timers);
    }
}

#[test]
fn evacuating_and_listing_are_bounded() {
    for scene in scenes() {
        let timers = crowd(&scene, Family::Coarse, ms(1_000));
        let precise = crowd(&scene, Family::Precise, ms(1_000));
        let (mut walk, mut slice, mut found) = (Walk::begin(), Vec::with_capacity(10_000), 0);
        while !walk.is_over() {
            assert!(scene.bases.walk(HERE, &mut walk, &mut slice));
            found += slice.len();
        }
        assert_eq!(found, 2 * MANY);
        assert_eq!(longest(&scene), HOLDING);
        assert_eq!(scene.bases.offline(HERE), Ok(2 * MANY as u64));
        assert_eq!(longest(&scene), HOLDING);
        drop((timers, precise));
    }
}

/// Goal: a timer that keeps arming itself for the past does not keep out a waiting thread.
#[test]
fn a_waiting_thread_gets_the_lock_after_each_callback() {
    const CALLS: u64 = 50;
    for (deferral, family) in [
        (Deferral::None, Family::Precise),
        (Deferral::None, Family::Coarse),
        (Deferral::OnExpiry, Family::Precise),
        (Deferral::OnExpiry, Family::Coarse),
    ] {
        let limits = Limits { passes: u32::MAX, ..Limits::NONE };
        let scene = Scene::new(Settings { deferral, limits, ..Settings::default() }, 2);
        let timer = scene.timer(family, 0);
        scene.start(&timer, HERE, ms(1));
        scene.go(ms(5));
        let mut fired = 0;
        let let_in = while_locks_are_wanted(|| {
            scene.handle(HERE, |firing| {
                fired += 1;
                match fired {
                    CALLS => CallbackResult::Done,
                    _ => CallbackResult::Restart(exactly(firing.now)),
                }
            });
        });
        assert_eq!(fired, CALLS);
        assert!(let_in >= CALLS, "{deferral:?} {family:?}: let in {let_in} times");
    }
}
