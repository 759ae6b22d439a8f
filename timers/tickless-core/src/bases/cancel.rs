//! Cancelling a timer, and waiting for its callback.
//!
//! | | cancels the arming | if the callback runs |
//! |---|---|---|
//! | [`try_cancel`](Bases::try_cancel) | unless the callback runs | reports it, changes nothing |
//! | [`cancel`](Bases::cancel) | yes | reports it |
//! | [`cancel_sync`](Bases::cancel_sync) | yes | waits until it has returned |
//! | [`cancel_single_shot`](Bases::cancel_single_shot) | yes | waits; cheaper if it does not run |
//! | [`shutdown`](Bases::shutdown) | and every later one | reports it |
//! | [`shutdown_sync`](Bases::shutdown_sync) | and every later one | waits until it has returned |
//!
//! `decide` decides what to do to the timer, and this file does it: `disarm` for a pending timer
//! whose callback does not run, `disarm_slow` for all others.
//!
//! `docs/dev/contract.md` has the guarantees, under "Cancel". A callback that frees its timer
//! detaches itself first, so a later timer at this address is not mistaken for the freed one.
//!
//! X6 (a wait that could never end is refused) needs the wait graph, which only the caller has: see
//! [`cancel_sync_unless`](Bases::cancel_sync_unless).
//!
//! A callback does not inherit the priority of the canceller that waits for it.

use super::base::Bases;
use super::decide::{Action, Operation, Seen};
use super::family::Family;
use super::settings::Scan;
use crate::link::TimerRef;
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::rearm::{Locality, Policy};
use crate::state::Life;
use crate::time::CpuId;
use core::convert::Infallible;

/// What a cancel found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cancel {
    /// The timer was pending; it will not fire for that arming.
    Pending,
    /// The timer was neither pending nor running.
    Idle,
    /// The timer's callback was running. If the timer had been armed again, that arming has been
    /// cancelled, too, except by [`try_cancel`](Bases::try_cancel).
    Running,
}

/// How a synchronous cancel is about to wait for a callback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// For a few microseconds, the canceller checks about 100 times if the callback has returned.
    Spinning,
    /// It sleeps until the callback has returned.
    Parked,
}

/// What a cancel found when it had the lock.
#[derive(Clone, Copy)]
struct Found {
    cancel: Cancel,
    /// The timer's base; `None` for a timer that was never armed.
    cpu: Option<CpuId>,
    life: Life,
    /// Whether the timer was armed, or a thread tried to arm it while it was being cancelled.
    was_armed: bool,
}

impl Found {
    const NOTHING: Found =
        Found { cancel: Cancel::Idle, cpu: None, life: Life::FRESH, was_armed: false };
}

impl<P: Platform> Bases<P> {
    /// Cancels a timer without waiting for its callback.
    ///
    /// Takes the lock of one base, or none if the timer is idle and not running. Makes no system
    /// call and allocates nothing; the cost does not depend on the number of bases.
    #[inline]
    pub fn cancel<L: Family<P>>(&self, timer: TimerRef<P, L>) -> Cancel {
        self.disarm(timer, Operation::Cancel)
    }

    /// Cancels a pending timer whose callback does not run, if no other thread uses its base.
    /// Otherwise returns `false` and changes nothing: [`cancel`](Bases::cancel) does the rest.
    #[doc(hidden)]
    #[inline(always)]
    pub fn cancel_fast<L: Family<P>>(&self, timer: TimerRef<P, L>) -> bool {
        self.disarm_fast(timer, Operation::Cancel).is_some()
    }

    /// Cancels a timer unless its callback is running: then this changes nothing, even if the timer
    /// has been armed again.
    pub fn try_cancel<L: Family<P>>(&self, timer: TimerRef<P, L>) -> Cancel {
        self.disarm(timer, Operation::TryCancel)
    }

    /// Cancels a timer and makes every later arming fail (X5), without waiting for its callback.
    pub fn shutdown<L: Family<P>>(&self, timer: TimerRef<P, L>) -> Cancel {
        self.disarm(timer, Operation::Shutdown)
    }

    /// Cancels a timer and waits until its callback runs nowhere (X1). Returns what it found first.
    ///
    /// If the callback is not running, this costs as much as [`cancel`](Bases::cancel). Neither
    /// that callback nor a thread for which it waits is allowed to call this, because the wait
    /// would not end: see [`cancel_sync_unless`](Bases::cancel_sync_unless).
    pub fn cancel_sync<L: Family<P>>(&self, timer: TimerRef<P, L>) -> Cancel {
        let Ok(found) = self.cancel_sync_unless(timer, |_| Ok::<(), Infallible>(()));
        found
    }

