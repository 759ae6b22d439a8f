//! A timer that owns its memory and keeps its bases (the timers of each CPU) alive, for simulators
//! and replays.
//!
//! On real machines `tickless/src/timer/pinned.rs` is used instead, which also handles waits that
//! would never end, callbacks on the caller's stack, forked children, and memory that the program
//! owns.

use crate::bases::cancel::{Cancel, Occupied};
use crate::bases::{Bases, Family, Options, StartError, Started};
use crate::link::{Timer, TimerRef};
use crate::platform::{Ordering, Platform, Word};
use crate::state::Life;
use crate::time::{Ns, Window};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::convert::Infallible;
use core::fmt;
use core::ptr::NonNull;

/// A timer on the heap, and the bases with which it is used.
///
/// Dropping it shuts it down and waits until its callback has returned. A callback must not drop
/// its own timer.
pub struct OwnedTimer<P: Platform, L: Family<P>> {
    timer: NonNull<Timer<P, L>>,
    bases: Arc<Bases<P>>,
}

// SAFETY: many threads may use a timer at once; `Platform` requires that its task is `Send`.
unsafe impl<P: Platform, L: Family<P>> Send for OwnedTimer<P, L> {}
// SAFETY: the bases, through which all uses go, take the timer's lock.
unsafe impl<P: Platform, L: Family<P>> Sync for OwnedTimer<P, L> {}

impl<P: Platform, L: Family<P>> fmt::Debug for OwnedTimer<P, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedTimer").field("pending", &self.is_pending()).finish()
    }
}

impl<P: Platform, L: Family<P>> OwnedTimer<P, L> {
    /// Creates a timer that was never armed. The bases return `task` when it fires.
    pub fn new(bases: &Arc<Bases<P>>, task: P::Task) -> Self {
        let timer = NonNull::from(Box::leak(Box::new(Lined(Timer::<P, L>::new(task)))));
        OwnedTimer { timer: timer.cast(), bases: Arc::clone(bases) }
    }

    /// Creates a timer that is lazy for its lifetime: removing it or pushing it out need not
    /// program the event device ([`LazyTimers`](crate::rearm::LazyTimers)).
    pub fn lazy(bases: &Arc<Bases<P>>, task: P::Task) -> Self {
        let owned = OwnedTimer::new(bases, task);
        // Relaxed: no other thread has the timer yet.
        owned.timer().word().store(Life::FRESH.lazy().word(), Ordering::Relaxed);
        owned
    }

    /// See [`Bases::start`].
    pub fn start(&self, window: Window, now: Ns, options: Options) -> Result<Started, StartError> {
        self.bases.start(self.timer(), window, now, options)
    }

    /// See [`Bases::cancel`].
    pub fn cancel(&self) -> Cancel {
        self.bases.cancel(self.timer())
    }

    /// See [`Bases::try_cancel`].
    pub fn try_cancel(&self) -> Cancel {
        self.bases.try_cancel(self.timer())
    }

    /// See [`Bases::cancel_sync`].
    pub fn cancel_sync(&self) -> Cancel {
        self.bases.cancel_sync(self.timer())
    }

    /// See [`Bases::cancel_sync_unless`].
    pub fn cancel_sync_unless<E>(
        &self,
        refuse: impl FnMut(Occupied) -> Result<(), E>,
    ) -> Result<Cancel, E> {
        self.bases.cancel_sync_unless(self.timer(), refuse)
    }

    /// See [`Bases::cancel_single_shot`].
    pub fn cancel_single_shot(&self) -> Option<Cancel> {
        let Ok(found) = self.bases.cancel_single_shot(self.timer(), |_| Ok::<(), Infallible>(()));
        found
    }

    /// See [`Bases::shutdown`].
    pub fn shutdown(&self) -> Cancel {
        self.bases.shutdown(self.timer())
    }

    /// See [`Bases::shutdown_sync`].
    pub fn shutdown_sync(&self) -> Cancel {
        self.bases.shutdown_sync(self.timer())
    }

    /// See [`Bases::is_active`].
    pub fn is_active(&self) -> bool {
        self.bases.is_active(self.timer())
    }

    /// See [`Bases::is_running`].
    pub fn is_running(&self) -> bool {
        self.bases.is_running(self.timer())
    }

    /// See [`Bases::is_pending`].
    pub fn is_pending(&self) -> bool {
        self.bases.is_pending(self.timer())
    }

    fn timer(&self) -> TimerRef<P, L> {
        // SAFETY: the allocation lives until `drop`, which shuts the timer down first; the
        // reference is only used with `self.bases`.
        unsafe { TimerRef::new(self.timer) }
    }
}

impl<P: Platform, L: Family<P>> Drop for OwnedTimer<P, L> {
    fn drop(&mut self) {
        self.bases.shutdown_sync(self.timer());
        // SAFETY: `new` leaked this box; the timer is shut down and runs nowhere.
        drop(unsafe { Box::from_raw(self.timer.cast::<Lined<Timer<P, L>>>().as_ptr()) });
    }
}

