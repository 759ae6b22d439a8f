//! Which callbacks the calling thread is in.
//!
//! A callback may run inside another one: it may move a virtual clock, and with it run timers
//! of another set. Each stands in a [`Frame`] on the thread's stack, and the frames form a
//! chain, innermost first. What is asked of it: is this the callback of the very timer that is
//! being dropped, is this thread in a callback of these timers, and is it in a callback at all,
//! where waiting for other callbacks could be waiting for each other?

use core::cell::Cell;
use core::ptr::NonNull;

/// One callback on this thread's stack.
pub(super) struct Frame {
    node: Option<NonNull<()>>,
    /// The set of timers that it belongs to: an address that is compared and never followed.
    set: *const (),
    /// Has the timer's owner dropped it from here?
    dropped: Cell<bool>,
    outer: *const Frame,
}

thread_local! {
    /// Has no destructor, so it can be used for as long as its thread runs at all.
    static INNERMOST: Cell<*const Frame> = const { Cell::new(core::ptr::null()) };
}

impl Frame {
    /// Calls `body` as part of a callback: that of `node`, or something that counts as one.
    #[inline]
    pub(super) fn around<S, R>(
        node: Option<NonNull<()>>,
        set: &S,
        body: impl FnOnce(&Frame) -> R,
    ) -> R {
        let set = core::ptr::from_ref(set).cast();
        let frame = Frame { node, set, dropped: Cell::new(false), outer: INNERMOST.get() };
        let _leave = Leave(frame.outer);
        INNERMOST.set(&raw const frame);
        body(&frame)
    }

    /// Has the owner of this callback's timer dropped it?
    pub(super) fn is_dropped(&self) -> bool {
        self.dropped.get()
    }
}

/// Takes a frame off the chain, also when its callback panics.
struct Leave(*const Frame);

impl Drop for Leave {
    fn drop(&mut self) {
        INNERMOST.set(self.0);
    }
}

/// Leaves a node to its own callback, if this thread is in that. Returns whether it is.
pub(super) fn leave_to_callback(node: NonNull<()>) -> bool {
    any(|frame| {
        let is_its = frame.node == Some(node);
        if is_its {
            frame.dropped.set(true);
        }
        is_its
    })
}

/// Is this thread in a callback, of whatever timer?
pub(crate) fn is_in_callback() -> bool {
    !INNERMOST.get().is_null()
}

/// Is this thread in a callback of this set of timers?
pub(crate) fn is_in_callback_of<S>(set: &S) -> bool {
    let set = core::ptr::from_ref(set).cast();
    any(|frame| core::ptr::eq(frame.set, set))
}

fn any(is_it: impl Fn(&Frame) -> bool) -> bool {
    let mut at = INNERMOST.get();
    // SAFETY: a frame on the chain is a local of an `around` that has not returned: it takes
    // the frame off before it does, and other threads have chains of their own.
    while let Some(frame) = unsafe { at.as_ref() } {
        if is_it(frame) {
            return true;
        }
        at = frame.outer;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Goal: the chain is what the stack is, also after a panic.
    #[test]
    fn frames_nest_and_end() {
        let (sets, nodes) = ([1u8, 2], [3u8, 4]);
        let node = |at: usize| NonNull::from(&nodes[at]).cast::<()>();
        assert!(!is_in_callback());
        Frame::around(Some(node(0)), &sets[0], |outer| {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                Frame::around(Some(node(1)), &sets[1], |inner| {
                    assert!(is_in_callback_of(&sets[0]) && is_in_callback_of(&sets[1]));
                    assert!(leave_to_callback(node(0)), "the outer callback is still running");
                    assert!(outer.is_dropped() && !inner.is_dropped());
                    std::panic::panic_any(5u8);
                })
            }));
            assert!(panicked.is_err());
            assert!(is_in_callback_of(&sets[0]) && !is_in_callback_of(&sets[1]));
            assert!(!leave_to_callback(node(1)), "the inner callback is over");
        });
        assert!(!is_in_callback());
    }
}
