//! A simulated clock that advances only when a test advances it, and timers on that clock.
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
//! # Ok::<(), tickless::callback::StartError>(())
//! ```

mod auto;
mod counts;
mod shuffle;

pub use auto::Busy;

use crate::builder::Builder;
use crate::platform::fork::{OfProcess, ProcessGuard, ProcessLock};
use crate::platform::manual_clock::ManualClock;
use crate::platform::time_base::{Steps, TimeBase};
use crate::timer::waits;
use crate::timer::wakers::Wakers;
use crate::timers::Timers;
use auto::Work;
use shuffle::Shuffle;
use std::iter::successors;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tickless_core::time::{CpuId, Instant, Ns};

/// The last instant that a virtual clock reaches, one nanosecond before [`Instant::NEVER`].
const END: Ns = Ns(Ns::NEVER.0 - 1);

/// Timers on a clock that the program advances. Callbacks run on the thread that advances the
/// clock, in order of expiry, each at exactly its timer's deadline. Cheap to clone.
///
/// Coarse timers, which fire up to 13 % late on a real clock, are exact here, unless the builder
/// sets [`coarse_like_real`](crate::Builder::coarse_like_real). The clock stops one nanosecond
/// before [`Instant::NEVER`], so a timer that is armed for `NEVER` does not fire. A callback's
/// panic is caught and counted, as with real timers, so a failed assertion in a callback does not
/// fail the test: check [`Stats::panics`](crate::stats::Stats::panics) at its end.
///
/// # Order
///
/// Timers that expire at the same instant fire base by base, precise timers before timeouts, and
/// within each kind in the order of their arming. Code that depends on this breaks on a machine
/// with several CPUs: [`shuffled`](VirtualTime::shuffled) fires them in a random order, which a
/// seed reproduces.
///
/// A timer that a callback arms for the current instant fires at that instant. A base fires at most
/// 1,024 rounds of such timers before the next base has its turn. After 2,000 turns of each base at
/// one instant, the method that advances the clock panics, because the clock would never advance.
///
/// # Callbacks that take time
///
/// While a callback runs, the clock does not advance, however long it takes in real time. A
/// callback that should take virtual time advances the clock itself, which fires nothing: timers
/// that have come due by then fire, late, after the callback has returned.
///
/// # Several threads
///
/// One thread at a time advances the clock; others wait, so a callback must not wait for a thread
/// that advances it. The clock can also advance automatically when every task and thread waits for
/// time, see [`block_on`](VirtualTime::block_on) and [`busy`](VirtualTime::busy).
///
/// # Fork
///
/// In a forked child the parent's timers are shut down, as real ones are, and methods that advance
/// the clock or wait for it panic. Drops do not wait. A child can create a virtual time of its own.
#[derive(Clone, Debug)]
pub struct VirtualTime {
    inner: Arc<OfProcess<Inner>>,
}

#[derive(Debug)]
struct Inner {
    clock: Arc<ManualClock>,
    sets: Sets,
    /// Held by the thread that advances the clock and runs callbacks. A mutex of the standard
    /// library takes two atomic exchanges for each step, this one takes one.
    moving: ProcessLock<Wakers>,
    /// The number of the thread that holds `moving`, or 0.
    holder: AtomicU64,
    work: Work,
    shuffle: Option<Shuffle>,
}

/// A set of timers on the clock, and those that were added later. Reading the list takes no lock.
#[derive(Debug)]
struct Sets {
    timers: Timers,
    next: OnceLock<Box<Sets>>,
}

impl Sets {
    fn iter(&self) -> impl Iterator<Item = &Timers> {
        successors(Some(self), |sets| sets.next.get().map(Box::as_ref)).map(|sets| &sets.timers)
    }

    fn add(&self, timers: Timers) {
        let (mut last, mut added) = (self, Box::new(Sets { timers, next: OnceLock::new() }));
        while let Err(back) = last.next.set(added) {
            (last, added) = (last.next.get().map_or(last, Box::as_ref), back);
        }
    }
}

impl Drop for Sets {
    /// Drops the later sets one after the other: each inside of the one before takes stack.
    fn drop(&mut self) {
        let mut rest = self.next.take();
        while let Some(mut sets) = rest {
            rest = sets.next.take();
        }
    }
}

struct Moving<'a> {
    holder: &'a AtomicU64,
    wakers: ProcessGuard<'a, Wakers>,
    at: Instant,
    /// The number of rounds of callbacks since the clock reached the time `at`.
    rounds: u32,
}

/// After this many rounds of callbacks at one instant, advancing the clock panics: the callbacks
/// keep rearming timers for that instant, so the clock would never advance.
const ROUNDS_MAX: u32 = 2_000;

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}

impl VirtualTime {
    /// Creates timers with one base, on a clock that starts at one second. (If it started at zero,
    /// tests would not notice times before the start, which saturate to zero.)
    pub fn new() -> VirtualTime {
        VirtualTime::with_builder(Timers::builder().bases(1), Instant::from_secs(1))
    }

