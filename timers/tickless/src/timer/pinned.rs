//! Arms, cancels and ends the timers of this crate. All owners of timers do that through this file.
//!
//! The owner of a timer's memory makes a [`Pinned`] of the timer. The owner keeps the memory valid
//! until no thread can arm the timer any more and its callback has returned, or has been detached.
//! How an owner ends its timer depends on the kind of owner:
//!
//! - [`owned`](super::owned), an allocation: [`end_or_leave`](Pinned::end_or_leave). Inside a
//!   callback it does not wait; a timer whose callback runs is freed later.
//! - [`slot`](super::slot) and [`inline`](super::inline), the program's memory:
//!   [`end_in_place`](Pinned::end_in_place) waits, or returns an error.
//! - [`entry`](super::entry), a future: [`disarm`](Pinned::disarm) waits for the callback, which
//!   itself waits for nothing.
//!
//! A base, and the frame of a callback on its thread's stack, identify a timer by its address. A
//! callback can end its own timer, and another timer can then be made at that address. So
//! `end_in_place` and `disarm` [detach](tickless_core::bases::Bases::detach) the callback if they
//! are called inside it. `docs/dev/identity.md` lists where addresses are compared.
//!
//! In a forked child these functions do nothing to the parent's timers.

use super::cancel_error::CancelError;
use super::ends::{self, End};
use super::frame;
use super::glue::{Host, Task};
use super::notes;
use super::shared::Shared;
use super::waits::{self, Circle, Goal};
use crate::events;
use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;
use tickless_core::bases::cancel::{Cancel, Wait};
use tickless_core::bases::{Family, Options, StartError, Started};
use tickless_core::link::{NewTimer, Timer, TimerRef, prefetch_at};
use tickless_core::time::{Ns, Window};

/// A timer that does not move, and its set: as a handle, which keeps the drivers of the set
/// running, or as a plain reference.
pub(crate) struct Pinned<S, L> {
    timer: NonNull<Timer<Host, L>>,
    set: S,
}

// SAFETY: the timer is only used through the core, which is made for many threads. The rest of its
// memory, such as the callback, is the responsibility of the owner's type.
unsafe impl<S: Send, L: Family<Host>> Send for Pinned<S, L> {}
// SAFETY: as above.
unsafe impl<S: Sync, L: Family<Host>> Sync for Pinned<S, L> {}

impl<S: Deref<Target = Shared>, L: Family<Host>> fmt::Debug for Pinned<S, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").field("active", &self.is_active()).finish()
    }
}

impl<S: Deref<Target = Shared>, L: Family<Host>> Pinned<S, L> {
    /// Makes a `Pinned` of a timer that stays where it is.
    ///
    /// # Safety
    /// - From its first arming until `end_or_leave`, `end_in_place` or `disarm` has succeeded, the
    ///   timer is valid, does not move, and is used through `Pinned`s of one set only.
    /// - The pointer is valid for all of the memory that the timer's glue accesses.
    #[inline]
    pub(super) unsafe fn new(timer: NonNull<Timer<Host, L>>, set: S) -> Pinned<S, L> {
        Pinned { timer, set }
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Shared {
        &self.set
    }

    /// Reads the clock, to arm the timer.
    #[inline]
    pub(crate) fn now(&self) -> Ns {
        // Many CPUs read their counter only after all earlier loads have ended. The prefetch of the
        // timer's memory overlaps with that wait.
        prefetch_at(self.timer.as_ptr());
        self.shared().now()
    }

    /// Returns a pointer to the owner's memory, which begins with the timer.
    #[inline]
    pub(crate) fn node(&self) -> NonNull<()> {
        self.timer.cast()
    }

    fn address(&self) -> usize {
        self.timer.addr().get()
    }

    /// Forgets the timer's address, because its memory was given back. After this, the caller is
    /// only allowed to drop the `Pinned`.
    pub(super) fn forget_timer(&mut self) {
        self.timer = NonNull::dangling();
    }

    pub(super) fn is_forgotten(&self) -> bool {
        self.timer == NonNull::dangling()
    }

    /// Returns the functions for the timer's node. Call this only before the timer has been ended.
    pub(super) fn glue(&self) -> Task {
        // SAFETY: `new` requires a valid timer; its task never changes.
        unsafe { self.timer.as_ref() }.task()
    }

    pub(crate) fn set_label(&self, label: &'static str) {
        // A thread perhaps held the labels' lock at the fork (K4: a child never waits for it).
        if !self.set.is_forked_child() {
            self.set.notes.label(self.address(), label);
        }
    }

    /// If the future that this thread polls has a label, gives the timer that label.
    #[inline]
    pub(super) fn label_as_polled(&self) {
        if let Some(label) = notes::polled_label() {
            self.set_label(label);
        }
    }

    fn label(&self) -> &'static str {
        self.set.label_of(self.address(), self.glue())
    }