    /// [`cancel_sync`](Bases::cancel_sync) for callers that are possibly in a callback. Calls
    /// `refuse` before it spins and before it sleeps to wait for the callback. If `refuse` returns
    /// an error, this call returns the error and does not wait: the timer has been cancelled, but
    /// its callback is still running, and the timer can be armed again at once. `refuse` is called
    /// again whenever a callback ends on the same base, and after
    /// [`recheck_waits`](Bases::recheck_waits).
    #[inline]
    pub fn cancel_sync_unless<L: Family<P>, E>(
        &self,
        timer: TimerRef<P, L>,
        refuse: impl FnMut(Wait) -> Result<(), E>,
    ) -> Result<Cancel, E> {
        self.disarm_and_wait(timer, Operation::CancelAndWait, refuse)
    }

    /// [`cancel_sync_unless`](Bases::cancel_sync_unless) for a timer that is never armed while its
    /// callback runs, by that callback or by others. The callback of such a timer does not run
    /// while the timer is pending, so a pending one is cancelled without a check for a callback.
    /// Returns `None` if the timer was armed during its callback after all; it is cancelled then.
    #[inline]
    pub fn cancel_single_shot<L: Family<P>, E>(
        &self,
        timer: TimerRef<P, L>,
        refuse: impl FnMut(Wait) -> Result<(), E>,
    ) -> Result<Option<Cancel>, E> {
        if self.disarm_fast(timer, Operation::CancelSingleShot).is_some() {
            return Ok(Some(Cancel::Pending));
        }
        let first = self.disarm_slow(timer, Operation::CancelSingleShot);
        if first.cancel == Cancel::Pending {
            return Ok(Some(Cancel::Pending));
        }
        let was_armed = self.wait(timer, Operation::CancelAndWait, first, refuse)?;
        Ok((!was_armed).then_some(first.cancel))
    }

    /// Shuts a timer down and waits until its callback runs nowhere; the callback must not call
    /// this function. After that the timer can be freed.
    pub fn shutdown_sync<L: Family<P>>(&self, timer: TimerRef<P, L>) -> Cancel {
        let Ok(found) = self.shutdown_sync_unless(timer, |_| Ok::<(), Infallible>(()));
        found
    }

    /// [`shutdown_sync`](Bases::shutdown_sync) for callers that are possibly in a callback; see
    /// [`cancel_sync_unless`](Bases::cancel_sync_unless). The timer is shut down even if `refuse`
    /// returns an error.
    pub fn shutdown_sync_unless<L: Family<P>, E>(
        &self,
        timer: TimerRef<P, L>,
        refuse: impl FnMut(Wait) -> Result<(), E>,
    ) -> Result<Cancel, E> {
        self.disarm_and_wait(timer, Operation::Shutdown, refuse)
    }

    /// Returns whether the timer is pending or its callback is running. Returns `true` while the
    /// timer moves to another base (R10). A `true` can be out of date at once.
    pub fn is_active<L: Family<P>>(&self, timer: TimerRef<P, L>) -> bool {
        loop {
            // Acquire: pairs with the Release in `set_life`. A base records a callback as running
            // before it makes the timer idle, so a thread that sees it idle also sees that record.
            let life = timer.life(Ordering::Acquire);
            if life.is_pending() || life.is_migrating() {
                return true;
            }
            let Some(cpu) = life.base() else { return false };
            // Acquire: a callback that ends can restart its timer. A thread that sees that the
            // callback has ended also sees the state that the restart wrote; then the comparison
            // below fails, and the loop reads the state again.
            if self.base(cpu).running.has(timer.address(), Ordering::Acquire) {
                return true;
            }
            if timer.life(Ordering::Acquire) == life {
                return false;
            }
        }
    }

    /// Returns whether the timer is pending. The answer can be out of date at once.
    #[inline]
    pub fn is_pending<L: Family<P>>(&self, timer: TimerRef<P, L>) -> bool {
        let life = timer.life(Ordering::Acquire);
        life.is_pending() || life.is_migrating()
    }

    /// Returns whether the callback of this timer is running.
    pub fn is_running<L: Family<P>>(&self, timer: TimerRef<P, L>) -> bool {
        let life = timer.life(Ordering::Acquire);
        // Acquire: a thread that sees that the callback has returned sees what it wrote (X1).
        let runs = |cpu| self.base(cpu).running.has(timer.address(), Ordering::Acquire);
        life.base().is_some_and(runs)
    }

