//! Cancelling: taking an arming back, and knowing that a callback is over.
//!
//! | | takes the arming back | if the callback runs |
//! |---|---|---|
//! | [`try_cancel`](Bases::try_cancel) | unless the callback runs | says so, changes nothing |
//! | [`cancel`](Bases::cancel) | yes | says so |
//! | [`cancel_sync`](Bases::cancel_sync) | yes | waits until it is over |
//! | [`cancel_single_shot`](Bases::cancel_single_shot) | yes | waits; cheaper if it does not run |
//! | [`shutdown`](Bases::shutdown) | and every later one | says so |
//! | [`shutdown_sync`](Bases::shutdown_sync) | and every later one | waits until it is over |
//!
//! # Guarantees
//!
//! - X1 After a synchronous cancel the timer is not pending, its callback runs nowhere, and what
//!   the callback wrote can be seen.
//! - X2, X9 One base is looked at, however many there are: a running timer stays on its base.
//!   ([`Scan::AllBases`] looks at all, for comparison.)
//! - X3 A callback that arms itself again cannot keep its canceller waiting: while somebody
//!   waits, such an arming counts as made and cancelled.
//! - X4 An address is compared and never followed; if another timer has come to live there, the
//!   wait is longer than it had to be, no more.
//! - X5 After a shut-down every later arm is refused.
//! - X7 Who waits spins briefly, then sleeps until the callback is over.
//! - X8 The single-shot form looks at callbacks only if the timer was not pending, and says so
//!   if the timer had been armed again after all.
//! - X10 Exactly one of "cancelled" and "fired" holds for each arming: both are decided under
//!   the lock of the timer's base.
//!
//! - X3, X10 A cancel that is refused its wait leaves nothing behind: from then on the timer can
//!   be armed, by its callback as well, unless somebody else still waits.
//!
//! X6, that a wait which could never end is refused, takes knowing who waits; only the caller
//! does: see [`cancel_sync_unless`](Bases::cancel_sync_unless).
//!
//! A canceller's priority is not handed on to the callback that it waits for.

use super::base::{Base, Bases, Guard};
use super::family::Family;
use super::running::Runner;
use super::settings::Scan;
use crate::link::TimerRef;
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::rearm::Policy;
use crate::state::Life;
use crate::time::CpuId;
use core::convert::Infallible;
use core::fmt;

/// What a cancel found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cancel {
    /// The timer was pending; that arming will not fire.
    Pending,
    /// The timer was neither pending nor running.
    Idle,
    /// Its callback is running just now. Had it been armed again meanwhile, that arming has
    /// been cancelled too.
    Running,
}

/// Whose end a synchronous cancel would have to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occupied {
    /// The base that runs the callback.
    pub cpu: CpuId,
    /// Its runner that is in it.
    pub runner: Runner,
    /// What kind of a wait this would be.
    pub wait: Wait,
}

/// How a synchronous cancel waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// It looks a hundred times or so: a few microseconds.
    Spinning,
    /// It sleeps for as long as it takes.
    Parked,
}

/// A timer was cancelled as a single shot and had armed itself again (X8). It has been cancelled
/// nevertheless; use [`Bases::cancel_sync`] for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotSingleShot;

impl fmt::Display for NotSingleShot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the timer was armed while it was being cancelled, so it is not a single shot; it is \
             cancelled, but use cancel_sync for it",
        )
    }
}

impl core::error::Error for NotSingleShot {}

impl<P: Platform> Bases<P> {
    /// Cancels a timer without waiting for its callback.
    ///
    /// Takes the lock of one base, none if the timer is idle and not running. No system call,
    /// no allocation; cost independent of the number of bases.
    #[inline]
    pub fn cancel<L: Family<P>>(&self, timer: TimerRef<P, L>) -> Cancel {
        if self.take_back(timer, Life::idle) {
            return Cancel::Pending;
        }
        if let Some(found) = self.look(timer) {
            return found;
        }
        self.deactivate(timer, How::Once).cancel
    }

