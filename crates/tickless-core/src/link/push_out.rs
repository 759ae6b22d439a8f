//! A coarse timer's node: its place in a wheel, and its deadline, which is put off without a lock.
//!
//! # Pushing out
//!
//! Arming a pending timer for a later time is what servers do most. It changes one word, the
//! deadline, by compare-and-swap; the timer stays on the list where it is. Whoever comes to that
//! list, under the lock of the timer's base, looks at the word:
//!
//! | pushes out, without a lock | expires, with the lock |
//! |---|---|
//! | reads the deadline; it is not closed | reads the deadline; it has passed |
//! | compare-and-swap to the later one | compare-and-swap to closed: the timer fires |
//! | the loser takes the lock | the loser reads again, and moves the timer to where it belongs |
//!
//! Whoever pushes out reads the deadline before the timer's life, and gives up unless that says
//! pending. Arming opens the word after it has written the life. Expiry and evacuation close it, by
//! compare-and-swap, which tells them the last deadline that anybody was promised; while it is
//! closed every start takes the lock. A cancel leaves the word as it is: a start that was about to
//! change it has come before the cancel, as far as anybody can tell.
//!
//! A closed word says [`Ns::NEVER`], so a timer that is armed for that cannot be pushed out
//! without the lock; nor could it be pushed out at all.

use super::list::{WheelNode, WheelRef};
use super::node::Link;
use crate::platform::{Ordering, Word};
use crate::state::{FiresIn, Life};
use crate::time::Ns;
use core::fmt;
use core::ptr::NonNull;

/// Nobody pushes the timer out.
const CLOSED: u64 = Ns::NEVER.0;

/// What a coarse timer embeds as its first field. 32 bytes.
#[repr(C)]
pub struct WheelLink<W> {
    node: WheelNode,
    deadline: W,
}

impl<W: Word> WheelLink<W> {
    /// A node that is on no list.
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

/// A coarse timer's node. Copying it copies the reference.
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
    /// Hands a node to its wheel.
    ///
    /// # Safety
    /// As for [`WheelRef::new`], for as long as this reference or a copy of it is used; but of the
    /// methods below each may be called at any time, by any thread. What [`node`](Self::node)
    /// returns is used as `WheelRef::new` says.
    pub unsafe fn new(link: NonNull<WheelLink<W>>) -> CoarseRef<W> {
        CoarseRef(link)
    }

    /// The node that this is what the wheel sees of.
    ///
    /// # Safety
    /// The node came from [`node`](Self::node) of a reference of this type.
    pub unsafe fn around(node: WheelRef) -> CoarseRef<W> {
        CoarseRef(node.as_ptr().cast())
    }

    /// What the wheel sees of it.
    #[inline]
    pub fn node(self) -> WheelRef {
        // SAFETY: `new` promised a valid node, and what is asked for here; the pointer reaches the
        // whole link, of which the node is the first field.
        unsafe { WheelRef::new(self.0.cast()) }
    }

    /// The deadline. May be out of date as soon as it is known, but is never earlier than that
    /// while the timer is pending; [`Ns::NEVER`] if it is closed.
    #[inline]
    pub fn deadline(self) -> Ns {
        // Relaxed: whoever acts on it compares it again.
        Ns(self.word().load(Ordering::Relaxed))
    }

    /// Reads the deadline in order to [put it off](Self::push_out), before anything that is to be
    /// known of the timer.
    #[inline]
    pub fn read(self) -> Ns {
        // Acquire: pairs with the Release in `open`; who sees this arming's deadline sees its life.
        Ns(self.word().load(Ordering::Acquire))
    }

    /// Makes a deadline that was [read](Self::read) a later one. `false` if nothing has changed:
    /// it is another one by now, or closed, or `to` comes before it.
    ///
    /// After a `true` the caller does not touch the timer again: it may have fired, and be gone.
    #[inline]
    pub fn push_out(self, from: Ns, to: Ns) -> bool {
        // A closed one is not before anything that is open, and nothing comes before the end of the
        // range, one beyond `CLOSED`: no later than `to`, and that not closed.
        from.0 < to.0.wrapping_add(1) && {
            // Release: pairs with the Acquire in `close_by`; the callback sees what was done before
            // its timer was armed, and who frees the timer comes after this.
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            self.word().compare_exchange(from.0, to.0, success, failure).is_ok()
        }
    }

    /// Sets the deadline of a timer that is on a list and whose life says so. Under its lock.
    #[inline]
    pub fn open(self, deadline: Ns) {
        // Release: pairs with the Acquire in `read`.
        self.word().store(deadline.0, Ordering::Release);
    }

    /// Closes the deadline unless it is later than `by`. Returns it either way. Under its lock.
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
                // It was put off meanwhile.
                Err(later) => deadline = later,
            }
        }
    }

    /// Closes the deadline, and returns the last one. Under its lock.
    #[inline]
    pub fn take(self) -> Ns {
        match self.close_by(Ns::NEVER) {
            Ok(deadline) | Err(deadline) => deadline,
        }
    }

    fn word(&self) -> &W {
        // SAFETY: `new` promised a valid link; the word is only ever used as an atomic.
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
    /// As the trait says.
    unsafe fn node(link: NonNull<Self>) -> CoarseRef<W> {
        // SAFETY: the caller's promise is the one that is asked for.
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

    /// Goal: a closed deadline stays closed, and an open one is never made earlier or closed.
    #[test]
    fn only_an_open_deadline_is_pushed_out() {
        let link = WheelLink::<AtomicU64>::new();
        // SAFETY: the link stays until the test is over, and is on no list.
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
