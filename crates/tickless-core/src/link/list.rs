//! Circular lists of timers, threaded through the timers themselves.
//!
//! The wheel keeps every pending timer on one of a fixed number of lists. A list is
//! circular through a head that lives in [`Lists`], so that
//! - unlinking needs neither the list's number nor a search, whatever list a node was
//!   moved to in the meantime;
//! - moving a whole list behind another is four stores (constant-time merge, D6);
//! - whether a list has run empty shows in the node's neighbours.
//!
//! Ground rules: all unsafe code of the lists is in this file. A node is known to the rest
//! of the core as a [`WheelRef`], whose constructor carries the promise that makes every
//! later use safe.

use alloc::boxed::Box;
use core::cell::Cell;
use core::ptr::NonNull;

/// The two pointers that a list's head and a list's members have in common.
#[repr(C)]
#[derive(Debug)]
struct Ends {
    next: Cell<*const Ends>,
    prev: Cell<*const Ends>,
}

impl Ends {
    const fn unlinked() -> Ends {
        Ends { next: Cell::new(core::ptr::null()), prev: Cell::new(core::ptr::null()) }
    }
}

/// What a timer must embed, as its first field, to live in a
/// [`Wheel`](crate::queues::wheel::Wheel). 24 bytes.
#[repr(C)]
#[derive(Debug)]
pub struct WheelNode {
    ends: Ends,
    place: Cell<u64>,
}

impl WheelNode {
    /// A node that is on no list.
    pub const fn new() -> WheelNode {
        WheelNode { ends: Ends::unlinked(), place: Cell::new(0) }
    }
}

impl Default for WheelNode {
    fn default() -> Self {
        WheelNode::new()
    }
}

/// A timer as the wheel sees it. Copying it copies the reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WheelRef(NonNull<WheelNode>);

// SAFETY: `new` promised that uses are serialised, by whichever thread they are made.
unsafe impl Send for WheelRef {}

impl WheelRef {
    /// Hands a node to the wheel's world.
    ///
    /// # Safety
    /// For as long as this reference or a copy of it is used, and in any case until the node
    /// has been taken off the list it is put on:
    /// - the node stays valid and does not move;
    /// - nothing reads or writes its fields but through references like this one;
    /// - all uses, and all uses of the [`Wheel`](crate::queues::wheel::Wheel) it is put on, are
    ///   serialised (one thread, or one lock);
    /// - it is handed to one wheel at a time: a node that is on a wheel is handed to no other, and
    ///   one that was left on a wheel that is gone may only be freed.
    pub unsafe fn new(node: NonNull<WheelNode>) -> WheelRef {
        WheelRef(node)
    }

    /// The node's address.
    pub fn as_ptr(self) -> NonNull<WheelNode> {
        self.0
    }

    /// Is the node on a list?
    #[inline]
    pub fn is_linked(self) -> bool {
        !self.node().ends.next.get().is_null()
    }

    /// The wheel's own notes about where the node is.
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
        // are cells, so no reference to it claims to be the only one.
        unsafe { self.0.as_ref() }
    }

    fn ends(self) -> *const Ends {
        // `WheelNode` is `repr(C)` and starts with its `Ends`.
        self.0.as_ptr().cast_const().cast()
    }
}

/// A fixed number of lists. What is asked of its callers in words, that a node is on no list or on
/// one of these, is for the wheel to keep: nobody else has lists.
#[derive(Debug)]
pub(crate) struct Lists<const COUNT: usize> {
    heads: NonNull<Ends>,
}

// SAFETY: the heads belong to this value alone, and `WheelRef::new` made every caller promise
// that the nodes on the lists are used by whoever holds the lists, and by nobody else.
unsafe impl<const COUNT: usize> Send for Lists<COUNT> {}

impl<const COUNT: usize> Lists<COUNT> {
    /// Empty lists. The only allocation of the wheel's whole life.
    pub(crate) fn new() -> Self {
        let heads: Box<[Ends]> = (0..COUNT).map(|_| Ends::unlinked()).collect();
        let heads = NonNull::from(Box::leak(heads)).cast::<Ends>();
        let lists = Lists { heads };
        for list in 0..COUNT {
            lists.make_empty(lists.head(list));
        }
        lists
    }

    /// Puts an unlinked node at the end of a list. O(1). Returns whether the list was empty.
    #[inline]
    pub(crate) fn push_back(&mut self, list: usize, node: WheelRef) -> bool {
        debug_assert!(!node.is_linked());
        let head = self.head(list);
        let last = at(head).prev.get();
        at(node.ends()).next.set(head);
        at(node.ends()).prev.set(last);
        at(last).next.set(node.ends());
        at(head).prev.set(node.ends());
        last == head
    }