    /// Cancels a timer and makes every later arming fail (X5), without waiting for its
    /// callback.
    pub fn shutdown<L: Family<P>>(&self, timer: TimerRef<P, L>) -> Cancel {
        if self.take_back(timer, |life| life.idle().shut()) {
            return Cancel::Pending;
        }
        if self.shut_fresh(timer) {
            return Cancel::Idle;
        }
        self.deactivate(timer, How::ForGood).cancel
    }

    /// Is the timer pending, or its callback running? Never a false no, even while it changes
    /// its base (R10). A yes may be out of date.
    pub fn is_active<L: Family<P>>(&self, timer: TimerRef<P, L>) -> bool {
        loop {
            // Acquire: who sees the timer idle sees that its base names it as running.
            let seen = timer.word().load(Ordering::Acquire);
            let life = Life::from_word(seen);
            if life.is_pending() || life.is_migrating() {
                return true;
            }
            let Some(cpu) = life.base() else { return false };
            // Acquire: who sees another timer there sees what this one's restart wrote.
            if self.base(cpu).running.has(timer.address(), Ordering::Acquire) {
                return true;
            }
            if timer.word().load(Ordering::Acquire) == seen {
                return false;
            }
        }
    }

    /// Is the timer pending? May be out of date as soon as it is known.
    pub fn is_pending<L: Family<P>>(&self, timer: TimerRef<P, L>) -> bool {
        let life = Life::from_word(timer.word().load(Ordering::Acquire));
        life.is_pending() || life.is_migrating()
    }

    /// Is the callback of this timer running?
    pub fn is_running<L: Family<P>>(&self, timer: TimerRef<P, L>) -> bool {
        let life = Life::from_word(timer.word().load(Ordering::Acquire));
        // Acquire: who finds the callback over sees what it wrote (X1).
        let runs = |cpu| self.base(cpu).running.has(timer.address(), Ordering::Acquire);
        life.base().is_some_and(runs)
    }

    /// Cancels a timer, unless its callback is running: then it says so and changes nothing,
    /// even if the timer has been armed again.
    pub fn try_cancel<L: Family<P>>(&self, timer: TimerRef<P, L>) -> Cancel {
        if self.take_back(timer, Life::idle) {
            return Cancel::Pending;
        }
        match self.look(timer) {
            Some(found) => found,
            None => self.deactivate(timer, How::UnlessRunning).cancel,
        }
    }

    /// Cancels a timer and waits until its callback runs nowhere (X1). Says what it found when
    /// it came.
    ///
    /// If the callback is not running this costs what [`cancel`](Bases::cancel) does, whatever
    /// the number of bases. Must not be called from that callback, nor from anything that it
    /// waits for: [`cancel_sync_unless`](Bases::cancel_sync_unless) is for callers who may be.
    pub fn cancel_sync<L: Family<P>>(&self, timer: TimerRef<P, L>) -> Cancel {
        match self.cancel_sync_unless(timer, |_| Ok::<(), Infallible>(())) {
            Ok(found) => found,
            Err(never) => match never {},
        }
    }

    /// [`cancel_sync`](Bases::cancel_sync) for callers that may be in a callback. Before each wait
    /// `refuse` is asked, and may end it: then the timer has been cancelled, but its callback is
    /// still running, and the timer can be armed again at once. It is asked again whenever a
    /// callback ends on that base and after [`nudge`](Bases::nudge).
    #[inline]
    pub fn cancel_sync_unless<L: Family<P>, E>(
        &self,
        timer: TimerRef<P, L>,
        refuse: impl FnMut(Occupied) -> Result<(), E>,
    ) -> Result<Cancel, E> {
        if self.take_back(timer, Life::idle) {
            self.scan_if_asked(timer);
            return Ok(Cancel::Pending);
        }
        if let Some(found) = self.look(timer) {
            self.scan_if_asked(timer);
            return Ok(found);
        }
        self.deactivate_and_wait(timer, How::AndWait, refuse)
    }

