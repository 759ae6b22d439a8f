//! A timer as bases know it: a node, the word that is its life, and what to call.
//!
//! With the host's two-word task a coarse timer is 56 bytes: one cache line with room to spare.

use super::list::WheelRef;
use super::node::Link;
use super::push_out::{CoarseRef, WheelLink};
use super::tree::{QueueLink, QueueRef};
use crate::platform::{Ordering, Platform, Word};
use crate::state::{FiresIn, Life};
use crate::time::CpuId;
use core::fmt;
use core::ptr::NonNull;

impl Link for QueueLink {
    type Ref = QueueRef;
    const COARSE: bool = false;

    fn fires_in(life: Life) -> FiresIn {
        life.fires_in()
    }

    fn unlinked() -> Self {
        QueueLink::new()
    }

    /// # Safety
    /// As the trait says.
    unsafe fn node(link: NonNull<Self>) -> QueueRef {
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { QueueRef::new(link) }
    }

    fn address(node: QueueRef) -> NonNull<Self> {
        node.as_ptr()
    }
}

/// A timer that bases can arm. Whoever owns it keeps it where it is until it has been shut down
/// or is known to be idle and not running.
#[repr(C)]
pub struct Timer<P: Platform, L> {
    link: L,
    word: P::Word,
    task: P::Task,
}

impl<P: Platform, L: Link> Timer<P, L> {
    /// A timer that has never been armed and will hand back `task` when it fires.
    pub fn new(task: P::Task) -> Timer<P, L> {
        Timer { link: L::unlinked(), word: P::Word::new(Life::FRESH.word()), task }
    }

    /// What it hands back when it fires. Never changes.
    pub fn task(&self) -> P::Task {
        self.task
    }
}

impl<P: Platform, L> fmt::Debug for Timer<P, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").finish_non_exhaustive()
    }
}

/// A timer, as everything in the core refers to it. Copying it copies the reference.
pub struct TimerRef<P: Platform, L>(NonNull<Timer<P, L>>);

impl<P: Platform, L> Clone for TimerRef<P, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform, L> Copy for TimerRef<P, L> {}

impl<P: Platform, L> fmt::Debug for TimerRef<P, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TimerRef({:p})", self.0)
    }
}

impl<P: Platform, L: Link> TimerRef<P, L> {
    /// Hands a timer to the bases.
    ///
    /// # Safety
    /// Until the timer has been shut down, or a cancel has found it idle and not running and
    /// nothing arms it again:
    /// - it stays valid and does not move;
    /// - it is only used through references like this one, with bases of one [`Bases`] only.
    ///
    /// [`Bases`]: crate::bases::Bases
    pub unsafe fn new(timer: NonNull<Timer<P, L>>) -> Self {
        TimerRef(timer)
    }

    /// The timer's address, which is compared and never followed.
    pub(crate) fn address(self) -> u64 {
        self.0.as_ptr() as usize as u64
    }

    /// The same for the timer's owner.
    pub(crate) fn pointer(self) -> NonNull<()> {
        self.0.cast()
    }

    pub(crate) fn word(&self) -> &P::Word {
        // SAFETY: `new` promised a valid timer; the word is only ever used as an atomic.
        unsafe { &(*self.0.as_ptr()).word }
    }

    pub(crate) fn task(self) -> P::Task {
        // SAFETY: `new` promised a valid timer; the task never changes.
        unsafe { (*self.0.as_ptr()).task }
    }

    /// The node, for the data structures of the base whose lock is held.
    pub(crate) fn node(self) -> L::Ref {
        // SAFETY: `new` promised what the node's constructor asks for; uses are serialised by
        // the lock of the base that the timer's word names.
        unsafe { L::node(NonNull::new_unchecked(&raw mut (*self.0.as_ptr()).link)) }
    }

    /// The timer around a node that came out of a base's data structures. Every node in there
    /// was put in by way of [`TimerRef::node`], so there is a timer around it.
    pub(crate) fn around(node: L::Ref) -> Self {
        // The link is the timer's first field, and `repr(C)` keeps it there.
        TimerRef(L::address(node).cast())
    }
}

/// A timer that was never armed and that nobody but the caller knows: see
/// [`start_new`](crate::bases::Bases::start_new).
pub struct NewTimer<P: Platform, L>(TimerRef<P, L>);

impl<P: Platform, L> fmt::Debug for NewTimer<P, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewTimer({:p})", self.0.0)
    }
}

impl<P: Platform, L: Link> NewTimer<P, L> {
    /// Hands a timer to the bases for the first time.
    ///
    /// # Safety
    /// As for [`TimerRef::new`]. The timer was neither armed nor shut down before, and until it has
    /// been started by this nobody uses another reference to it.
    #[inline]
    pub unsafe fn new(timer: NonNull<Timer<P, L>>) -> Self {
        NewTimer(TimerRef(timer))
    }

    /// The timer, and its life: idle, and this base's. Nobody else can have changed that.
    #[inline]
    pub(crate) fn on(self, base: CpuId) -> (TimerRef<P, L>, Life) {
        // Relaxed: its maker has it, and hands it over by what comes after this.
        let life = Life::from_word(self.0.word().load(Ordering::Relaxed)).never_armed();
        (self.0, life.migrating_to(base).idle())
    }
}

impl<P: Platform> TimerRef<P, WheelLink<P::Word>> {
    /// The timer around a node that came out of a base's wheel: as [`around`](TimerRef::around).
    #[inline]
    pub(crate) fn of_wheel(node: WheelRef) -> Self {
        // SAFETY: a base's wheel is given the nodes of timers of its own platform, and no others.
        TimerRef::around(unsafe { CoarseRef::around(node) })
    }
}
