//! Expiry: the handler of a base's event device.
//!
//! The handler passes each timer that is due to its caller, without the base's lock, and the caller
//! runs the callback. The core does not know what a callback is.
//!
//! `docs/dev/contract.md` has the guarantees. After a callback has started, the core accesses no
//! field of its timer, unless the callback requests a restart: then its timer has not been freed.

use super::base::{Base, BaseState, Bases, Guard};
use super::by_deadline::gather_by_deadline;
use super::decide::{Action, Operation, Seen};
use super::expiry_thread::Call;
use super::family::{Arming, Family};
use super::firing::{CallbackResult, Expiry, Firing};
use super::running::Runner;
use super::settings::{CoarseExpiry, HOLDING};
use crate::link::{QueueLink, TimerRef, WheelLink, WheelRef};
use crate::platform::{Lock, Ordering, Platform};
use crate::queues::wheel::{Deadlines, Popped, Wheel, WheelPlace};
use crate::queues::windows::LateOnes;
use crate::state::{FiresIn, Held, Lane};
use crate::time::{CpuId, Ns, Window};

/// The result of a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expired {
    /// The number of timers that fired.
    pub fired: u64,
    /// The time for which the device is armed: when the next timer is due, or the end of a back-off
    /// (a pause after handlers that could not catch up).
    pub next: Ns,
    /// What [`exact_next_event`](Bases::exact_next_event) would return; zero if that is not known.
    pub earliest: Ns,
}

/// Which of the due timers a runner (a handler or an expiry thread) fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Share {
    All,
    Handler,
    Thread,
}

/// How a runner runs callbacks.
pub trait Batch<P: Platform> {
    /// Runs a timer's callback.
    fn run(&mut self, firing: &Firing<P>) -> CallbackResult;

    /// Returns whether to [`pause`](Batch::pause) after the callback that has just returned.
    fn wants_pause(&self) -> bool;

    /// Called without a lock. It can use the bases, and must not unwind.
    fn pause(&mut self);
}

/// A closure that runs callbacks, and never pauses.
pub(super) struct NoPause<F>(pub(super) F);

impl<P: Platform, F: FnMut(&Firing<P>) -> CallbackResult> Batch<P> for NoPause<F> {
    #[inline(always)]
    fn run(&mut self, firing: &Firing<P>) -> CallbackResult {
        (self.0)(firing)
    }

    #[inline(always)]
    fn wants_pause(&self) -> bool {
        false
    }

    fn pause(&mut self) {}
}

struct Pass<'a, P: Platform> {
    bases: &'a Bases<P>,
    base: &'a Base<P>,
    cpu: CpuId,
    runner: Runner,
    share: Share,
    fired: u64,
}

/// Exists while a callback runs. Dropped only if the callback panics: then its `drop` ends the
/// handler or batch, and programs the device (R6).
struct Unwinding<'a, 'b, P: Platform>(&'b Pass<'a, P>);

/// The most timers that the handler moves to other buckets before it unlocks, because they were
/// pushed out to a deadline after their bucket. It moves only one if another thread waits for the
/// lock. Each move costs a cache miss or two.
const MOVES: usize = 4;

/// The result of a search for a due timer.
enum Taken<P: Platform> {
    Due(Due<P>),
    /// The lock has been held for long enough. More timers are perhaps due.
    Enough,
    Nothing,
}

/// A due timer that has been taken off its list.
enum Due<P: Platform> {
    Coarse(TimerRef<P, WheelLink<P::Word>>, Ns),
    Precise(TimerRef<P, QueueLink>, FiresIn),
}

/// The result of a handler that leaves timers to an expiry thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Collected {
    /// The number of timers that the handler fired itself, and when the device fires next.
    pub expired: Expired,
    /// The expiry thread to wake.
    pub call: Call,
}

impl<P: Platform> Bases<P> {
    /// Handles an event of `cpu`'s device: fires all timers that are due, then arms the device for
    /// the next one. `run` is called without a lock and can use the bases. If expiry is deferred,
    /// this also does the work of the expiry thread.
    ///
    /// A base has one handler at a time: a second one, from another thread or inside a callback,
    /// returns at once. The first handler fires what is due and arms the device.
    ///
    /// If `run` panics, its timer is idle, the device is armed for the next timer, and the panic
    /// continues in the caller.
    pub fn expire(&self, cpu: CpuId, run: impl FnMut(&Firing<P>) -> CallbackResult) -> Expired {
        self.expire_batch(cpu, &mut NoPause(run))
    }

