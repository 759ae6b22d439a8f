//! Expiry: what an event device's handler does with a base.
//!
//! The base hands the timers that are due to its caller one by one, without its lock, and the
//! caller runs the callbacks: the core itself calls nothing it does not know.
//!
//! # Guarantees
//!
//! - W1 nothing is fired before its deadline; W4 timers of one instant fire as armed.
//! - R5, R6 the device is written once, at the end, on every way out, a panic included.
//! - After a callback has started, the core touches no field of its timer, unless the callback
//!   itself asks for a restart and thereby says that the timer is still there (X4).

use super::base::{Base, BaseState, Bases, Guard};
use super::by_deadline::gather_by_deadline;
use super::decide::{Action, Operation, Seen};
use super::expiry_thread::{Call, bit};
use super::family::{Arming, Family};
use super::running::Runner;
use super::settings::{CoarseExpiry, HOLDING};
use crate::link::WheelRef;
use crate::link::{Link, QueueLink, TimerRef, WheelLink};
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::queues::wheel::{Deadlines, Popped, Wakes, Wheel, WheelPlace};
use crate::state::{FiresIn, Held, Lane, Life};
use crate::time::{CpuId, Ns, Tick, Window};
use core::ops::Deref;
use core::ptr::NonNull;

/// A timer that fires: what to run, and the expiry that it is run for.
#[derive(Debug)]
pub struct Firing<P: Platform> {
    /// The timer's address. Only its owner may know whether it can be followed.
    pub timer: NonNull<()>,
    /// What to run.
    pub task: P::Task,
    expiry: Expiry,
}

/// One expiry of a timer: everything its callback may know.
#[derive(Debug)]
pub struct Expiry {
    /// The window it was armed with; coarse timers have only a deadline, which is both ends.
    pub window: Window,
    /// Where it was in the wheel, if it is coarse.
    place: WheelPlace,
    /// Where it fires, if expiry is deferred. A restart keeps that.
    pub fires_in: FiresIn,
    /// The time at which it was found to be due.
    pub now: Ns,
    /// How long after the soft end of its window that is.
    pub late: Ns,
    /// On which base.
    pub cpu: CpuId,
}

impl<P: Platform> Deref for Firing<P> {
    type Target = Expiry;

    #[inline]
    fn deref(&self) -> &Expiry {
        &self.expiry
    }
}

/// What a callback wants to happen to its timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallbackResult {
    /// Nothing; the timer may not even exist any more.
    Done,
    /// It is armed again, deferrable or not as before, unless somebody did that meanwhile (R9)
    /// or it has been shut down.
    Restart(Window),
}

/// What came of looking at a base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expired {
    /// How many timers fired.
    pub fired: u64,
    /// When the next one is due; the device is armed for that, or has backed off.
    pub next: Ns,
}

/// Which of the due timers a runner fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Share {
    /// All of them.
    All,
    /// Those that fire in the handler.
    Handler,
    /// Those that fire in the expiry thread.
    Thread,
}

/// What a runner does with what a base hands it. A closure has no pauses.
pub trait Batch<P: Platform> {
    /// Runs a timer's callback.
    fn run(&mut self, firing: &Firing<P>) -> CallbackResult;

    /// Called without any lock, and while this runner is in no callback, after a callback that
    /// asked for it by [`Bases::pause_after`]. May use the bases freely, and does not unwind.
    fn pause(&mut self);
}

/// A batch without pauses.
pub(super) struct Unpaused<F>(pub(super) F);

impl<P: Platform, F: FnMut(&Firing<P>) -> CallbackResult> Batch<P> for Unpaused<F> {
    #[inline(always)]
    fn run(&mut self, firing: &Firing<P>) -> CallbackResult {
        (self.0)(firing)
    }

    fn pause(&mut self) {}
}

/// A pass over a base, as long as it lasts.
struct Pass<'a, P: Platform> {
    bases: &'a Bases<P>,
    base: &'a Base<P>,
    cpu: CpuId,
    runner: Runner,
    share: Share,
    fired: u64,
}

/// Dropped when a callback panics: the way out of the handler that remains (R6).
struct Unwinding<'a, 'b, P: Platform>(&'b Pass<'a, P>);

