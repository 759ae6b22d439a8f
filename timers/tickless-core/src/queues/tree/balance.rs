//! The balancing of the queue's red-black tree. It does not depend on how the nodes are ordered.
//!
//! The rules: the root is black, a red node has no red child, and every path from the root
//! to a missing child passes the same number of black nodes. So no path is more than twice
//! as long as another, and n nodes are at most 2 log2(n + 1) deep.
//!
//! A new node is red, which can put red below red: [`Tree::settle_red`]. Removing a black node
//! makes the paths through its place one black node short: [`Tree::settle_short`]. Both walk
//! towards the root and rotate at most two or three nodes; on average they stop at once.
//! (Guibas and Sedgewick 1978; bottom-up removal as in Tarjan 1983.)

use crate::link::{Colour, QueueRef, Side, prefetch_at};

pub(super) struct Tree {
    pub(super) root: Option<QueueRef>,
}

/// A place in the tree: the parent and the side below it; `None` for the root.
type Place = Option<(QueueRef, Side)>;

impl Tree {
    /// Links `node` into an empty place below `parent`. Restores the balance. Amortised O(1).
    #[inline]
    pub(super) fn attach(&mut self, node: QueueRef, parent: QueueRef, side: Side) {
        node.enter(parent);
        parent.set_child(side, Some(node));
        if parent.colour() == Colour::Red {
            self.settle_red(node);
        }
    }

    /// Unlinks `node`. O(log n), amortised O(1) apart from the search for its successor.
    pub(super) fn detach(&mut self, node: QueueRef) {
        let (earlier, later) = (node.child(Side::Earlier), node.child(Side::Later));
        let (hole, filler, removed) = match (earlier, later) {
            (Some(earlier), Some(later)) => self.replace_by_next(node, earlier, later),
            _ => {
                let (hole, filler) = (place_of(node), earlier.or(later));
                self.put(hole, filler);
                if let Some(filler) = filler {
                    filler.set_parent(hole.map(|(parent, _)| parent));
                }
                (hole, filler, node.colour())
            }
        };
        node.leave();
        match (removed, filler) {
            (Colour::Red, _) => {}
            (Colour::Black, Some(red)) if is_red(filler) => red.set_colour(Colour::Black),
            (Colour::Black, _) => self.settle_short(hole),
        }
    }

    /// Replaces `node`, which has both children, by the next node in order, which gets the colour
    /// of `node`. Returns the place that the next node left, the node that fills this place, and
    /// the old colour of the next node.
    ///
    /// Nodes are relinked, not their content copied, because a node is part of a timer.
    fn replace_by_next(
        &mut self,
        node: QueueRef,
        earlier: QueueRef,
        later: QueueRef,
    ) -> (Place, Option<QueueRef>, Colour) {
        let next = outermost(later, Side::Earlier);
        let (filler, removed) = (next.child(Side::Later), next.colour());
        let hole = if next == later {
            Some((next, Side::Later))
        } else {
            let hole = place_of(next);
            self.put(hole, filler);
            if let Some(filler) = filler {
                filler.set_parent(next.parent());
            }
            next.set_child(Side::Later, Some(later));
            later.set_parent(Some(next));
            hole
        };
        next.set_child(Side::Earlier, Some(earlier));
        earlier.set_parent(Some(next));
        self.put(place_of(node), Some(next));
        next.inherit(node);
        (hole, filler, removed)
    }

    /// Restores the rules after `node` has become red: its parent is perhaps red as well.
    fn settle_red(&mut self, mut node: QueueRef) {
        while let Some((parent, inner_or_outer)) = place_of(node) {
            if parent.colour() == Colour::Black {
                return;
            }
            // The root is black, so a red parent has a parent itself.
            let Some((grandparent, side)) = place_of(parent) else { return };
            let uncle = grandparent.child(side.other());
            if let Some(uncle) = uncle.filter(|_| is_red(uncle)) {
                // Make parent and uncle black and the grandparent red, then check the grandparent.
                parent.set_colour(Colour::Black);
                uncle.set_colour(Colour::Black);
                grandparent.set_colour(Colour::Red);
                node = grandparent;
                continue;
            }
            let middle = if inner_or_outer == side {
                parent
            } else {
                self.sink(parent, side);
                node
            };
            self.sink(grandparent, side.other());
            middle.set_colour(Colour::Black);
            grandparent.set_colour(Colour::Red);
            return;
        }
        node.set_colour(Colour::Black);
    }