    /// Does the same as [`expire`](Bases::expire), with pauses between callbacks.
    pub fn expire_batch(&self, cpu: CpuId, batch: &mut impl Batch<P>) -> Expired {
        if !self.defers {
            return self.handle(cpu, Share::All, batch).expired;
        }
        let Collected { mut expired, call } = self.handle(cpu, Share::Handler, batch);
        if call == Call::Thread {
            expired.fired += self.fire_batch(cpu, Runner::Thread, batch);
            (expired.next, expired.earliest) =
                (self.base(cpu).state.lock().device.armed(), Ns::ZERO);
        }
        expired
    }

    /// Fires the due timers in `share`. Returns which expiry thread must be woken for the others.
    pub(crate) fn handle(&self, cpu: CpuId, share: Share, batch: &mut impl Batch<P>) -> Collected {
        let base = self.base(cpu);
        let (mut fired, mut passes, mut call) = (0, 0, Call::Nobody);
        let mut state = base.state.lock();
        if state.device.is_handling() {
            let expired = Expired { fired, next: state.device.armed(), earliest: Ns::ZERO };
            return Collected { expired, call };
        }
        // Read under the lock: while this handler waited for it, another thread has possibly
        // advanced the wheel to a later time.
        let mut now = self.platform().due_until();
        state.device.enter(now);
        let (rearm, earliest) = loop {
            let in_pass;
            (state, in_pass) = self.pass(cpu, Runner::Handler, share, state, now, batch);
            fired += in_pass;
            passes += 1;
            now = self.platform().due_until();
            if share == Share::Handler {
                // Collect in every pass, not only in the last: a pass can take longer than
                // `Settings::patience`, after which a stuck thread is replaced.
                call = call.and(self.collect_due(&mut state, now));
            }
            let earliest = state.earliest();
            if earliest > now {
                // If an expiry thread is called, timers were due: count the call like a fired
                // timer, so that `leave` does not count the event as spurious.
                let done = fired + u64::from(call != Call::Nobody);
                break (state.device.leave(earliest, done, now), earliest);
            }
            if !state.device.may_pass(passes) {
                break (state.device.back_off(earliest, fired, now), earliest);
            }
        };
        if share == Share::All {
            state.deferred.forget_call();
            self.refresh(base, &mut state);
        }
        let (next, earliest) = (state.device.armed(), self.exact(&mut state, earliest));
        let after_unlock = self.carry_out(cpu, rearm);
        self.end_handling(cpu, state, after_unlock);
        Collected { expired: Expired { fired, next, earliest }, call }
    }

