//! A timer with its callback in one allocation, and the end of both.
//!
//! The allocation is a node: the core's timer and behind it the user's closure, a single cache
//! line when the closure captures at most 16 bytes. The core knows the timer; this file knows
//! that it is a node.
//!
//! # Lifetime
//!
//! A node is freed when its [`Owned`] is gone and its callback is running nowhere: dropping
//! waits for that. Inside a callback nothing waits: there a node whose callback is running,
//! which may be the very callback that drops it (X4), is left to [`super::orphans`]. A node in
//! somebody else's memory is given back before its owner is dropped: see [`super::slot`].

use super::arena::Arena;
use super::cancel_error::CancelError;
use super::fired::Fired;
use super::frame::{self, CallbackId};
use super::glue::{Bases, Glue, Host, Task};
use super::shared::{Handle, Shared};
use super::waits::{self, Circle, Goal};
use crate::events;
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::alloc::handle_alloc_error;
use tickless_core::bases::cancel::{Cancel, NotSingleShot, Occupied, Wait};
use tickless_core::bases::{Family, Options, StartError, Started};
use tickless_core::link::{Timer, TimerRef};
use tickless_core::time::{Ns, Window};

/// The allocation behind a timer.
#[repr(C, align(64))]
struct Node<L, F> {
    timer: Timer<Host, L>,
    callback: UnsafeCell<F>,
}

/// Where the owner of a node that was given back points to: no node is there.
const GIVEN_BACK: NonNull<()> = NonNull::dangling();

/// The one owner of a node.
pub(crate) struct Owned<L: Family<Host>> {
    node: NonNull<()>,
    shared: Handle,
    family: PhantomData<fn(L)>,
}

// SAFETY: the closure is `Send` and is only run by one driver at a time; everything else behind
// the pointer is the core's, which is made for many threads.
unsafe impl<L: Family<Host>> Send for Owned<L> {}
// SAFETY: all shared use goes through the core.
unsafe impl<L: Family<Host>> Sync for Owned<L> {}

impl<L: Family<Host>> fmt::Debug for Owned<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").field("active", &self.is_active()).finish()
    }
}

