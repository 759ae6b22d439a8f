//! Circular lists of timers, threaded through the timers themselves.
//!
//! The wheel keeps every pending timer on one of a fixed number of lists. A list is circular
//! through a head that lives in [`Lists`], so that
//! - unlinking a node needs neither a search nor the number of its list, which changes when one
//!   list is appended to another;
//! - appending one list to another takes four stores (constant-time merge, D6);
//! - a node's neighbours show whether its list has become empty.
//!
//! All unsafe code of the lists is in this file. The rest of the core refers to a node by a
//! [`WheelRef`]; the caller of its constructor makes the promise that every later use relies on.

use alloc::boxed::Box;
use core::cell::Cell;
use core::ptr::{NonNull, null};

/// The two pointers that a list's head and a list's members have in common.
#[repr(C)]
#[derive(Debug)]
struct Ends {
    next: Cell<*const Ends>,
    prev: Cell<*const Ends>,
}

impl Ends {
    const fn unlinked() -> Ends {
        Ends { next: Cell::new(null()), prev: Cell::new(null()) }
    }
}

/// The node that a timer embeds to be placed in a
/// [`Wheel`](crate::queues::wheel::Wheel). 24 bytes.
#[repr(C)]
#[derive(Debug)]
pub struct WheelNode {
    ends: Ends,
    place: Cell<u64>,
}

impl WheelNode {
    /// Returns a node that is on no list.
    pub const fn new() -> WheelNode {
        WheelNode { ends: Ends::unlinked(), place: Cell::new(0) }
    }
}

impl Default for WheelNode {
    fn default() -> Self {
        WheelNode::new()
    }
}

/// A reference to a timer's node, as the wheel uses it. A copy refers to the same node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WheelRef(NonNull<WheelNode>);

// SAFETY: the caller of `new` promised that all uses are serialised, whichever threads make them.
unsafe impl Send for WheelRef {}

impl WheelRef {
    /// Makes a reference to a node, for use with one wheel.
    ///
    /// # Safety
    /// For as long as this reference or a copy of it is used, and in any case until the node
    /// has been taken off its list:
    /// - the node stays valid and does not move;
    /// - its fields are read and written through references like this one only;
    /// - all uses of this reference, and of the [`Wheel`](crate::queues::wheel::Wheel) that the
    ///   node is on, are serialised (one thread, or one lock);
    /// - the node is given to one wheel at a time: a node that is on a wheel is given to no other
    ///   wheel, and a node that was left on a dropped wheel is only freed, and not used otherwise.
    pub unsafe fn new(node: NonNull<WheelNode>) -> WheelRef {
        WheelRef(node)
    }

    /// Returns the node's address.
    pub fn as_ptr(self) -> NonNull<WheelNode> {
        self.0
    }

    /// Returns whether the node is on a list.
    #[inline]
    pub fn is_linked(self) -> bool {
        !self.node().ends.next.get().is_null()
    }

    /// Returns the word in which the wheel keeps the node's position.
    #[inline]
    pub(crate) fn place(self) -> u64 {
        self.node().place.get()
    }

    #[inline]
    pub(crate) fn set_place(self, place: u64) {
        self.node().place.set(place);
    }

    fn node(&self) -> &WheelNode {
        // SAFETY: `new` promised a valid, unmoved node whose uses are serialised; its fields
        // are cells, so shared references suffice to write them.
        unsafe { self.0.as_ref() }
    }

    fn ends(self) -> *const Ends {
        // `WheelNode` is `repr(C)` and starts with its `Ends`.
        self.0.as_ptr().cast_const().cast()
    }
}

/// Lists, and what their owner stores about them.
#[derive(Debug)]
pub(crate) struct Lists<const COUNT: usize, T: 'static = ()> {
    heads: NonNull<Ends>,
    about: NonNull<T>,
    /// Whether other lists own the heads and `about`, and these only read them.
    is_lent: bool,
}

// SAFETY: this value owns what it points to, or reads it, and by the promise of `WheelRef::new` the
// nodes on the lists are only used together with the lists.
unsafe impl<const COUNT: usize, T: Send> Send for Lists<COUNT, T> {}
// SAFETY: methods that take a shared reference only read.
unsafe impl<const COUNT: usize, T: Sync> Sync for Lists<COUNT, T> {}