    #[inline]
    fn timer(&self) -> TimerRef<Host, L> {
        // SAFETY: `new` requires that the timer is used with one set, and stays valid until it has
        // been ended: by then no thread arms it any more, and its callback has returned or been
        // detached.
        unsafe { TimerRef::new(self.timer) }
    }

    /// Arms the timer with the default options, as [`start_with`](Self::start_with) does.
    #[inline(always)]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn start(&self, window: Window, now: Ns) -> Result<Started, StartError> {
        // Do not access the timer after it has been armed: its callback has perhaps freed it.
        if self.push_out_fast(window, now) {
            return Ok(Started::Pending);
        }
        if self.start_fast(window, now) {
            return Ok(Started::Idle);
        }
        self.start_with(window, now, Options::default())
    }

    /// As [`push_out`](Self::push_out), but `false` in a forked child.
    #[inline(always)]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn push_out_fast(&self, window: Window, now: Ns) -> bool {
        self.set.bases.is_pending(self.timer())
            && !self.set.is_forked_child()
            && self.push_out(window, now)
    }

    /// Arms an idle timer with the default options, if no other thread uses its base. Otherwise
    /// returns `false` and changes nothing, as in a forked child: there no thread owns the bias of
    /// a lock that it has inherited.
    #[inline(always)]
    pub(crate) fn start_fast(&self, window: Window, now: Ns) -> bool {
        // A debug build notes where each timer was armed.
        let is_noted = cfg!(debug_assertions) || events::are_traced();
        let is_done = !is_noted && self.set.bases.start_fast(self.timer(), window, now);
        if is_done && L::COARSE {
            self.set.changed();
        }
        is_done
    }

    /// Arms the timer, unless this is a forked child, and emits events about it.
    #[inline(never)]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn start_with(
        &self,
        window: Window,
        now: Ns,
        options: Options,
    ) -> Result<Started, StartError> {
        if self.set.is_forked_child() {
            return Err(StartError::Shut);
        }
        #[cfg(debug_assertions)]
        self.set.notes.armed(self.address(), core::panic::Location::caller());
        let label = events::are_traced().then(|| self.label());
        // Do not access the timer after this line: its callback has perhaps freed it by then.
        let started = self.set.bases.start(self.timer(), window, now, options);
        if L::COARSE {
            self.set.changed();
        }
        if let Some(label) = label.filter(|_| started.is_ok()) {
            events::armed(label, window);
        }
        started
    }

    /// Arms the timer for the first time. Does nothing in a forked child.
    ///
    /// # Safety
    /// The timer has not been used before, except for labelling it, and no other thread uses it
    /// until this returns.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) unsafe fn start_new(&self, window: Window, now: Ns) {
        if self.set.is_forked_child() {
            return;
        }
        #[cfg(debug_assertions)]
        self.set.notes.armed(self.address(), core::panic::Location::caller());
        // SAFETY: this function requires that the timer is new, and `new` that it stays valid and
        // in place from here on.
        let timer = unsafe { NewTimer::new(self.timer) };
        let label = events::are_traced().then(|| self.label());
        self.set.bases.start_new(timer, window, now);
        if L::COARSE {
            self.set.changed();
        }
        if let Some(label) = label {
            events::armed(label, window);
        }
    }

    /// Calls `push_out`, which makes the deadline of a pending timer later without taking a lock.
    /// Returns `false`, without a change, if that needs the lock: the caller then uses `start`.
    #[inline(always)]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn push_out_by(&self, push_out: impl FnOnce(&Self) -> bool) -> bool {
        // While events are traced, leave it to `start`, which emits the event of an arming.
        let is_done = !events::are_traced() && push_out(self);
        #[cfg(debug_assertions)]
        if is_done && !self.set.is_forked_child() {
            self.set.notes.armed(self.address(), core::panic::Location::caller());
        }
        is_done
    }

    /// As [`push_out_by`](Self::push_out_by), for a coarse timer.
    #[inline(always)]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn push_out(&self, window: Window, now: Ns) -> bool {
        self.push_out_by(|this| {
            this.set.bases.push_out(this.timer(), window, now, Options::default())
        })
    }

    #[inline]
    pub(crate) fn try_cancel(&self) -> Cancel {
        if self.set.is_forked_child() {
            return Cancel::Idle;
        }
        self.found(self.set.bases.try_cancel(self.timer()))
    }

    #[inline]
    pub(crate) fn cancel(&self) -> Cancel {
        if self.cancel_fast() { Cancel::Pending } else { self.cancel_slow() }
    }

    #[cold]
    #[inline(never)]
    fn cancel_slow(&self) -> Cancel {
        if self.set.is_forked_child() {
            return Cancel::Idle;
        }
        self.found(self.set.bases.cancel(self.timer()))
    }

    /// As [`Bases::cancel_fast`](tickless_core::bases::Bases::cancel_fast).
    #[inline(always)]
    pub(crate) fn cancel_fast(&self) -> bool {
        // In a forked child no thread owns the lock of a base that it has inherited.
        let is_done = !events::are_traced() && self.set.bases.cancel_fast(self.timer());
        self.set.changed();
        is_done
    }

    #[inline]
    pub(crate) fn cancel_sync(&self) -> Result<Cancel, CancelError> {
        if self.set.is_forked_child() {
            return Ok(Cancel::Idle);
        }
        let mut waiting = None;
        let refuse = |wait| self.refuse(wait, &mut waiting);
        Ok(self.found(self.set.bases.cancel_sync_unless(self.timer(), refuse)?))
    }

    #[inline]
    pub(crate) fn cancel_single_shot(&self) -> Result<Cancel, CancelError> {
        if self.set.is_forked_child() {
            return Ok(Cancel::Idle);
        }
        let mut waiting = None;
        let refuse = |wait| self.refuse(wait, &mut waiting);
        let found = self.set.bases.cancel_single_shot(self.timer(), refuse)?;
        found.map(|found| self.found(found)).ok_or(CancelError::NotSingleShot)
    }

    pub(crate) fn shutdown_sync(&self) -> Result<Cancel, CancelError> {
        if self.set.is_forked_child() {
            return Ok(Cancel::Idle);
        }
        Ok(self.found(self.shut_and_wait()?))
    }

    /// Shuts the timer down and waits for its callback. Refuses a wait that would never end.
    fn shut_and_wait(&self) -> Result<Cancel, CancelError> {
        let mut waiting = None;
        let refuse = |wait| self.refuse(wait, &mut waiting);
        self.set.bases.shutdown_sync_unless(self.timer(), refuse)
    }

    /// Returns an error if waiting for this timer's callback would never end (X6).
    #[cold]
    fn refuse(&self, wait: Wait, waiting: &mut Option<waits::Entered>) -> Result<(), CancelError> {
        let timer = self.address();
        if frame::is_in_callback_of_timer(timer) {
            return Err(CancelError::OwnCallback);
        }
        if wait == Wait::Spinning {
            return Ok(());
        }
        // The table of waits has one entry for each thread: drop the previous one before the next.
        drop(waiting.take());
        let (entered, circle) = waits::enter(Goal::CallbackOf(timer));
        *waiting = Some(entered);
        match circle {
            None => Ok(()),
            Some(Circle::Callbacks) => Err(CancelError::EachOther),
            Some(Circle::Lock) => Err(CancelError::Lock),
        }
    }

    /// Counts a cancel by the state in which it found the timer, and emits the cancel's event.
    #[inline]
    fn found(&self, found: Cancel) -> Cancel {
        self.set.count_cancel(found);
        self.set.changed();
        events::cancelled(|| self.label());
        found
    }

    pub(crate) fn is_pending(&self) -> bool {
        !self.set.is_forked_child() && self.set.bases.is_pending(self.timer())
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.set.is_forked_child() && self.set.bases.is_active(self.timer())
    }

    /// Ends the timer: shuts it down and waits for its callback, except inside any callback.
    pub(super) fn end_or_leave(&self) -> End {
        if self.set.is_forked_child() {
            return End::LeftByFork;
        }
        let (bases, timer) = (&self.set.bases, self.timer());
        let ended = if frame::is_in_callback() {
            ends::end_or_leave(bases, timer)
        } else {
            ends::end(bases, timer)
        };
        self.set.changed();
        self.set.notes.forget(self.address());
        ended
    }

    /// Ends a timer whose memory belongs to the program: shuts it down and waits for its callback,
    /// even inside the callback of another timer. Inside the timer's own callback it does not wait,
    /// but detaches the callback.
    /// After an error the memory is still in use. In a forked child this always succeeds.
    pub(super) fn end_in_place(&self) -> Result<(), CancelError> {
        if self.set.is_forked_child() {
            self.detach_own();
            return Ok(());
        }
        let found = if frame::is_in_callback_of_timer(self.address()) {
            let found = ends::end_own(&self.set.bases, self.timer());
            frame::detach(self.address());
            found
        } else {
            self.shut_and_wait()?
        };
        self.set.count_cancel(found);
        self.set.changed();
        self.forget_notes(found);
        Ok(())
    }

    /// Ends a timer that only the caller arms and whose callback waits for nothing: cancels it and
    /// waits for its callback. Inside that callback it does not wait, but detaches the callback.
    /// The caller is allowed to arm the timer again.
    #[inline]
    pub(super) fn disarm(&self) {
        if self.set.is_forked_child() {
            self.detach_own();
            return;
        }
        let found = ends::disarm(&self.set.bases, self.timer(), || self.detach_own());
        self.set.changed();
        self.forget_notes(found);
    }

    /// If this thread runs the timer's callback, detaches the callback from the timer.
    #[cold]
    fn detach_own(&self) -> bool {
        let is_own = frame::detach(self.address());
        if is_own {
            self.set.bases.detach(self.timer());
        }
        is_own
    }

    /// Removes the timer's notes, because another timer can get its address, and then emits the
    /// event of the cancel. In this order, a subscriber that panics leaves no notes behind. A timer
    /// that was found idle or running was not cancelled, and emits no event.
    #[inline]
    fn forget_notes(&self, found: Cancel) {
        let label = self.set.notes.forget(self.address());
        if found == Cancel::Pending {
            events::cancelled(|| label.unwrap_or_else(|| self.glue().label()));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a callback of a test takes its time")]
#[cfg(test)]
mod tests {
    use super::super::fired::Fired;
    use super::super::glue::Glue;
    use super::super::owned::Owned;
    use super::super::shared::Handle;
    use super::super::slot::{self, Slot};
    use super::*;
    use crate::slots::OnFired;
    use crate::{Timers, VirtualTime};
    use core::mem::MaybeUninit;
    use core::sync::atomic::{AtomicBool, Ordering};
    use std::sync::Mutex;
    use std::time::Duration;
    use tickless_core::link::QueueLink;

    struct Scene {
        memory: NonNull<MaybeUninit<[u64; 32]>>,
        first: Mutex<Option<Owned<QueueLink>>>,
        others: Handle,
        begun: AtomicBool,
        ended: AtomicBool,
        waited: AtomicBool,
    }

    // SAFETY: one timer after the other uses the memory, never two at once.
    unsafe impl Send for Scene {}
    // SAFETY: as above.
    unsafe impl Sync for Scene {}

    /// A timer that its owner ends by `disarm`, as futures end theirs. Its callback takes 20 ms.
    #[repr(C)]
    struct Slow {
        timer: Timer<Host, QueueLink>,
        scene: &'static Scene,
    }

    /// # Safety
    /// `node` is a live `Slow`.
    unsafe fn call_slow(node: NonNull<()>, _: &mut Fired<'_>) {
        // SAFETY: as promised.
        let scene = unsafe { (*node.cast::<Slow>().as_ptr()).scene };
        scene.begun.store(true, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        scene.ended.store(true, Ordering::SeqCst);
    }

    /// A callback that gives back the slot of its timer, makes a `Slow` there, and disarms that
    /// while its callback runs.
    #[derive(Clone, Copy)]
    struct Dies(&'static Scene);

    impl OnFired for Dies {
        fn fired(self, _: &mut Fired<'_>) {
            let Dies(scene) = self;
            let mut owner = scene.first.lock().unwrap().take().expect("it was put there");
            // SAFETY: from here on the owner is only dropped.
            unsafe { owner.give_back() }.expect("inside its own callback nothing waits");
            drop(owner);
            let slow = scene.memory.cast::<Slow>();
            const GLUE: Task = &Glue::embedded(call_slow);
            // SAFETY: the memory is large enough, no timer uses it any more, and the new one stays
            // there until `disarm` has returned.
            let timer = unsafe {
                slow.write(Slow { timer: Timer::new(GLUE), scene });
                Pinned::<&Shared, QueueLink>::new(slow.cast(), &scene.others)
            };
            let now = scene.others.now();
            timer.start(Window::at(now), now).expect("not shut down");
            while !scene.begun.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            timer.disarm();
            scene.waited.store(scene.ended.load(Ordering::SeqCst), Ordering::SeqCst);
        }
    }

    /// Goal: X1 (the callback of an ended timer does not run), X4 (identity is not the address).
    #[test]
    fn disarming_in_reused_memory_waits_for_the_callback() {
        let (time, timers) = (VirtualTime::new(), Timers::builder().bases(1).start().unwrap());
        let scene: &Scene = Box::leak(Box::new(Scene {
            memory: NonNull::from(Box::leak(Box::new(MaybeUninit::uninit()))),
            first: Mutex::new(None),
            others: timers.shared.handle(),
            begun: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            waited: AtomicBool::new(false),
        }));
        let slot = scene.memory.cast::<Slot<QueueLink, Dies>>();
        // SAFETY: the memory is large enough, and only this slot uses it until it is given back.
        let first = unsafe { slot::own(slot, &time.timers().shared, Dies(scene)) };
        let now = time.timers().shared.now();
        first.start(Window::at(now), now).expect("not shut down");
        *scene.first.lock().unwrap() = Some(first);
        time.advance(Duration::from_millis(1));
        assert!(scene.waited.load(Ordering::SeqCst), "freed while its callback ran");
    }
}
