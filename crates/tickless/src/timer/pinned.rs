//! A timer that stays where it is: the only place that arms, cancels and ends timers of this crate.
//!
//! Whoever has the memory of a timer makes a [`Pinned`] of it, and vouches for that memory. The
//! bases follow a timer's address while it is pending, while it is moved to another base, and
//! while they arm it again for its callback; what runs is compared by its address and not followed.
//! So a timer's memory may go when nothing arms the timer any more and its callback runs nowhere,
//! and each of the ends below says when that is:
//!
//! - [`owned`](super::owned), an allocation: [`end_or_leave`](Pinned::end_or_leave). In a callback
//!   what runs is left to others.
//! - [`slot`](super::slot) and [`inline`](super::inline), the program's memory:
//!   [`end_in_place`](Pinned::end_in_place) waits, or is an error.
//! - [`entry`](super::entry), a future: [`disarm`](Pinned::disarm) waits for a callback that waits
//!   for nobody.
//!
//! A child that a fork has left without drivers does nothing to timers of its parent: somebody may
//! have held their lock, or have been in their callback, and is not here to end that.

use super::cancel_error::CancelError;
use super::ends::{self, End};
use super::frame::{self, CallbackId};
use super::glue::{Host, Task};
use super::notes;
use super::shared::Shared;
use super::waits::{self, Circle, Goal};
use crate::events;
use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;
use tickless_core::bases::cancel::{Cancel, Occupied, Wait};
use tickless_core::bases::{Family, Options, StartError, Started};
use tickless_core::link::{NewTimer, Timer, TimerRef};
use tickless_core::time::{Ns, Window};

/// A timer in its place, and its set, by whatever keeps that.
pub(crate) struct Pinned<S, L> {
    timer: NonNull<Timer<Host, L>>,
    set: S,
}

// SAFETY: all use of the timer goes through the core, which is made for many threads; what else is
// in its memory its owner answers for.
unsafe impl<S: Send, L: Family<Host>> Send for Pinned<S, L> {}
// SAFETY: as above.
unsafe impl<S: Sync, L: Family<Host>> Sync for Pinned<S, L> {}

impl<S: Deref<Target = Shared>, L: Family<Host>> fmt::Debug for Pinned<S, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").field("active", &self.is_active()).finish()
    }
}

impl<S: Deref<Target = Shared>, L: Family<Host>> Pinned<S, L> {
    /// A timer that stays in its place.
    ///
    /// # Safety
    /// - From its first arming until one of the ends has said that its memory may go, the timer is
    ///   valid and stays where it is, and is only used in this way, for one and the same set.
    /// - The pointer is good for all of the memory that its glue takes it for.
    #[inline]
    pub(super) unsafe fn new(timer: NonNull<Timer<Host, L>>, set: S) -> Pinned<S, L> {
        Pinned { timer, set }
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Shared {
        &self.set
    }

    /// What its owner's memory begins with.
    pub(super) fn node(&self) -> NonNull<()> {
        self.timer.cast()
    }

    pub(super) fn address(&self) -> usize {
        self.timer.addr().get()
    }

    /// Its memory is gone, and nothing is left but dropping this.
    pub(super) fn forget_place(&mut self) {
        self.timer = NonNull::dangling();
    }

    /// Is its memory gone?
    pub(super) fn has_no_place(&self) -> bool {
        self.timer == NonNull::dangling()
    }

    /// How its memory is treated. Not after its end.
    pub(super) fn glue(&self) -> Task {
        // SAFETY: `new` was promised a valid timer; its task never changes.
        unsafe { self.timer.as_ref() }.task()
    }

    /// Says whose the timer is.
    pub(crate) fn set_label(&self, label: &'static str) {
        // Another thread may have held the lock of the notes at the fork (K4).
        if !self.set.is_forked_child() {
            self.set.notes.label(self.address(), label);
        }
    }

    /// It was armed for the future that this thread polls, and has that one's label.
    #[inline]
    pub(super) fn label_as_polled(&self) {
        if let Some(label) = notes::polled_label()
            && !self.set.is_forked_child()
        {
            self.set_label(label);
        }
    }

    fn label(&self) -> &'static str {
        self.set.label_of(self.address(), self.glue())
    }

    /// The timer, for the bases of its set.
    #[inline]
    fn timer(&self) -> TimerRef<Host, L> {
        // SAFETY: `new` was promised that it stays until an end has shut it down or cancelled it
        // for the last time, and seen that it runs nowhere; and that it has one set.
        unsafe { TimerRef::new(self.timer) }
    }