impl<const COUNT: usize, T> Lists<COUNT, T> {
    /// Returns empty lists. Allocates their heads; no other method allocates.
    pub(crate) fn new(about: T) -> Self {
        let heads = NonNull::from(Box::leak(Box::<[Ends]>::new_uninit_slice(COUNT))).cast::<Ends>();
        // Not an iterator: Miri is slow with it, and this loop is most of a base's creation.
        let mut list = 0;
        while list < COUNT {
            let head = heads.as_ptr().wrapping_add(list);
            // SAFETY: the pointer is within the allocation, and `Ends` needs no drop.
            unsafe { *head = Ends { next: Cell::new(head), prev: Cell::new(head) } };
            list += 1;
        }
        Lists { heads, about: NonNull::from(Box::leak(Box::new(about))), is_lent: false }
    }

    /// Returns lists that read the memory of these, for as long as they are empty.
    ///
    /// # Safety
    /// No node is put on these lists or the returned ones, and `about_mut` is not called.
    pub(crate) unsafe fn lend(&'static self) -> Self {
        Lists { is_lent: true, ..*self }
    }

    pub(crate) fn is_lent(&self) -> bool {
        self.is_lent
    }

    #[inline]
    pub(crate) fn about(&self) -> &T {
        // SAFETY: it is owned, or lent for ever.
        unsafe { self.about.as_ref() }
    }

    #[inline]
    pub(crate) fn about_mut(&mut self) -> &mut T {
        debug_assert!(!self.is_lent, "others read this");
        // SAFETY: it is owned, because the caller of `lend` promised not to call this otherwise.
        unsafe { self.about.as_mut() }
    }

    /// Appends a node to a list. O(1). Returns whether the list was empty.
    ///
    /// Panics if the node is on a list: its old neighbours would keep pointers to it.
    #[inline(always)]
    pub(crate) fn push_back(&mut self, list: usize, node: WheelRef) -> bool {
        debug_assert!(!self.is_lent, "others read these lists");
        if node.is_linked() {
            misused("the node is on a list already");
        }
        let head = self.head(list);
        // SAFETY: `head` is one of our heads, and its `prev` is the head or a linked node.
        unsafe {
            let last = at(head).prev.get();
            join(last, node.ends());
            join(node.ends(), head);
            last == head
        }
    }

    /// Takes a node off its list. O(1). Returns the list's number if the list is empty now, and
    /// `None` otherwise or if the node was on no list.
    #[inline]
    pub(crate) fn unlink(&mut self, node: WheelRef) -> Option<usize> {
        if !node.is_linked() {
            return None;
        }
        let ends = &node.node().ends;
        let (next, prev) = (ends.next.replace(null()), ends.prev.get());
        // SAFETY: the node was linked, so its neighbours are heads or linked nodes.
        unsafe { join(prev, next) };
        // If both neighbours are the same element, it is the head, and the list is empty now.
        if next == prev { Some(self.offset_of(next) / size_of::<Ends>()) } else { None }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self, list: usize) -> Option<WheelRef> {
        let head = self.head(list);
        // SAFETY: `head` is one of our heads; its `next` is that head or a linked node, whose
        // neighbours are heads or linked nodes.
        unsafe {
            let first = at(head).next.get();
            if first == head {
                return None;
            }
            join(head, at(first).next.replace(null()));
            Some(as_node(first))
        }
    }

    #[inline]
    pub(crate) fn front(&self, list: usize) -> Option<WheelRef> {
        let head = self.head(list);
        // SAFETY: `head` is one of our heads, and its `next` is that head or a linked node.
        unsafe {
            let first = at(head).next.get();
            if first == head { None } else { Some(as_node(first)) }
        }
    }

    pub(crate) fn both_ends(&self, list: usize) -> Option<(WheelRef, WheelRef)> {
        let first = self.front(list)?;
        // SAFETY: the list is not empty, so its head's `prev` is a linked node.
        Some((first, unsafe { as_node(at(self.head(list)).prev.get()) }))
    }

    /// Returns the node after `node` on the same list; `None` if `node` is on no list.
    #[inline]
    pub(crate) fn after(&self, node: WheelRef) -> Option<WheelRef> {
        let next = node.node().ends.next.get();
        let is_head = self.offset_of(next) < COUNT * size_of::<Ends>();
        // SAFETY: `next` is neither a head nor null, so it is a linked node.
        if is_head || next.is_null() { None } else { Some(unsafe { as_node(next) }) }
    }

    /// Returns the nodes of a list, in order. The caller must take no node off the list while the
    /// iterator is in use.
    pub(crate) fn nodes(&self, list: usize) -> impl Iterator<Item = WheelRef> {
        core::iter::successors(self.front(list), |&node| self.after(node))
    }