    /// Detaches the running callback of a timer from that timer. From then on the timer's memory
    /// can be used for another timer: [`is_running`](Bases::is_running) is false, and no cancel
    /// waits. Only this very callback is allowed to call it, after it has shut down or cancelled
    /// its timer; see [`TimerRef::new`]. Takes no lock.
    pub fn detach<L: Family<P>>(&self, timer: TimerRef<P, L>) {
        // Relaxed: a running timer stays on its base (X2), which this thread has seen.
        if let Some(cpu) = timer.life(Ordering::Relaxed).base() {
            self.base(cpu).running.detach(timer.address());
        }
    }

    /// Makes the cancellers that wait for a callback of this base call their `refuse` closures
    /// again, for example because a wait has become one that would never end.
    pub fn recheck_waits(&self, cpu: CpuId) {
        let base = self.base(cpu);
        let mut state = base.state.lock();
        if state.has_waiters {
            state.has_waiters = false;
            base.running.end_waits();
            drop(state);
            self.platform().unpark(base.running.parking());
        }
    }

    /// Cancels a timer without waiting for its callback.
    #[inline]
    fn disarm<L: Family<P>>(&self, timer: TimerRef<P, L>, operation: Operation) -> Cancel {
        match self.disarm_fast(timer, operation) {
            Some(()) => Cancel::Pending,
            None => self.disarm_slow(timer, operation).cancel,
        }
    }

    /// Disarms a pending timer whose callback does not run, if the policy is that removals do not
    /// program the device, as in nearly every cancel. Otherwise returns `None` and changes nothing.
    // Always inlined: a call would cost the C interface 29 of the 130 instructions of a cancel.
    #[inline(always)]
    #[expect(unsafe_code, reason = "a base is not looked up twice")]
    fn disarm_fast<L: Family<P>>(&self, timer: TimerRef<P, L>, operation: Operation) -> Option<()> {
        // Acquire: pairs with the Release of the thread that moved the timer to this base.
        let life = timer.life(Ordering::Acquire);
        if !life.is_pending() {
            return None;
        }
        // SAFETY: a timer is used with one set of bases, and a pending one is on a base.
        let base = unsafe { self.base_of(life) };
        let mut state = base.state.try_lock_fast()?;
        // Read again under the lock: see `lock_timer`.
        let is_usual = timer.life(Ordering::Relaxed) == life
            && !(operation.checks_running(life)
                && state.may_run_callbacks::<L>()
                && base.running.has(timer.address(), Ordering::Relaxed))
            && state.device.policy() == Policy::Lazy;
        let seen = Seen { is_running: false, is_target: true };
        let Action::Disarm(disarmed) = operation.decide(life, seen) else { return None };
        // SAFETY: `is_usual` shows that the word still holds `life`, which is pending.
        if !is_usual || !unsafe { L::try_dequeue(&mut state.queues, timer.node(), life) } {
            return None;
        }
        state.counts.cancelled += 1;
        timer.set_life(disarmed);
        Some(())
    }

    /// Disarms a timer if `disarm_fast` has returned `None`. Takes no lock if the timer is idle.
    #[inline(never)]
    fn disarm_slow<L: Family<P>>(&self, timer: TimerRef<P, L>, operation: Operation) -> Found {
        let is_done = if operation == Operation::Shutdown {
            // A timer that was never armed belongs to no base, so no lock excludes a concurrent
            // first start: compare and swap. Relaxed: of this value only the urgency is used, which
            // never changes.
            let fresh = timer.life(Ordering::Relaxed).never_armed();
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            let (fresh, shut) = (fresh.word(), fresh.shut().word());
            timer.word().compare_exchange(fresh, shut, success, failure).is_ok()
        } else {
            !self.is_active(timer)
        };
        if is_done { Found::NOTHING } else { self.disarm_locked(timer, operation) }
    }