impl<L: Family<Host>> Owned<L> {
    pub(crate) fn new<F>(shared: Handle, callback: F) -> Owned<L>
    where
        F: FnMut(&mut Fired<'_>) + Send + 'static,
    {
        let glue = Node::<L, F>::GLUE;
        let callback = UnsafeCell::new(callback);
        let Some(memory) = shared.arena.take(glue.layout) else {
            handle_alloc_error(glue.layout);
        };
        // SAFETY: the memory has this node's layout, and is nobody else's.
        unsafe { memory.cast().write(Node::<L, F> { timer: Timer::new(glue), callback }) };
        Owned { node: memory.cast(), shared, family: PhantomData }
    }

    /// An owner of a timer in somebody else's memory.
    ///
    /// # Safety
    /// `node` is a live timer with a glue made by [`Glue::embedded`] and no other owner. It stays
    /// where it is until [`give_back`](Owned::give_back) has succeeded, which is called before
    /// the owner is dropped.
    pub(super) unsafe fn around(node: NonNull<()>, shared: Handle) -> Owned<L> {
        Owned { node, shared, family: PhantomData }
    }

    /// Shuts down a timer in somebody else's memory and gives up that memory; waits as
    /// [`shutdown_sync`](Owned::shutdown_sync) does, but not inside the timer's own callback.
    ///
    /// # Safety
    /// This came from [`around`](Owned::around). After a success it is dropped and nothing else.
    pub(crate) unsafe fn give_back(&mut self) -> Result<(), CancelError> {
        match self.shutdown_sync() {
            Err(CancelError::OwnCallback) if frame::give_back_slot(self.address()) => {}
            found => drop(found?),
        }
        // In a child somebody may have held their lock at the fork.
        if !self.shared.is_forked_child() {
            self.shared.notes.forget(self.address());
        }
        self.node = GIVEN_BACK;
        Ok(())
    }

    /// Has the memory of its timer been given back, so that nothing but dropping it is left?
    pub(crate) fn is_given_back(&self) -> bool {
        self.node == GIVEN_BACK
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn glue(&self) -> Task {
        // SAFETY: a node starts with its timer, and lives until `drop` at least.
        unsafe { self.node.cast::<Timer<Host, L>>().as_ref() }.task()
    }

    /// Says whose the timer is.
    pub(crate) fn set_label(&self, label: &'static str) {
        self.shared.notes.label(self.address(), label);
    }

    fn address(&self) -> usize {
        self.node.addr().get()
    }

    fn label(&self) -> &'static str {
        self.shared.label_of(self.address(), self.glue())
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
        if self.shared.is_forked_child() {
            return Err(StartError::Shut);
        }
        #[cfg(debug_assertions)]
        self.shared.notes.armed(self.address(), core::panic::Location::caller());
        let label = events::are_traced().then(|| self.label());
        // The last that is done with the timer: its callback may free it.
        let started = self.shared.bases.start(self.timer(), window, now, options);
        if let Some(label) = label
            && started.is_ok()
        {
            events::armed(label, window);
        }
        started
    }

    /// Cancels the timer, unless its callback runs.
    #[inline]
    pub(crate) fn try_cancel(&self) -> Cancel {
        if self.shared.is_forked_child() {
            return Cancel::Idle;
        }
        self.found(self.shared.bases.try_cancel(self.timer()))
    }

    /// Cancels the timer and waits for its callback.
    #[inline]
    pub(crate) fn cancel_sync(&self) -> Result<Cancel, CancelError> {
        if self.shared.is_forked_child() {
            return Ok(Cancel::Idle);
        }
        let mut waiting = None;
        let refuse = |occupied| self.refuse(occupied, &mut waiting);
        Ok(self.found(self.shared.bases.cancel_sync_unless(self.timer(), refuse)?))
    }

    /// The same for a timer that nobody arms while its callback runs.
    #[inline]
    pub(crate) fn cancel_single_shot(&self) -> Result<Cancel, CancelError> {
        if self.shared.is_forked_child() {
            return Ok(Cancel::Idle);
        }
        let mut waiting = None;
        let refuse = |occupied| self.refuse(occupied, &mut waiting);
        let found = self.shared.bases.single_shot_unless(self.timer(), refuse)?;
        found.map(|found| self.found(found)).map_err(|NotSingleShot| CancelError::NotSingleShot)
    }

    /// Cancels the timer for good and waits for its callback.
    pub(crate) fn shutdown_sync(&self) -> Result<Cancel, CancelError> {
        if self.shared.is_forked_child() {
            return Ok(Cancel::Idle);
        }
        let mut waiting = None;
        let refuse = |occupied| self.refuse(occupied, &mut waiting);
        Ok(self.found(self.shared.bases.shutdown_sync_unless(self.timer(), refuse)?))
    }

    /// Would waiting for this timer's callback never end (X6)?
    #[cold]
    fn refuse(
        &self,
        occupied: Occupied,
        waiting: &mut Option<waits::Entered>,
    ) -> Result<(), CancelError> {
        if frame::is_in_callback_of_timer(self.node.addr().get()) {
            return Err(CancelError::OwnCallback);
        }
        let Occupied { cpu, runner, wait } = occupied;
        if wait == Wait::Spinning {
            return Ok(());
        }
        let timer = self.node.addr().get();
        let callback = CallbackId { timer, ..CallbackId::on(&*self.shared, cpu, runner) };
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

    /// Cancels the timer without waiting for its callback.
    #[inline]
    pub(crate) fn cancel(&self) -> Cancel {
        if self.shared.is_forked_child() {
            return Cancel::Idle;
        }
        self.found(self.shared.bases.cancel(self.timer()))
    }

    /// What a cancel has found.
    #[inline]
    fn found(&self, found: Cancel) -> Cancel {
        self.shared.count_cancel(found);
        events::cancelled(|| self.label());
        found
    }

    pub(crate) fn is_pending(&self) -> bool {
        !self.shared.is_forked_child() && self.shared.bases.is_pending(self.timer())
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.shared.is_forked_child() && self.shared.bases.is_active(self.timer())
    }

    /// The timer, for the bases of [`shared`](Owned::shared) and no others.
    fn timer(&self) -> TimerRef<Host, L> {
        // SAFETY: the node stays where it is until `drop`, which shuts the timer down first;
        // this reference is only used with the bases that `shared` holds.
        unsafe { TimerRef::new(self.node.cast()) }
    }
}

impl<L: Family<Host>> Drop for Owned<L> {
    fn drop(&mut self) {
        if self.is_given_back() {
            return;
        }
        if self.shared.is_forked_child() {
            // The driver that may have been running it, or have held its lock, is not here to
            // end that: the node is left to the end of the process.
            return;
        }
        let (bases, timer, glue) = (&self.shared.bases, self.timer(), self.glue());
        if frame::is_in_callback() {
            bases.shutdown(timer);
            self.shared.notes.forget(self.address());
            if bases.is_running(timer) {
                // SAFETY: this was the node's one owner, and its timer has just been shut down.
                unsafe { self.shared.orphans.adopt(&*self.shared, self.node, glue) }
                return;
            }
        } else {
            bases.shutdown_sync(timer);
            self.shared.notes.forget(self.address());
        }
        // SAFETY: the timer is shut down and runs nowhere, and this was the node's one owner.
        unsafe { glue.free(self.node, &self.shared.arena) }
    }
}

/// Gives a node's memory back when dropped, even if its closure panics in its own drop.
struct FreeMemory<'a> {
    node: NonNull<()>,
    layout: Layout,
    /// Where the node came from.
    arena: &'a Arena,
}

impl Drop for FreeMemory<'_> {
    fn drop(&mut self) {
        // SAFETY: whoever makes this owns the node, and nobody uses it any more; `Owned::new`
        // took its memory from the arena of its timers with this layout.
        unsafe { self.arena.give_back(self.node.cast(), self.layout) }
    }
}