    /// [`cancel_sync`](Bases::cancel_sync) for a timer that nobody arms again while its callback
    /// runs, the callback included: if it is pending it cannot be running, so nobody looks.
    pub fn cancel_single_shot<L: Family<P>>(
        &self,
        timer: TimerRef<P, L>,
    ) -> Result<Cancel, NotSingleShot> {
        match self.single_shot_unless(timer, |_| Ok::<(), Infallible>(())) {
            Ok(found) => found,
            Err(never) => match never {},
        }
    }

    /// [`cancel_single_shot`](Bases::cancel_single_shot) for callers that may be in a callback; see
    /// [`cancel_sync_unless`](Bases::cancel_sync_unless).
    #[inline]
    pub fn single_shot_unless<L: Family<P>, E>(
        &self,
        timer: TimerRef<P, L>,
        refuse: impl FnMut(Occupied) -> Result<(), E>,
    ) -> Result<Result<Cancel, NotSingleShot>, E> {
        let (found, pending) = self.deactivate_pending(timer);
        if pending {
            return Ok(Ok(Cancel::Pending));
        }
        if found.is_some() {
            return Ok(Ok(Cancel::Idle));
        }
        let mut was_armed = false;
        let first = self.deactivate(timer, How::AndWait);
        let found = self.wait_for(timer, How::AndWait, first, &mut was_armed, refuse)?;
        Ok(if was_armed { Err(NotSingleShot) } else { Ok(found) })
    }

    /// Shuts a timer down and waits until its callback runs nowhere: it may be freed then.
    ///
    /// Must not be called from that callback.
    pub fn shutdown_sync<L: Family<P>>(&self, timer: TimerRef<P, L>) -> Cancel {
        match self.shutdown_sync_unless(timer, |_| Ok::<(), Infallible>(())) {
            Ok(found) => found,
            Err(never) => match never {},
        }
    }

    /// [`shutdown_sync`](Bases::shutdown_sync) for callers that may be in a callback; see
    /// [`cancel_sync_unless`](Bases::cancel_sync_unless). The timer is shut down in any case.
    pub fn shutdown_sync_unless<L: Family<P>, E>(
        &self,
        timer: TimerRef<P, L>,
        refuse: impl FnMut(Occupied) -> Result<(), E>,
    ) -> Result<Cancel, E> {
        if self.take_back(timer, |life| life.idle().shut()) {
            self.scan_if_asked(timer);
            return Ok(Cancel::Pending);
        }
        if self.shut_fresh(timer) {
            return Ok(Cancel::Idle);
        }
        self.deactivate_and_wait(timer, How::ForGood, refuse)
    }

    /// Has whoever waits for a callback of this base ask again whether to.
    pub fn nudge(&self, cpu: CpuId) {
        let base = self.base(cpu);
        let mut state = base.state.lock();
        let has_waiters = state.has_waiters;
        state.has_waiters = state.pauses != 0;
        if has_waiters {
            base.running.end_waits();
        }
        drop(state);
        if has_waiters {
            self.platform().unpark(base.running.parking());
        }
    }

    #[inline]
    fn deactivate_and_wait<L: Family<P>, E>(
        &self,
        timer: TimerRef<P, L>,
        how: How,
        refuse: impl FnMut(Occupied) -> Result<(), E>,
    ) -> Result<Cancel, E> {
        let found = self.deactivate(timer, how);
        if found.cancel == Cancel::Running {
            return self.wait_for(timer, how, found, &mut false, refuse);
        }
        self.scan_if_asked(timer);
        Ok(found.cancel)
    }

    /// Waits until the callback is over, taking back whatever arms the timer meanwhile. Returns
    /// what was found first.
    #[cold]
    fn wait_for<L: Family<P>, E>(
        &self,
        timer: TimerRef<P, L>,
        how: How,
        first: Found,
        was_armed: &mut bool,
        mut refuse: impl FnMut(Occupied) -> Result<(), E>,
    ) -> Result<Cancel, E> {
        let mut found = first;
        loop {
            *was_armed |= found.was_armed;
            let (Cancel::Running, Some(cpu)) = (found.cancel, found.cpu) else {
                self.scan_if_asked(timer);
                return Ok(first.cancel);
            };
            if let Err(refused) = self.wait_on(cpu, timer.address(), &mut refuse) {
                if how == How::AndWait {
                    self.give_up(timer, found.life);
                }
                return Err(refused);
            }
            found = self.deactivate(timer, how);
        }
    }