/// So many pushed-out timers are moved in one holding of the lock, and one if it is wanted.
/// Each of them is a cache miss or two.
const MOVES: usize = 4;

/// What a look for a timer that is due has found.
enum Taken<P: Platform> {
    Due(Due<P>),
    /// This holding of the lock has lasted for long enough; there may be more.
    Enough,
    Nothing,
}

/// A timer taken off a base's data structures.
enum Due<P: Platform> {
    /// With its deadline.
    Coarse(TimerRef<P, WheelLink<P::Word>>, Ns),
    Precise(TimerRef<P, QueueLink>, FiresIn),
}

impl<P: Platform> Bases<P> {
    /// Handles an event of `cpu`'s device: runs everything that is due, then arms the device
    /// for what is left. `run` is called without any lock and may use the bases freely. On bases
    /// that defer this does the expiry thread's work as well.
    ///
    /// One handler a base at a time: a second one, from another thread or from inside a
    /// callback, finds nothing to do. The first will see to what is due and arm the device.
    ///
    /// Should `run` panic, its timer is idle, the device is armed for what is left, and the
    /// panic goes on to the caller.
    pub fn expire(&self, cpu: CpuId, run: impl FnMut(&Firing<P>) -> CallbackResult) -> Expired {
        self.expire_batch(cpu, &mut Unpaused(run))
    }

    /// [`expire`](Bases::expire) with pauses.
    pub fn expire_batch(&self, cpu: CpuId, batch: &mut impl Batch<P>) -> Expired {
        if !self.defers {
            return self.handle(cpu, Share::All, batch).0;
        }
        let (mut expired, call) = self.handle(cpu, Share::Handler, batch);
        if call == Call::Thread {
            expired.fired += self.fire_batch(cpu, Runner::Thread, batch);
            expired.next = self.base(cpu).state.lock().device.armed();
        }
        expired
    }

    /// For a callback that this runner of a base is in: has the batch [pause](Batch::pause) when
    /// the callback is over. Takes the base's lock.
    #[cold]
    pub fn pause_after(&self, cpu: CpuId, runner: Runner) {
        let mut state = self.base(cpu).state.lock();
        state.pauses |= bit(runner);
        state.has_waiters = true;
    }

    /// What a handler does for its share, and whom it wants to be woken for the rest.
    pub(crate) fn handle(
        &self,
        cpu: CpuId,
        share: Share,
        batch: &mut impl Batch<P>,
    ) -> (Expired, Call) {
        let base = self.base(cpu);
        let (mut fired, mut passes, mut call) = (0, 0, Call::Nobody);
        let mut state = base.state.lock();
        if state.device.is_handling() {
            return (Expired { fired, next: state.device.armed() }, call);
        }
        // Read under the lock: who had it before may have brought the wheel up to a time that
        // was still to come when this handler began to wait.
        let mut now = self.platform().now();
        state.device.enter(now);
        let rearm = loop {
            let in_pass;
            (state, in_pass) = self.pass(cpu, Runner::Handler, share, state, now, batch);
            fired += in_pass;
            passes += 1;
            now = self.platform().now();
            if share == Share::Handler {
                // In every pass: a pass may take longer than patience lasts.
                call = call.and(self.collect_due(&mut state, now));
            }
            let earliest = state.earliest();
            if earliest > now {
                // Whom it calls has something to do, so the event was not for nothing.
                let done = fired + u64::from(call != Call::Nobody);
                break state.device.leave(earliest, done, now);
            }
            if !state.device.may_pass(passes) {
                break state.device.back_off(earliest, fired, now);
            }
        };
        if share == Share::All {
            state.deferred.forget_call();
            self.refresh(base, &mut state);
        }
        let next = state.device.armed();
        let left = self.carry_out(cpu, &mut state.device, rearm);
        let is_online = state.is_online;
        drop(state);
        self.finish(left);
        if !is_online {
            self.evacuate(cpu);
        }
        (Expired { fired, next }, call)
    }

