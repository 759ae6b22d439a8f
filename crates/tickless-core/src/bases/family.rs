//! What the two families of timers differ in, towards a base.
//!
//! Coarse timers live in the wheel, precise ones in the queue; everything else about arming,
//! cancelling and firing is the same and is written once, in `base`, `cancel` and `expiry`.

use crate::link::{Link, QueueLink, QueueRef, TimerRef, WheelLink};
use crate::platform::{Ordering, Platform, Word};
use crate::queues::wheel::{LEVELS, Wakes, Wheel};
use crate::queues::windows::PreciseQueue;
use crate::state::{FiresIn, Life};
use crate::time::{CpuId, Ns, Tick, Window};

/// The timers of one base.
pub struct Queues {
    pub(crate) wheel: Wheel,
    /// Precise timers that fire in the handler.
    pub(crate) precise: PreciseQueue,
    /// Precise timers that fire in the expiry thread. Empty unless expiry is deferred.
    pub(crate) deferred: PreciseQueue,
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
    /// Who fires it, if it is precise.
    pub fires_in: FiresIn,
}

/// What the families of timers differ in, towards a base.
pub trait Family<P: Platform>: Link {
    /// The window, as far as the family goes by it, and so that it has an end after its beginning.
    fn window(window: Window) -> Window {
        Window::new(window.soft, window.hard)
    }
    /// A timer that is armed like this is due then, or later.
    fn least_due(window: Window) -> Ns {
        window.hard
    }
    /// Puts a node in, or moves it if `life` says that it is pending. Returns when it will be
    /// due, and its life from now on; once that has been stored, it is to be [opened](Self::open).
    fn enqueue(queues: &mut Queues, node: Self::Ref, life: Life, arming: Arming) -> (Ns, Life);
    /// Puts the node of an idle timer in, at a present that is no news to the
    /// wheel. Returns its life, as [`enqueue`](Self::enqueue) does.
    fn insert(queues: &mut Queues, node: Self::Ref, life: Life, arming: Arming) -> Life {
        Self::enqueue(queues, node, life, arming).1
    }
    /// Lets a node whose life says that it is pending be put off without the lock.
    fn open(_: Self::Ref, _: Window) {}
    /// Makes a pending node's deadline later without the lock. `false` if that takes the lock.
    fn push_out(_: TimerRef<P, Self>, _: PushingOut<'_>) -> bool {
        false
    }
    /// Takes a pending node out. Returns when it would have been due.
    fn dequeue(queues: &mut Queues, node: Self::Ref, life: Life) -> Ns;
    /// When a pending node is due.
    fn expiry(queues: &Queues, node: Self::Ref) -> Ns;
    /// Would this window make a pending node's deadline earlier?
    fn is_earlier(node: Self::Ref, window: Window) -> bool;
}

/// How a pending coarse timer is to be put off.
#[derive(Clone, Copy, Debug)]
pub struct PushingOut<'a> {
    /// To when.
    pub deadline: Ns,
    /// The present, or about that.
    pub now: Ns,
    /// Does it keep a CPU awake?
    pub wakes: Wakes,
    /// The base that it has to be on.
    pub pinned: Option<CpuId>,
    /// How far ahead a deadline must lie for each level to be fine enough (W1).
    pub least: &'a [Ns; 16],
}

impl<P: Platform> Family<P> for WheelLink<P::Word> {
    #[inline]
    fn window(window: Window) -> Window {
        Window { soft: window.soft, hard: window.soft }
    }

    #[inline]
    fn least_due(window: Window) -> Ns {
        window.soft
    }

    #[inline(always)]
    fn enqueue(queues: &mut Queues, node: Self::Ref, life: Life, arming: Arming) -> (Ns, Life) {
        let (node, Arming { window, now, wakes, .. }) = (node.node(), arming);
        let due = queues.wheel.arm(node, window.soft, now, wakes);
        (due, life.armed().held(Wheel::held(node)))
    }

