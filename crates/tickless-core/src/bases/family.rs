//! What the two families of timers differ in, towards a base.
//!
//! Coarse timers live in the wheel, ranged ones in the queue; everything else about arming,
//! cancelling and firing is the same and is written once, in `base`, `cancel` and `expiry`.

use crate::link::{Link, QueueLink, QueueRef, WheelLink, WheelRef};
use crate::queues::wheel::{Wakes, Wheel};
use crate::queues::windows::Ranged;
use crate::state::{FiresIn, Life};
use crate::time::{Ns, Window};

/// The timers of one base.
pub struct Queues {
    pub(crate) wheel: Wheel,
    /// Ranged timers that fire in the handler.
    pub(crate) ranged: Ranged,
    /// Ranged timers that fire in the expiry thread. Empty unless expiry is deferred.
    pub(crate) deferred: Ranged,
}

/// When a timer is to fire, as its family has to know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arming {
    /// When it may fire and when it must.
    pub window: Window,
    /// The present, or a little before.
    pub now: Ns,
    /// Does it keep a CPU awake?
    pub wakes: Wakes,
    /// Who fires it, if it is ranged.
    pub fires_in: FiresIn,
}

/// What the families of timers differ in, towards a base.
pub trait Family: Link {
    /// Is it the wheel's?
    const COARSE: bool;
    /// Who fires a timer with this life, if expiry is deferred.
    fn fires_in(life: Life) -> FiresIn;
    /// Puts a node in, or moves it if `life` says that it is pending. Returns when it will be
    /// due, and its life from now on.
    fn enqueue(queues: &mut Queues, node: Self::Ref, life: Life, arming: Arming) -> (Ns, Life);
    /// Takes a pending node out. Returns when it would have been due.
    fn dequeue(queues: &mut Queues, node: Self::Ref, life: Life) -> Ns;
    /// When a pending node is due.
    fn expiry(queues: &Queues, node: Self::Ref) -> Ns;
    /// Would this window make a pending node's deadline earlier?
    fn is_earlier(node: Self::Ref, window: Window) -> bool;
    /// Arms a pending node anew, if that leaves it due exactly when it was due.
    fn stays(_: &mut Queues, _: Self::Ref, _: Arming) -> bool {
        false
    }
}

impl Family for WheelLink {
    const COARSE: bool = true;

    fn fires_in(_: Life) -> FiresIn {
        FiresIn::Thread
    }

    #[inline(always)]
    fn enqueue(queues: &mut Queues, node: WheelRef, life: Life, arming: Arming) -> (Ns, Life) {
        let Arming { window, now, wakes, .. } = arming;
        (queues.wheel.arm(node, window.soft, now, wakes), life.armed())
    }

    #[inline]
    fn dequeue(queues: &mut Queues, node: WheelRef, _: Life) -> Ns {
        let due = queues.wheel.due_at(node);
        queues.wheel.unlink(node);
        due
    }

    fn expiry(queues: &Queues, node: WheelRef) -> Ns {
        queues.wheel.due_at(node)
    }

    fn is_earlier(node: WheelRef, window: Window) -> bool {
        window.soft < node.deadline()
    }

    #[inline]
    fn stays(queues: &mut Queues, node: WheelRef, arming: Arming) -> bool {
        let Arming { window, now, wakes, .. } = arming;
        queues.wheel.stay(node, window.soft, now, wakes).is_some()
    }
}

impl Family for QueueLink {
    const COARSE: bool = false;

    fn fires_in(life: Life) -> FiresIn {
        life.fires_in()
    }

    fn enqueue(queues: &mut Queues, node: QueueRef, life: Life, arming: Arming) -> (Ns, Life) {
        let (from, to) = (life.fires_in(), arming.fires_in);
        if life.is_pending() && from != to {
            queues.ranged(from).remove(node, life.lane());
        }
        let queue = queues.ranged(to);
        let lane = if life.is_pending() && from == to {
            queue.rearm(node, life.lane(), arming.window)
        } else {
            queue.insert(node, arming.window)
        };
        (node.window().hard, life.armed().on(lane).fired_in(arming.fires_in))
    }

    fn dequeue(queues: &mut Queues, node: QueueRef, life: Life) -> Ns {
        queues.ranged(life.fires_in()).remove(node, life.lane());
        node.window().hard
    }

    fn expiry(_: &Queues, node: QueueRef) -> Ns {
        node.window().hard
    }

    fn is_earlier(node: QueueRef, window: Window) -> bool {
        window.hard < node.window().hard
    }
}

impl Queues {
    pub(super) fn ranged(&mut self, fires_in: FiresIn) -> &mut Ranged {
        match fires_in {
            FiresIn::Handler => &mut self.ranged,
            FiresIn::Thread => &mut self.deferred,
        }
    }

    /// When the event device must come for what fires in the handler.
    pub(crate) fn earliest_in_handler(&self) -> Ns {
        self.ranged.first().map_or(Ns::NEVER, |window| window.hard)
    }

    /// When the event device would have to come for the ranged timers that the thread fires.
    pub(crate) fn earliest_in_thread(&self) -> Ns {
        self.deferred.first().map_or(Ns::NEVER, |window| window.hard)
    }
}