    /// Fires what is due at one moment. Takes and returns the lock, which callbacks run without.
    pub(crate) fn pass<'a>(
        &'a self,
        cpu: CpuId,
        runner: Runner,
        share: Share,
        mut state: Guard<'a, P>,
        now: Ns,
        batch: &mut impl Batch<P>,
    ) -> (Guard<'a, P>, u64) {
        let base = self.base(cpu);
        let mut pass = Pass { bases: self, base, cpu, runner, share, fired: 0 };
        let mut looks = 0;
        state = self.begin_pass(base, state, share, now, &mut looks);
        loop {
            let due = match Self::take_due(base, &mut state, share, &mut looks) {
                Taken::Due(due) => due,
                Taken::Enough => {
                    state = self.let_others_in(base, state, &mut looks);
                    continue;
                }
                Taken::Nothing => break,
            };
            // Each family by itself: nothing is asked twice of which it is.
            state = match due {
                Due::Coarse(timer, deadline) => {
                    let window = Window { soft: deadline, hard: deadline };
                    let place = WheelPlace::of(timer.node().node());
                    let firing = Firing::of(timer, window, place, FiresIn::Thread, now, cpu);
                    self.fire_one(&mut pass, state, timer, firing, &mut looks, batch)
                }
                Due::Precise(timer, fires_in) => {
                    let window = timer.node().window();
                    let firing = Firing::of(timer, window, WheelPlace::NOWHERE, fires_in, now, cpu);
                    self.fire_one(&mut pass, state, timer, firing, &mut looks, batch)
                }
            };
        }
        state.record_holding(looks);
        (state, pass.fired)
    }

    /// Runs the callback of a timer that has been taken off, without the lock.
    #[inline(always)]
    fn fire_one<'a, L: Family<P>>(
        &'a self,
        pass: &mut Pass<'a, P>,
        mut state: Guard<'a, P>,
        timer: TimerRef<P, L>,
        firing: Firing<P>,
        looks: &mut usize,
        batch: &mut impl Batch<P>,
    ) -> Guard<'a, P> {
        let &mut Pass { runner, share, base, .. } = pass;
        if share == Share::Thread && base.running.has_elsewhere(timer.address(), runner) {
            // Its last callback is not over yet: it is left to the next pass.
            enqueue(timer, &mut state, firing.window, &firing);
            return state;
        }
        pass.fired += 1;
        state.counts.fired += 1;
        let late = if L::COARSE { &mut state.late.coarse } else { &mut state.late.precise };
        late.count_ns(firing.late);
        state.record_holding(*looks);
        begin(timer, base, runner);
        drop(state);
        let unwinding = Unwinding(pass);
        let result = batch.run(&firing);
        core::mem::forget(unwinding);
        // Or a callback that keeps coming due keeps out whoever wants to cancel it.
        if base.state.is_wanted() {
            base.state.let_in();
        }
        state = base.state.lock();
        *looks = 0;
        if let CallbackResult::Restart(window) = result {
            restart(timer, &mut state, window, &firing);
            *looks += 1;
        }
        self.end_callback(base, runner, share, state, || batch.pause())
    }

    /// A holding that has lasted for long enough ends, and the next one begins (W8).
    #[cold]
    fn let_others_in<'a>(
        &'a self,
        base: &'a Base<P>,
        mut state: Guard<'a, P>,
        looks: &mut usize,
    ) -> Guard<'a, P> {
        state.record_holding(*looks);
        drop(state);
        self.platform().relax(0);
        base.state.let_in();
        *looks = 0;
        base.state.lock()
    }

    /// A callback is over, whichever way.
    #[inline]
    fn end_callback<'a>(
        &'a self,
        base: &'a Base<P>,
        runner: Runner,
        share: Share,
        mut state: Guard<'a, P>,
        pause: impl FnOnce(),
    ) -> Guard<'a, P> {
        base.running.end(runner);
        if share == Share::Thread {
            state.deferred.has_fired();
        }
        if state.has_waiters { self.end_waits(base, runner, state, pause) } else { state }
    }

    /// Wakes whoever waits for a callback of this base; they look whether it was theirs. Then
    /// pauses, if this runner's callback asked for that.
    #[cold]
    fn end_waits<'a>(
        &'a self,
        base: &'a Base<P>,
        runner: Runner,
        mut state: Guard<'a, P>,
        pause: impl FnOnce(),
    ) -> Guard<'a, P> {
        let is_paused = state.pauses & bit(runner) != 0;
        state.pauses &= !bit(runner);
        // Another runner that is to pause looks at this first.
        state.has_waiters = state.pauses != 0;
        base.running.end_waits();
        drop(state);
        self.platform().unpark(base.running.parking());
        if is_paused {
            pause();
        }
        base.state.lock()
    }

    /// What is due by now becomes this pass's, what is armed for the past from here on the next
    /// one's: a callback that keeps doing that cannot hold the handler up (R7).
    fn begin_pass<'a>(
        &'a self,
        base: &'a Base<P>,
        mut state: Guard<'a, P>,
        share: Share,
        now: Ns,
        looks: &mut usize,
    ) -> Guard<'a, P> {
        if share != Share::Thread {
            state = self.queue_late(base, state, FiresIn::Handler, now, looks);
        }
        if share != Share::Handler {
            state = self.queue_late(base, state, FiresIn::Thread, now, looks);
            state.queues.wheel.advance(now);
        }
        if self.settings().coarse == CoarseExpiry::AtDeadline {
            gather_by_deadline::<P>(&mut state.queues.wheel, now);
        }
        state
    }

    /// A pass over precise timers begins: those that were late for the last one line up.
    fn queue_late<'a>(
        &'a self,
        base: &'a Base<P>,
        mut state: Guard<'a, P>,
        fires_in: FiresIn,
        now: Ns,
        looks: &mut usize,
    ) -> Guard<'a, P> {
        let queued = |node| {
            let timer = TimerRef::<P, QueueLink>::around(node);
            let life = Life::from_word(timer.word().load(Ordering::Relaxed));
            // Release: as wherever a pending timer's word is written.
            timer.word().store(life.on(Lane::Queued).word(), Ordering::Release);
        };
        let mut late = state.queues.precise(fires_in).announce_pass(now);
        while late.count > 0 {
            if *looks == HOLDING {
                state = self.let_others_in(base, state, looks);
            }
            let (before, room) = (late.count, HOLDING - *looks);
            state.queues.precise(fires_in).queue_late(&mut late, room, queued);
            *looks += (before - late.count).min(room);
        }
        state.queues.precise(fires_in).start_pass();
        state
    }

    /// The next timer that is due: first the precise ones, whose users asked for precision.
    #[inline(always)]
    fn take_due(
        base: &Base<P>,
        state: &mut BaseState,
        share: Share,
        looks: &mut usize,
    ) -> Taken<P> {
        if *looks > HOLDING - MOVES * Wheel::LOOKS_MAX {
            return Taken::Enough;
        }
        let queues = &mut state.queues;
        if share != Share::Thread
            && let Some(node) = queues.precise.pop()
        {
            *looks += 1;
            return Taken::Due(Due::Precise(TimerRef::around(node), FiresIn::Handler));
        }
        if share == Share::Handler {
            return Taken::Nothing;
        }
        if let Some(node) = queues.deferred.pop() {
            *looks += 1;
            return Taken::Due(Due::Precise(TimerRef::around(node), FiresIn::Thread));
        }
        let mut deadlines = OfBase { base, moves: MOVES };
        loop {
            match queues.wheel.pop(looks, &mut deadlines) {
                Popped::Due(node, deadline) => {
                    return Taken::Due(Due::Coarse(TimerRef::of_wheel(node), deadline));
                }
                Popped::PushedOut if deadlines.moves == 0 => return Taken::Enough,
                Popped::PushedOut => {}
                Popped::Nothing => return Taken::Nothing,
            }
        }
    }
}