    /// Moves all nodes of `from` to the end of `onto`, in order. O(1).
    pub(crate) fn splice(&mut self, from: usize, onto: usize) {
        if self.is_empty(from) {
            return;
        }
        let (source, target) = (self.head(from), self.head(onto));
        // SAFETY: both are our heads; `source` has members, which are linked nodes.
        unsafe {
            let (first, last) = (at(source).next.get(), at(source).prev.get());
            join(source, source);
            join(at(target).prev.get(), first);
            join(last, target);
        }
    }

    pub(crate) fn is_empty(&self, list: usize) -> bool {
        self.front(list).is_none()
    }

    #[inline]
    fn head(&self, list: usize) -> *const Ends {
        if list >= COUNT {
            misused("there is no such list");
        }
        // SAFETY: `list` is within the allocation of `COUNT` heads.
        unsafe { self.heads.as_ptr().cast_const().add(list) }
    }

    /// Returns the distance in bytes from the first head to `ends`. It is less than the size of all
    /// heads if `ends` is a head, and at least this size for anything else.
    #[inline]
    fn offset_of(&self, ends: *const Ends) -> usize {
        ends.addr().wrapping_sub(self.heads.as_ptr().addr())
    }
}

impl<const COUNT: usize, T> Drop for Lists<COUNT, T> {
    fn drop(&mut self) {
        if self.is_lent {
            return;
        }
        let heads = core::ptr::slice_from_raw_parts_mut(self.heads.as_ptr(), COUNT);
        // SAFETY: `new` leaked exactly these two, and nothing else frees them.
        drop(unsafe { (Box::from_raw(heads), Box::from_raw(self.about.as_ptr())) });
    }
}

/// Panics. A separate function, so that a check costs its caller no more than one comparison.
#[cold]
#[inline(never)]
#[expect(clippy::panic, reason = "an assertion, of which the condition is at its caller")]
fn misused(how: &str) -> ! {
    panic!("a list of timers was misused: {how}")
}

/// # Safety
/// `ends` is a head of a live [`Lists`], or the `Ends` of a node that a [`WheelRef`] refers to. The
/// caller does not keep the returned reference beyond the expression.
#[inline]
unsafe fn at<'a>(ends: *const Ends) -> &'a Ends {
    // SAFETY: the caller's promise; the caller of `WheelRef::new` promised that nodes stay valid.
    unsafe { &*ends }
}

/// Makes two ends neighbours.
///
/// # Safety
/// Both pointers satisfy the condition of [`at`].
#[inline]
unsafe fn join(before: *const Ends, after: *const Ends) {
    // SAFETY: the caller's promise.
    unsafe {
        at(before).next.set(after);
        at(after).prev.set(before);
    }
}

/// # Safety
/// `ends` belongs to a linked node, and not to a head. (Pointers to nodes are only ever made from a
/// [`WheelRef`], so they are valid for access to the whole node.)
#[inline]
unsafe fn as_node(ends: *const Ends) -> WheelRef {
    // SAFETY: a linked node is not null.
    WheelRef(unsafe { NonNull::new_unchecked(ends.cast_mut().cast()) })
}

#[cfg(test)]
impl WheelRef {
    /// Returns a new node that is never freed, for tests in modules that forbid unsafe code. A
    /// static refers to it, so that no leak is reported.
    pub(crate) fn forever() -> WheelRef {
        static KEPT: std::sync::Mutex<alloc::vec::Vec<WheelRef>> =
            std::sync::Mutex::new(alloc::vec::Vec::new());
        let node = Box::leak(Box::new(WheelNode::new()));
        // SAFETY: it is never freed; each test has nodes of its own and one wheel at a time.
        let node = unsafe { WheelRef::new(NonNull::from(node)) };
        KEPT.lock().expect("no test panics while it holds this lock").push(node);
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlinked_nodes_have_no_list() {
        let mut lists = Lists::<2>::new(());
        let nodes = [0, 1].map(|_| WheelRef::forever());
        assert_eq!((lists.unlink(nodes[0]), lists.after(nodes[0])), (None, None));
        assert!(lists.push_back(1, nodes[0]) && !lists.push_back(1, nodes[1]));
        assert_eq!((lists.unlink(nodes[1]), lists.unlink(nodes[1])), (None, None));
        assert_eq!((lists.unlink(nodes[0]), lists.is_empty(1)), (Some(1), true));
    }

    #[test]
    #[should_panic(expected = "on a list already")]
    fn a_linked_node_is_not_pushed_again() {
        let (mut lists, node) = (Lists::<2>::new(()), WheelRef::forever());
        lists.push_back(0, node);
        lists.push_back(1, node);
    }
}