    /// Does not wait for a callback after all, so that from here on the timer can be armed, unless
    /// somebody else waits.
    ///
    /// The callback may be over by now, and the timer armed and its callback begun once more, with
    /// others that wait for that: `life` tells.
    #[cold]
    fn give_up<L: Family<P>>(&self, timer: TimerRef<P, L>, life: Life) {
        if let Some((_, _state, now)) = self.lock_timer(timer)
            && now.is_same_arming(life)
        {
            // Release: as wherever a timer's word is written.
            timer.word().store(now.without_canceller().word(), Ordering::Release);
        }
    }

    /// Waits until a base does not run this timer.
    fn wait_on<E>(
        &self,
        cpu: CpuId,
        address: u64,
        refuse: &mut impl FnMut(Occupied) -> Result<(), E>,
    ) -> Result<(), E> {
        let base = self.base(cpu);
        for round in 0..P::SPINS {
            let Some(runner) = base.running.runner_of(address) else { return Ok(()) };
            if round == 0 {
                refuse(Occupied { cpu, runner, wait: Wait::Spinning })?;
            }
            self.platform().relax(round);
        }
        loop {
            let mut state = base.state.lock();
            let Some(runner) = base.running.runner_of(address) else { return Ok(()) };
            state.has_waiters = true;
            let ended = base.running.ended();
            drop(state);
            refuse(Occupied { cpu, runner, wait: Wait::Parked })?;
            while base.running.still_waits(ended) {
                self.platform().park(base.running.parking(), ended);
            }
        }
    }

    /// Under [`Scan::AllBases`]: looks at every base for a callback of this timer, and waits
    /// for it. There is none, since a running timer stays on its base; looking is what the
    /// study measures.
    #[inline]
    fn scan_if_asked<L: Family<P>>(&self, timer: TimerRef<P, L>) {
        if self.settings().scan == Scan::AllBases {
            self.scan_all(timer.address());
        }
    }

    #[inline(never)]
    fn scan_all(&self, address: u64) {
        for cpu in 0..self.count() as u16 {
            let _: Result<(), Infallible> = self.wait_on(CpuId(cpu), address, &mut |_| Ok(()));
        }
    }

    /// Takes the arming of a pending timer back whose callback runs nowhere, which is what nearly
    /// every cancel finds; `false` if it is not so, or the event device has to be asked.
    #[inline]
    fn take_back<L: Family<P>>(
        &self,
        timer: TimerRef<P, L>,
        becomes: impl FnOnce(Life) -> Life,
    ) -> bool {
        // Acquire: as in `try_lock_timer`.
        let life = Life::from_word(timer.word().load(Ordering::Acquire));
        let Some(base) = life.pending_at().and_then(|cpu| self.bases().get(cpu.index())) else {
            return false;
        };
        match base.state.lock_usually() {
            Some(state) => self.take_back_under(base, state, timer, life, becomes),
            None => self.take_back_after_waiting(base, timer, life, becomes),
        }
    }

    /// The same if the base's lock is not had in the usual way.
    #[cold]
    #[inline(never)]
    fn take_back_after_waiting<L: Family<P>>(
        &self,
        base: &Base<P>,
        timer: TimerRef<P, L>,
        life: Life,
        becomes: impl FnOnce(Life) -> Life,
    ) -> bool {
        self.take_back_under(base, base.state.lock(), timer, life, becomes)
    }

    /// The same under the lock of the base that the timer was on.
    #[inline(always)]
    fn take_back_under<L: Family<P>>(
        &self,
        base: &Base<P>,
        mut state: Guard<'_, P>,
        timer: TimerRef<P, L>,
        life: Life,
        becomes: impl FnOnce(Life) -> Life,
    ) -> bool {
        // Under the lock that the word names, the word does not change any more.
        if timer.word().load(Ordering::Relaxed) != life.word()
            || base.running.has(timer.address(), Ordering::Relaxed)
            || state.device.policy() != Policy::Lazy
        {
            return false;
        }
        L::dequeue(&mut state.queues, timer.node(), life);
        state.counts.cancelled += 1;
        // Release: pairs with the Acquire of whoever looks at the word without the lock.
        timer.word().store(becomes(life).word(), Ordering::Release);
        true
    }