    /// Takes a node off whatever list of these it is on. O(1). Returns that list's number if
    /// the node was its last one.
    #[inline]
    pub(crate) fn unlink(&mut self, node: WheelRef) -> Option<usize> {
        debug_assert!(node.is_linked());
        let ends = at(node.ends());
        let (next, prev) = (ends.next.replace(core::ptr::null()), ends.prev.get());
        at(prev).next.set(next);
        at(next).prev.set(prev);
        // Only a head can be both neighbours of a node.
        if next == prev { Some(self.number_of(next)) } else { None }
    }

    /// The first node of a list.
    #[inline]
    pub(crate) fn front(&self, list: usize) -> Option<WheelRef> {
        let head = self.head(list);
        let first = at(head).next.get();
        if first == head { None } else { Some(as_node(first)) }
    }

    /// The first node of a list, and the last.
    pub(crate) fn both_ends(&self, list: usize) -> Option<(WheelRef, WheelRef)> {
        let last = as_node(at(self.head(list)).prev.get());
        self.front(list).map(|first| (first, last))
    }

    /// The node after `node`, on the same list.
    #[inline]
    pub(crate) fn after(&self, node: WheelRef) -> Option<WheelRef> {
        let next = at(node.ends()).next.get();
        if self.is_head(next) { None } else { Some(as_node(next)) }
    }

    /// Moves everything on `from` behind everything on `onto`, in order. O(1).
    pub(crate) fn splice(&mut self, from: usize, onto: usize) {
        let (from, onto) = (self.head(from), self.head(onto));
        let (first, last) = (at(from).next.get(), at(from).prev.get());
        if first == from {
            return;
        }
        let end = at(onto).prev.get();
        at(end).next.set(first);
        at(first).prev.set(end);
        at(last).next.set(onto);
        at(onto).prev.set(last);
        self.make_empty(from);
    }

    /// Is there nothing on this list?
    pub(crate) fn is_empty(&self, list: usize) -> bool {
        self.front(list).is_none()
    }

    fn make_empty(&self, head: *const Ends) {
        at(head).next.set(head);
        at(head).prev.set(head);
    }

    #[inline]
    fn head(&self, list: usize) -> *const Ends {
        if list >= COUNT {
            no_such_list(list);
        }
        // SAFETY: `list` is within the allocation of `COUNT` heads.
        unsafe { self.heads.as_ptr().cast_const().add(list) }
    }

    #[inline]
    fn is_head(&self, ends: *const Ends) -> bool {
        self.offset_of(ends) < COUNT * size_of::<Ends>()
    }

    /// A head's number; at least `COUNT` for what is no head.
    #[inline]
    fn number_of(&self, ends: *const Ends) -> usize {
        self.offset_of(ends) / size_of::<Ends>()
    }

    /// By how many bytes a head lies behind the first one; anything beyond for what is no head.
    #[inline]
    fn offset_of(&self, ends: *const Ends) -> usize {
        (ends as usize).wrapping_sub(self.heads.as_ptr() as usize)
    }
}

impl<const COUNT: usize> Drop for Lists<COUNT> {
    fn drop(&mut self) {
        let heads = core::ptr::slice_from_raw_parts_mut(self.heads.as_ptr(), COUNT);
        // SAFETY: `new` leaked exactly this slice, and nothing else frees it.
        drop(unsafe { Box::from_raw(heads) });
    }
}

/// Apart, so that the check costs its callers a comparison.
#[cold]
#[inline(never)]
#[expect(clippy::panic, reason = "an assertion, of which the condition is at its caller")]
fn no_such_list(list: usize) -> ! {
    panic!("there is no list {list}")
}

#[inline]
fn at<'a>(ends: *const Ends) -> &'a Ends {
    // SAFETY: `ends` came from a head, which lives as long as its `Lists`, or from a linked
    // node, which `WheelRef::new` promised stays valid while it is linked. The reference does
    // not outlive the expression it is used in.
    unsafe { &*ends }
}

fn as_node(ends: *const Ends) -> WheelRef {
    // Not a head, so it is the first field of a `WheelNode`, and pointers to members are only
    // ever made from a `WheelRef`, so they may reach the whole node.
    // SAFETY: a linked node is not null.
    WheelRef(unsafe { NonNull::new_unchecked(ends.cast_mut().cast()) })
}

#[cfg(test)]
impl WheelRef {
    /// A new node that is never freed, for tests inside modules that forbid unsafe code. A static
    /// leads to it, so that it is no leak.
    pub(crate) fn forever() -> WheelRef {
        static KEPT: std::sync::Mutex<alloc::vec::Vec<WheelRef>> =
            std::sync::Mutex::new(alloc::vec::Vec::new());
        let node = alloc::boxed::Box::leak(alloc::boxed::Box::new(WheelNode::new()));
        // SAFETY: it stays; each such test has nodes of its own and one wheel at a time.
        let node = unsafe { WheelRef::new(NonNull::from(node)) };
        KEPT.lock().expect("no test panics with it").push(node);
        node
    }
}