    /// Fires the timers that are due at `now`. Unlocks while a callback runs. Returns the guard of
    /// the lock, and how many timers have fired.
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
        // How many timers were handled since the lock was taken. At `HOLDING`, others get the lock.
        let mut visited_under_lock = 0;
        state = self.begin_pass(base, state, share, now, &mut visited_under_lock);
        loop {
            let due = match Self::take_due(base, &mut state, share, &mut visited_under_lock) {
                Taken::Due(due) => due,
                Taken::Enough => {
                    state = self.yield_lock(base, state, &mut visited_under_lock);
                    continue;
                }
                Taken::Nothing => break,
            };
            // One branch for each kind of timer (coarse or precise), to check the kind only once.
            state = match due {
                Due::Coarse(timer, deadline) => {
                    let window = Window::at(deadline);
                    let place = WheelPlace::of(timer.node().node());
                    let firing = Firing::of(timer, window, place, FiresIn::Thread, now, cpu);
                    self.fire_one(&mut pass, state, timer, firing, &mut visited_under_lock, batch)
                }
                Due::Precise(timer, fires_in) => {
                    let window = timer.node().window();
                    let firing = Firing::of(timer, window, WheelPlace::NOWHERE, fires_in, now, cpu);
                    self.fire_one(&mut pass, state, timer, firing, &mut visited_under_lock, batch)
                }
            };
        }
        state.record_holding(visited_under_lock);
        (state, pass.fired)
    }

    /// Runs the callback of a timer that has been taken off its list, without the lock.
    #[inline(always)]
    fn fire_one<'a, L: Family<P>>(
        &'a self,
        pass: &mut Pass<'a, P>,
        mut state: Guard<'a, P>,
        timer: TimerRef<P, L>,
        firing: Firing<P>,
        visited_under_lock: &mut usize,
        batch: &mut impl Batch<P>,
    ) -> Guard<'a, P> {
        let &mut Pass { runner, share, base, .. } = pass;
        if share == Share::Thread && base.running.has_in_another(timer.address(), runner) {
            // Another runner executes the timer's last callback: keep the timer for later.
            enqueue(timer, &mut state, firing.window, &firing);
            return state;
        }
        pass.fired += 1;
        state.counts.fired += 1;
        let late = if L::COARSE { &mut state.late.coarse } else { &mut state.late.precise };
        late.count_ns(firing.late);
        state.record_holding(*visited_under_lock);
        begin(timer, base, runner);
        drop(state);
        let unwinding = Unwinding(pass);
        let result = batch.run(&firing);
        core::mem::forget(unwinding);
        // Let a thread that waits for the lock take it first. Otherwise a timer whose callback
        // always restarts it for the past would keep out a thread that wants to cancel it.
        if base.state.is_wanted() {
            base.state.yield_to_waiters();
        }
        state = base.state.lock();
        *visited_under_lock = 0;
        if let CallbackResult::Restart(window) = result {
            restart(timer, &mut state, window, &firing);
            *visited_under_lock += 1;
        }
        state = self.end_callback(base, runner, share, state);
        if batch.wants_pause() {
            drop(state);
            batch.pause();
            state = base.state.lock();
        }
        state
    }

    /// Unlocks for other threads, and takes the lock again (W8).
    #[cold]
    fn yield_lock<'a>(
        &'a self,
        base: &'a Base<P>,
        mut state: Guard<'a, P>,
        visited_under_lock: &mut usize,
    ) -> Guard<'a, P> {
        state.record_holding(*visited_under_lock);
        drop(state);
        self.platform().relax(0);
        base.state.yield_to_waiters();
        *visited_under_lock = 0;
        base.state.lock()
    }

    /// Records that a callback has returned or panicked, and wakes the threads that wait for it.
    #[inline]
    fn end_callback<'a>(
        &'a self,
        base: &'a Base<P>,
        runner: Runner,
        share: Share,
        mut state: Guard<'a, P>,
    ) -> Guard<'a, P> {
        base.running.end(runner);
        if share == Share::Thread {
            state.deferred.has_fired();
        }
        if state.has_waiters { self.end_waits(base, state) } else { state }
    }

    /// Records that a callback has panicked, and ends the handler or the batch that it ran in.
    #[cold]
    #[inline(never)]
    fn end_by_panic(&self, cpu: CpuId, runner: Runner, share: Share, fired: u64) {
        let (base, now) = (self.base(cpu), self.platform().due_until());
        let state = base.state.lock();
        let mut state = self.end_callback(base, runner, share, state);
        let after_unlock = if share == Share::Thread {
            self.end_batch(cpu, &mut state, runner, fired, now)
        } else {
            // The handler has possibly requested a wakeup of the expiry thread. The handler's
            // caller would carry that out, but it unwinds with the panic. So forget the request,
            // and let the device fire again for the timers of that thread.
            state.deferred.forget_call();
            let earliest = state.earliest();
            let rearm = state.device.leave(earliest, fired, now);
            self.carry_out(cpu, rearm)
        };
        self.end_handling(cpu, state, after_unlock);
    }

    /// Wakes the cancellers that wait for a callback of this base; each checks whether the callback
    /// that it waits for has returned.
    #[cold]
    fn end_waits<'a>(&'a self, base: &'a Base<P>, mut state: Guard<'a, P>) -> Guard<'a, P> {
        state.has_waiters = false;
        base.running.end_waits();
        drop(state);
        self.platform().unpark(base.running.parking());
        base.state.lock()
    }

    /// Begins a pass, which fires the timers that are due at `now`. A timer that is armed for the
    /// past from here on fires in the next pass, so that it cannot keep the handler busy (R7).
    fn begin_pass<'a>(
        &'a self,
        base: &'a Base<P>,
        mut state: Guard<'a, P>,
        share: Share,
        now: Ns,
        visited_under_lock: &mut usize,
    ) -> Guard<'a, P> {
        let lanes = [(FiresIn::Handler, Share::Thread), (FiresIn::Thread, Share::Handler)];
        for (fires_in, _) in lanes.into_iter().filter(|&(_, others)| others != share) {
            if let Some(late) = state.queues.precise(fires_in).announce_pass(now) {
                state = self.queue_late(base, state, fires_in, late, visited_under_lock);
            }
        }
        if share != Share::Handler {
            state.queues.wheel.advance(now);
        }
        if self.settings().coarse == CoarseExpiry::AtDeadline && state.queues.wheel.is_marked() {
            gather_by_deadline::<P>(&mut state.queues.wheel, now);
        }
        state
    }

    /// Moves to the queue the precise timers that were armed for a time that the last pass had
    /// already covered.
    #[inline(never)]
    fn queue_late<'a>(
        &'a self,
        base: &'a Base<P>,
        mut state: Guard<'a, P>,
        fires_in: FiresIn,
        mut late: LateOnes,
        visited_under_lock: &mut usize,
    ) -> Guard<'a, P> {
        let queued = |node| {
            let timer = TimerRef::<P, QueueLink>::around(node);
            timer.set_life(timer.life(Ordering::Relaxed).on(Lane::Queued));
        };
        while late.count > 0 {
            if *visited_under_lock == HOLDING {
                state = self.yield_lock(base, state, visited_under_lock);
            }
            let (before, room) = (late.count, HOLDING - *visited_under_lock);
            state.queues.precise(fires_in).queue_late(&mut late, room, queued);
            *visited_under_lock += (before - late.count).min(room);
        }
        state.queues.precise(fires_in).start_pass();
        state
    }

    /// Takes the next due timer off its list, precise timers first.
    #[inline(always)]
    fn take_due(
        base: &Base<P>,
        state: &mut BaseState,
        share: Share,
        visited_under_lock: &mut usize,
    ) -> Taken<P> {
        if *visited_under_lock > HOLDING - MOVES * Wheel::LOOKS_MAX {
            return Taken::Enough;
        }
        let queues = &mut state.queues;
        if share != Share::Thread {
            if let Some(node) = queues.precise.pop() {
                *visited_under_lock += 1;
                return Taken::Due(Due::Precise(TimerRef::around(node), FiresIn::Handler));
            }
        }
        if share == Share::Handler {
            return Taken::Nothing;
        }
        if let Some(node) = queues.deferred.pop() {
            *visited_under_lock += 1;
            return Taken::Due(Due::Precise(TimerRef::around(node), FiresIn::Thread));
        }
        let mut deadlines = BaseDeadlines { base, moves_left: MOVES };
        loop {
            match queues.wheel.pop(visited_under_lock, &mut deadlines) {
                Popped::Due(node, deadline) => {
                    return Taken::Due(Due::Coarse(TimerRef::of_wheel(node), deadline));
                }
                Popped::PushedOut if deadlines.moves_left == 0 => return Taken::Enough,
                Popped::PushedOut => {}
                Popped::Nothing => return Taken::Nothing,
            }
        }
    }
}

