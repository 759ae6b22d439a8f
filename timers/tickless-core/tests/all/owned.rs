//! Timers in memory that the test owns: a first arming, and a callback that frees its own timer.

use crate::support::scene::{START, Scene};
use crate::support::{Moment, TestPlatform, Watch, WatchedWord, go_to};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::rc::Rc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::bases::{Family, Options, Settings, Started};
use tickless_core::link::{Link, NewTimer, QueueLink, Timer, TimerRef, WheelLink};
use tickless_core::time::{CpuId, Instant, Ns, Window};

fn timer_at<L: Link>(place: NonNull<Timer<TestPlatform, L>>) -> TimerRef<TestPlatform, L> {
    // SAFETY: the tests below keep a timer in its place until it has been shut down, or its
    // callback has started and it is not pending. Each test has one set of bases.
    unsafe { TimerRef::new(place) }
}

/// Goal: `start_new` arms a timer on the caller's base, or the next one if that is offline (D8).
fn starts_new<L: Family<TestPlatform>>() {
    for offline in [false, true] {
        let bases = Scene::new(Settings::default(), 2).bases;
        if offline {
            assert_eq!(bases.offline(CpuId(0)), Ok(0));
        }
        let place = NonNull::from(Box::leak(Box::new(Timer::<TestPlatform, L>::new(0))));
        let window = Window::new(START.after(Ns::from_secs(1)), START.after(Ns::from_secs(2)));
        // SAFETY: `place` was leaked above, and is freed below after it has been cancelled.
        bases.start_new(unsafe { NewTimer::new(place) }, window, START);
        let [there, elsewhere] = [offline, !offline].map(|second| {
            let view = bases.view(CpuId(u16::from(second))).unwrap();
            (view.coarse + view.precise, view.earliest != Instant::NEVER)
        });
        assert_eq!((there, elsewhere), ((1, true), (0, false)));
        assert_eq!([0, 1].map(|cpu| bases.check(CpuId(cpu))), [Ok(()); 2]);
        let again = bases.start(timer_at(place), window, START, Options::default());
        assert_eq!(again, Ok(Started::Pending));
        assert_eq!(bases.cancel(timer_at(place)), Cancel::Pending);
        // SAFETY: leaked above, and idle.
        drop(unsafe { Box::from_raw(place.as_ptr()) });
    }
}

#[test]
fn a_new_timer_is_armed_on_the_callers_base() {
    starts_new::<WheelLink<WatchedWord>>();
    starts_new::<QueueLink>();
}

fn frees_itself<L: Family<TestPlatform>>() {
    let bases = Scene::new(Settings::default(), 1).bases;
    for reuse in [false, true] {
        let place = NonNull::from(Box::leak(Box::new(Timer::<TestPlatform, L>::new(0))));
        let window = Window::new(Ns::ZERO, Ns::ZERO);
        let started = bases.start(timer_at(place), window, START, Options::default());
        assert!(started.is_ok());
        let expired = bases.expire(CpuId(0), |firing| {
            assert_eq!(firing.timer, place.cast());
            assert_eq!(bases.shutdown(timer_at(place)), Cancel::Running);
            bases.detach(timer_at(place));
            // SAFETY: `place` was leaked above; its callback is detached, it is not pending,
            // and no thread uses it any more.
            let mut memory = unsafe { Box::from_raw(place.as_ptr()) };
            if reuse {
                *memory = Timer::new(0);
                let new = timer_at(NonNull::from(Box::leak(memory)));
                assert_eq!((bases.is_active(new), bases.cancel(new)), (false, Cancel::Idle));
                assert!(bases.start(new, window, START, Options::default()).is_ok());
                assert_eq!(bases.shutdown_sync(new), Cancel::Pending);
            }
            CallbackResult::Done
        });
        assert_eq!(expired.fired, 1);
        if reuse {
            assert!(!bases.is_running(timer_at(place)));
            // SAFETY: leaked again above, and shut down.
            drop(unsafe { Box::from_raw(place.as_ptr()) });
        }
    }
}

/// Goal: a callback may free its own timer, and a new timer may reuse the address (X4).
/// Method: free the memory in the callback; Miri reports every later access.
#[test]
fn a_callback_may_free_its_own_timer() {
    frees_itself::<WheelLink<WatchedWord>>();
    frees_itself::<QueueLink>();
}

/// Goal: a coarse timer at the address of a freed one, whose callback still runs on a base without
/// lists, is armed there all the same, and finds lists. Method: the arming thread changes its CPU
/// when it has written the first state of the timer.
#[test]
fn a_coarse_timer_in_reused_memory_finds_lists() {
    let bases = Scene::new(Settings::default(), 2).bases;
    let place = NonNull::from(Box::leak(Box::new(MaybeUninit::<[u64; 32]>::uninit())));
    let (old, new) = (place.cast::<Timer<_, QueueLink>>(), place.cast::<Timer<_, WheelLink<_>>>());
    // SAFETY: `place` is large enough, and nothing else uses it.
    unsafe { old.write(Timer::new(0)) };
    let due = Window::new(Ns::ZERO, Ns::ZERO);
    assert!(bases.start(timer_at(old), due, START, Options::default()).is_ok());
    bases.expire(CpuId(0), |_| {
        assert_eq!(bases.shutdown(timer_at(old)), Cancel::Running);
        let moves = |moment| matches!(moment, Moment::Wrote(_)).then(|| go_to(CpuId(1)));
        let _moves = Watch::with(Rc::new(move |moment| _ = moves(moment)));
        // SAFETY: the old timer was shut down. The new one is cancelled before it is freed.
        unsafe {
            new.write(Timer::new(1));
            bases.start_new(NewTimer::new(new), Window::at(START.after(Ns::from_secs(1))), START);
        }
        assert_eq!([0, 1].map(|cpu| bases.view(CpuId(cpu)).unwrap().coarse), [1, 0]);
        assert_eq!([0, 1].map(|cpu| bases.check(CpuId(cpu))), [Ok(()); 2]);
        CallbackResult::Done
    });
    go_to(CpuId(0));
    assert_eq!(bases.cancel(timer_at(new)), Cancel::Pending);
    assert_eq!(bases.check(CpuId(0)), Ok(()));
    // SAFETY: leaked above, and idle.
    drop(unsafe { Box::from_raw(place.as_ptr()) });
}