    /// Arms the timer, or arms it anew.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn start(
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
        // The last that is done with the timer: its callback may free it.
        let started = self.set.bases.start(self.timer(), window, now, options);
        if let Some(label) = label
            && started.is_ok()
        {
            events::armed(label, window);
        }
        started
    }

    /// Arms the timer for the first time; in a forked child it does nothing.
    ///
    /// # Safety
    /// This is the first that is done with the timer, apart from labelling it, and nobody else does
    /// anything with it meanwhile.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) unsafe fn start_new(&self, window: Window, now: Ns) {
        if self.set.is_forked_child() {
            return;
        }
        #[cfg(debug_assertions)]
        self.set.notes.armed(self.address(), core::panic::Location::caller());
        // SAFETY: `new` was promised what is to hold from here on, and the caller promises that the
        // timer is new.
        let timer = unsafe { NewTimer::new(self.timer) };
        let label = events::are_traced().then(|| self.label());
        self.set.bases.start_new(timer, window, now);
        if let Some(label) = label {
            events::armed(label, window);
        }
    }

    /// Makes a pending coarse timer later, if that takes no lock. In a forked child it may do so
    /// too: nothing fires there.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn push_out(&self, window: Window, now: Ns) -> bool {
        // Who is told of armings is told by `start`.
        let is_done = !events::are_traced()
            && self.set.bases.push_out(self.timer(), window, now, Options::default());
        #[cfg(debug_assertions)]
        if is_done && !self.set.is_forked_child() {
            self.set.notes.armed(self.address(), core::panic::Location::caller());
        }
        is_done
    }

    /// Cancels the timer, unless its callback runs.
    #[inline]
    pub(crate) fn try_cancel(&self) -> Cancel {
        if self.set.is_forked_child() {
            return Cancel::Idle;
        }
        self.found(self.set.bases.try_cancel(self.timer()))
    }

    /// Cancels the timer without waiting for its callback.
    #[inline]
    pub(crate) fn cancel(&self) -> Cancel {
        if self.set.is_forked_child() {
            return Cancel::Idle;
        }
        self.found(self.set.bases.cancel(self.timer()))
    }

    /// Cancels the timer and waits for its callback.
    #[inline]
    pub(crate) fn cancel_sync(&self) -> Result<Cancel, CancelError> {
        if self.set.is_forked_child() {
            return Ok(Cancel::Idle);
        }
        let mut waiting = None;
        let refuse = |occupied| self.refuse(occupied, &mut waiting);
        Ok(self.found(self.set.bases.cancel_sync_unless(self.timer(), refuse)?))
    }

    /// The same for a timer that nobody arms while its callback runs.
    #[inline]
    pub(crate) fn cancel_single_shot(&self) -> Result<Cancel, CancelError> {
        if self.set.is_forked_child() {
            return Ok(Cancel::Idle);
        }
        let mut waiting = None;
        let refuse = |occupied| self.refuse(occupied, &mut waiting);
        let found = self.set.bases.single_shot_unless(self.timer(), refuse)?;
        found.map(|found| self.found(found)).ok_or(CancelError::NotSingleShot)
    }

    /// Cancels the timer for good and waits for its callback.
    pub(crate) fn shutdown_sync(&self) -> Result<Cancel, CancelError> {
        if self.set.is_forked_child() {
            return Ok(Cancel::Idle);
        }
        let mut waiting = None;
        let refuse = |occupied| self.refuse(occupied, &mut waiting);
        Ok(self.found(self.set.bases.shutdown_sync_unless(self.timer(), refuse)?))
    }

    /// Would waiting for this timer's callback never end (X6)?
    #[cold]
    fn refuse(
        &self,
        occupied: Occupied,
        waiting: &mut Option<waits::Entered>,
    ) -> Result<(), CancelError> {
        let timer = self.address();
        if frame::is_in_callback_of_timer(timer) {
            return Err(CancelError::OwnCallback);
        }
        let Occupied { cpu, runner, wait } = occupied;
        if wait == Wait::Spinning {
            return Ok(());
        }
        let callback = CallbackId::of(timer, &*self.set, cpu, runner);
        // The last entry goes before the next one comes: they are of one thread.
        drop(waiting.take());
        let (entered, circle) = waits::enter(Goal::Callback(callback));
        *waiting = Some(entered);
        match circle {
            None => Ok(()),
            Some(Circle::Callbacks) => Err(CancelError::EachOther),
            Some(Circle::Lock) => Err(CancelError::Lock),
        }
    }

    /// What a cancel has found.
    #[inline]
    fn found(&self, found: Cancel) -> Cancel {
        self.set.count_cancel(found);
        events::cancelled(|| self.label());
        found
    }

    pub(crate) fn is_pending(&self) -> bool {
        !self.set.is_forked_child() && self.set.bases.is_pending(self.timer())
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.set.is_forked_child() && self.set.bases.is_active(self.timer())
    }

    /// An end: shuts the timer down and waits for its callback. Inside a callback nothing waits:
    /// two of them might wait for each other, or one for itself.
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
        self.set.notes.forget(self.address());
        ended
    }

    /// An end, of a timer whose memory nobody else can free: shuts it down and waits for its
    /// callback, inside other callbacks too. Inside its own it does not, if that can do without the
    /// timer ([`frame::slot_may_go`]): it asks for nothing then, so the bases do not follow the
    /// timer's address any more (X4). After an error the memory stays in use.
    ///
    /// In a child of a fork this succeeds, and a callback that was running is never heard of.
    pub(super) fn end_in_place(&self) -> Result<(), CancelError> {
        match self.shutdown_sync() {
            Err(CancelError::OwnCallback) if frame::give_back_slot(self.address()) => {}
            found => drop(found?),
        }
        if !self.set.is_forked_child() {
            self.set.notes.forget(self.address());
        }
        Ok(())
    }

    /// An end, of a timer that only the caller arms and whose callback waits for nobody: no driver
    /// knows the timer until it is armed again. A callback that runs beside an arming that is
    /// pending is not waited for: see [`withdraw`](Pinned::withdraw).
    #[inline]
    pub(super) fn disarm(self) {
        if self.set.is_forked_child() {
            return;
        }
        let is_own_callback = || frame::is_in_callback_of_timer(self.address());
        ends::disarm(&self.set.bases, self.timer(), is_own_callback);
        self.note_disarmed();
    }

    /// The same, whatever was armed meanwhile.
    #[cold]
    pub(super) fn withdraw(self) {
        if self.set.is_forked_child() {
            return;
        }
        let is_own_callback = || frame::is_in_callback_of_timer(self.address());
        ends::withdraw(&self.set.bases, self.timer(), is_own_callback);
        self.note_disarmed();
    }

    #[inline]
    fn note_disarmed(&self) {
        self.set.notes.forget(self.address());
        events::cancelled(|| self.label());
    }
}

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

    /// What the two callbacks of the test below share.
    struct Scene {
        memory: NonNull<MaybeUninit<[u64; 32]>>,
        first: Mutex<Option<Owned<QueueLink>>>,
        others: Handle,
        begun: AtomicBool,
        ended: AtomicBool,
        waited: AtomicBool,
    }

    // SAFETY: the memory is used by one timer after the other.
    unsafe impl Send for Scene {}
    // SAFETY: as above.
    unsafe impl Sync for Scene {}

    /// A timer that is disarmed as one in a future, and whose callback takes its time.
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

    /// Gives its slot back and puts a `Slow` there, which it disarms while that runs.
    #[derive(Clone, Copy)]
    struct Dies(&'static Scene);

    impl OnFired for Dies {
        fn fired(self, _: &mut Fired<'_>) {
            let Dies(scene) = self;
            let mut owner = scene.first.lock().unwrap().take().expect("it was put there");
            // SAFETY: it is dropped and nothing else.
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
            timer.start(Window::new(now, now), now, Options::default()).expect("not shut down");
            while !scene.begun.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            timer.disarm();
            scene.waited.store(scene.ended.load(Ordering::SeqCst), Ordering::SeqCst);
        }
    }

    /// Goal: X1, X4: a future's timer whose memory was that of the timer whose callback drops it is
    /// waited for: another driver may be in its callback.
    #[test]
    fn disarming_in_reused_memory_waits_for_the_callback() {
        let (time, timers) = (VirtualTime::new(), Timers::builder().bases(1).start().unwrap());
        let scene: &Scene = Box::leak(Box::new(Scene {
            memory: NonNull::from(Box::leak(Box::new(MaybeUninit::uninit()))),
            first: Mutex::new(None),
            others: timers.shared.clone(),
            begun: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            waited: AtomicBool::new(false),
        }));
        let slot = scene.memory.cast::<Slot<QueueLink, Dies>>();
        // SAFETY: the memory is large enough and this slot's own until its callback gives it back.
        let first = unsafe { slot::own(slot, &time.timers().shared, Dies(scene)) };
        let now = time.timers().shared.now();
        first.start(Window::new(now, now), now, Options::default()).expect("not shut down");
        *scene.first.lock().unwrap() = Some(first);
        time.advance(Duration::from_millis(1));
        assert!(scene.waited.load(Ordering::SeqCst), "freed while its callback ran");
    }
}
