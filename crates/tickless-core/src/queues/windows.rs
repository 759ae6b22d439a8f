//! One owner's precise timers: the queue, and what waits for the next pass over it.
//!
//! A pass fires what is due at one moment. What is armed from then on for that moment or an
//! earlier one is the next pass's, as in the wheel. In the queue it would be the first in line:
//! a timer that arms itself for the past would fire forever and no other one ever. Timers with
//! equal windows still fire in the order in which they were armed (W4).
//!
//! Which [`Lane`] a timer is on is for its owner to remember: a base does so in the timer's
//! word. Whatever is said about a timer's lane in here is said to the owner at once.

use crate::link::QueueRef;
use crate::queues::tree::{Queue, QueueFault};
use crate::state::Lane;
use crate::time::{Ns, Window};

/// What a pass that begins has to queue.
pub(crate) struct LateOnes {
    pub(crate) count: usize,
    behind: Ns,
}

/// Precise timers, in order of hard expiry.
pub(crate) struct PreciseQueue {
    queue: Queue,
    late: Queue,
    /// The moment of the last pass.
    pass: Option<Ns>,
    /// Is that pass over?
    over: bool,
}

impl PreciseQueue {
    pub(crate) const fn new() -> PreciseQueue {
        PreciseQueue { queue: Queue::new(), late: Queue::new(), pass: None, over: true }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len() + self.late.len()
    }

    /// The window that ends first. O(1).
    pub(crate) fn first(&self) -> Option<Window> {
        let both = [self.queue.first(), self.late.first()];
        both.into_iter().flatten().min_by_key(|window| window.hard)
    }

    /// Puts a timer in that is on no lane. O(log n).
    #[inline]
    pub(crate) fn insert(&mut self, node: QueueRef, window: Window) -> Lane {
        let lane = self.lane_for(window);
        self.lane(lane).insert(node, window);
        lane
    }

    /// Puts a timer that is on this lane where another window has it. O(log n); O(1) amortised if
    /// that is between the same neighbours.
    pub(crate) fn rearm(&mut self, node: QueueRef, lane: Lane, window: Window) -> Lane {
        let to = self.lane_for(window);
        if to != lane {
            self.remove(node, lane);
        }
        self.lane(to).insert(node, window);
        to
    }

    /// Takes a timer off its lane. O(log n).
    #[inline]
    pub(crate) fn remove(&mut self, node: QueueRef, lane: Lane) {
        self.lane(lane).remove(node);
    }

    #[inline]
    fn lane_for(&self, window: Window) -> Lane {
        match self.pass {
            Some(now) if window.soft <= now => Lane::Late,
            _ => Lane::Queued,
        }
    }

    #[inline]
    fn lane(&mut self, lane: Lane) -> &mut Queue {
        match lane {
            Lane::Queued => &mut self.queue,
            Lane::Late => &mut self.late,
        }
    }

    /// A pass begins; [`pop`](PreciseQueue::pop) until `None` to end it. `queued` is told of every
    /// timer that was late and is now [`Lane::Queued`]. What an unfinished pass had to fire goes
    /// first (W2): the late ones line up behind it, as if they had to fire at its moment.
    /// O(k log n) for k late ones.
    pub(crate) fn begin_pass(&mut self, now: Ns, queued: impl FnMut(QueueRef)) {
        let mut late = self.announce_pass(now);
        self.queue_late(&mut late, usize::MAX, queued);
        self.start_pass();
    }

    /// The same in steps, for whoever must not take long: first this,
    pub(crate) fn announce_pass(&mut self, now: Ns) -> LateOnes {
        let behind = self.pass.filter(|_| !self.over && self.is_due()).unwrap_or(Ns::ZERO);
        self.pass = Some(now);
        LateOnes { count: self.late.len(), behind }
    }

    /// then this, for so many at a time as long as there are any,
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

    /// and then this.
    pub(crate) fn start_pass(&mut self) {
        self.over = false;
    }

    /// The next timer that may fire in this pass, on no lane any more.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<QueueRef> {
        // Mostly there is none, and this is asked for every coarse timer.
        if self.over { None } else { self.pop_due() }
    }

    #[inline(never)]
    fn pop_due(&mut self) -> Option<QueueRef> {
        self.over = !self.is_due();
        if self.over { None } else { self.queue.pop_expired(self.pass?) }
    }

    /// Takes some pending timer off its lane, whether it is due or not. O(log n).
    pub(crate) fn take_any(&mut self) -> Option<QueueRef> {
        match self.queue.pop_expired(Ns::NEVER) {
            Some(node) => Some(node),
            None => self.late.pop_expired(Ns::NEVER),
        }
    }

    /// Is there anything left for the last pass?
    fn is_due(&self) -> bool {
        let first = self.queue.first();
        self.pass.is_some_and(|now| first.is_some_and(|window| window.soft <= now))
    }

    /// Both lanes, each in the order of hard expiry.
    pub(crate) fn lanes(&mut self) -> [&mut Queue; 2] {
        [&mut self.queue, &mut self.late]
    }

    /// Shows every timer and its lane. O(n).
    pub(crate) fn for_each(&self, mut f: impl FnMut(QueueRef, Lane)) {
        self.queue.for_each(|node| f(node, Lane::Queued));
        self.late.for_each(|node| f(node, Lane::Late));
    }

    /// See [`Queue::check`].
    pub(crate) fn check(&self) -> Result<(), QueueFault> {
        self.queue.check()?;
        self.late.check()
    }
}