/// The deadlines of a base's coarse timers.
struct OfBase<'a, P: Platform> {
    base: &'a Base<P>,
    /// How many more may be moved in this holding of the lock.
    moves: usize,
}

impl<P: Platform> Deadlines for OfBase<'_, P> {
    #[inline(always)]
    fn close_by(&mut self, node: WheelRef, by: Ns) -> Result<Ns, Ns> {
        TimerRef::<P, WheelLink<P::Word>>::of_wheel(node).node().close_by(by)
    }

    fn moved(&mut self, node: WheelRef, held: Held) {
        let timer = TimerRef::<P, WheelLink<P::Word>>::of_wheel(node);
        let life = Life::from_word(timer.word().load(Ordering::Relaxed));
        // Release: as wherever a timer's word is written.
        timer.word().store(life.held(held).word(), Ordering::Release);
        self.moves = if self.base.state.is_wanted() { 0 } else { self.moves - 1 };
    }
}

impl<P: Platform> Drop for Unwinding<'_, '_, P> {
    fn drop(&mut self) {
        let &Pass { bases, base, cpu, runner, share, fired } = self.0;
        let now = bases.platform().now();
        let state = base.state.lock();
        let mut state = bases.end_callback(base, runner, share, state, || ());
        let left = if share == Share::Thread {
            bases.end_batch(cpu, &mut state, runner, fired, now)
        } else {
            // Whoever was to be called will not be, so the device comes for that again.
            state.deferred.forget_call();
            let earliest = state.earliest();
            let rearm = state.device.leave(earliest, fired, now);
            bases.carry_out(cpu, &mut state.device, rearm)
        };
        let is_online = state.is_online;
        drop(state);
        bases.finish(left);
        if !is_online {
            bases.evacuate(cpu);
        }
    }
}

