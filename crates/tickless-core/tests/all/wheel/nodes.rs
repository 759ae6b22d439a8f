//! Nodes without timers, for the tests of the wheel.

use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use tickless_core::link::{CoarseRef, WheelLink, WheelRef};
use tickless_core::queues::wheel::{Deadlines, Popped, Wakes, Wheel};
use tickless_core::state::Held;
use tickless_core::time::Ns;

/// A fixed number of nodes. Tests declare them before their wheel, so that they outlive it.
pub(crate) struct Nodes(Vec<WheelLink<AtomicU64>>);

impl Nodes {
    pub(crate) fn new(count: usize) -> Nodes {
        Nodes((0..count).map(|_| WheelLink::new()).collect())
    }

    pub(crate) fn at(&self, index: usize) -> CoarseRef<AtomicU64> {
        // SAFETY: the vector does not grow, so its nodes do not move; a test uses them on one
        // thread and through these references only.
        unsafe { CoarseRef::new(NonNull::from(&self.0[index])) }
    }

    pub(crate) fn index(&self, node: WheelRef) -> usize {
        let bytes = node.as_ptr().as_ptr() as usize - self.0.as_ptr() as usize;
        bytes / size_of::<WheelLink<AtomicU64>>()
    }

    /// Arms a timer as a base does under its lock.
    pub(crate) fn arm(
        &self,
        wheel: &mut Wheel,
        timer: usize,
        deadline: Ns,
        now: Ns,
        wakes: Wakes,
    ) -> Ns {
        let node = self.at(timer).node();
        wheel.cancel(node);
        wheel.forward(now);
        wheel.arm(node, deadline, wakes);
        self.at(timer).open(deadline);
        wheel.due_at(node)
    }

    /// Pops the next due timer. Returns it and its deadline.
    pub(crate) fn pop(&self, wheel: &mut Wheel, budget: &mut usize) -> Option<(usize, Ns)> {
        while *budget > 0 {
            let mut looks = 0;
            let popped = wheel.pop(&mut looks, &mut OfNodes);
            assert!(looks <= Wheel::LOOKS_MAX);
            *budget -= usize::from(popped != Popped::Nothing);
            match popped {
                Popped::Due(node, deadline) => return Some((self.index(node), deadline)),
                Popped::PushedOut => {}
                Popped::Nothing => return None,
            }
        }
        None
    }
}

/// The deadlines of the nodes.
struct OfNodes;

impl Deadlines for OfNodes {
    fn close_by(&mut self, node: WheelRef, by: Ns) -> Result<Ns, Ns> {
        // SAFETY: a test's wheel only has nodes of `Nodes`.
        unsafe { CoarseRef::<AtomicU64>::around(node) }.close_by(by)
    }

    fn moved(&mut self, _: WheelRef, _: Held) {}
}