    /// Creates timers with the builder's settings, on a virtual clock that starts at `now`.
    pub fn with_builder(builder: Builder, now: Instant) -> VirtualTime {
        VirtualTime::start(builder, now, None)
    }

    fn start(builder: Builder, now: Instant, shuffle: Option<Shuffle>) -> VirtualTime {
        let clock = Arc::new(ManualClock::at(now.to_ns().min(END)));
        let first = timers_on(&clock, builder, shuffle.as_ref());
        let inner = Inner {
            clock,
            sets: Sets { timers: first, next: OnceLock::new() },
            moving: ProcessLock::new(Wakers::default()),
            holder: AtomicU64::new(0),
            work: Work::default(),
            shuffle,
        };
        VirtualTime { inner: Arc::new(OfProcess::new(inner)) }
    }

    /// Adds a set of timers on this clock. The timers of all sets fire in order of expiry; at equal
    /// expiry, those of the set that was added first fire first.
    pub fn add_timers(&self, builder: Builder) -> Timers {
        self.refuse_in_child();
        let timers = timers_on(&self.inner.clock, builder, self.inner.shuffle.as_ref());
        self.inner.sets.add(timers.clone());
        timers
    }

    /// Returns the set of timers that this clock was created with, for the code under test.
    pub fn timers(&self) -> &Timers {
        &self.inner.sets.timers
    }

    #[cfg(feature = "tokio-time")]
    pub(crate) fn is_same(&self, other: &VirtualTime) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns the current time on this clock.
    pub fn now(&self) -> Instant {
        self.inner.clock.now().into()
    }

    /// Returns when the next timer expires; `None` if no timer is pending except deferrable ones.
    /// For a timeout beyond the wheel's range this can be an earlier time, at which the timeout
    /// does not fire but only moves to another bucket.
    pub fn next_event(&self) -> Option<Instant> {
        if self.is_forked_child() {
            return None;
        }
        let earliest = self.earliest();
        (earliest != Ns::NEVER).then(|| earliest.into())
    }

    fn earliest(&self) -> Ns {
        let mut earliest = Ns::NEVER;
        self.for_each_base(|timers, base| {
            earliest = earliest.min(timers.shared.bases.exact_next_event(base));
        });
        earliest
    }

    /// Checks that no timer is pending: for the end of a test. O(pending).
    ///
    /// # Panics
    ///
    /// If a timer is pending. The message lists the owners, the number of timers and, in debug
    /// builds, where they were armed.
    pub fn assert_idle(&self) {
        self.refuse_in_child();
        for timers in self.inner.sets.iter() {
            let leaks = timers.leaks();
            let count: usize = leaks.iter().map(|leak| leak.count).sum();
            let list: String = leaks.iter().map(|leak| format!("\n{leak}")).collect();
            assert!(leaks.is_empty(), "{count} timers pending{list}");
        }
    }

    /// Advances the clock by the duration `by`, from one expiry to the next, and fires the timers
    /// that come due. Blocks while another thread advances the clock.
    ///
    /// # Panics
    ///
    /// If callbacks keep rearming timers for the current instant: see [Order](VirtualTime#order).
    pub fn advance(&self, by: Duration) {
        let moving = self.begin_moving();
        self.move_to(self.now() + by, moving);
    }

    /// Like [`advance`](VirtualTime::advance), but advances to the time `to`. If that has passed,
    /// fires the overdue timers without moving the clock.
    pub fn advance_to(&self, to: Instant) {
        self.move_to(to, self.begin_moving());
    }

    /// Advances the clock to the next expiry and fires every timer that is due then. Returns
    /// `false` if no timer is pending except deferrable ones.
    pub fn advance_to_next(&self) -> bool {
        let Some(mut moving) = self.begin_moving() else {
            let next = self.next_event();
            next.inspect(|&next| self.set(next.to_ns()));
            return next.is_some();
        };
        let (mut has_fired, mut next) = (false, self.earliest());
        while next != Ns::NEVER && !(has_fired && next > self.inner.clock.now()) {
            self.set(next);
            // For a timeout beyond the wheel's range this fires nothing, but moves the timeout to
            // another bucket.
            let fired;
            (fired, next) = self.expire(&mut moving);
            has_fired |= fired > 0;
        }
        has_fired
    }

    /// Returns the current time on one of the simulated clocks. Initially, boottime equals
    /// [`now`](Self::now), and realtime is 2000-01-01 plus that time.
    pub fn now_on(&self, base: TimeBase) -> Instant {
        self.timers().now_on(base)
    }

    /// Sets realtime forwards or backwards, and fires the timers that come due. Does not change
    /// the other clocks.
    pub fn set_realtime(&self, to: Instant) {
        self.step_clocks(|steps| steps.set_realtime(to.to_ns(), self.inner.clock.now()));
    }

    /// Simulates a system that was suspended for `duration`: advances boottime and realtime, but
    /// not the monotonic clock. Then fires the timers that have come due.
    pub fn suspend(&self, duration: Duration) {
        let by_ns = i128::from(Ns::from_duration(duration).0);
        self.step_clocks(|steps| {
            #[cfg(linux_platform)]
            steps.step(TimeBase::Boottime, by_ns);
            steps.step(TimeBase::Realtime, by_ns);
        });
    }

