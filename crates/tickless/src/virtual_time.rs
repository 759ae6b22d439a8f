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
//! # Ok::<(), tickless::callback::StartError>(())
//! ```

mod auto;
mod running;
mod shuffle;

pub use auto::{AutoAdvance, Busy};

use crate::builder::Builder;
use crate::platform::manual_clock::ManualClock;
use crate::platform::time_base::TimeBase;
use crate::timer::waits;
use crate::timer::wakers::Wakers;
use crate::timers::Timers;
use auto::Work;
use running::Runner;
use shuffle::Shuffle;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tickless_core::time::{CpuId, Instant, Ns};

/// Where the clock stops: [`Instant::NEVER`] does not come.
const END: Ns = Ns(Ns::NEVER.0 - 1);

/// Timers on a clock that is moved by hand. Callbacks run on the thread that moves the clock, in
/// order of expiry, each at exactly its timer's deadline. Cheap to clone.
///
/// The core and its bases are those of real timers. Coarse timers, which fire up to 13 % late on a
/// real clock, are exact here, unless the builder sets
/// [`coarse_like_real`](crate::Builder::coarse_like_real). The clock stops one nanosecond before
/// [`Instant::NEVER`], so a timer that is armed for `NEVER` does not fire.
///
/// # Order
///
/// Timers fire by their time of expiry, on all bases together. Timers that expire at the same
/// instant fire base by base, precise timers before timeouts, and within each kind in the order in
/// which they were armed. A timer that a callback arms for the current instant fires at that
/// instant, after at most 1,024 rounds of such timers before the next base has its turn. After
/// 2,000 turns of each base at one instant, the method that moves the clock panics: callbacks rearm
/// timers for that instant all the time, and the clock would never move on.
///
/// # Callbacks that take time
///
/// While a callback runs, the clock stands still, however long the callback really takes, and
/// nothing else fires. A callback that should take virtual time moves the clock itself: within a
/// callback of these timers, `advance` and the like only move the clock. Timers that came due
/// meanwhile fire, late, when the callback has returned.
///
/// # Several threads
///
/// One thread at a time moves the clock. Other threads that move it wait for their turn, and each
/// moves it by its own amount. So a callback must not wait for another thread that moves the clock.
///
/// Time may also move by itself when everything waits for it: see
/// [`block_on`](VirtualTime::block_on) for futures and [`busy`](VirtualTime::busy) for threads.
/// Or it runs with real time: see [`resume`](VirtualTime::resume).
///
/// # Fork
///
/// Virtual time needs no driver, and goes on in a forked child. The child has it as the fork left
/// it, locks included. Fork while no other thread uses it; otherwise the child may wait forever.
///
/// # Ties
///
/// Code that works only in the order above breaks on a machine with several CPUs.
/// [`shuffled`](VirtualTime::shuffled) fires ties in a random order, which a seed repeats.
///
/// # Panics
///
/// A callback that panics is caught and counted, as with real timers: a failed assertion in a
/// callback does not fail a test by itself. Check [`Stats::panics`](crate::stats::Stats::panics) at
/// the end, or pass results out of the callback.
#[derive(Clone, Debug)]
pub struct VirtualTime {
    world: Arc<World>,
}

/// What the clones of a [`VirtualTime`] share.
#[derive(Debug)]
struct World {
    clock: Arc<ManualClock>,
    first: Timers,
    /// All timers on this clock, the first included.
    all: Mutex<Arc<[Timers]>>,
    /// Held by the thread that moves the clock and runs callbacks: a base has one handler at a
    /// time.
    moving: Mutex<Wakers>,
    /// The thread that holds it, or 0.
    holder: AtomicU64,
    work: Work,
    runner: Runner,
    shuffle: Option<Shuffle>,
}

/// The right to run callbacks.
struct Moving<'a> {
    holder: &'a AtomicU64,
    wakers: MutexGuard<'a, Wakers>,
    /// Where the clock stood in the last round of callbacks.
    at: Instant,
    /// The number of rounds of callbacks since the clock got there.
    rounds: u32,
}

/// More rounds of callbacks at one instant are timers that are rearmed for that instant forever.
const ROUNDS_MAX: u32 = 2_000;

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}