/// A value on cache lines of its own.
#[repr(C, align(64))]
struct Lined<T>(T);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bases::cancel::Cancel;
    use crate::bases::expiry::CallbackResult;
    use crate::bases::{Bases, Options, Settings};
    use crate::link::{Link, NewTimer, QueueLink, WheelLink};
    use crate::platform::Lock;
    use crate::rearm::Rearm;
    use crate::time::{CpuId, Instant, Ns, Window};
    use alloc::boxed::Box;
    use core::sync::atomic::AtomicU64;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// A platform with one CPU, on which the time is always 02:00.
    struct Still;

    const NOW: Ns = Ns::from_secs(7_200);

    // SAFETY: words are atomics, the lock is a mutex, and the other functions do nothing.
    unsafe impl Platform for Still {
        type Word = AtomicU64;
        type ParkingWord = AtomicU64;
        type Lock<T: Send> = Guarded<T>;
        type Task = ();

        fn now(&self) -> Ns {
            NOW
        }

        fn here(&self) -> CpuId {
            CpuId(0)
        }

        fn program(&self, _: CpuId, _: Ns) -> Rearm {
            Rearm::Keep
        }

        fn kick(&self, _: CpuId) {}

        fn relax(&self, _: u32) {
            panic!("there is no other thread");
        }

        fn park(&self, _: &AtomicU64, _: u32) {
            panic!("there is no other thread");
        }

        fn unpark(&self, _: &AtomicU64) {}
    }

    struct Guarded<T>(Mutex<T>);

    impl<T: Send> Lock<T> for Guarded<T> {
        type Guard<'a>
            = MutexGuard<'a, T>
        where
            T: 'a;

        fn new(value: T) -> Self {
            Guarded(Mutex::new(value))
        }

        fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    fn timer_at<L: Link>(place: NonNull<Timer<Still, L>>) -> TimerRef<Still, L> {
        // SAFETY: the tests below keep a timer in its place until it has been shut down, or its
        // callback has started and it is not pending. Each test has one set of bases.
        unsafe { TimerRef::new(place) }
    }

    /// Goal: `start_new` arms a timer on the same base as `start`: the caller's, or the next one if
    /// the caller's base is offline (D8: timers for an offline base go to another one). The timer
    /// can be rearmed and cancelled after that.
    fn starts_new<L: crate::bases::Family<Still>>() {
        for offline in [false, true] {
            let bases = Bases::new(Still, 2, Settings::default());
            if offline {
                assert_eq!(bases.offline(CpuId(0)), Ok(0));
            }
            let place = NonNull::from(Box::leak(Box::new(Timer::<Still, L>::new(()))));
            let window = Window::new(NOW.after(Ns::from_secs(1)), NOW.after(Ns::from_secs(2)));
            // SAFETY: `place` was leaked above, and is freed below after it has been cancelled.
            bases.start_new(unsafe { NewTimer::new(place) }, window, NOW);
            let [there, elsewhere] = [offline, !offline].map(|second| {
                let view = bases.view(CpuId(u16::from(second))).unwrap();
                (view.coarse + view.precise, view.earliest != Instant::NEVER)
            });
            assert_eq!((there, elsewhere), ((1, true), (0, false)));
            assert_eq!([0, 1].map(|cpu| bases.check(CpuId(cpu))), [Ok(()); 2]);
            let again = bases.start(timer_at(place), window, NOW, Options::default());
            assert_eq!(again, Ok(Started::Pending));
            assert_eq!(bases.cancel(timer_at(place)), Cancel::Pending);
            // SAFETY: leaked above, and idle.
            drop(unsafe { Box::from_raw(place.as_ptr()) });
        }
    }

    #[test]
    fn a_new_timer_is_armed_on_the_callers_base() {
        starts_new::<WheelLink<AtomicU64>>();
        starts_new::<QueueLink>();
    }

    fn frees_itself<L: crate::bases::Family<Still>>() {
        let bases = Bases::new(Still, 1, Settings::default());
        for reuse in [false, true] {
            let place = NonNull::from(Box::leak(Box::new(Timer::<Still, L>::new(()))));
            let window = Window::new(Ns::ZERO, Ns::ZERO);
            let started = bases.start(timer_at(place), window, NOW, Options::default());
            assert!(started.is_ok());
            let expired = bases.expire(CpuId(0), |firing| {
                assert_eq!(firing.timer, place.cast());
                assert_eq!(bases.shutdown(timer_at(place)), Cancel::Running);
                bases.detach(timer_at(place));
                // SAFETY: `place` was leaked above; its callback is detached, it is not pending,
                // and no thread uses it any more.
                let mut memory = unsafe { Box::from_raw(place.as_ptr()) };
                if reuse {
                    *memory = Timer::new(());
                    let new = timer_at(NonNull::from(Box::leak(memory)));
                    assert_eq!((bases.is_active(new), bases.cancel(new)), (false, Cancel::Idle));
                    assert!(bases.start(new, window, NOW, Options::default()).is_ok());
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
        frees_itself::<WheelLink<AtomicU64>>();
        frees_itself::<QueueLink>();
    }
}