    /// Moves clocks, and fires the timers that are due on them.
    fn step_clocks(&self, step: impl FnOnce(&Steps)) {
        self.refuse_in_child();
        step(&self.inner.clock.steps);
        self.inner.sets.iter().for_each(|timers| timers.shared.clocks_stepped());
        self.advance_to(self.now());
    }

    /// Returns whether the caller runs inside a callback or a waker that this clock has called.
    fn moves_here(&self) -> bool {
        // Relaxed: only a value that this thread wrote itself can compare equal.
        self.inner.holder.load(Ordering::Relaxed) == waits::this_thread()
    }

    fn is_forked_child(&self) -> bool {
        self.timers().shared.is_forked_child()
    }

    /// Panics in a forked child: threads of the parent have perhaps left locks locked there.
    fn refuse_in_child(&self) {
        assert!(
            !self.is_forked_child(),
            "virtual time does not go on in a forked child; create a new one in the child"
        );
    }

    /// Waits until no other thread advances the clock, and keeps other threads from doing so until
    /// the result is dropped. Returns `None` if the caller is a callback or a waker, whose thread
    /// already advances the clock.
    fn begin_moving(&self) -> Option<Moving<'_>> {
        self.refuse_in_child();
        let (Inner { moving, holder, .. }, me) = (&**self.inner, waits::this_thread());
        // Relaxed: see `moves_here`.
        if holder.load(Ordering::Relaxed) == me {
            return None;
        }
        let wakers = moving.lock();
        holder.store(me, Ordering::Relaxed);
        Some(Moving { holder, wakers, at: Instant::ZERO, rounds: 0 })
    }

    /// Advances from expiry to expiry up to a time. If `moving` is `None`, only sets the time.
    fn move_to(&self, to: Instant, moving: Option<Moving<'_>>) {
        let Some(mut moving) = moving else { return self.set(to.to_ns()) };
        let (_, mut next) = self.expire(&mut moving);
        loop {
            // A callback has perhaps advanced the clock beyond `to`.
            let limit = to.to_ns().max(self.inner.clock.now());
            let is_event = next <= limit && next != Ns::NEVER;
            self.set(if is_event { next } else { limit });
            let fired;
            (fired, next) = self.expire(&mut moving);
            // Deferrable timers cause no event of their own, so they fire at the end if they are
            // due. Then repeat, because their callbacks perhaps arm timers.
            if !is_event && fired == 0 {
                return;
            }
        }
    }

    fn set(&self, now: Ns) {
        self.inner.clock.set(now.min(END));
    }

    /// Visits the bases of all sets on this clock.
    #[inline]
    fn for_each_base<'a>(&'a self, mut visit: impl FnMut(&'a Timers, CpuId)) {
        for timers in self.inner.sets.iter() {
            (0..timers.shared.bases.count()).for_each(|base| visit(timers, CpuId(base as u16)));
        }
    }

    /// Fires the due timers of all bases. Returns how many fired, and when the next one is due.
    fn expire(&self, moving: &mut Moving<'_>) -> (u64, Ns) {
        let now = self.now();
        moving.rounds = if moving.at == now { moving.rounds + 1 } else { 0 };
        moving.at = now;
        assert!(
            moving.rounds < ROUNDS_MAX,
            "virtual time does not advance from {now:?}: in {ROUNDS_MAX} rounds of callbacks, \
             timers were rearmed for that instant every time; rearm them for a later one"
        );
        let (mut fired, mut next) = (0, Ns::ZERO);
        let mut fire = |timers: &Timers, base| {
            let expired = timers.shared.expire(base, &mut moving.wakers);
            fired += expired.fired;
            next = expired.earliest;
        };
        if let Some(shuffle) = &self.inner.shuffle {
            let mut all = Vec::new();
            self.for_each_base(|timers, base| all.push((timers, base)));
            shuffle.shuffle(&mut all);
            all.into_iter().for_each(|(timers, base)| fire(timers, base));
        } else {
            self.for_each_base(fire);
        }
        if fired > 0 {
            self.wait_for_tasks();
        }
        // What a single base has found is all that there is.
        let Sets { timers, next: others } = &self.inner.sets;
        let is_known =
            next > Ns::ZERO && timers.shared.bases.count() == 1 && others.get().is_none();
        (fired, if is_known { next } else { self.earliest() })
    }
}

fn timers_on(clock: &Arc<ManualClock>, builder: Builder, shuffle: Option<&Shuffle>) -> Timers {
    builder.note_armings().start_virtual(Arc::clone(clock), shuffle.map(Shuffle::chance))
}

impl Drop for VirtualTime {
    fn drop(&mut self) {
        if let Some(shuffle) = &self.inner.shuffle {
            shuffle.report_panic();
        }
    }
}

impl Default for VirtualTime {
    fn default() -> Self {
        VirtualTime::new()
    }
}
