//! A timer as the bases use it: a node, the word with its state, and a task. The base returns the
//! task when the timer fires.
//!
//! On the host a task is one machine word, so a coarse timer is 48 bytes and fits in a cache line.

use super::list::WheelRef;
use super::node::Link;
use super::push_out::{CoarseRef, WheelLink};
use super::tree::{QueueLink, QueueRef};
use crate::platform::{Ordering, Platform, Word};
use crate::state::{FiresIn, Life};
use crate::time::CpuId;
use core::fmt;
use core::mem::offset_of;
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
    /// As for [`QueueRef::new`].
    unsafe fn node(link: NonNull<Self>) -> QueueRef {
        // SAFETY: the caller's promise.
        unsafe { QueueRef::new(link) }
    }

    fn address(node: QueueRef) -> NonNull<Self> {
        node.as_ptr()
    }
}

/// A timer that bases can arm. Its owner must not move or free it until it has been shut down, or a
/// cancel has found it idle and not running.
// The word and a coarse timer's deadline come first, one behind the other: a push-out uses no more.
#[repr(C)]
pub struct Timer<P: Platform, L> {
    word: P::Word,
    link: L,
    task: P::Task,
}

impl<P: Platform, L: Link> Timer<P, L> {
    /// Returns a timer that has never been armed. When it fires, its base returns `task`.
    pub fn new(task: P::Task) -> Timer<P, L> {
        Timer { link: L::unlinked(), word: P::Word::new(Life::FRESH.word()), task }
    }

    /// Returns the task that [`new`](Timer::new) was given.
    pub fn task(&self) -> P::Task {
        self.task
    }
}

impl<P: Platform, L> fmt::Debug for Timer<P, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").finish_non_exhaustive()
    }
}

/// A reference to a timer. A copy refers to the same timer.
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
    /// Makes a reference to a timer, for use with bases.
    ///
    /// # Safety
    /// Until the timer has been shut down, or a cancel has found it idle and not running and
    /// nothing arms it again:
    /// - it stays valid and does not move;
    /// - it is used through references like this one only, and with one [`Bases`] only;
    /// - only its own callback calls [`Bases::detach`], after it has shut the timer down or
    ///   cancelled it. Such a callback asks for no restart.
    ///
    /// [`Bases`]: crate::bases::Bases
    /// [`Bases::detach`]: crate::bases::Bases::detach
    pub unsafe fn new(timer: NonNull<Timer<P, L>>) -> Self {
        TimerRef(timer)
    }

    /// Returns the timer's address as a number, which is compared and never dereferenced.
    pub(crate) fn address(self) -> u64 {
        self.0.as_ptr() as usize as u64
    }

    /// Returns the timer's address as a pointer, so that the timer's owner can find it.
    pub(crate) fn pointer(self) -> NonNull<()> {
        self.0.cast()
    }

    pub(crate) fn word(&self) -> &P::Word {
        // SAFETY: `new` promised a valid timer; the word is only ever used as an atomic.
        unsafe { &(*self.0.as_ptr()).word }
    }

    #[inline(always)]
    pub(crate) fn life(self, order: Ordering) -> Life {
        Life::from_word(self.word().load(order))
    }

    /// Publishes the timer's next state. The caller holds the lock of the timer's base, or is
    /// moving the timer between bases.
    #[inline(always)]
    pub(crate) fn set_life(self, life: Life) {
        // Release: pairs with the Acquire of a thread that reads the word without the lock.
        self.word().store(life.word(), Ordering::Release);
    }

    pub(crate) fn task(self) -> P::Task {
        // SAFETY: `new` promised a valid timer; the task never changes.
        unsafe { (*self.0.as_ptr()).task }
    }

    /// Returns the node, for the wheel and the queues of the base whose lock the caller holds.
    pub(crate) fn node(self) -> L::Ref {
        // SAFETY: the caller of `new` promised what the node's constructor asks for; uses are
        // serialised by the lock of the base that the timer's word names.
        unsafe { L::node(NonNull::new_unchecked(&raw mut (*self.0.as_ptr()).link)) }
    }

    /// Returns the timer that embeds a node from a base's queue. Every node in such a queue comes
    /// from [`TimerRef::node`], so it is embedded in a timer.
    pub(crate) fn around(node: L::Ref) -> Self {
        // SAFETY: the link is a field of a timer.
        TimerRef(unsafe { L::address(node).byte_sub(offset_of!(Timer<P, L>, link)).cast() })
    }
}

/// A timer that was never armed and to which only the caller has a reference: see
/// [`start_new`](crate::bases::Bases::start_new).
pub struct NewTimer<P: Platform, L>(TimerRef<P, L>);

impl<P: Platform, L> fmt::Debug for NewTimer<P, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewTimer({:p})", self.0.0)
    }
}

impl<P: Platform, L: Link> NewTimer<P, L> {
    /// Makes the first reference to a timer.
    ///
    /// # Safety
    /// As for [`TimerRef::new`]. The timer was neither armed nor shut down before, and no other
    /// reference to it is used until it has been started through this one.
    #[inline]
    pub unsafe fn new(timer: NonNull<Timer<P, L>>) -> Self {
        NewTimer(TimerRef(timer))
    }

    /// Returns the timer, and the state with which it begins on this base: idle. No other thread
    /// can have changed the state.
    #[inline]
    pub(crate) fn on(self, base: CpuId) -> (TimerRef<P, L>, Life) {
        // Relaxed: only the caller can reach the timer. Whatever publishes it to other threads
        // later makes this state visible, too.
        let life = self.0.life(Ordering::Relaxed).never_armed();
        (self.0, life.migrating_to(base).idle())
    }
}

impl<P: Platform> TimerRef<P, WheelLink<P::Word>> {
    /// Returns the timer that embeds a node from a base's wheel. For nodes of queues, see
    /// [`around`](TimerRef::around).
    #[inline]
    pub(crate) fn of_wheel(node: WheelRef) -> Self {
        // SAFETY: a base puts only nodes of timers of its own platform into its wheel.
        TimerRef::around(unsafe { CoarseRef::around(node) })
    }
}
