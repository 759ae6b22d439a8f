//! The differences between the two families of timers.
//!
//! Coarse timers live in the wheel, precise ones in the queue. Everything else about arming,
//! cancelling and firing is common to both and is written once, in `start`, `cancel` and `expiry`.

use crate::link::{Link, QueueLink, TimerRef, WheelLink};
use crate::platform::{Ordering, Platform};
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

/// When and where a timer should fire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arming {
    /// When it may fire and when it must.
    pub window: Window,
    /// The current time, or slightly before.
    pub now: Ns,
    /// Whether it keeps a CPU awake.
    pub wakes: Wakes,
    /// Where a precise timer's callback runs.
    pub fires_in: FiresIn,
}

/// What a base does differently for the two families of timers.
pub trait Family<P: Platform>: Link {
    /// The part of a window that the family uses, ordered so that its end is not before its start.
    fn window(window: Window) -> Window {
        Window::new(window.soft, window.hard)
    }
    /// A timer with this window is due at this time or later.
    fn least_due(window: Window) -> Ns {
        window.hard
    }
    /// Puts a timer on a list, or moves it if `life` is pending, and publishes its new state.
    /// Returns the new state.
    fn enqueue(queues: &mut Queues, timer: TimerRef<P, Self>, life: Life, arming: Arming) -> Life;
    /// Does what [`enqueue`](Self::enqueue) does, for an idle timer at a time that does not move
    /// the wheel's clock.
    fn insert(queues: &mut Queues, timer: TimerRef<P, Self>, life: Life, arming: Arming) -> Life;
    /// Makes a pending timer's deadline later without the lock. Returns `false`, and changes
    /// nothing, if that requires the lock.
    fn push_out(_: TimerRef<P, Self>, _: Later<'_>) -> bool {
        false
    }
    /// Takes a pending timer off its list. Returns when it would have been due.
    fn dequeue(queues: &mut Queues, node: Self::Ref, life: Life) -> Ns;
    /// When a pending timer is due.
    fn expiry(queues: &Queues, node: Self::Ref) -> Ns;
    /// Returns whether this window would make a pending timer's deadline earlier.
    fn is_earlier(node: Self::Ref, window: Window) -> bool;
}

/// How to push out a pending coarse timer.
#[derive(Clone, Copy, Debug)]
pub struct Later<'a> {
    /// The new deadline.
    pub deadline: Ns,
    /// The current time, or slightly before.
    pub now: Ns,
    /// Whether the timer keeps a CPU awake.
    pub wakes: Wakes,
    /// The base on which the timer must be.
    pub pinned: Option<CpuId>,
    /// How far ahead a deadline must lie for each level of the wheel to be fine enough (W1).
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
    fn enqueue(queues: &mut Queues, timer: TimerRef<P, Self>, life: Life, arming: Arming) -> Life {
        let (node, Arming { window, now, wakes, .. }) = (timer.node(), arming);
        queues.wheel.arm(node.node(), window.soft, now, wakes);
        let life = life.armed().held(Wheel::held(node.node()));
        timer.set_life(life);
        node.open(window.soft);
        life
    }

    #[inline(always)]
    fn insert(queues: &mut Queues, timer: TimerRef<P, Self>, life: Life, arming: Arming) -> Life {
        let (node, deadline) = (timer.node(), arming.window.soft);
        let (_, held) = queues.wheel.put_in(node.node(), deadline, arming.wakes);
        let life = life.armed().held(held);
        timer.set_life(life);
        node.open(deadline);
        life
    }

    #[inline(always)]
    fn push_out(timer: TimerRef<P, Self>, later: Later<'_>) -> bool {
        // Read the deadline first: the life that is read after it belongs to the deadline's arming,
        // or to a later one.
        let (node, from) = (timer.node(), timer.node().read());
        let life = timer.life(Ordering::Relaxed);
        let held = life.held_as();
        let may = life.is_pending()
            && held.is_deferrable() == (later.wakes == Wakes::No)
            // The timer is late by no more than if it were rearmed. A `now` in the future only
            // makes the distance shorter.
            && later.deadline.since(later.now) >= later.least[held.level()]
            && (later.pinned.is_none() || later.pinned == life.base());
        may && node.push_out(from, later.deadline)
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
    fn enqueue(queues: &mut Queues, timer: TimerRef<P, Self>, life: Life, arming: Arming) -> Life {
        let (node, from, to) = (timer.node(), life.fires_in(), arming.fires_in);
        if life.is_pending() && from == to {
            let lane = queues.precise(to).rearm(node, life.lane(), arming.window);
            let life = life.armed().on(lane).fired_in(to);
            timer.set_life(life);
            return life;
        }
        if life.is_pending() {
            queues.precise(from).remove(node, life.lane());
        }
        Self::insert(queues, timer, life, arming)
    }

    #[inline(always)]
    fn insert(queues: &mut Queues, timer: TimerRef<P, Self>, life: Life, arming: Arming) -> Life {
        let lane = queues.precise(arming.fires_in).insert(timer.node(), arming.window);
        let life = life.armed().on(lane).fired_in(arming.fires_in);
        timer.set_life(life);
        life
    }

    #[inline]
    fn dequeue(queues: &mut Queues, node: Self::Ref, life: Life) -> Ns {
        queues.precise(life.fires_in()).remove(node, life.lane());
        node.window().hard
    }

    fn expiry(_: &Queues, node: Self::Ref) -> Ns {
        node.window().hard
    }

    fn is_earlier(node: Self::Ref, window: Window) -> bool {
        window.hard < node.window().hard
    }
}

/// How far ahead a deadline must lie for each level of a wheel with this tick to be fine enough: a
/// timer that far ahead would be put on that level or a coarser one.
pub(crate) fn least_distances(tick: Tick) -> [Ns; 16] {
    core::array::from_fn(|level| match level {
        0 => Ns::ZERO,
        // The inverse of `level_of`, in nanoseconds, rounded up.
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

    /// When the event device must come for the precise timers that fire in the handler.
    pub(crate) fn earliest_in_handler(&self) -> Ns {
        self.precise.first().map_or(Ns::NEVER, |window| window.hard)
    }

    /// When the event device would have to come for the precise timers that fire in the thread.
    pub(crate) fn earliest_in_thread(&self) -> Ns {
        self.deferred.first().map_or(Ns::NEVER, |window| window.hard)
    }
}