impl VirtualTime {
    /// Creates timers with one base, on a clock that stands at one second. (At zero, arithmetic
    /// that goes below zero would go unnoticed.)
    pub fn new() -> VirtualTime {
        VirtualTime::with_builder(Timers::builder().bases(1), Instant::from_secs(1))
    }

    /// Creates timers with other settings, on a clock that stands at `now`.
    pub fn with_builder(builder: Builder, now: Instant) -> VirtualTime {
        VirtualTime::start(builder, now, None)
    }

    fn start(builder: Builder, now: Instant, shuffle: Option<Shuffle>) -> VirtualTime {
        let clock = Arc::new(ManualClock::at(Ns::from(now).min(END)));
        let first = timers_on(&clock, builder, shuffle.as_ref());
        let world = World {
            clock,
            all: Mutex::new([first.clone()].into()),
            first,
            moving: Mutex::default(),
            holder: AtomicU64::new(0),
            work: Work::default(),
            runner: Runner::default(),
            shuffle,
        };
        VirtualTime { world: Arc::new(world) }
    }

    /// Adds a set of timers on the same clock. All sets fire in one order, by expiry; at the same
    /// instant the set that was added earlier goes first.
    pub fn add_timers(&self, builder: Builder) -> Timers {
        let timers = timers_on(&self.world.clock, builder, self.world.shuffle.as_ref());
        let mut all = self.world.all.lock().unwrap_or_else(PoisonError::into_inner);
        *all = all.iter().chain([&timers]).cloned().collect();
        timers
    }

    /// The timers, for the code under test.
    pub fn timers(&self) -> &Timers {
        &self.world.first
    }

    /// Are these clones of one another?
    #[cfg(feature = "tokio-time")]
    pub(crate) fn is_same(&self, other: &VirtualTime) -> bool {
        Arc::ptr_eq(&self.world, &other.world)
    }

    /// The current time on this clock.
    pub fn now(&self) -> Instant {
        self.world.clock.now().into()
    }

    /// When the next timer comes due; `None` if nothing is pending but deferrable timers. A timeout
    /// farther away than the wheel reaches (12 days with a tick of 1 ms) has earlier events as
    /// well, at which it moves within the wheel.
    pub fn next_event(&self) -> Option<Instant> {
        let all = self.all();
        let next = |(timers, base): (&Timers, CpuId)| timers.shared.bases.exact_next_event(base);
        let earliest = bases(&all).map(next).min();
        earliest.filter(|&at| at != Ns::NEVER).map(Instant::from)
    }

    /// Checks that nothing is pending: for the end of a test.
    ///
    /// # Panics
    ///
    /// If a timer is pending; the message says which owners, how many and, in debug builds, where
    /// they were armed.
    pub fn assert_idle(&self) {
        for timers in &*self.all() {
            let leaks = timers.leaks();
            assert!(leaks.is_empty(), "{leaks}");
        }
    }

    /// Moves the clock forward `by` this much, from one expiry to the next, and fires what comes
    /// due.
    ///
    /// # Panics
    ///
    /// If callbacks keep rearming timers for the current instant: see [Order](VirtualTime#order).
    pub fn advance(&self, by: Duration) {
        let moving = self.begin_moving();
        self.move_to(self.now() + by, moving);
    }

    /// Moves the clock forward to a point in time. If that has passed, fires only what is overdue.
    pub fn advance_to(&self, to: Instant) {
        self.move_to(to, self.begin_moving());
    }

    /// Moves the clock to the next expiry and fires everything that comes due there. Returns
    /// `false` if nothing is pending but deferrable timers.
    pub fn advance_to_next(&self) -> bool {
        let Some(mut moving) = self.begin_moving() else {
            let next = self.next_event();
            next.inspect(|&next| self.set(next));
            return next.is_some();
        };
        let mut has_fired = false;
        while let Some(next) = self.next_event()
            && (!has_fired || next <= self.now())
        {
            self.set(next);
            // The event of a timer beyond the wheel's reach only puts it where it belongs now.
            has_fired |= self.expire(&mut moving) > 0;
        }
        has_fired
    }

    /// The current time on one of its clocks. At first, boottime equals [`now`](Self::now), and the
    /// time of day is that much after 2000-01-01.
    pub fn now_on(&self, base: TimeBase) -> Instant {
        self.timers().now_on(base)
    }