impl<P: Platform> Firing<P> {
    #[inline(always)]
    fn of<L: Link>(
        timer: TimerRef<P, L>,
        window: Window,
        place: WheelPlace,
        fires_in: FiresIn,
        now: Ns,
        cpu: CpuId,
    ) -> Firing<P> {
        let (timer, task) = (timer.pointer(), timer.task());
        let late = now.since(window.soft);
        Firing { timer, task, expiry: Expiry { window, place, fires_in, now, late, cpu } }
    }
}

impl Expiry {
    /// Whether it would have woken a CPU. A restart keeps that.
    #[inline]
    pub fn wakes(&self) -> Wakes {
        self.place.wakes()
    }

    /// When bases with this tick were to fire it: at the hard end, or at the deadline as the wheel
    /// has rounded it.
    #[inline]
    pub fn due(&self, tick: Tick) -> Ns {
        // One that was gathered by its deadline is not due with its bucket.
        self.place.due(tick).max(self.window.hard)
    }

    /// Was it due longer than this before it was found to be?
    #[inline]
    pub fn is_overdue(&self, by: Ns, tick: Tick) -> bool {
        // Mostly the first answer is enough.
        self.late > by && self.now.since(self.due(tick)) > by
    }
}

/// Starts a callback: the base names the timer as running first, then the timer is idle.
#[inline]
fn begin<P: Platform, L: Family<P>>(timer: TimerRef<P, L>, base: &Base<P>, runner: Runner) {
    base.running.begin(runner, timer.address());
    // The Release in this pairs with the Acquire in `is_active`.
    timer.set_life(timer.life(Ordering::Relaxed).idle());
}

/// Rearms a timer as its callback requested. Its runner is still at work, and programs the device
/// when it ends (R5).
fn restart<P: Platform, L: Family<P>>(
    timer: TimerRef<P, L>,
    state: &mut BaseState,
    window: Window,
    firing: &Firing<P>,
) {
    // The timer is running, so it is still on this base, even if another thread has armed it (X2).
    let life = timer.life(Ordering::Acquire);
    let seen = Seen { is_running: true, is_target: true };
    match Operation::Restart.decide(life, seen) {
        Action::Arm => {
            state.counts.armed += 1;
            enqueue(timer, state, window, firing);
        }
        Action::RefuseOnce(refused) => {
            state.counts.armed += 1;
            state.counts.cancelled += 1;
            timer.set_life(refused);
        }
        _ => {}
    }
}

/// Puts a timer back on a list of its base, as it was armed before.
fn enqueue<P: Platform, L: Family<P>>(
    timer: TimerRef<P, L>,
    state: &mut BaseState,
    window: Window,
    firing: &Firing<P>,
) {
    let Expiry { now, fires_in, .. } = **firing;
    let life = timer.life(Ordering::Relaxed).idle();
    let arming = Arming { window, now, wakes: firing.wakes(), fires_in };
    L::enqueue(&mut state.queues, timer, life, arming);
}