    #[inline(always)]
    fn insert(queues: &mut Queues, node: Self::Ref, life: Life, arming: Arming) -> Life {
        let (_, held) = queues.wheel.put_in(node.node(), arming.window.soft, arming.wakes);
        life.armed().held(held)
    }

    #[inline]
    fn open(node: Self::Ref, window: Window) {
        node.open(window.soft);
    }

    #[inline(always)]
    fn push_out(timer: TimerRef<P, Self>, off: PushingOut<'_>) -> bool {
        // The deadline first: the life that is read after it is that of its arming, or a later one.
        let (node, from) = (timer.node(), timer.node().read());
        let life = Life::from_word(timer.word().load(Ordering::Relaxed));
        let held = life.held_as();
        let may = life.is_pending()
            && held.is_deferrable() == (off.wakes == Wakes::No)
            // Late by no more than if it were armed anew. A time that is yet to come only makes
            // the distance shorter.
            && off.deadline.since(off.now) >= off.least[held.level()]
            && (off.pinned.is_none() || off.pinned == life.base());
        may && node.push_out(from, off.deadline)
    }

    #[inline(always)]
    fn dequeue(queues: &mut Queues, node: Self::Ref, _: Life) -> Ns {
        let due = queues.wheel.due_at(node.node());
        queues.wheel.unlink(node.node());
        due
    }

    #[inline]
    fn expiry(queues: &Queues, node: Self::Ref) -> Ns {
        queues.wheel.due_at(node.node())
    }

    fn is_earlier(node: Self::Ref, window: Window) -> bool {
        window.soft < node.deadline()
    }
}

impl<P: Platform> Family<P> for QueueLink {
    #[inline]
    fn enqueue(queues: &mut Queues, node: QueueRef, life: Life, arming: Arming) -> (Ns, Life) {
        let (from, to) = (life.fires_in(), arming.fires_in);
        if life.is_pending() && from != to {
            queues.precise(from).remove(node, life.lane());
        }
        let queue = queues.precise(to);
        let lane = if life.is_pending() && from == to {
            queue.rearm(node, life.lane(), arming.window)
        } else {
            queue.insert(node, arming.window)
        };
        (node.window().hard, life.armed().on(lane).fired_in(arming.fires_in))
    }

    #[inline]
    fn dequeue(queues: &mut Queues, node: QueueRef, life: Life) -> Ns {
        queues.precise(life.fires_in()).remove(node, life.lane());
        node.window().hard
    }

    fn expiry(_: &Queues, node: QueueRef) -> Ns {
        node.window().hard
    }

    fn is_earlier(node: QueueRef, window: Window) -> bool {
        window.hard < node.window().hard
    }
}

/// How far ahead a deadline must lie for each level of a wheel with this tick to be fine enough:
/// from here on a timer would be put on that level or a coarser one.
pub(crate) fn least_distances(tick: Tick) -> [Ns; 16] {
    core::array::from_fn(|level| match level {
        0 => Ns::ZERO,
        // What `level_of` says, in nanoseconds, and rounded up.
        _ => Ns((tick.nanos() << (3 * level.min(LEVELS - 1) + 8)).div_ceil(33)),
    })
}

impl Queues {
    #[inline]
    pub(super) fn precise(&mut self, fires_in: FiresIn) -> &mut PreciseQueue {
        match fires_in {
            FiresIn::Handler => &mut self.precise,
            FiresIn::Thread => &mut self.deferred,
        }
    }

    /// When the event device must come for what fires in the handler.
    pub(crate) fn earliest_in_handler(&self) -> Ns {
        self.precise.first().map_or(Ns::NEVER, |window| window.hard)
    }

    /// When the event device would have to come for the precise timers that the thread fires.
    pub(crate) fn earliest_in_thread(&self) -> Ns {
        self.deferred.first().map_or(Ns::NEVER, |window| window.hard)
    }
}