    /// Sets the time of day, forwards or backwards, and fires what becomes due. No other clock
    /// moves.
    pub fn set_realtime(&self, to: Instant) {
        let by = i128::from(to.as_nanos()) - i128::from(self.now_on(TimeBase::Realtime).as_nanos());
        self.step_clocks(&[TimeBase::Realtime], by.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
    }

    /// Simulates that the system was suspended for `duration`: boottime and the time of day go on,
    /// the clock of the timers does not. Fires what has come due meanwhile.
    pub fn suspend(&self, duration: Duration) {
        let by = Ns::from_duration(duration).0.min(i64::MAX as u64) as i64;
        let clocks = [
            #[cfg(linux_platform)]
            TimeBase::Boottime,
            TimeBase::Realtime,
        ];
        self.step_clocks(&clocks, by);
    }

    /// Moves these clocks, which all timers share.
    fn step_clocks(&self, bases: &[TimeBase], by_ns: i64) {
        bases.iter().for_each(|&base| self.world.clock.steps.step(base, by_ns));
        self.all().iter().for_each(|timers| timers.shared.clocks_stepped());
        self.advance_to(self.now());
    }

    /// Is this thread moving the clock already? Then this is one of its callbacks, or a waker.
    fn moves_here(&self) -> bool {
        // Relaxed: only what this thread wrote itself matters.
        self.world.holder.load(Ordering::Relaxed) == waits::this_thread()
    }

    /// The right to run callbacks. `None` for a caller that has it already.
    fn begin_moving(&self) -> Option<Moving<'_>> {
        if self.moves_here() {
            return None;
        }
        let World { moving, holder, .. } = &*self.world;
        let wakers = moving.lock().unwrap_or_else(PoisonError::into_inner);
        holder.store(waits::this_thread(), Ordering::Relaxed);
        Some(Moving { holder, wakers, at: Instant::ZERO, rounds: 0 })
    }

    fn move_to(&self, to: Instant, moving: Option<Moving<'_>>) {
        let Some(mut moving) = moving else { return self.set(to) };
        self.expire(&mut moving);
        loop {
            // A callback may have moved the clock farther than this is to go.
            let limit = to.max(self.now());
            match self.next_event() {
                Some(next) if next <= limit => {
                    self.set(next);
                    self.expire(&mut moving);
                }
                _ => {
                    self.set(limit);
                    // What defers to others' events gets its turn at the end, and what that arms.
                    if self.expire(&mut moving) == 0 {
                        return;
                    }
                }
            }
        }
    }

    fn set(&self, now: Instant) {
        self.world.clock.set(Ns::from(now).min(END));
    }

    fn all(&self) -> Arc<[Timers]> {
        Arc::clone(&self.world.all.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs what is due on all bases. Returns how many timers fired.
    fn expire(&self, moving: &mut Moving<'_>) -> u64 {
        let now = self.now();
        moving.rounds = if moving.at == now { moving.rounds + 1 } else { 0 };
        moving.at = now;
        assert!(
            moving.rounds < ROUNDS_MAX,
            "virtual time does not advance from {now:?}: in {ROUNDS_MAX} rounds of callbacks, \
             timers were rearmed for that instant every time; rearm them for a later one"
        );
        let all = self.all();
        let fire =
            |(timers, base): (&Timers, CpuId)| timers.shared.expire(base, &mut moving.wakers).fired;
        match &self.world.shuffle {
            Some(shuffle) => shuffle.order(bases(&all)).into_iter().map(fire).sum(),
            None => bases(&all).map(fire).sum(),
        }
    }
}

/// Every base of these timers.
fn bases(all: &[Timers]) -> impl Iterator<Item = (&Timers, CpuId)> {
    all.iter().flat_map(|timers| {
        (0..timers.shared.bases.count()).map(move |base| (timers, CpuId(base as u16)))
    })
}

fn timers_on(clock: &Arc<ManualClock>, builder: Builder, shuffle: Option<&Shuffle>) -> Timers {
    builder.note_armings().start_virtual(Arc::clone(clock), shuffle.map(Shuffle::chance))
}

impl Default for VirtualTime {
    fn default() -> Self {
        VirtualTime::new()
    }
}
