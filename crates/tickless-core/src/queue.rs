//! The ranged queue.

mod balance;
mod check;

use crate::link::{QueueRef, Side};
use crate::time::Ns;

use balance::Tree;
pub use check::QueueFault;

/// When a timer may fire and when it must.
///
/// Both are points on the owning base's clock, in nanoseconds, any `u64`. `soft <= hard`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Never before this (W1).
    pub soft: Ns,
    /// The device is armed for this.
    pub hard: Ns,
}

impl Window {
    /// From `soft` to `hard`; a `hard` before `soft` is moved up to it, so that the timer is
    /// late by the contradiction rather than early.
    pub const fn new(soft: Ns, hard: Ns) -> Window {
        Window { soft, hard: if hard.0 < soft.0 { soft } else { hard } }
    }
}

/// Timers in order of hard expiry; equal ones in the order they came (W4).
///
/// Owns no memory: it links nodes that the timers carry. It may be moved at any time.
/// Dropping it leaves nodes marked as linked; see [`QueueRef::new`].
pub struct Queue {
    tree: Tree,
    /// The earliest node: what the device is armed for, without a walk.
    first: Option<QueueRef>,
    /// The latest node: a timer with the usual timeout goes behind it, without a search.
    last: Option<QueueRef>,
    len: usize,
}

impl Queue {
    /// A queue without timers.
    pub const fn new() -> Queue {
        Queue { tree: Tree { root: None }, first: None, last: None, len: 0 }
    }

    /// How many timers are queued.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no timer is queued.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Queues `node` for `window`, behind those with the same hard expiry. Returns whether it
    /// is now the first, so that the device may have to be armed for it.
    ///
    /// A window with `soft > hard` is taken as [`Window::new`] takes it. A node that is
    /// already in this queue is moved. O(log n) worst case; O(1) amortised where it expires
    /// before or after all others, which is where restarted timers mostly land.
    pub fn insert(&mut self, node: QueueRef, window: Window) -> bool {
        if node.is_linked() {
            self.remove(node);
        }
        let window = Window::new(window.soft, window.hard);
        node.set_window(window);
        let hard = window.hard;
        let is_first = self.first.is_none_or(|first| hard < first.hard());
        let is_last = self.last.is_none_or(|last| hard >= last.hard());
        let place = match (self.first, self.last) {
            (Some(first), _) if is_first => Some((first, Side::Earlier)),
            (_, Some(last)) if is_last => Some((last, Side::Later)),
            _ => self.search(hard),
        };
        if is_first {
            self.first = Some(node);
        }
        if is_last {
            self.last = Some(node);
        }
        self.tree.attach(node, place);
        self.len += 1;
        is_first
    }

    /// Takes `node` out. Returns whether it was the first; false if it was not queued.
    ///
    /// O(log n) worst case, O(1) amortised for the first and the last.
    pub fn remove(&mut self, node: QueueRef) -> bool {
        if !node.is_linked() {
            return false;
        }
        let was_first = self.first == Some(node);
        if was_first {
            self.first = balance::neighbour(node, Side::Later);
        }
        if self.last == Some(node) {
            self.last = balance::neighbour(node, Side::Earlier);
        }
        self.tree.detach(node);
        self.len -= 1;
        was_first
    }

    /// The window of the timer that the device is armed for: the smallest hard expiry, and
    /// of equal ones the one that came first. O(1).
    pub fn first(&self) -> Option<Window> {
        self.first.map(QueueRef::window)
    }

    /// Removes and returns the next timer that may fire at `now`, or `None` if the first is
    /// still ahead of its soft expiry. Call it until `None`.
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

    /// Shows every timer to `f`, in the order of hard expiry. O(n).
    pub fn for_each(&self, mut f: impl FnMut(QueueRef)) {
        let mut next = self.first;
        while let Some(node) = next {
            next = balance::neighbour(node, Side::Later);
            f(node);
        }
    }

    /// The empty place for this hard expiry: behind its equals. Descends from the root.
    fn search(&self, hard: Ns) -> Option<(QueueRef, Side)> {
        let mut place = None;
        let mut below = self.tree.root;
        while let Some(node) = below {
            let side = if hard < node.hard() { Side::Earlier } else { Side::Later };
            place = Some((node, side));
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