    /// The answer, if no lock is needed for it.
    #[inline]
    fn look<L: Family<P>>(&self, timer: TimerRef<P, L>) -> Option<Cancel> {
        let life = Life::from_word(timer.word().load(Ordering::Acquire));
        if life.is_pending() || life.is_migrating() {
            return None;
        }
        if self.is_active(timer) { None } else { Some(Cancel::Idle) }
    }

    /// Shuts down a timer that was never armed: that one has no lock, and a racing first start
    /// has to win or lose.
    fn shut_fresh<L: Family<P>>(&self, timer: TimerRef<P, L>) -> bool {
        // Relaxed: what it was made with never changes.
        let fresh = Life::from_word(timer.word().load(Ordering::Relaxed)).never_armed();
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let (fresh, shut) = (fresh.word(), fresh.shut().word());
        timer.word().compare_exchange(fresh, shut, success, failure).is_ok()
    }

    /// Takes a timer's arming back under its lock.
    #[inline]
    fn deactivate<L: Family<P>>(&self, timer: TimerRef<P, L>, how: How) -> Found {
        let Some((cpu, mut state, life)) = self.lock_timer(timer) else {
            return Found { cancel: Cancel::Idle, cpu: None, life: Life::FRESH, was_armed: false };
        };
        let running = self.base(cpu).running.has(timer.address(), Ordering::Relaxed);
        if running && how == How::UnlessRunning {
            return Found { cancel: Cancel::Running, cpu: Some(cpu), life, was_armed: false };
        }
        let left = self.take_out(cpu, &mut state, timer, life, || self.here());
        state.counts.cancelled += u64::from(life.is_pending());
        let becomes = match how {
            How::ForGood => life.idle().shut(),
            How::AndWait if running => life.idle().with_canceller(),
            _ => life.idle(),
        };
        // Release: pairs with the Acquire of whoever looks at the word without the lock.
        timer.word().store(becomes.word(), Ordering::Release);
        drop(state);
        self.finish(left);
        let cancel = match (running, life.is_pending()) {
            (true, _) => Cancel::Running,
            (false, true) => Cancel::Pending,
            (false, false) => Cancel::Idle,
        };
        let was_armed = life.is_pending() || life.was_refused();
        Found { cancel, cpu: Some(cpu), life: becomes, was_armed }
    }

    /// The single-shot form's first try. A pending timer is taken off, and nobody looks at what
    /// runs; of another one it says what it is, if that takes no lock.
    #[inline]
    fn deactivate_pending<L: Family<P>>(&self, timer: TimerRef<P, L>) -> (Option<Cancel>, bool) {
        if let Some(found) = self.look(timer) {
            self.scan_if_asked(timer);
            return (Some(found), false);
        }
        let Some((cpu, mut state, life)) = self.lock_timer(timer) else {
            return (Some(Cancel::Idle), false);
        };
        if !life.is_pending() {
            return (None, false);
        }
        let left = self.take_out(cpu, &mut state, timer, life, || self.here());
        state.counts.cancelled += 1;
        // Release: as in `deactivate`.
        timer.word().store(life.idle().word(), Ordering::Release);
        drop(state);
        self.finish(left);
        (Some(Cancel::Pending), true)
    }
}

/// What a cancel found under the lock.
#[derive(Clone, Copy)]
struct Found {
    cancel: Cancel,
    /// On which base; `None` for a timer that was never armed.
    cpu: Option<CpuId>,
    /// Its life from then on.
    life: Life,
    /// Was it armed, or has somebody tried to arm it while it was being cancelled?
    was_armed: bool,
}

/// What becomes of a timer whose arming is taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// It may be armed again at once.
    Once,
    /// Nothing, if its callback runs.
    UnlessRunning,
    /// Not until its callback is over.
    AndWait,
    /// Never again.
    ForGood,
}