    /// Restores the rules when every path through `place` is one black node short.
    fn settle_short(&mut self, mut place: Place) {
        while let Some((parent, short)) = place {
            let full = short.other();
            // Paths on the other side have one more black node, so there is a sibling.
            let Some(mut sibling) = parent.child(full) else { return };
            if sibling.colour() == Colour::Red {
                // A red sibling has black children: rotate, so that one becomes the sibling.
                self.sink(parent, short);
                sibling.set_colour(Colour::Black);
                parent.set_colour(Colour::Red);
                let Some(nephew) = parent.child(full) else { return };
                sibling = nephew;
            }
            let (near, far) = (sibling.child(short), sibling.child(full));
            // Where many timers expire one after the other, the next removals look at these nodes,
            // which lie in memory in the order of creation.
            let children = |nephew: QueueRef| [Side::Earlier, Side::Later].map(|s| nephew.child(s));
            let below = [near, far].into_iter().flatten().flat_map(children).flatten();
            below.for_each(|node| prefetch_at(node.as_ptr().as_ptr()));
            let lifted = match (near, far) {
                (_, Some(far)) if far.colour() == Colour::Red => {
                    far.set_colour(Colour::Black);
                    Some(sibling)
                }
                (Some(near), _) if near.colour() == Colour::Red => {
                    self.sink(sibling, full);
                    Some(near)
                }
                _ => None,
            };
            if let Some(lifted) = lifted {
                // A red nephew becomes the missing black node.
                self.sink(parent, short);
                lifted.set_colour(parent.colour());
                parent.set_colour(Colour::Black);
                return;
            }
            // No red nephew: take a black node from the sibling's paths too, and go to the parent.
            sibling.set_colour(Colour::Red);
            if parent.colour() == Colour::Red {
                parent.set_colour(Colour::Black);
                return;
            }
            place = place_of(parent);
        }
    }

    /// Rotates `node` towards `side`: its child on the other side takes its place.
    fn sink(&mut self, node: QueueRef, side: Side) {
        let Some(riser) = node.child(side.other()) else { return };
        let between = riser.child(side);
        node.set_child(side.other(), between);
        if let Some(between) = between {
            between.set_parent(Some(node));
        }
        self.put(place_of(node), Some(riser));
        riser.set_parent(node.parent());
        riser.set_child(side, Some(node));
        node.set_parent(Some(riser));
    }

    fn put(&mut self, place: Place, node: Option<QueueRef>) {
        match place {
            Some((parent, side)) => parent.set_child(side, node),
            None => self.root = node,
        }
    }
}

/// Returns the parent of a node and its side there; `None` for the root.
#[inline]
fn place_of(node: QueueRef) -> Place {
    let parent = node.parent()?;
    let is_later = parent.child(Side::Later) == Some(node);
    Some((parent, if is_later { Side::Later } else { Side::Earlier }))
}

fn is_red(node: Option<QueueRef>) -> bool {
    node.is_some_and(|node| node.colour() == Colour::Red)
}

/// Returns the first or the last node (by `side`) of the subtree whose root is `node`.
pub(super) fn outermost(mut node: QueueRef, side: Side) -> QueueRef {
    while let Some(further) = node.child(side) {
        node = further;
    }
    node
}

/// Returns the node just before or after this one (by `side`) in the tree's order. O(log n),
/// amortised O(1) over a whole walk.
pub(super) fn neighbour(mut node: QueueRef, side: Side) -> Option<QueueRef> {
    if let Some(below) = node.child(side) {
        return Some(outermost(below, side.other()));
    }
    loop {
        let (parent, from) = place_of(node)?;
        if from != side {
            return Some(parent);
        }
        node = parent;
    }
}
