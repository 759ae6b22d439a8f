//! A coarse timer's node: its place in a wheel, and its deadline, which threads push out (move
//! later) without a lock.
//!
//! # Pushing out
//!
//! Rearming a pending timer for a later time is the most frequent operation of servers. It changes
//! one word, the deadline, by compare-and-swap, and the timer stays on its list. While push-outs
//! are not allowed, the word is *closed*: it contains no deadline. The thread that expires the
//! timers on that list holds the lock of the base, and reads the word. If another thread pushes a
//! timer out at the same time, the first compare-and-swap wins:
//!
//! | push-out, without a lock | expiry, with the lock |
//! |---|---|
//! | reads the deadline; it is not closed | reads the deadline; it has passed |
//! | compare-and-swap to the later one | compare-and-swap to closed: the timer fires |
//! | if that fails: takes the lock | if that fails: reads again, moves the timer to its bucket |
//!
//! A push-out reads the deadline before the timer's state, and gives up unless the timer is
//! pending. Arming opens the word after it has written the state. Expiry, and evacuation from a
//! base that goes offline, close the word by compare-and-swap, which returns the last deadline that
//! a push-out has set. While the word is closed, every start takes the lock. A cancel leaves the
//! word as it is: a concurrent push-out counts as having happened before the cancel.
//!
//! A closed word contains [`Ns::NEVER`]. So a timer that is armed for this time cannot be pushed
//! out without the lock, and need not be: there is no later time.

use super::list::{WheelNode, WheelRef};
use super::node::Link;
use crate::platform::{Ordering, Word};
use crate::state::{FiresIn, Life};
use crate::time::Ns;
use core::fmt;
use core::mem::offset_of;
use core::ptr::NonNull;

/// The deadline of a timer that cannot be pushed out.
const CLOSED: u64 = Ns::NEVER.0;

/// The node of a coarse timer, and its deadline. 32 bytes.
#[repr(C)]
pub struct WheelLink<W> {
    deadline: W,
    node: WheelNode,
}

impl<W: Word> WheelLink<W> {
    /// Creates a node that is on no list.
    pub fn new() -> WheelLink<W> {
        WheelLink { node: WheelNode::new(), deadline: W::new(CLOSED) }
    }
}

impl<W: Word> Default for WheelLink<W> {
    fn default() -> Self {
        WheelLink::new()
    }
}

impl<W> fmt::Debug for WheelLink<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WheelLink").finish_non_exhaustive()
    }
}

/// A reference to a coarse timer's node. A copy refers to the same node.
pub struct CoarseRef<W>(NonNull<WheelLink<W>>);

impl<W> Clone for CoarseRef<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for CoarseRef<W> {}

impl<W> PartialEq for CoarseRef<W> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<W> Eq for CoarseRef<W> {}

impl<W> fmt::Debug for CoarseRef<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CoarseRef({:p})", self.0)
    }
}

impl<W: Word> CoarseRef<W> {
    /// Makes a reference to a node, for its wheel.
    ///
    /// # Safety
    /// As for [`WheelRef::new`], while this reference or a copy of it is used. Any thread is
    /// allowed to call the methods below at any time, but the rules of `WheelRef::new` hold for
    /// what [`node`](Self::node) returns.
    pub unsafe fn new(link: NonNull<WheelLink<W>>) -> CoarseRef<W> {
        CoarseRef(link)
    }

    /// Returns the reference from which [`node`](Self::node) returned `node`.
    ///
    /// # Safety
    /// The argument was returned by [`node`](Self::node) of a reference of this type.
    pub unsafe fn around(node: WheelRef) -> CoarseRef<W> {
        // SAFETY: the caller promises that the node is a field of a link.
        CoarseRef(unsafe { node.as_ptr().byte_sub(offset_of!(WheelLink<W>, node)).cast() })
    }

    /// The part of the node that the wheel uses.
    #[inline]
    pub fn node(self) -> WheelRef {
        // SAFETY: `new` requires the same; the pointer is valid for the link.
        unsafe { WheelRef::new(NonNull::new_unchecked(&raw mut (*self.0.as_ptr()).node)) }
    }

