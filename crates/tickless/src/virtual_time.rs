//! Time that stands still until a test moves it.
//!
//! ```
//! use std::time::Duration;
//! use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
//! use tickless::VirtualTime;
//!
//! let time = VirtualTime::new();
//! let tries = Arc::new(AtomicU32::new(0));
//! let seen = Arc::clone(&tries);
//! let retry = time.timers().hrtimer(move |fired| {
//!     if seen.fetch_add(1, Ordering::Relaxed) < 3 {
//!         fired.restart(Duration::from_secs(3600));
//!     }
//! });
//! retry.start(Duration::from_secs(60))?;
//! time.advance(Duration::from_secs(59));
//! assert_eq!(tries.load(Ordering::Relaxed), 0);
//! time.advance(Duration::from_secs(86_400)); // takes no time at all
//! assert_eq!(tries.load(Ordering::Relaxed), 4);
//! # Ok::<(), tickless::StartError>(())
//! ```

use crate::Timers;
use crate::builder::Builder;
use crate::host::frame;
use crate::host::time_base::TimeBase;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tickless_core::time::{CpuId, Ns};
use tickless_core::wheel::PushOut;

/// Where the clock stops: [`Ns::NEVER`] does not come.
const END: Ns = Ns(Ns::NEVER.0 - 1);

/// Timers on a clock that is moved by hand. Callbacks run on the thread that moves it, in order
/// of expiry, each at exactly the time at which its timer comes due.
///
/// The core, its bases and its rounding are those of real timers. The clock stops one
/// nanosecond short of [`Ns::NEVER`], so that what is armed for never never fires.
///
/// # Order
///
/// By the time of expiry, on all bases together. What expires at one instant runs base by base,
/// high-resolution timers before timeouts, and within a family those of one deadline as they
/// were armed. What a callback arms for the very instant runs at that instant. (A callback that
/// does so without end keeps the clock from moving on, for ever: time must pass somewhere.)
///
/// # Callbacks that take time
///
/// While a callback runs the clock stands still, however long it really takes, and nothing else
/// fires. To have it take time, let it move the clock itself: within a callback of these timers
/// all ways to advance only move the clock. What came due meanwhile runs, late, once the
/// callback has returned.
///
/// One thread moves the clock at a time; others that want to wait for it. So a callback must
/// not wait for another thread that moves the clock.
///
/// # Panics
///
/// A callback that panics is caught and counted, as by real timers: a failed assertion in a
/// callback fails no test by itself. Look at [`Stats::panics`](crate::Stats::panics) at the end,
/// or hand results out of the callback.
#[derive(Debug)]
pub struct VirtualTime {
    timers: Timers,
    /// Held by who moves the clock and runs callbacks: a base has one handler at a time.
    hand: Mutex<()>,
}

impl VirtualTime {
    /// One base, on a clock that stands at one second: zero would hide arithmetic that goes
    /// below it.
    pub fn new() -> VirtualTime {
        VirtualTime::with(Timers::builder().bases(1), Ns::from_secs(1))
    }

    /// Another set-up, on a clock that stands at `now`. Pushing out is always
    /// [`PushOut::Eager`], which makes the order of equal deadlines exactly that of arming.
    pub fn with(builder: Builder, now: Ns) -> VirtualTime {
        let builder = builder.push_out(PushOut::Eager).note_armings();
        let timers = builder.start_virtual(now.min(END));
        VirtualTime { timers, hand: Mutex::default() }
    }

    /// The timers, to be handed to the code under test.
    pub fn timers(&self) -> &Timers {
        &self.timers
    }

    /// What the clock shows.
    pub fn now(&self) -> Ns {
        self.timers.now()
    }

    /// When the next timer comes due; `None` if nothing that would wake anybody is pending. A
    /// timeout farther away than the wheel reaches (12 days with a tick of 1 ms) has earlier
    /// events as well, at which it is put where it belongs by then.
    pub fn next_event(&self) -> Option<Ns> {
        let bases = &self.timers.shared.bases;
        let earliest = (0..bases.count()).map(|base| bases.next_event(CpuId(base as u16))).min();
        earliest.filter(|&at| at != Ns::NEVER)
    }

    /// For the end of a test: is nothing left behind?
    ///
    /// # Panics
    ///
    /// If a timer is pending; the message says whose, how many and, in debug builds, where they
    /// were armed.
    pub fn assert_idle(&self) {
        let leaks = self.timers.leaks();
        assert!(leaks.is_empty(), "{leaks}");
    }

    /// Moves the clock on, from one expiry to the next, and runs what comes due.
    pub fn advance(&self, by: Duration) {
        let hand = self.hand();
        self.move_to(self.now() + by, hand);
    }

    /// The same up to a point in time. A point that has passed runs only what is overdue.
    pub fn advance_to(&self, to: Ns) {
        self.move_to(to, self.hand());
    }

    /// Moves the clock to the next expiry and runs it. `false` if nothing is pending that would
    /// ever fire by itself.
    pub fn advance_to_next(&self) -> bool {
        let hand = self.hand();
        while let Some(next) = self.next_event() {
            self.set(next);
            // The event of a timer beyond the wheel's reach only puts it where it belongs now.
            if hand.is_none() || self.expire() > 0 {
                return true;
            }
        }
        false
    }

    /// What one of its clocks shows. At first boottime is what [`now`](Self::now) is, and the
    /// time of day that much after 2000-01-01.
    pub fn now_on(&self, base: TimeBase) -> Ns {
        self.timers.now_on(base)
    }

    /// Sets the time of day, forwards or backwards, and runs what comes due by that. No other
    /// clock moves.
    pub fn set_realtime(&self, to: Ns) {
        let by = i128::from(to.0) - i128::from(self.now_on(TimeBase::Realtime).0);
        self.step(TimeBase::Realtime, by.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
        self.stepped();
    }

    /// The system is suspended for so long: boottime and the time of day go on, and the clock
    /// that timers run on does not. Runs what has come due meanwhile.
    pub fn suspend(&self, duration: Duration) {
        let by = Ns::from_duration(duration).0.min(i64::MAX as u64) as i64;
        self.step(TimeBase::Boottime, by);
        self.step(TimeBase::Realtime, by);
        self.stepped();
    }

    fn step(&self, base: TimeBase, by_ns: i64) {
        self.timers.shared.bases.platform().steps.step(base, by_ns);
    }

    fn stepped(&self) {
        self.timers.shared.clocks_stepped();
        self.advance_to(self.now());
    }

    /// The right to run callbacks. `None` in one of them, which is run by who has it.
    fn hand(&self) -> Option<MutexGuard<'_, ()>> {
        let is_nested = frame::is_in_callback_of(&*self.timers.shared);
        (!is_nested).then(|| self.hand.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn move_to(&self, to: Ns, hand: Option<MutexGuard<'_, ()>>) {
        if hand.is_none() {
            return self.set(to);
        }
        self.expire();
        while let Some(next) = self.next_event()
            && next <= to
        {
            self.set(next);
            self.expire();
        }
        self.set(to);
        // What defers to others' events gets its turn at the end.
        self.expire();
    }

    fn set(&self, now: Ns) {
        self.timers.shared.bases.platform().clock.set_manual(now.min(END));
    }

    /// Runs what is due on all bases. Returns how many timers fired.
    fn expire(&self) -> u64 {
        let shared = &self.timers.shared;
        (0..shared.bases.count()).map(|base| shared.expire(CpuId(base as u16)).fired).sum()
    }
}

impl Default for VirtualTime {
    fn default() -> Self {
        VirtualTime::new()
    }
}
