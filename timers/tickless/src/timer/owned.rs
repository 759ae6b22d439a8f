//! A timer with its callback in one allocation, a node: the core's timer, and behind it the user's
//! closure. A node takes a single cache line if the closure captures at most 16 bytes (8 for a
//! precise timer).
//!
//! Dropping the [`Owned`] of a node frees the node, or leaves it to [`super::orphans`] if the
//! node's own callback runs and the drop cannot wait for it. A timer in memory of the program has
//! an `Owned`, too, which gives the memory back before it is dropped: see [`super::slot`].

use super::arena::Arena;
use super::cancel_error::CancelError;
use super::ends::End;
use super::fired::Fired;
use super::glue::{Bases, Glue, Host, Task};
use super::pinned::Pinned;
use super::shared::Handle;
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;
use std::alloc::handle_alloc_error;
use tickless_core::bases::{Family, cancel::Cancel};
use tickless_core::link::{Timer, TimerRef};

#[repr(C, align(64))]
struct Node<L, F> {
    timer: Timer<Host, L>,
    callback: UnsafeCell<F>,
}

/// The one owner of a node, which arms and cancels its timer.
pub(crate) struct Owned<L: Family<Host>> {
    timer: Pinned<Handle, L>,
}

impl<L: Family<Host>> fmt::Debug for Owned<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").field("active", &self.is_active()).finish()
    }
}

impl<L: Family<Host>> Deref for Owned<L> {
    type Target = Pinned<Handle, L>;

    #[inline]
    fn deref(&self) -> &Pinned<Handle, L> {
        &self.timer
    }
}

impl<L: Family<Host>> Owned<L> {
    pub(crate) fn new<F>(shared: Handle, callback: F) -> Owned<L>
    where
        F: FnMut(&mut Fired<'_>) + Send + 'static,
    {
        let glue = Node::<L, F>::GLUE;
        let callback = UnsafeCell::new(callback);
        let memory = match shared.is_forked_child() {
            false => shared.arena.take(glue.layout),
            // In a forked child, another thread perhaps held the arena's lock at the fork (K4: a
            // child never waits for such a lock). So the memory comes from the general allocator.
            // It is never given back to the arena: `drop` leaks a node in a forked child.
            // SAFETY: a node has at least one cache line.
            true => NonNull::new(unsafe { std::alloc::alloc(glue.layout) }),
        };
        let Some(memory) = memory else {
            handle_alloc_error(glue.layout);
        };
        // SAFETY: the memory was just allocated with the node's layout. It stays valid until `drop`
        // has ended the timer.
        let timer = unsafe {
            memory.cast().write(Node::<L, F> { timer: Timer::new(glue), callback });
            Pinned::new(memory.cast(), shared)
        };
        Owned { timer }
    }

    /// Creates the owner of a timer in memory of the program.
    ///
    /// # Safety
    /// The timer has a glue made by [`Glue::embedded`] and no other owner. It stays where it is
    /// until [`give_back`](Owned::give_back) has succeeded, which is called before the owner is
    /// dropped.
    pub(super) unsafe fn around(timer: Pinned<Handle, L>) -> Owned<L> {
        Owned { timer }
    }

    /// Shuts down a timer in memory of the program. After a success the program can use the memory
    /// again. Waits for a running callback like `shutdown_sync`, except inside that callback.
    ///
    /// # Safety
    /// `self` came from [`around`](Owned::around). After a success the caller only drops it.
    pub(crate) unsafe fn give_back(&mut self) -> Result<(), CancelError> {
        self.timer.end_in_place()?;
        self.timer.forget_timer();
        Ok(())
    }

    pub(crate) fn is_given_back(&self) -> bool {
        self.timer.is_forgotten()
    }
}

impl<L: Family<Host>> Drop for Owned<L> {
    fn drop(&mut self) {
        if self.is_given_back() {
            return;
        }
        let (shared, node, glue) = (self.shared(), self.node(), self.glue());
        match self.end_or_leave() {
            // SAFETY: the timer has ended, and this was the node's one owner.
            End::Over => unsafe { (glue.free)(node, &shared.arena) },
            // SAFETY: this was the node's one owner, and its timer has just been shut down.
            End::Runs => unsafe { shared.orphans.adopt(shared, node, glue) },
            // Leak the node: its memory is freed when the process ends.
            End::LeftByFork => {}
        }
    }
}

/// Frees a node's memory when dropped, even if the drop of its closure panics.
struct FreeMemory<'a> {
    node: NonNull<()>,
    layout: Layout,
    arena: &'a Arena,
}

impl Drop for FreeMemory<'_> {
    fn drop(&mut self) {
        // SAFETY: only `free` makes a `FreeMemory`, for a node that is no longer used. `Owned::new`
        // took the memory of that node from this arena, with this layout.
        unsafe { self.arena.give_back(self.node.cast(), self.layout) }
    }
}

impl<L: Family<Host>, F: FnMut(&mut Fired<'_>)> Node<L, F> {
    const GLUE: Task = &Glue {
        call: Self::call,
        is_running: Self::is_running,
        free: Self::free,
        layout: Layout::new::<Self>(),
        label: core::any::type_name::<F>,
    };

    /// # Safety
    /// `node` is a live `Node<L, F>`, whose closure does not run.
    unsafe fn call(node: NonNull<()>, fired: &mut Fired<'_>) {
        // SAFETY: the caller promises a live node, and the callback of a timer never overlaps
        // itself (X2).
        let callback = unsafe { &mut *(*node.cast::<Self>().as_ptr()).callback.get() };
        callback(fired);
    }

    /// # Safety
    /// `node` is a live `Node<L, F>` whose timer belongs to these bases.
    unsafe fn is_running(bases: &Bases, node: NonNull<()>) -> bool {
        // SAFETY: the caller promises a live node, and the reference is only used in this call.
        bases.try_cancel(unsafe { TimerRef::<Host, L>::new(node.cast()) }) == Cancel::Running
    }

    /// # Safety
    /// `node` came from `Owned::new` with this type and from this arena, and is no longer used.
    unsafe fn free(node: NonNull<()>, arena: &Arena) {
        let _memory = FreeMemory { node, layout: Layout::new::<Self>(), arena };
        // SAFETY: the caller promises that the node is no longer used. Its memory is freed here.
        unsafe { node.cast::<Self>().drop_in_place() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::host::WheelLink;
    use tickless_core::link::QueueLink;

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_timer_is_as_small_as_promised() {
        fn node_of<L: Family<Host>, F: FnMut(&mut Fired<'_>)>(_: F) -> usize {
            size_of::<Node<L, F>>()
        }
        let (one, two, three) = ([1u64; 1], [2u64; 2], [3u64; 3]);
        let see = |_: &[u64]| ();
        assert_eq!(node_of::<WheelLink, _>(|_| ()), 64);
        assert_eq!(node_of::<WheelLink, _>(move |_| see(&two)), 64);
        assert_eq!(node_of::<WheelLink, _>(move |_| see(&three)), 128);
        assert_eq!(node_of::<QueueLink, _>(move |_| see(&one)), 64);
        assert_eq!(node_of::<QueueLink, _>(move |_| see(&two)), 128);
        assert_eq!(align_of::<Node<WheelLink, fn(&mut Fired<'_>)>>(), 64);
        assert_eq!(size_of::<Owned<WheelLink>>(), 16);
    }
}
