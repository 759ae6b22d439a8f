//! The precise queue: timers with a soft expiry, before which they must not fire, and a hard one,
//! at which they must.
//!
//! Each base has one for its high-resolution timers; coarse timeouts are in the wheel. The queue
//! takes no lock, reads no clock and allocates nothing: the base calls it under its lock and passes
//! the current time. The nodes are embedded in the timers ([`QueueLink`](crate::link::QueueLink)).
//!
//! `docs/dev/contract.md` has the guarantees, under "Wheel and queue". Timers with the same hard
//! expiry are in the order of insertion: a node is inserted behind its equals and rotations keep
//! that order, so no sequence number is stored. Every operation is O(log n) at worst,
//! [`Queue::first`] O(1).
//!
//! # Which timers fire at a wakeup
//! [`Queue::pop_expired`] pops in the order of hard expiry and stops at the first timer that must
//! not fire yet, as Linux does. Call this timer F. A timer T behind F is held back even if T's own
//! soft expiry has passed. This causes no wakeup: F must fire no later than T must, and the pass
//! that fires F goes on to T. So the smallest hard expiry, and with it every wakeup, is the same as
//! if T were not held back; only if F is cancelled or moved can T need a wakeup of its own. (In a
//! simulation, 20,000 one-shot timers with four kinds of slack were started per second. The wakeups
//! per second, with T held back and without, were 8362 and 8362 if no timer was cancelled, 4752 and
//! 4682 if half of them were, and 1334 and 1233 if nine of ten were.)
//!
//! To hold no timer back, each node would have to store the smallest soft expiry in its subtree.
//! That takes 8 bytes a node and, worse, a walk to the root whenever the first timer is inserted or
//! removed, which then takes 23 to 34 ns, not 6 to 8. Linux's rule also keeps replays comparable.
//! # Why a red-black tree
//! The alternatives were measured with 1,000 and 100,000 pending timers:
//!
//! - **Pairing heap**: one removal of the first can access every node: 13 ms under a lock.
//! - **4-ary heap** with cached keys: its array needs room before a timer is armed, on every base
//!   that a timer can migrate to, or a full array is copied under the lock. It is slower to insert
//!   and remove a first timer, the common case on a busy base, and at expiry.
//! - **Zip tree**: the simplest, but it has no worst-case bound, and removal has to search.
//! - **WAVL** and red-black are equal; red-black moves timers slightly faster.
//!
//! The last node is stored as well as the first: a timer with the usual timeout is inserted behind
//! all others. A search for that place costs 19 ns with 1,000 timers and 23 ns with 100,000.

mod balance;
mod check;

use crate::link::{QueueRef, Side};
use crate::time::{Ns, Window};

use balance::Tree;

/// Timers in the order of hard expiry; equal ones in the order of insertion.
///
/// Owns no memory: it links the nodes that are embedded in timers. It can be moved at any time.
/// Dropping it leaves nodes marked as linked; see [`QueueRef::new`].
pub struct Queue {
    tree: Tree,
    /// The earliest node, which the device is armed for.
    first: Option<QueueRef>,
    /// The latest node, so that a timer with the usual timeout is inserted without a search.
    last: Option<QueueRef>,
    len: usize,
    /// Where the last walk over the timers stopped: the next timer that it visits. Removing that
    /// timer moves the cursor to the next one, so that it never refers to a removed timer.
    cursor: Option<QueueRef>,
    /// Identifies the walk that the cursor belongs to. A walk with another ticket lost its place.
    ticket: u64,
}

/// The result of a step of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Walked {
    /// There are more timers.
    Part,
    /// All timers have been visited.
    All,
    /// The walk has ended early, because another walk has taken the cursor.
    Cut,
}

impl Queue {
    /// Returns an empty queue.
    pub const fn new() -> Queue {
        Queue {
            tree: Tree { root: None },
            first: None,
            last: None,
            len: 0,
            cursor: None,
            ticket: 0,
        }
    }

    /// Returns the number of queued timers.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no timer is queued.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Queues `node` for `window`, behind the nodes with the same hard expiry. Returns whether
    /// `node` is now the first: then the device (the hardware timer) must perhaps be armed for it.
    ///
    /// If `soft > hard`, `hard` is raised as by [`Window::new`]. A node that is already in this
    /// queue is moved, unless its place between its neighbours is still right.
    /// O(log n) worst case; O(1) amortised if it does not move, and if it expires before or after
    /// all others, as most restarted timers do.
    #[inline]
    pub fn insert(&mut self, node: QueueRef, window: Window) -> bool {
        let window = Window::new(window.soft, window.hard);
        if node.is_linked() {
            return self.move_to(node, window);
        }
        node.set_window(window);
        match (self.first, self.last) {
            (Some(first), Some(last)) => self.insert_among(node, first, last),
            _ => {
                self.insert_only(node);
                true
            }
        }
    }

    #[inline]
    fn insert_only(&mut self, node: QueueRef) {
        self.tree.root = Some(node);
        (self.first, self.last) = (Some(node), Some(node));
        self.len = 1;
        node.enter_as_root();
    }

