//! The node of the precise queue, and all unsafe code that the queue needs.
//!
//! [`crate::queues::tree`] is safe code. It uses the accessors below, each of which reads or writes
//! one field of one node.
//!
//! # Rules
//! - The accessors are sound because the caller of [`QueueRef::new`] has promised what its safety
//!   section lists.
//! - A node's content is in one `UnsafeCell` and is accessed through the raw pointer. No reference
//!   into a node is ever made, so the owner can hold a `&` to the timer that embeds the node while
//!   the queue relinks it. The owner must not hold a `&mut` to a queued timer.
//! - Stored pointers keep the provenance of the pointer that [`QueueRef::new`] was given.
//!
//! # Layout
//! 40 bytes on 64-bit targets. The colour and whether the node is in a queue are in the two low
//! bits of the parent pointer, so that the node, a state word, a vtable pointer and one word of
//! data share a cache line. The fields that a search reads come first: expiry and children, 24
//! bytes.

use core::cell::UnsafeCell;
use core::marker::PhantomPinned;
use core::ptr::{NonNull, null_mut};

use crate::time::{Ns, Window};

/// The node of a precise queue, to be embedded in a timer that does not move while it is queued.
#[repr(C)]
pub struct QueueLink {
    fields: UnsafeCell<Fields>,
    /// The neighbours of a linked node point to it, so it must not move.
    _pinned: PhantomPinned,
}

#[repr(C)]
struct Fields {
    hard: Ns,
    child: [Option<QueueRef>; 2],
    /// The parent's address, with [`RED`] and [`LINKED`] in the bits that alignment leaves free.
    /// Zero if the node is in no queue. A black root has no parent, so only [`LINKED`] is set.
    up: *mut QueueLink,
    soft: Ns,
}

const RED: usize = 1;
const LINKED: usize = 2;
const TAGS: usize = RED | LINKED;

const _: () = assert!(align_of::<QueueLink>() > TAGS);
const _: () = assert!(size_of::<usize>() != 8 || size_of::<QueueLink>() == 40);

impl QueueLink {
    /// Returns a node that is in no queue.
    pub const fn new() -> QueueLink {
        let fields = Fields { hard: Ns::ZERO, child: [None, None], up: null_mut(), soft: Ns::ZERO };
        QueueLink { fields: UnsafeCell::new(fields), _pinned: PhantomPinned }
    }
}

impl Default for QueueLink {
    fn default() -> QueueLink {
        QueueLink::new()
    }
}

// SAFETY: a link in no queue is plain data. One that is queued is not moved, and all access to it
// is serialised across threads: the caller of `QueueRef::new` promised both.
unsafe impl Send for QueueLink {}
// SAFETY: nothing can be read or written through `&QueueLink`; access takes a `QueueRef`,
// and the caller of `QueueRef::new` promised to serialise it.
unsafe impl Sync for QueueLink {}

/// A reference to a node, as the queue uses it. A copy refers to the same node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct QueueRef(NonNull<QueueLink>);

// SAFETY: a `QueueRef` is an address. The caller of `QueueRef::new` promised that only the current
// owner of the queue accesses the node, on whichever thread.
unsafe impl Send for QueueRef {}

/// A side of a node in the tree. The nodes below one side are before the node in the queue's order,
/// those below the other side are behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Earlier = 0,
    Later = 1,
}

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Earlier => Side::Later,
            Side::Later => Side::Earlier,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Colour {
    Black,
    Red,
}

impl QueueRef {
    /// Makes a reference to a node, for use with one queue at a time.
    ///
    /// # Safety
    /// For this reference and every copy of it:
    /// - `ptr` can be read and written as a [`QueueLink`]: valid, aligned, initialised, and
    ///   not derived from a `&mut` that is used again.
    /// - From the time when the node is inserted into a queue until that queue has returned it (by
    ///   `remove` or `pop_expired`), it stays valid, is not moved or overwritten, and is accessed
    ///   by that queue only: it is in one queue at a time.
    /// - A reference is not used after its node is freed. A node left in a queue that was
    ///   dropped may only be freed.
    /// - All access is serialised by the owner of `&mut` to the queue: no two threads use
    ///   references to the nodes of one queue at once, not even to read.
    #[inline]
    pub unsafe fn new(ptr: NonNull<QueueLink>) -> QueueRef {
        QueueRef(ptr)
    }

