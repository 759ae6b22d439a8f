//! What is pending on a base, a slice at a time: for lists that people read.
//!
//! Walking a million timers under a base's lock would hold the base up for a tenth of a second.
//! So a walk takes the lock for a slice of at most [`HOLDING`] timers, lets go, and goes on where
//! it stood. What is armed, fired or cancelled in between is seen or not; what stays pending all
//! the while is seen once, unless it comes due or is pushed out to a part of the base that the
//! walk has yet to come to.
//!
//! Between two slices nobody but the base can remember where in a list the walk stands: the timer
//! that is next may go. The base does so for one walk at a time. Another one that stops in the
//! same wheel or queue takes the place over; then the first is cut, and told.

use super::base::Bases;
use super::settings::HOLDING;
use crate::link::{Link, QueueLink, TimerRef, WheelLink};
use crate::platform::{Lock, Platform};
use crate::queues::tree::Walked;
use crate::queues::wheel::{At, Wakes, WheelPlace};
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
    /// Next is what comes here in the wheel.
    Wheel(At),
    /// Next is what comes after this walk's place in one of the four queues.
    Queue {
        nth: usize,
        ticket: u64,
    },
    Over,
}

impl Walk {
    /// A walk that begins.
    pub const fn begin() -> Walk {
        Walk(Part::Wheel(At::BEGIN))
    }

    /// Has everything been seen?
    pub fn is_over(&self) -> bool {
        matches!(self.0, Part::Over)
    }
}

impl<P: Platform> Bases<P> {
    /// Puts the next pending timers of a base into `slice`, as many as it has room for, but no more
    /// than [`HOLDING`]. `false` if some were left out, because another walk came in between.
    ///
    /// Holds the base's lock for as many timers as it hands out, and a scan of the wheel's buckets,
    /// a microsecond. Allocates nothing: an empty slice without capacity sees nothing and ends the
    /// walk.
    pub fn walk(&self, cpu: CpuId, walk: &mut Walk, slice: &mut Vec<Pending<P::Task>>) -> bool {
        slice.clear();
        if cpu.index() >= self.count() || slice.capacity() == 0 {
            *walk = Walk(Part::Over);
            return true;
        }
        let room = slice.capacity().min(HOLDING);
        let mut state = self.base(cpu).state.lock();
        let queues = &mut state.queues;
        let is_whole = match &mut walk.0 {
            Part::Over => true,
            Part::Wheel(at) => {
                let tick = queues.wheel.tick();
                let is_whole = queues.wheel.walk(at, room, |node, place| {
                    let timer = TimerRef::<P, WheelLink<P::Word>>::of_wheel(node);
                    let deadline = timer.node().deadline();
                    let window = Window::new(deadline, deadline);
                    let at = WheelPlace::of(node);
                    // It may have been put off.
                    let (due, wakes) = (at.due(tick).max(deadline), at.wakes());
                    slice.push(Pending { place, due, wakes, ..of(timer, window) });
                });
                if at.is_over() {
                    walk.0 = Part::Queue { nth: 0, ticket: 0 };
                }
                is_whole
            }
            Part::Queue { nth, ticket } => {
                let (queue, fires_in) = match *nth {
                    late @ (0 | 1) => (&mut queues.precise.lanes()[late], FiresIn::Handler),
                    late => (&mut queues.deferred.lanes()[late % 2], FiresIn::Thread),
                };
                let walked = queue.walk(ticket, room, |node| {
                    let timer = TimerRef::<P, QueueLink>::around(node);
                    let place = PendingIn::Queue(fires_in);
                    slice.push(Pending { place, ..of(timer, node.window()) });
                });
                match walked {
                    Walked::Part => {}
                    _ if *nth < 3 => walk.0 = Part::Queue { nth: *nth + 1, ticket: 0 },
                    _ => walk.0 = Part::Over,
                }
                walked != Walked::Cut
            }
        };
        state.record_holding(slice.len());
        is_whole
    }
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
