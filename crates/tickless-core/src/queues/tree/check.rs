//! The full check of a queue: every rule that the fast code relies on.

use core::fmt;

use super::{Queue, balance};
use crate::link::{Colour, QueueRef, Side};

/// An upper bound of the depth of any balanced tree that fits into an address space: 2 log2(n + 1).
const DEPTH_MAX: u32 = 2 * usize::BITS;

/// A broken rule of a queue: a bug of this crate, or a broken promise of a caller of
/// [`QueueRef::new`]. Stop using the queue and report it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueFault {
    /// The number of nodes in the tree differs from the queue's count, or the links form a cycle.
    Length,
    /// A node has no link to its parent, or is not marked as linked.
    Link,
    /// A node comes after one with a later hard expiry.
    Order,
    /// A node's soft expiry is after its hard expiry.
    Window,
    /// The root is red, or a red node has a red child.
    RedRed,
    /// Two paths from the root pass different numbers of black nodes.
    Depth,
    /// The stored first node is not the first of the tree.
    First,
    /// The stored last node is not the last of the tree.
    Last,
}

impl fmt::Display for QueueFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QueueFault::Length => "timer queue: the count is not the number of nodes",
            QueueFault::Link => "timer queue: a node has no link to its parent",
            QueueFault::Order => "timer queue: nodes are not in order of hard expiry",
            QueueFault::Window => "timer queue: a soft expiry is after its hard expiry",
            QueueFault::RedRed => "timer queue: red root or red node below a red node",
            QueueFault::Depth => "timer queue: paths have different black depths",
            QueueFault::First => "timer queue: the stored first node is not the first",
            QueueFault::Last => "timer queue: the stored last node is not the last",
        })
    }
}

impl core::error::Error for QueueFault {}

impl Queue {
    /// Checks links, order, windows, balance, both stored ends and the count. Returns the first
    /// broken rule that it finds. O(n), without allocation; also in release builds.
    pub fn check(&self) -> Result<(), QueueFault> {
        self.check_shape()?;
        // The links are sound from here on: walking by them terminates.
        let mut last = None;
        let mut next = self.tree.root.map(|root| balance::outermost(root, Side::Earlier));
        if next != self.first {
            return Err(QueueFault::First);
        }
        while let Some(node) = next {
            if node.window().soft > node.hard() {
                return Err(QueueFault::Window);
            }
            if last.is_some_and(|last: QueueRef| last.hard() > node.hard()) {
                return Err(QueueFault::Order);
            }
            last = Some(node);
            next = balance::neighbour(node, Side::Later);
        }
        if last == self.last { Ok(()) } else { Err(QueueFault::Last) }
    }

    /// Follows every link from the root downwards, and checks each node before it follows the
    /// node's links.
    fn check_shape(&self) -> Result<(), QueueFault> {
        let mut nodes = 0;
        self.black_depth_below(self.tree.root, None, 0, &mut nodes)?;
        if nodes == self.len { Ok(()) } else { Err(QueueFault::Length) }
    }

    /// Checks the subtree of `node`, found below `above` at `depth`. Returns the number of black
    /// nodes on each path down from there, and adds the number of nodes to `nodes`.
    fn black_depth_below(
        &self,
        node: Option<QueueRef>,
        above: Option<QueueRef>,
        depth: u32,
        nodes: &mut usize,
    ) -> Result<u32, QueueFault> {
        let Some(node) = node else { return Ok(0) };
        *nodes += 1;
        if *nodes > self.len {
            return Err(QueueFault::Length);
        }
        if depth > DEPTH_MAX {
            return Err(QueueFault::Depth);
        }
        if !node.is_linked() || node.parent() != above {
            return Err(QueueFault::Link);
        }
        let red = node.colour() == Colour::Red;
        if red && above.is_none_or(|above| above.colour() == Colour::Red) {
            return Err(QueueFault::RedRed);
        }
        let [earlier, later] = [Side::Earlier, Side::Later]
            .map(|side| self.black_depth_below(node.child(side), Some(node), depth + 1, nodes));
        let (earlier, later) = (earlier?, later?);
        if earlier == later { Ok(earlier + u32::from(!red)) } else { Err(QueueFault::Depth) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::QueueLink;
    use crate::time::{Ns, Window};

    type Links = [QueueLink; 7];

    /// Seven timers, due at 0 to 6; the last in the tree, 4 and 6, are red below a black 5.
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
    ) -> Result<(), QueueFault> {
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
            (broken_by(&LINKS, |_, queue| queue.len += 1), QueueFault::Length),
            (broken_by(&LINKS, |_, queue| queue.len -= 1), QueueFault::Length),
            (broken_by(&LINKS, |nodes, _| nodes[2].set_parent(Some(nodes[6]))), QueueFault::Link),
            (broken_by(&LINKS, |nodes, _| nodes[2].leave()), QueueFault::Link),
            (broken_by(&LINKS, |nodes, _| nodes[0].set_window(window(2, 2))), QueueFault::Order),
            (broken_by(&LINKS, |nodes, _| nodes[0].set_window(window(1, 0))), QueueFault::Window),
            (broken_by(&LINKS, |nodes, _| nodes[5].set_colour(Colour::Red)), QueueFault::RedRed),
            (broken_by(&LINKS, |nodes, _| nodes[6].set_colour(Colour::Black)), QueueFault::Depth),
            (broken_by(&LINKS, |nodes, queue| queue.first = Some(nodes[1])), QueueFault::First),
            (broken_by(&LINKS, |nodes, queue| queue.last = Some(nodes[5])), QueueFault::Last),
        ];
        for (found, fault) in faults {
            assert_eq!(found, Err(fault));
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