    /// Takes a timer off its list under its base's lock, unless a `TryCancel` finds it running.
    fn disarm_locked<L: Family<P>>(&self, timer: TimerRef<P, L>, operation: Operation) -> Found {
        let Some((cpu, mut state, life)) = self.lock_timer(timer, None) else {
            return Found::NOTHING;
        };
        let is_running = operation.checks_running(life)
            && self.base(cpu).running.has(timer.address(), Ordering::Relaxed);
        let seen = Seen { is_running, is_target: true };
        let Action::Disarm(disarmed) = operation.decide(life, seen) else {
            return Found { cancel: Cancel::Running, cpu: Some(cpu), life, was_armed: false };
        };
        let locality = if cpu == self.here() { Locality::Local } else { Locality::Remote };
        let after_unlock = self.take_out(cpu, &mut state, timer, life, locality);
        state.counts.cancelled += u64::from(life.is_pending());
        timer.set_life(disarmed);
        self.finish(state, after_unlock);
        let cancel = match (is_running, life.is_pending()) {
            (true, _) => Cancel::Running,
            (false, true) => Cancel::Pending,
            (false, false) => Cancel::Idle,
        };
        let was_armed = life.is_pending() || life.was_refused();
        Found { cancel, cpu: Some(cpu), life: disarmed, was_armed }
    }

    /// Cancels a timer, and waits until its callback has returned or `refuse` returns an error.
    #[inline]
    fn disarm_and_wait<L: Family<P>, E>(
        &self,
        timer: TimerRef<P, L>,
        operation: Operation,
        refuse: impl FnMut(Wait) -> Result<(), E>,
    ) -> Result<Cancel, E> {
        // An older way, kept for comparison, waits on all bases, whatever the timer's state.
        let checks_all = self.settings().scan == Scan::AllBases;
        let found = match self.disarm_fast(timer, operation) {
            Some(()) if !checks_all => return Ok(Cancel::Pending),
            Some(()) => Found { cancel: Cancel::Pending, ..Found::NOTHING },
            None => self.disarm_slow(timer, operation),
        };
        if found.cancel == Cancel::Running || checks_all {
            self.wait(timer, operation, found, refuse)?;
        }
        Ok(found.cancel)
    }

    /// Waits until the callback has returned, and cancels every arming that is made until then.
    /// Returns whether there was such an arming.
    #[cold]
    fn wait<L: Family<P>, E>(
        &self,
        timer: TimerRef<P, L>,
        operation: Operation,
        mut found: Found,
        mut refuse: impl FnMut(Wait) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut was_armed = false;
        while let (Cancel::Running, Some(cpu)) = (found.cancel, found.cpu) {
            was_armed |= found.was_armed;
            if let Err(refused) = self.wait_on(cpu, timer.address(), &mut refuse) {
                if operation == Operation::CancelAndWait {
                    self.give_up(timer, found.life);
                }
                return Err(refused);
            }
            found = self.disarm_locked(timer, operation);
        }
        if self.settings().scan == Scan::AllBases {
            // Search every base for a running callback of the timer, as Linux did until 2005. This
            // finds none: a running timer stays on its base, which was searched. A study of cancels
            // measures what the search costs.
            for cpu in 0..self.count() as u16 {
                let Ok(()) =
                    self.wait_on(CpuId(cpu), timer.address(), &mut |_| Ok::<(), Infallible>(()));
            }
        }
        Ok(was_armed | found.was_armed)
    }

    /// Stops counting a canceller that does not wait after all, so that the timer can be armed
    /// unless another canceller waits. Changes nothing if the timer has been armed since `life` was
    /// read: then the word's generation differs.
    #[cold]
    fn give_up<L: Family<P>>(&self, timer: TimerRef<P, L>, life: Life) {
        let locked = self.lock_timer(timer, None);
        if let Some((_, _state, now)) = locked.filter(|(_, _, now)| now.is_same_arming(life)) {
            timer.set_life(now.without_canceller());
        }
    }

    /// Waits until a base does not run the callback of the timer with this address: spins first,
    /// then parks. Calls `refuse` before it spins and before it parks, and stops waiting if
    /// `refuse` returns an error, for example because the wait would never end.
    fn wait_on<E>(
        &self,
        cpu: CpuId,
        address: u64,
        refuse: &mut impl FnMut(Wait) -> Result<(), E>,
    ) -> Result<(), E> {
        let base = self.base(cpu);
        for round in 0..P::SPINS {
            if !base.running.has(address, Ordering::Acquire) {
                return Ok(());
            }
            if round == 0 {
                refuse(Wait::Spinning)?;
            }
            self.platform().relax(round);
        }
        loop {
            let mut state = base.state.lock();
            if !base.running.has(address, Ordering::Acquire) {
                return Ok(());
            }
            state.has_waiters = true;
            let ended = base.running.ended();
            drop(state);
            refuse(Wait::Parked)?;
            while base.running.still_waits(ended) {
                self.platform().park(base.running.parking(), ended);
            }
        }
    }
}
