//! What is pending on a base, a slice at a time: for lists that people read.
//!
//! Walking a million timers under a base's lock would hold the base up for a tenth of a second.
//! So a walk takes the lock for a slice, lets go, and goes on where it stood. What is armed,
//! fired or cancelled in between is seen or not; what stays pending all the while is seen once,
//! unless it is pushed out to a part of the base that the walk has yet to come to.
//!
//! Between two slices nothing can be remembered that points at a timer. A walk stands between
//! two lists of the wheel, or between two deadlines of a queue; a list or a deadline with more
//! timers than a slice takes is cut.

use super::base::Bases;
use crate::link::{Link, QueueLink, TimerRef, WheelLink};
use crate::platform::{Lock, Platform};
use crate::queues::tree::Queue;
use crate::queues::wheel::{LISTS, Wakes};
use crate::state::FiresIn;
use crate::time::{CpuId, Ns, Window};
use alloc::vec::Vec;

pub use crate::state::PendingIn;

/// A pending timer.
#[derive(Clone, Copy, Debug)]
pub struct Pending<T> {
    /// Its address, which is compared and never followed: it may be gone by now.
    pub timer: usize,
    /// What it hands back when it fires.
    pub task: T,
    /// The window it was armed with; for a coarse timer both ends are the deadline.
    pub window: Window,
    /// When its base fires it: the hard end, or the deadline as the wheel has rounded it.
    pub due: Ns,
    /// Where it is.
    pub place: PendingIn,
    /// Does it keep a CPU awake?
    pub wakes: Wakes,
}

/// Where a walk stands. One walk over one base.
#[derive(Clone, Copy, Debug)]
pub struct Walk(Part);

#[derive(Clone, Copy, Debug)]
enum Part {
    /// Next is this list of the wheel.
    Wheel {
        list: usize,
    },
    /// Next is what comes after this deadline in one of the four queues.
    Queue {
        nth: usize,
        after: Option<Ns>,
    },
    Over,
}

impl Walk {
    /// A walk that begins.
    pub const fn begin() -> Walk {
        Walk(Part::Wheel { list: 0 })
    }

    /// Has everything been seen?
    pub fn is_over(&self) -> bool {
        matches!(self.0, Part::Over)
    }
}

impl<P: Platform> Bases<P> {
    /// Puts the next pending timers of a base into `slice`, as many as it has room for. `false`
    /// if some were left out, because more than that have one deadline or are on one list.
    ///
    /// Holds the base's lock for as many timers as the slice takes, and a scan of the wheel's
    /// lists, a few microseconds. Allocates nothing: an empty slice without capacity sees
    /// nothing and ends the walk.
    pub fn walk(&self, cpu: CpuId, walk: &mut Walk, slice: &mut Vec<Pending<P::Task>>) -> bool {
        slice.clear();
        if cpu.index() >= self.count() || slice.capacity() == 0 {
            *walk = Walk(Part::Over);
            return true;
        }
        let state = self.base(cpu).state.lock();
        let queues = &state.queues;
        let mut is_whole = true;
        walk.0 = match walk.0 {
            Part::Over => Part::Over,
            Part::Wheel { list } => {
                let room = slice.capacity();
                let (next, whole) = queues.wheel.walk(list, room, |node, place| {
                    let timer = TimerRef::<P, WheelLink>::around(node);
                    let window = Window::new(node.deadline(), node.deadline());
                    slice.push(Pending { place, ..of(timer, window) });
                    let last = slice.len() - 1;
                    (slice[last].due, slice[last].wakes) = queues.wheel.due_and_wakes(node);
                });
                is_whole = whole;
                if next < LISTS {
                    Part::Wheel { list: next }
                } else {
                    Part::Queue { nth: 0, after: None }
                }
            }
            Part::Queue { nth, after } => {
                let (queue, fires_in) = match nth {
                    0 | 1 => (queues.ranged.lanes()[nth], FiresIn::Handler),
                    _ => (queues.deferred.lanes()[nth % 2], FiresIn::Thread),
                };
                let (after, whole) = walk_queue::<P>(queue, after, fires_in, slice);
                is_whole = whole;
                match after {
                    Some(_) => Part::Queue { nth, after },
                    None if nth < 3 => Part::Queue { nth: nth + 1, after: None },
                    None => Part::Over,
                }
            }
        };
        is_whole
    }
}

/// Fills a slice with what comes after a deadline. Returns where to go on, if there is more, and
/// whether nothing was left out.
fn walk_queue<P: Platform>(
    queue: &Queue,
    after: Option<Ns>,
    fires_in: FiresIn,
    slice: &mut Vec<Pending<P::Task>>,
) -> (Option<Ns>, bool) {
    let room = slice.capacity();
    let mut next = queue.first_after(after);
    while let Some(node) = next
        && slice.len() < room
    {
        let timer = TimerRef::<P, QueueLink>::around(node);
        slice.push(Pending { place: PendingIn::Queue(fires_in), ..of(timer, node.window()) });
        next = queue.next(node);
    }
    let Some(next) = next else { return (None, true) };
    let last = slice.last().map_or(Ns::ZERO, |last| last.window.hard);
    if next.window().hard != last {
        return (Some(last), true);
    }
    // It goes on with the whole of the last deadline, unless that is all there was room for.
    let whole = slice.iter().rposition(|entry| entry.window.hard != last);
    if let Some(whole) = whole {
        slice.truncate(whole + 1);
    }
    (Some(slice.last().map_or(last, |entry| entry.window.hard)), whole.is_some())
}

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