    /// The deadline; [`Ns::NEVER`] if it is closed. A concurrent push-out can make it later.
    #[inline]
    pub fn deadline(self) -> Ns {
        // Relaxed: the value can be out of date at once. `push_out` and `close_by` compare the word
        // again before they change it.
        Ns(self.word().load(Ordering::Relaxed))
    }

    /// Reads the deadline for a [push-out](Self::push_out). Read the timer's state after this.
    #[inline]
    pub fn read(self) -> Ns {
        // Acquire: pairs with the Release in `open`. A thread that sees the deadline of an arming
        // also sees the timer's state, which the arming wrote before.
        Ns(self.word().load(Ordering::Acquire))
    }

    /// Changes a deadline that was [read](Self::read) to a later one. Returns `false`, and changes
    /// nothing, if the deadline has changed since it was read, is closed, or is later than `to`.
    ///
    /// After `true` the caller must not access the timer, which has possibly fired and been freed.
    #[inline]
    pub fn push_out(self, from: Ns, to: Ns) -> bool {
        // Checks that `from` is not later than `to`, and that neither is closed: `CLOSED` is the
        // largest value, so adding 1 to it gives 0.
        from.0 < to.0.wrapping_add(1) && {
            // Release: pairs with the Acquire in `close_by`. The callback sees what this thread did
            // before the push-out, and the timer cannot be freed before this access.
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            self.word().compare_exchange(from.0, to.0, success, failure).is_ok()
        }
    }

    /// Sets the deadline of a timer that is on a list and whose state is pending, so that it can be
    /// pushed out. The caller holds the base's lock.
    #[inline]
    pub fn open(self, deadline: Ns) {
        // Release: pairs with the Acquire in `read`.
        self.word().store(deadline.0, Ordering::Release);
    }

    /// Closes the deadline, which ends push-outs, unless the deadline is later than `by`. Returns
    /// the deadline, as `Err` if it is later. The caller holds the timer's lock.
    #[inline]
    pub fn close_by(self, by: Ns) -> Result<Ns, Ns> {
        let mut deadline = self.word().load(Ordering::Relaxed);
        loop {
            if deadline > by.0 {
                return Err(Ns(deadline));
            }
            // Acquire: pairs with the Release in `push_out`.
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            match self.word().compare_exchange(deadline, CLOSED, success, failure) {
                Ok(_) => return Ok(Ns(deadline)),
                // A concurrent push-out has changed the deadline.
                Err(later) => deadline = later,
            }
        }
    }

    /// Closes the deadline, and returns it. The caller holds the timer's lock.
    #[inline]
    pub fn take(self) -> Ns {
        match self.close_by(Ns::NEVER) {
            Ok(deadline) | Err(deadline) => deadline,
        }
    }

    fn word(&self) -> &W {
        // SAFETY: `new` requires a valid link; the word is only accessed as an atomic.
        unsafe { &(*self.0.as_ptr()).deadline }
    }
}

impl<W: Word> Link for WheelLink<W> {
    type Ref = CoarseRef<W>;
    const COARSE: bool = true;

    fn fires_in(_: Life) -> FiresIn {
        FiresIn::Thread
    }

    fn unlinked() -> Self {
        WheelLink::new()
    }

    /// # Safety
    /// As for [`CoarseRef::new`].
    unsafe fn node(link: NonNull<Self>) -> CoarseRef<W> {
        // SAFETY: the caller's promise.
        unsafe { CoarseRef::new(link) }
    }

    fn address(node: CoarseRef<W>) -> NonNull<Self> {
        node.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;

    #[test]
    fn only_an_open_deadline_is_pushed_out() {
        let link = WheelLink::<AtomicU64>::new();
        // SAFETY: the link lives until the end of the test, and is on no list.
        let node = unsafe { CoarseRef::new(NonNull::from(&link)) };
        let times = [Ns::ZERO, Ns(1), Ns(2), Ns(u64::MAX - 1), Ns::NEVER];
        for (from, to) in times.into_iter().flat_map(|from| times.map(|to| (from, to))) {
            node.open(from);
            let is_later = from <= to && to != Ns::NEVER;
            assert_eq!(node.push_out(from, to), is_later, "{from:?} to {to:?}");
            assert_eq!(node.deadline(), if is_later { to } else { from });
        }
    }
}
