//! The differences between the two families of timers, coarse and precise.
//!
//! Coarse timers live in the wheel, precise ones in the queue. Everything else about arming,
//! cancelling and firing is common to both and is written once, in `start`, `cancel` and `expiry`.

use crate::link::{CoarseRef, Link, QueueLink, TimerRef, WheelLink};
use crate::platform::{Ordering, Platform};
use crate::queues::wheel::{LEVELS, Wakes, Wheel, WheelPlace};
use crate::queues::windows::PreciseQueue;
use crate::state::{FiresIn, Life};
use crate::time::{Ns, Tick, Window};
use core::hint::assert_unchecked;

/// The timers of one base.
// The order of the fields is that in memory: the wheel's alignment also puts the fields of
// `precise` that each start and cancel uses on one cache line.
#[repr(C)]
pub struct Queues {
    /// Precise timers that fire in the handler.
    pub(crate) precise: PreciseQueue,
    /// Precise timers that fire in the expiry thread. Empty unless expiry is deferred.
    pub(crate) deferred: PreciseQueue,
    pub(crate) wheel: Wheel,
}

/// When and where a timer should fire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arming {
    /// The time from which the timer is allowed to fire, and the time at which it must.
    pub window: Window,
    /// Whether it wakes an idle CPU.
    pub wakes: Wakes,
    /// Where a precise timer's callback runs.
    pub fires_in: FiresIn,
}

/// What a base does differently for the two families of timers.
#[expect(unsafe_code, reason = "a start and a cancel look at the timer's word only once")]
pub trait Family<P: Platform>: Link {
    /// The part of a window that the family uses: by default both ends, for coarse timers only the
    /// soft one. If the window ends before it starts, its end is set to its start.
    fn window(window: Window) -> Window {
        Window::new(window.soft, window.hard)
    }
    /// The earliest time at which a timer with this window can be due.
    fn least_due(window: Window) -> Ns {
        window.hard
    }
    /// Puts a timer on a list, or moves it if `life` is pending. Publishes and returns its new
    /// state.
    fn enqueue(queues: &mut Queues, timer: TimerRef<P, Self>, life: Life, arming: Arming) -> Life;
    /// Does the same for an idle timer that wakes, if that is simple, or returns `false`.
    ///
    /// # Safety
    /// The timer is idle on the base of these queues, as its word shows under the base's lock.
    #[inline(always)]
    unsafe fn try_enqueue(q: &mut Queues, timer: TimerRef<P, Self>, to: Arming, _now: Ns) -> bool {
        Self::enqueue(q, timer, timer.life(Ordering::Relaxed), to).is_pending()
    }
    /// Takes a pending timer off its list, if that is simple, or returns `false`.
    ///
    /// # Safety
    /// The timer is pending on the base of these queues, as its word shows under the base's lock.
    #[inline(always)]
    unsafe fn try_dequeue(q: &mut Queues, node: Self::Ref, life: Life) -> bool {
        let _due = Self::dequeue(q, node, life);
        true
    }
    /// The node of a coarse timer, through which its deadline is pushed out without the lock;
    /// `None` for a precise timer.
    fn coarse(_: Self::Ref) -> Option<CoarseRef<P::Word>> {
        None
    }
    /// Takes a pending timer off its list. Returns when it would have been due.
    fn dequeue(queues: &mut Queues, node: Self::Ref, life: Life) -> Ns;
    /// Takes a pending timer off its list, to move it to another base. Returns how it was armed.
    fn evacuate(queues: &mut Queues, timer: TimerRef<P, Self>, life: Life) -> Arming;
    /// Returns a pending timer for which `wanted` returns true, if there is one.
    fn find(
        queues: &Queues,
        wanted: impl Fn(TimerRef<P, Self>) -> bool,
    ) -> Option<TimerRef<P, Self>>;
    /// When a pending timer is due.
    fn expiry(queues: &Queues, node: Self::Ref) -> Ns;
    /// Returns whether this window would make a pending timer's deadline earlier.
    fn is_earlier(node: Self::Ref, window: Window) -> bool;
}

#[expect(unsafe_code, reason = "a start and a cancel take two instructions less")]
impl<P: Platform> Family<P> for WheelLink<P::Word> {
    #[inline]
    fn window(window: Window) -> Window {
        Window::at(window.soft)
    }

    #[inline]
    fn least_due(window: Window) -> Ns {
        window.soft
    }

    #[inline(always)]
    fn enqueue(queues: &mut Queues, timer: TimerRef<P, Self>, life: Life, arming: Arming) -> Life {
        let (node, Arming { window, wakes, .. }) = (timer.node(), arming);
        if life.is_pending() {
            queues.wheel.unlink(node.node());
        }
        let held = queues.wheel.arm(node.node(), window.soft, wakes);
        let life = life.armed().held(held);
        timer.set_life(life);
        node.open(window.soft);
        life
    }