struct BaseDeadlines<'a, P: Platform> {
    base: &'a Base<P>,
    /// How many more timers can be moved before the lock is given up.
    moves_left: usize,
}

impl<P: Platform> Deadlines for BaseDeadlines<'_, P> {
    #[inline(always)]
    fn close_by(&mut self, node: WheelRef, by: Ns) -> Result<Ns, Ns> {
        TimerRef::<P, WheelLink<P::Word>>::of_wheel(node).node().close_by(by)
    }

    // Counts the move. If another thread waits for the lock, this move was the last one.
    fn moved(&mut self, node: WheelRef, held: Held) {
        let timer = TimerRef::<P, WheelLink<P::Word>>::of_wheel(node);
        timer.set_life(timer.life(Ordering::Relaxed).held(held));
        self.moves_left = if self.base.state.is_wanted() { 0 } else { self.moves_left - 1 };
    }
}

impl<P: Platform> Drop for Unwinding<'_, '_, P> {
    /// Inlined: nothing else uses the `Pass` by reference, so its fields can stay in registers.
    #[inline(always)]
    fn drop(&mut self) {
        let &Pass { bases, cpu, runner, share, fired, .. } = self.0;
        bases.end_by_panic(cpu, runner, share, fired);
    }
}

/// Records that a callback starts: first on the base, then by making the timer idle. In this order
/// no thread sees the timer idle and not running.
#[inline]
fn begin<P: Platform, L: Family<P>>(timer: TimerRef<P, L>, base: &Base<P>, runner: Runner) {
    base.running.begin(runner, timer.address());
    // The Release in `set_life` pairs with the Acquire in `is_active`.
    timer.set_life(timer.life(Ordering::Relaxed).idle());
}

/// Rearms a timer as its callback requested. The runner programs the device when it ends (R5).
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

/// Puts a timer on a list of its base again, with the options with which it was last armed.
fn enqueue<P: Platform, L: Family<P>>(
    timer: TimerRef<P, L>,
    state: &mut BaseState,
    window: Window,
    firing: &Firing<P>,
) {
    let Expiry { now, fires_in, .. } = **firing;
    let life = timer.life(Ordering::Relaxed).idle();
    let arming = Arming { window, wakes: firing.wakes(), fires_in };
    if L::COARSE {
        state.queues.wheel.forward(now);
    }
    L::enqueue(&mut state.queues, timer, life, arming);
}