    /// Returns the pointer that [`QueueRef::new`] was given, with its provenance.
    #[inline]
    pub fn as_ptr(self) -> NonNull<QueueLink> {
        self.0
    }

    /// Returns the time window for which this node is queued, or was last queued.
    #[inline]
    pub fn window(self) -> Window {
        let fields = self.fields();
        // SAFETY: the promises of `new`: the node is valid and not written concurrently.
        unsafe { Window { soft: (*fields).soft, hard: (*fields).hard } }
    }

    /// Returns whether the node is in a queue.
    #[inline]
    pub fn is_linked(self) -> bool {
        self.up().addr() & LINKED != 0
    }

    #[inline]
    pub(crate) fn hard(self) -> Ns {
        // SAFETY: as in `window`.
        unsafe { (*self.fields()).hard }
    }

    #[inline]
    pub(crate) fn child(self, side: Side) -> Option<QueueRef> {
        // SAFETY: as in `window`.
        unsafe { (*self.fields()).child[side as usize] }
    }

    #[inline]
    pub(crate) fn parent(self) -> Option<QueueRef> {
        NonNull::new(self.up().map_addr(|up| up & !TAGS)).map(QueueRef)
    }

    #[inline]
    pub(crate) fn colour(self) -> Colour {
        if self.up().addr() & RED != 0 { Colour::Red } else { Colour::Black }
    }

    #[inline]
    pub(crate) fn set_window(self, window: Window) {
        let fields = self.fields();
        // SAFETY: the promises of `new`: the node is valid and not accessed concurrently.
        unsafe {
            (*fields).soft = window.soft;
            (*fields).hard = window.hard;
        }
    }

    #[inline]
    pub(crate) fn set_child(self, side: Side, child: Option<QueueRef>) {
        // SAFETY: as in `set_window`.
        unsafe { (*self.fields()).child[side as usize] = child }
    }

    #[inline]
    pub(crate) fn set_parent(self, parent: Option<QueueRef>) {
        let tags = self.up().addr() & TAGS;
        self.set_up(address(parent).map_addr(|up| up | tags));
    }

    #[inline]
    pub(crate) fn set_colour(self, colour: Colour) {
        let red = if colour == Colour::Red { RED } else { 0 };
        self.set_up(self.up().map_addr(|up| up & !RED | red));
    }

    /// Links the node as a red leaf below `parent`.
    #[inline]
    pub(crate) fn enter(self, parent: QueueRef) {
        self.clear_children();
        self.set_up(parent.0.as_ptr().map_addr(|up| up | RED | LINKED));
    }

    /// Links the node as the root of an empty queue, which is black.
    #[inline]
    pub(crate) fn enter_as_root(self) {
        self.clear_children();
        self.set_up(null_mut::<QueueLink>().map_addr(|up| up | LINKED));
    }

    #[inline]
    fn clear_children(self) {
        self.set_child(Side::Earlier, None);
        self.set_child(Side::Later, None);
    }

    /// Copies the parent and the colour of `other`.
    pub(crate) fn inherit(self, other: QueueRef) {
        self.set_up(other.up());
    }

    #[inline]
    pub(crate) fn leave(self) {
        self.set_up(null_mut());
    }

    #[inline]
    fn up(self) -> *mut QueueLink {
        // SAFETY: as in `window`.
        unsafe { (*self.fields()).up }
    }

    #[inline]
    fn set_up(self, up: *mut QueueLink) {
        // SAFETY: as in `set_window`.
        unsafe { (*self.fields()).up = up }
    }

    /// Returns the node's content: the `UnsafeCell` is the link's first field, and has its address.
    #[inline]
    fn fields(self) -> *mut Fields {
        self.0.as_ptr().cast()
    }
}

#[cfg(test)]
impl QueueRef {
    /// Makes a reference to a node in a static, for tests in modules that forbid unsafe code.
    pub(crate) fn of_static(link: &'static QueueLink) -> QueueRef {
        // SAFETY: a static is never freed; each test has links of its own and one queue at a time.
        unsafe { QueueRef::new(NonNull::from(link)) }
    }
}

fn address(node: Option<QueueRef>) -> *mut QueueLink {
    node.map_or(null_mut(), |node| node.0.as_ptr())
}