    #[inline(always)]
    unsafe fn try_enqueue(q: &mut Queues, timer: TimerRef<P, Self>, to: Arming, now: Ns) -> bool {
        let node = timer.node();
        // SAFETY: whatever makes a timer idle takes it off its list first, under the same lock.
        unsafe { assert_unchecked(!node.node().is_linked()) };
        let Some((place, list)) = q.wheel.find(to.window.soft, now) else { return false };
        // First what is in registers by now: under the lock, no other thread uses it yet.
        timer.set_life(timer.life(Ordering::Relaxed).armed().held(place.held()));
        node.open(to.window.soft);
        q.wheel.put_on(node.node(), place, list);
        true
    }

    #[inline(always)]
    unsafe fn try_dequeue(q: &mut Queues, node: Self::Ref, _: Life) -> bool {
        // SAFETY: a pending timer is on a list whenever another thread can get the lock.
        unsafe { assert_unchecked(node.node().is_linked()) };
        q.wheel.try_unlink(node.node())
    }

    #[inline(always)]
    fn coarse(node: Self::Ref) -> Option<CoarseRef<P::Word>> {
        Some(node)
    }

    #[inline(always)]
    fn dequeue(queues: &mut Queues, node: Self::Ref, _: Life) -> Ns {
        let due = queues.wheel.due_at(node.node());
        queues.wheel.unlink(node.node());
        due
    }

    fn evacuate(queues: &mut Queues, timer: TimerRef<P, Self>, _: Life) -> Arming {
        let node = timer.node();
        // Close the deadline word first: a concurrent push-out of a timer on no list would be lost.
        let window = Window::at(node.take());
        let wakes = WheelPlace::of(node.node()).wakes();
        queues.wheel.unlink(node.node());
        Arming { window, wakes, fires_in: FiresIn::Thread }
    }

    fn find(
        queues: &Queues,
        wanted: impl Fn(TimerRef<P, Self>) -> bool,
    ) -> Option<TimerRef<P, Self>> {
        let found = queues.wheel.timers().find(|&node| wanted(TimerRef::of_wheel(node)));
        found.map(TimerRef::of_wheel)
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
    #[inline(always)]
    fn enqueue(queues: &mut Queues, timer: TimerRef<P, Self>, life: Life, arming: Arming) -> Life {
        let (node, Arming { window, fires_in, .. }) = (timer.node(), arming);
        let lane = if life.is_pending() && life.fires_in() == fires_in {
            queues.precise(fires_in).rearm(node, life.lane(), window)
        } else {
            if life.is_pending() {
                queues.precise(life.fires_in()).remove(node, life.lane());
            }
            queues.precise(fires_in).insert(node, window)
        };
        let life = life.armed().on(lane).fired_in(fires_in);
        timer.set_life(life);
        life
    }

    #[inline]
    fn dequeue(queues: &mut Queues, node: Self::Ref, life: Life) -> Ns {
        queues.precise(life.fires_in()).remove(node, life.lane());
        node.window().hard
    }

    fn evacuate(queues: &mut Queues, timer: TimerRef<P, Self>, life: Life) -> Arming {
        let (window, fires_in) = (timer.node().window(), life.fires_in());
        queues.precise(fires_in).remove(timer.node(), life.lane());
        Arming { window, wakes: Wakes::Yes, fires_in }
    }

    fn find(
        queues: &Queues,
        wanted: impl Fn(TimerRef<P, Self>) -> bool,
    ) -> Option<TimerRef<P, Self>> {
        let mut timers = queues.precise.timers().chain(queues.deferred.timers());
        timers
            .find(|&(node, _)| wanted(TimerRef::around(node)))
            .map(|(node, _)| TimerRef::around(node))
    }

    fn expiry(_: &Queues, node: Self::Ref) -> Ns {
        node.window().hard
    }

    fn is_earlier(node: Self::Ref, window: Window) -> bool {
        window.hard < node.window().hard
    }
}

/// For each level of a wheel with this tick: the shortest time from now to a deadline for which the
/// wheel chooses that level or a coarser one. For a nearer deadline, a timer is not pushed out
/// without the lock, because the timer then belongs on a finer level.
pub(crate) fn least_distances(tick: Tick) -> [Ns; 16] {
    core::array::from_fn(|level| match level {
        0 => Ns::ZERO,
        // The inverse of `level_of`, in nanoseconds, rounded up.
        _ => Ns((tick.nanos() << (3 * level.min(LEVELS - 1) + 8)).div_ceil(33)),
    })
}

impl Queues {
    /// Returns the queue of the precise timers that the handler, or the expiry thread, fires.
    #[inline]
    pub(super) fn precise(&mut self, fires_in: FiresIn) -> &mut PreciseQueue {
        match fires_in {
            FiresIn::Handler => &mut self.precise,
            FiresIn::Thread => &mut self.deferred,
        }
    }

    /// When the event device must fire for the precise timers that fire in the handler.
    pub(crate) fn earliest_in_handler(&self) -> Ns {
        self.precise.first().map_or(Ns::NEVER, |window| window.hard)
    }

    /// When the first of the precise timers that fire in the expiry thread must fire.
    pub(crate) fn earliest_in_thread(&self) -> Ns {
        self.deferred.first().map_or(Ns::NEVER, |window| window.hard)
    }
}