impl<L: Family<Host>, F: FnMut(&mut Fired<'_>)> Node<L, F> {
    const GLUE: Task = &Glue {
        call: Self::call,
        is_running: Self::is_running,
        free: Self::free,
        layout: Layout::new::<Self>(),
        label: core::any::type_name::<F>,
    };

    /// # Safety
    /// `node` is a live `Node<L, F>`, and nobody else calls its closure meanwhile.
    unsafe fn call(node: NonNull<()>, fired: &mut Fired<'_>) {
        // SAFETY: as promised; the core never runs a timer twice at once (X2).
        let callback = unsafe { &mut *(*node.cast::<Self>().as_ptr()).callback.get() };
        callback(fired);
    }

    /// # Safety
    /// `node` is a live `Node<L, F>` whose timer belongs to these bases.
    unsafe fn is_running(bases: &Bases, node: NonNull<()>) -> bool {
        // SAFETY: as promised; the reference does not outlive this.
        bases.is_running(unsafe { TimerRef::<Host, L>::new(node.cast()) })
    }

    /// # Safety
    /// `node` came out of `Owned::new` with this type, from this arena, and nobody uses it any
    /// more.
    unsafe fn free(node: NonNull<()>, arena: &Arena) {
        let _memory = FreeMemory { node, layout: Layout::new::<Self>(), arena };
        // SAFETY: as promised; the memory goes after it.
        unsafe { node.cast::<Self>().drop_in_place() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::host::WheelLink;
    use tickless_core::link::QueueLink;

    /// Goal: the memory per timer that the documentation promises.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_timer_is_as_small_as_promised() {
        fn node_of<L: Family<Host>, F: FnMut(&mut Fired<'_>)>(_: F) -> usize {
            size_of::<Node<L, F>>()
        }
        let (one, two, three) = ([1u64; 1], [2u64; 2], [3u64; 3]);
        let see = |_: &[u64]| ();
        assert_eq!(node_of::<WheelLink, _>(|_| ()), 64);
        assert_eq!(node_of::<WheelLink, _>(move |_| see(&two)), 64);
        assert_eq!(node_of::<WheelLink, _>(move |_| see(&three)), 128);
        assert_eq!(node_of::<QueueLink, _>(move |_| see(&one)), 64);
        assert_eq!(node_of::<QueueLink, _>(move |_| see(&two)), 128);
        assert_eq!(align_of::<Node<WheelLink, fn(&mut Fired<'_>)>>(), 64);
        assert_eq!(size_of::<Owned<WheelLink>>(), 16);
    }
}
