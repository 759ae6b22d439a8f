//! The precise timers of a base: an ordered queue, and one for timers that wait for the next pass.
//!
//! A pass fires the timers that are due at one moment. A timer that is armed during or after a pass
//! for that moment or earlier waits for the next pass, as in the wheel. If it went into the queue
//! at once it would be first in line, and a callback that arms its own timer for the past would
//! keep every other timer from firing. Timers with equal windows fire in the order of arming (W4).
//!
//! The caller must store which of the two queues (its [`Lane`]) a timer is in; a base does so in
//! the timer's state word. Each method that changes the lane returns the new one.

use crate::invariant::BrokenInvariant;
use crate::link::QueueRef;
use crate::queues::tree::Queue;
use crate::state::Lane;
use crate::time::{Ns, Window};

/// How many late timers (armed for a time that the last pass had already covered) must be moved to
/// the queue before the next pass fires any timer.
pub(crate) struct LateOnes {
    pub(crate) count: usize,
    /// Late timers are queued with at least this hard expiry, so that they come behind the due
    /// timers that the last pass has not fired.
    behind: Ns,
}

/// Pending precise timers, in the order of hard expiry.
pub(crate) struct PreciseQueue {
    queue: Queue,
    late: Queue,
    /// The time of the last pass.
    pass: Option<Ns>,
    /// Whether the last pass has fired all timers that were due at its time.
    over: bool,
}

impl PreciseQueue {
    pub(crate) const fn new() -> PreciseQueue {
        PreciseQueue { queue: Queue::new(), late: Queue::new(), pass: None, over: true }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len() + self.late.len()
    }

    /// Returns the window with the earliest hard expiry. O(1).
    #[inline]
    pub(crate) fn first(&self) -> Option<Window> {
        if self.late.is_empty() {
            return self.queue.first();
        }
        let both = [self.queue.first(), self.late.first()];
        both.into_iter().flatten().min_by_key(|window| window.hard)
    }

    /// Inserts a timer that is in neither queue. O(log n).
    #[inline]
    pub(crate) fn insert(&mut self, node: QueueRef, window: Window) -> Lane {
        let lane = self.lane_for(window);
        self.lane(lane).insert(node, window);
        lane
    }

    /// Changes the window of a timer that is on `lane` (in the queue or late), and moves it to the
    /// other lane if necessary. O(log n); O(1) amortised if it stays between the same neighbours.
    pub(crate) fn rearm(&mut self, node: QueueRef, lane: Lane, window: Window) -> Lane {
        let to = self.lane_for(window);
        if to != lane {
            self.remove(node, lane);
        }
        self.lane(to).insert(node, window);
        to
    }

    /// Takes a timer off its lane (the queue, or the late timers). O(log n).
    #[inline]
    pub(crate) fn remove(&mut self, node: QueueRef, lane: Lane) {
        self.lane(lane).remove(node);
    }

    /// A timer that is armed for the time of the last pass or before waits for the next pass.
    #[inline]
    fn lane_for(&self, window: Window) -> Lane {
        match self.pass {
            Some(now) if window.soft <= now => Lane::Late,
            _ => Lane::Queued,
        }
    }

    /// Returns the timers of a lane, in the order of hard expiry.
    #[inline]
    pub(crate) fn lane(&mut self, lane: Lane) -> &mut Queue {
        match lane {
            Lane::Queued => &mut self.queue,
            Lane::Late => &mut self.late,
        }
    }

    /// Begins a pass over the timers due at `now`. If there are late ones, then call
    /// [`queue_late`](Self::queue_late) until their count is zero and
    /// [`start_pass`](Self::start_pass). Then call [`pop`](Self::pop) until `None`.
    ///
    /// Timers that the last pass left over fire first (W2): late timers are queued behind them.
    #[inline]
    pub(crate) fn announce_pass(&mut self, now: Ns) -> Option<LateOnes> {
        if self.late.is_empty() {
            (self.pass, self.over) = (Some(now), false);
            return None;
        }
        let behind = self.pass.filter(|_| !self.over && self.is_due()).unwrap_or(Ns::ZERO);
        self.pass = Some(now);
        Some(LateOnes { count: self.late.len(), behind })
    }

    /// Moves at most `room` late timers to the queue. Calls `queued` for each. O(log n) for each.
    pub(crate) fn queue_late(
        &mut self,
        late: &mut LateOnes,
        room: usize,
        mut queued: impl FnMut(QueueRef),
    ) {
        for _ in 0..late.count.min(room) {
            late.count -= 1;
            let Some(node) = self.late.pop_expired(Ns::NEVER) else {
                late.count = 0;
                return;
            };
            let Window { soft, hard } = node.window();
            self.queue.insert(node, Window { soft, hard: hard.max(late.behind) });
            queued(node);
        }
    }

    /// Allows [`pop`](Self::pop) to return the timers of the pass.
    pub(crate) fn start_pass(&mut self) {
        self.over = false;
    }

    /// Removes and returns the next timer that is allowed to fire in this pass.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<QueueRef> {
        // This check saves the call of `pop_due`: bases call `pop` before they take each coarse
        // timer, and usually no precise timer is due then.
        if self.over { None } else { self.pop_due() }
    }

    #[inline(never)]
    fn pop_due(&mut self) -> Option<QueueRef> {
        self.over = !self.is_due();
        if self.over { None } else { self.queue.pop_expired(self.pass?) }
    }

    /// Returns whether the first timer in the queue was due at the time of the last pass.
    fn is_due(&self) -> bool {
        let first = self.queue.first();
        self.pass.is_some_and(|now| first.is_some_and(|window| window.soft <= now))
    }

    /// Returns every timer and its lane. O(n).
    pub(crate) fn timers(&self) -> impl Iterator<Item = (QueueRef, Lane)> {
        let queued = self.queue.timers().map(|node| (node, Lane::Queued));
        queued.chain(self.late.timers().map(|node| (node, Lane::Late)))
    }

    pub(crate) fn check(&self) -> Result<(), BrokenInvariant> {
        self.queue.check()?;
        self.late.check()
    }
}
