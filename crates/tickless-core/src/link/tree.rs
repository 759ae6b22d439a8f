//! The node of the precise queue, and the only unsafe code that queue rests on.
//!
//! [`crate::queues::tree`] is safe code that moves [`QueueRef`]s about; each of its steps is one of
//! the accessors below, and each of those reads or writes one field of one node.
//!
//! # Ground rules
//! - What makes the accessors sound is promised once, by the caller of [`QueueRef::new`].
//! - Everything in a node sits in one `UnsafeCell` and is reached through the raw pointer. No
//!   reference into a node is ever made, so its owner may hold a `&` to the timer around it
//!   while the queue relinks it. A `&mut` to a queued timer is the owner's mistake.
//! - Stored pointers keep the provenance of the pointer that was handed in.
//!
//! # Layout
//! 40 bytes on 64-bit targets. Colour and "is in a queue" live in the two low bits of the
//! parent pointer, so that the node, a state word, a vtable pointer and one word of data
//! share a cache line. What the search reads comes first: expiry and children, 24 bytes.

use core::cell::UnsafeCell;
use core::marker::PhantomPinned;
use core::ptr::{NonNull, null_mut};

use crate::time::{Ns, Window};

/// Place in a precise queue. Embed one in a timer, in memory that does not move while queued.
#[repr(C)]
pub struct QueueLink {
    fields: UnsafeCell<Fields>,
    /// Its neighbours point at it.
    _pinned: PhantomPinned,
}

#[repr(C)]
struct Fields {
    hard: Ns,
    child: [Option<QueueRef>; 2],
    /// The parent's address, with [`RED`] and [`LINKED`] in the bits that alignment leaves
    /// free. All zero: in no queue. Only [`LINKED`]: the root, black.
    up: *mut QueueLink,
    soft: Ns,
}

const RED: usize = 1;
const LINKED: usize = 2;
const TAGS: usize = RED | LINKED;

const _: () = assert!(align_of::<QueueLink>() > TAGS);
const _: () = assert!(size_of::<usize>() != 8 || size_of::<QueueLink>() == 40);

impl QueueLink {
    /// A node that is in no queue.
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

// SAFETY: a link in no queue is plain data. One that is queued must not be moved, and all
// access to it is serialised, whichever thread it comes from: `QueueRef::new` asks for both.
unsafe impl Send for QueueLink {}
// SAFETY: nothing can be read or written through `&QueueLink`; access takes a `QueueRef`,
// whose maker promised that it is serialised.
unsafe impl Sync for QueueLink {}

/// A node as the queue sees it: an address that stays good while the node is queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct QueueRef(NonNull<QueueLink>);

// SAFETY: a `QueueRef` is an address. `QueueRef::new` makes its caller promise that the node
// is only touched by whoever owns the queue at that moment, on whatever thread that is.
unsafe impl Send for QueueRef {}

/// Which side of a node: what expires earlier hangs on one, the rest on the other.
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

/// A node's colour in the red-black tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Colour {
    Black,
    Red,
}

impl QueueRef {
    /// Vouches for a node so that a queue may use it.
    ///
    /// # Safety
    /// For this reference and every copy of it:
    /// - `ptr` may be read and written as a [`QueueLink`]: valid, aligned, initialised, and
    ///   not derived from a `&mut` that is used again.
    /// - From when the node is put into a queue until that queue has given it back (by
    ///   `remove` or `pop_expired`), it stays valid, is not moved or overwritten, and is
    ///   touched through that queue only: it is in one queue at a time.
    /// - A reference is not used after its node is freed. A node left in a queue that was
    ///   dropped may only be freed.
    /// - All access is serialised by the owner of `&mut` to the queue: no two threads use
    ///   references to the nodes of one queue at once, not even to read.
    #[inline]
    pub unsafe fn new(ptr: NonNull<QueueLink>) -> QueueRef {
        QueueRef(ptr)
    }

    /// The address that was handed to [`QueueRef::new`], with its provenance.
    #[inline]
    pub fn as_ptr(self) -> NonNull<QueueLink> {
        self.0
    }

    /// The window this node is queued for, or was when it last was.
    #[inline]
    pub fn window(self) -> Window {
        let fields = self.fields();
        // SAFETY: the promises of `new`: the node is valid and nobody writes it now.
        unsafe { Window { soft: (*fields).soft, hard: (*fields).hard } }
    }

    /// Whether the node is in a queue.
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
        // SAFETY: the promises of `new`: the node is valid and nobody else touches it now.
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

    /// Enters a queue as a red leaf below `parent`.
    #[inline]
    pub(crate) fn enter(self, parent: QueueRef) {
        self.have_no_children();
        self.set_up(parent.0.as_ptr().map_addr(|up| up | RED | LINKED));
    }

    /// Enters an empty queue, as its root, which is black.
    #[inline]
    pub(crate) fn enter_as_root(self) {
        self.have_no_children();
        self.set_up(null_mut::<QueueLink>().map_addr(|up| up | LINKED));
    }

    #[inline]
    fn have_no_children(self) {
        self.set_child(Side::Earlier, None);
        self.set_child(Side::Later, None);
    }

    /// Takes over parent and colour of `other`.
    pub(crate) fn inherit(self, other: QueueRef) {
        self.set_up(other.up());
    }

    /// Leaves its queue.
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

    /// The node's content: the cell is the link's first field, and transparent.
    #[inline]
    fn fields(self) -> *mut Fields {
        self.0.as_ptr().cast()
    }
}

#[cfg(test)]
impl QueueRef {
    /// For tests inside modules that forbid unsafe code.
    pub(crate) fn of_static(link: &'static QueueLink) -> QueueRef {
        // SAFETY: a static stays; each such test has links of its own and one queue at a time.
        unsafe { QueueRef::new(NonNull::from(link)) }
    }
}

fn address(node: Option<QueueRef>) -> *mut QueueLink {
    node.map_or(null_mut(), |node| node.0.as_ptr())
}
