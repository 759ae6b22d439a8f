//! Lists the pending timers of a base, a slice at a time.
//!
//! Walking over a million timers under a base's lock would block the base for a tenth of a second.
//! So a walk takes the lock for a slice of at most [`HOLDING`] timers, unlocks, and continues where
//! it stopped. Timers that are armed, fired or cancelled in between are possibly listed, possibly
//! not. A timer that stays pending is listed once, unless it comes due or is pushed out to a part
//! of the base that the walk has not reached.
//!
//! Between two slices only the base can keep the walk's position in a list, because the timer there
//! can be removed. The base does so for one walk at a time. If another walk stops in the same wheel
//! or queue, it replaces the first walk's position; the first then skips timers, and reports that.

use super::base::Bases;
use super::settings::HOLDING;
use crate::link::{Link, QueueLink, TimerRef, WheelLink};
use crate::platform::{Lock, Platform};
use crate::queues::tree::Walked;
use crate::queues::wheel::{At, Wakes, WheelPlace};
use crate::state::{FiresIn, Lane};
use crate::time::{CpuId, Ns, Window};
use alloc::vec::Vec;

pub use crate::state::PendingIn;

/// A pending timer.
#[derive(Clone, Copy, Debug)]
pub struct Pending<T> {
    /// The timer's address, which is never dereferenced: the timer has possibly been freed.
    pub timer: usize,
    /// The task that the base returns when the timer fires.
    pub task: T,
    /// The window with which the timer was armed. For a coarse timer both ends are the deadline.
    pub window: Window,
    /// When its base fires the timer: at the window's end, or the deadline as rounded by the wheel.
    pub due: Ns,
    /// Where on the base the timer is.
    pub place: PendingIn,
    /// Whether the timer wakes an idle CPU.
    pub wakes: Wakes,
}

/// The position of one walk over the timers of one base.
#[derive(Clone, Copy, Debug)]
pub struct Walk(Part);

#[derive(Clone, Copy, Debug)]
enum Part {
    /// A position in the wheel.
    Wheel(At),
    /// A position in one of [`QUEUES`].
    Queue {
        nth: usize,
        ticket: u64,
    },
    Over,
}

/// The queues of precise timers, in the order in which a walk visits them.
const QUEUES: [(FiresIn, Lane); 4] = [
    (FiresIn::Handler, Lane::Queued),
    (FiresIn::Handler, Lane::Late),
    (FiresIn::Thread, Lane::Queued),
    (FiresIn::Thread, Lane::Late),
];

impl Walk {
    /// A walk at its beginning.
    pub const fn begin() -> Walk {
        Walk(Part::Wheel(At::BEGIN))
    }

    /// Returns whether the walk has listed all timers.
    pub fn is_over(&self) -> bool {
        matches!(self.0, Part::Over)
    }
}

impl<P: Platform> Bases<P> {
    /// Puts the next pending timers of a base into `slice`, as many as its capacity allows, but at
    /// most [`HOLDING`]. Returns `false` if timers were skipped because another walk has replaced
    /// this one's position.
    ///
    /// Holds the base's lock while it collects these timers and scans the wheel's buckets; the scan
    /// takes a microsecond. Does not allocate: a slice without capacity ends the walk.
    pub fn walk(&self, cpu: CpuId, walk: &mut Walk, slice: &mut Vec<Pending<P::Task>>) -> bool {
        slice.clear();
        let Some(base) = self.used_base(cpu).filter(|_| slice.capacity() > 0) else {
            *walk = Walk(Part::Over);
            return true;
        };
        let room = slice.capacity().min(HOLDING);
        let mut state = base.state.lock();
        let queues = &mut state.queues;
        let is_whole = match &mut walk.0 {
            Part::Over => true,
            Part::Wheel(at) => {
                let tick = queues.wheel.tick();
                let is_whole = queues.wheel.walk(at, room, |node, place| {
                    let timer = TimerRef::<P, WheelLink<P::Word>>::of_wheel(node);
                    let deadline = timer.node().deadline();
                    let window = Window::at(deadline);
                    let at = WheelPlace::of(node);
                    // A push-out can have moved the deadline to a time after the bucket comes due.
                    let (due, wakes) = (at.due(tick).max(deadline), at.wakes());
                    slice.push(Pending { place, due, wakes, ..of(timer, window) });
                });
                if at.is_over() {
                    walk.0 = Part::Queue { nth: 0, ticket: 0 };
                }
                is_whole
            }
            Part::Queue { nth, ticket } => {
                let (fires_in, lane) = QUEUES[*nth];
                let queue = queues.precise(fires_in).lane(lane);
                let walked = queue.walk(ticket, room, |node| {
                    let timer = TimerRef::<P, QueueLink>::around(node);
                    let place = PendingIn::Queue(fires_in);
                    slice.push(Pending { place, ..of(timer, node.window()) });
                });
                match walked {
                    Walked::Part => {}
                    _ if *nth + 1 < QUEUES.len() => {
                        walk.0 = Part::Queue { nth: *nth + 1, ticket: 0 }
                    }
                    _ => walk.0 = Part::Over,
                }
                walked != Walked::Cut
            }
        };
        state.record_holding(slice.len());
        is_whole
    }
}

/// Describes a timer that is due; callers change the fields that differ for other timers.
fn of<P: Platform, L: Link>(timer: TimerRef<P, L>, window: Window) -> Pending<P::Task> {
    let timer_address = timer.pointer().addr().get();
    Pending {
        timer: timer_address,
        task: timer.task(),
        window,
        due: window.hard,
        place: PendingIn::Due,
        wakes: Wakes::Yes,
    }
}
