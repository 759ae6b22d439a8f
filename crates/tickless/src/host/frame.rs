//! Which callbacks the calling thread is in.
//!
//! A callback may run inside another one: it may move a virtual clock, and with it run timers
//! of another set. Each stands in a [`Frame`] on the thread's stack, and the frames form a
//! chain, innermost first, which says whether a timer is being dropped by its own callback.

use core::cell::Cell;
use core::ptr::NonNull;

/// One callback on this thread's stack.
pub(super) struct Frame {
    node: Option<NonNull<()>>,
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
    pub(super) fn around<R>(node: Option<NonNull<()>>, body: impl FnOnce(&Frame) -> R) -> R {
        let frame = Frame { node, dropped: Cell::new(false), outer: INNERMOST.get() };
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
        let nodes = [3u8, 4];
        let node = |at: usize| NonNull::from(&nodes[at]).cast::<()>();
        Frame::around(Some(node(0)), |outer| {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                Frame::around(Some(node(1)), |inner| {
                    assert!(leave_to_callback(node(0)), "the outer callback is still running");
                    assert!(outer.is_dropped() && !inner.is_dropped());
                    std::panic::panic_any(5u8);
                })
            }));
            assert!(panicked.is_err());
            assert!(!leave_to_callback(node(1)), "the inner callback is over");
        });
    }
}
