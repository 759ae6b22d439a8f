//! The full check of a queue: every rule that the fast code relies on.

use super::{Queue, balance};
use crate::invariant::BrokenInvariant;
use crate::link::{Colour, QueueRef, Side};

/// An upper bound of the depth of any balanced tree that fits into an address space: 2 log2(n + 1).
const DEPTH_MAX: u32 = 2 * usize::BITS;

const LENGTH: &str = "timer queue: the count is not the number of nodes";
const DEPTH: &str = "timer queue: paths have different black depths";

impl Queue {
    /// Checks links, order, windows, balance, both stored ends and the count. Returns the first
    /// broken rule that it finds. O(n), without allocation; available in release builds, too.
    pub fn check(&self) -> Result<(), BrokenInvariant> {
        self.check_shape()?;
        // The links have been checked, so that a walk along them terminates.
        let mut last = None;
        let mut next = self.tree.root.map(|root| balance::outermost(root, Side::Earlier));
        if next != self.first {
            return Err(BrokenInvariant("timer queue: the stored first node is not the first"));
        }
        while let Some(node) = next {
            if node.window().soft > node.hard() {
                return Err(BrokenInvariant("timer queue: a soft expiry is after its hard expiry"));
            }
            if last.is_some_and(|last: QueueRef| last.hard() > node.hard()) {
                return Err(BrokenInvariant("timer queue: nodes are not in order of hard expiry"));
            }
            last = Some(node);
            next = balance::neighbour(node, Side::Later);
        }
        if last == self.last {
            Ok(())
        } else {
            Err(BrokenInvariant("timer queue: the stored last node is not the last"))
        }
    }

    /// Follows every link from the root downwards, and checks each node before its links.
    fn check_shape(&self) -> Result<(), BrokenInvariant> {
        let mut nodes = 0;
        self.black_depth_below(self.tree.root, None, 0, &mut nodes)?;
        if nodes == self.len { Ok(()) } else { Err(BrokenInvariant(LENGTH)) }
    }

    /// Checks the subtree of `node`, a child of `above` at this depth. Returns the number of black
    /// nodes on each path down from `node`, and adds the number of nodes to `nodes`.
    fn black_depth_below(
        &self,
        node: Option<QueueRef>,
        above: Option<QueueRef>,
        depth: u32,
        nodes: &mut usize,
    ) -> Result<u32, BrokenInvariant> {
        let Some(node) = node else { return Ok(0) };
        *nodes += 1;
        if *nodes > self.len {
            return Err(BrokenInvariant(LENGTH));
        }
        if depth > DEPTH_MAX {
            return Err(BrokenInvariant(DEPTH));
        }
        if !node.is_linked() || node.parent() != above {
            return Err(BrokenInvariant("timer queue: a node has no link to its parent"));
        }
        let red = node.colour() == Colour::Red;
        if red && above.is_none_or(|above| above.colour() == Colour::Red) {
            return Err(BrokenInvariant("timer queue: red root or red node below a red node"));
        }
        let [earlier, later] = [Side::Earlier, Side::Later]
            .map(|side| self.black_depth_below(node.child(side), Some(node), depth + 1, nodes));
        let (earlier, later) = (earlier?, later?);
        if earlier == later { Ok(earlier + u32::from(!red)) } else { Err(BrokenInvariant(DEPTH)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::QueueLink;
    use crate::time::{Ns, Window};

    type Links = [QueueLink; 7];

    /// Returns a queue of timers due at 0 to 6 ns. Nodes 4 and 6 are red children of a black 5.
    fn full(links: &'static Links) -> ([QueueRef; 7], Queue) {
        let nodes = links.each_ref().map(QueueRef::of_static);
        let mut queue = Queue::new();
        for (node, at) in nodes.into_iter().zip(0..) {
            node.leave();
            queue.insert(node, Window::new(Ns(at), Ns(at)));
        }
        (nodes, queue)
    }

    fn broken_by(
        links: &'static Links,
        harm: impl FnOnce(&[QueueRef; 7], &mut Queue),
    ) -> Result<(), BrokenInvariant> {
        let (nodes, mut queue) = full(links);
        assert_eq!(queue.check(), Ok(()));
        harm(&nodes, &mut queue);
        queue.check()
    }

    /// Goal: the check finds each broken rule.
    #[test]
    fn each_fault_is_reported() {
        static LINKS: Links = [const { QueueLink::new() }; 7];
        let window = |soft, hard| Window { soft: Ns(soft), hard: Ns(hard) };
        let faults = [
            (broken_by(&LINKS, |_, queue| queue.len += 1), "the count is"),
            (broken_by(&LINKS, |_, queue| queue.len -= 1), "the count is"),
            (broken_by(&LINKS, |nodes, _| nodes[2].set_parent(Some(nodes[6]))), "no link"),
            (broken_by(&LINKS, |nodes, _| nodes[2].leave()), "no link"),
            (broken_by(&LINKS, |nodes, _| nodes[0].set_window(window(2, 2))), "not in order"),
            (broken_by(&LINKS, |nodes, _| nodes[0].set_window(window(1, 0))), "soft expiry"),
            (broken_by(&LINKS, |nodes, _| nodes[5].set_colour(Colour::Red)), "red root"),
            (broken_by(&LINKS, |nodes, _| nodes[6].set_colour(Colour::Black)), "black depths"),
            (broken_by(&LINKS, |nodes, queue| queue.first = Some(nodes[1])), "stored first"),
            (broken_by(&LINKS, |nodes, queue| queue.last = Some(nodes[5])), "stored last"),
        ];
        for (found, fault) in faults {
            assert!(found.is_err_and(|broken| broken.0.contains(fault)), "{fault}");
        }
    }

    /// Goal: the check ends although the links form a cycle.
    #[test]
    fn a_cycle_is_reported() {
        static LINKS: Links = [const { QueueLink::new() }; 7];
        let tie = |nodes: &[QueueRef; 7]| nodes[0].set_child(Side::Earlier, Some(nodes[3]));
        assert!(broken_by(&LINKS, |nodes, _| tie(nodes)).is_err());
    }
}