    /// Inserts a node, whose window has been set, into a queue that is not empty.
    #[inline(never)]
    fn insert_among(&mut self, node: QueueRef, first: QueueRef, last: QueueRef) -> bool {
        let hard = node.hard();
        let is_first = hard < first.hard();
        let (parent, side) = if is_first {
            self.first = Some(node);
            (first, Side::Earlier)
        } else if hard >= last.hard() {
            self.last = Some(node);
            (last, Side::Later)
        } else {
            self.search(hard, last)
        };
        self.tree.attach(node, parent, side);
        self.len += 1;
        is_first
    }

    /// Moves a queued node to the position for a new window. Returns whether it is then the first.
    #[inline(never)]
    fn move_to(&mut self, node: QueueRef, window: Window) -> bool {
        if self.stays(node, window.hard) {
            node.set_window(window);
            return self.first == Some(node);
        }
        self.remove(node);
        self.insert(node, window)
    }

    /// Returns whether a queued node can keep its position if its hard expiry changes to `hard`: no
    /// node before it has a later hard expiry, and every node behind it has one.
    fn stays(&self, node: QueueRef, hard: Ns) -> bool {
        let is_behind = || {
            let before = balance::neighbour(node, Side::Earlier);
            before.is_none_or(|before| before.hard() <= hard)
        };
        let is_before = || {
            let behind = balance::neighbour(node, Side::Later);
            behind.is_none_or(|behind| hard < behind.hard())
        };
        // Compare with one neighbour only: the one towards which the expiry moves. The node is
        // still in order with the other neighbour.
        if hard < node.hard() { is_behind() } else { is_before() }
    }

    /// Removes `node`. Returns whether it was the first node; false if it was not queued.
    ///
    /// O(log n) worst case, O(1) amortised for the first and the last.
    #[inline]
    pub fn remove(&mut self, node: QueueRef) -> bool {
        if !node.is_linked() {
            return false;
        }
        if self.len == 1 {
            self.remove_only(node);
            return true;
        }
        self.remove_among(node)
    }

    /// Removes a node of a queue that has several. Returns whether it was the first.
    #[inline(never)]
    fn remove_among(&mut self, node: QueueRef) -> bool {
        let was_first = self.first == Some(node);
        if was_first {
            self.first = balance::neighbour(node, Side::Later);
        }
        if self.last == Some(node) {
            self.last = balance::neighbour(node, Side::Earlier);
        }
        if self.cursor == Some(node) {
            self.cursor = balance::neighbour(node, Side::Later);
        }
        self.tree.detach(node);
        self.len -= 1;
        was_first
    }

    /// Removes the only node: the common case for a timeout in a program with few timers.
    #[inline]
    fn remove_only(&mut self, node: QueueRef) {
        self.tree.root = None;
        (self.first, self.last, self.cursor) = (None, None, None);
        self.len = 0;
        node.leave();
    }

    /// Returns the window of the timer for which the device is armed: the timer with the smallest
    /// hard expiry. Of timers with equal ones, it is the timer that was inserted first. O(1).
    pub fn first(&self) -> Option<Window> {
        self.first.map(QueueRef::window)
    }

    /// Removes and returns the next timer that is allowed to fire at `now`; `None` if the queue is
    /// empty or its first timer's soft expiry is after `now`. Call it until it returns `None`.
    ///
    /// After `None` every timer's hard expiry is after `now`. O(log n) worst case, O(1)
    /// amortised.
    pub fn pop_expired(&mut self, now: Ns) -> Option<QueueRef> {
        let first = self.first?;
        if first.window().soft > now {
            return None;
        }
        self.remove(first);
        Some(first)
    }

    /// Returns every timer, in the order of hard expiry. O(n).
    pub fn timers(&self) -> impl Iterator<Item = QueueRef> {
        core::iter::successors(self.first, |&node| balance::neighbour(node, Side::Later))
    }

    /// Continues a walk in the order of hard expiry, for at most `room` timers. The ticket
    /// identifies the walk; it is 0 before the first step.
    pub(crate) fn walk(
        &mut self,
        ticket: &mut u64,
        mut room: usize,
        mut visit: impl FnMut(QueueRef),
    ) -> Walked {
        let mut next = match *ticket {
            0 => self.first,
            ticket if ticket == self.ticket => self.cursor,
            _ => return Walked::Cut,
        };
        while let Some(node) = next {
            if room == 0 {
                self.cursor = next;
                self.ticket += 1;
                *ticket = self.ticket;
                return Walked::Part;
            }
            room -= 1;
            next = balance::neighbour(node, Side::Later);
            visit(node);
        }
        Walked::All
    }

    /// Returns where in the tree a node with this hard expiry must be attached, which is behind all
    /// nodes with an equal one. The queue must not be empty.
    fn search(&self, hard: Ns, last: QueueRef) -> (QueueRef, Side) {
        let mut place = (last, Side::Later);
        let mut below = self.tree.root;
        while let Some(node) = below {
            let side = if hard < node.hard() { Side::Earlier } else { Side::Later };
            place = (node, side);
            below = node.child(side);
        }
        place
    }
}

impl Default for Queue {
    fn default() -> Queue {
        Queue::new()
    }
}
