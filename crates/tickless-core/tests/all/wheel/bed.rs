//! A wheel with numbered timers, checked after every step.

use super::nodes::Nodes;
use tickless_core::link::WheelRef;
use tickless_core::queues::wheel::{PushOut, Wakes, Wheel};
use tickless_core::time::{Ns, Tick};

pub(crate) const BOTH: [PushOut; 2] = [PushOut::Lazy, PushOut::Eager];

pub(crate) struct Bed {
    nodes: Nodes,
    pub(crate) wheel: Wheel,
    push_out: PushOut,
}

impl Bed {
    /// Makes idle timers, and a wheel with this tick and its clock at `now`.
    pub(crate) fn new(timers: usize, push_out: PushOut, tick: Ns, now: Ns) -> Bed {
        let tick = Tick::new(tick.to_duration()).expect("a valid tick");
        Bed { nodes: Nodes::new(timers), wheel: Wheel::new(tick, now), push_out }
    }

    /// Makes a wheel with a tick of 1 ms and its clock at zero.
    pub(crate) fn in_ms(timers: usize, push_out: PushOut) -> Bed {
        Bed::new(timers, push_out, Ns::from_ms(1), Ns::ZERO)
    }

    pub(crate) fn arm(&mut self, timer: usize, deadline: Ns, now: Ns) -> Ns {
        self.arm_as(timer, deadline, now, Wakes::Yes)
    }

    /// Arms a timer. With lazy push-out, a later deadline is stored without the wheel.
    pub(crate) fn arm_as(&mut self, timer: usize, deadline: Ns, now: Ns, wakes: Wakes) -> Ns {
        let at = self.nodes.at(timer);
        let is_deferrable = || self.wheel.due_at(at.node()) == Ns::NEVER;
        if self.push_out == PushOut::Lazy
            && at.node().is_linked()
            && is_deferrable() == (wakes == Wakes::No)
            && at.push_out(at.read(), deadline)
        {
            return self.wheel.due_at(at.node()).max(deadline);
        }
        let due = self.nodes.arm(&mut self.wheel, timer, deadline, now, wakes);
        self.check();
        due
    }

    /// Arms an idle timer, or makes a pending one earlier.
    pub(crate) fn reduce(&mut self, timer: usize, deadline: Ns, now: Ns) -> Ns {
        if self.is_pending(timer) && self.deadline(timer) <= deadline {
            return self.wheel.due_at(self.node(timer));
        }
        self.arm(timer, deadline, now)
    }

    pub(crate) fn cancel(&mut self, timer: usize) {
        self.wheel.cancel(self.node(timer));
        self.check();
    }

    pub(crate) fn is_pending(&self, timer: usize) -> bool {
        self.node(timer).is_linked()
    }

    pub(crate) fn node(&self, timer: usize) -> WheelRef {
        self.nodes.at(timer).node()
    }

    /// Returns a pending timer's deadline.
    pub(crate) fn deadline(&self, timer: usize) -> Ns {
        self.nodes.at(timer).deadline()
    }

    /// Pops one timer of the current pass.
    pub(crate) fn pop(&mut self) -> Option<usize> {
        self.pop_within(&mut 1_000_000)
    }

    pub(crate) fn pop_within(&mut self, budget: &mut usize) -> Option<usize> {
        let popped = self.nodes.pop(&mut self.wheel, budget).map(|popped| popped.0);
        self.check();
        popped
    }

    /// Pops the remaining timers of the current pass.
    pub(crate) fn pop_all(&mut self) -> Vec<usize> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    /// Performs a whole pass. Returns the timers that fire by `now`, in order.
    pub(crate) fn fire(&mut self, now: Ns) -> Vec<usize> {
        self.wheel.advance(now);
        self.check();
        self.pop_all()
    }

    #[track_caller]
    fn check(&self) {
        // Too slow under Miri.
        if !cfg!(miri) {
            assert_eq!(self.wheel.check(), Ok(()));
        }
    }
}
