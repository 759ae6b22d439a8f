//! What the two families of timers differ in, towards a base.
//!
//! Coarse timers live in the wheel, ranged ones in the queue; everything else about arming,
//! cancelling and firing is the same and is written once, in `base`, `cancel` and `expiry`.

use crate::base::WheelEvents;
use crate::link::{Link, QueueLink, QueueRef, WheelLink, WheelRef};
use crate::queue::Window;
use crate::ranged::Ranged;
use crate::state::Life;
use crate::time::Ns;
use crate::wheel::{Wakes, Wheel};

/// The two families of timers of one base.
pub struct Queues {
    pub(crate) wheel: Wheel,
    pub(crate) ranged: Ranged,
    pub(crate) events: WheelEvents,
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
}

/// What the families of timers differ in, towards a base.
pub trait Family: Link {
    /// Puts a node in, or moves it if `life` says that it is pending. Returns when the device
    /// must come for it, and its life from now on.
    fn enqueue(queues: &mut Queues, node: Self::Ref, life: Life, arming: Arming) -> (Ns, Life);
    /// Takes a pending node out. Returns when the device would have had to come for it.
    fn dequeue(queues: &mut Queues, node: Self::Ref, life: Life) -> Ns;
    /// When the device must come for a pending node.
    fn expiry(queues: &Queues, node: Self::Ref) -> Ns;
    /// Would this window make a pending node's deadline earlier?
    fn is_earlier(node: Self::Ref, window: Window) -> bool;
    /// Arms a pending node anew, if that leaves it due exactly when it was due.
    fn stays(_: &mut Queues, _: Self::Ref, _: Arming) -> bool {
        false
    }
}

impl Family for WheelLink {
    #[inline]
    fn enqueue(queues: &mut Queues, node: WheelRef, life: Life, arming: Arming) -> (Ns, Life) {
        let Arming { window, now, wakes } = arming;
        let due = queues.wheel.arm(node, window.soft, now, wakes);
        (queues.device_expiry(due), life.armed())
    }

    #[inline]
    fn dequeue(queues: &mut Queues, node: WheelRef, _: Life) -> Ns {
        let due = queues.wheel.due_at(node);
        queues.wheel.cancel(node);
        queues.device_expiry(due)
    }

    fn expiry(queues: &Queues, node: WheelRef) -> Ns {
        queues.device_expiry(queues.wheel.due_at(node))
    }

    fn is_earlier(node: WheelRef, window: Window) -> bool {
        window.soft < node.deadline()
    }

    #[inline]
    fn stays(queues: &mut Queues, node: WheelRef, arming: Arming) -> bool {
        let Arming { window, now, wakes } = arming;
        queues.wheel.stay(node, window.soft, now, wakes).is_some()
    }
}

impl Family for QueueLink {
    fn enqueue(queues: &mut Queues, node: QueueRef, life: Life, arming: Arming) -> (Ns, Life) {
        if life.is_pending() {
            queues.ranged.remove(node, life.lane());
        }
        let lane = queues.ranged.insert(node, arming.window);
        (node.window().hard, life.armed().on(lane))
    }

    fn dequeue(queues: &mut Queues, node: QueueRef, life: Life) -> Ns {
        queues.ranged.remove(node, life.lane());
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
    /// When the next timer is due, as far as the event device is concerned.
    pub(crate) fn earliest(&self) -> Ns {
        let ranged = self.ranged.first().map_or(Ns::NEVER, |window| window.hard);
        match self.events {
            WheelEvents::Device => ranged.min(self.wheel.next_event()),
            WheelEvents::Tick => ranged,
        }
    }

    fn device_expiry(&self, due: Ns) -> Ns {
        if self.events == WheelEvents::Tick { Ns::NEVER } else { due }
    }
}
