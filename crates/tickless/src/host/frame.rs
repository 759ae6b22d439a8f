//! Which callbacks the calling thread is in.
//!
//! A callback may run inside another one: it may move a virtual clock, and with it run timers
//! of another set. Each stands in a [`Frame`] on the thread's stack, and the frames form a
//! chain, innermost first. What is asked of it: is this thread in a callback of these timers,
//! and is it in a callback at all, where waiting for other callbacks could be waiting for each
//! other?

use core::cell::Cell;

/// One callback on this thread's stack.
struct Frame {
    /// The set of timers that it belongs to: an address that is compared and never followed.
    set: *const (),
    outer: *const Frame,
}

thread_local! {
    /// Has no destructor, so it can be used for as long as its thread runs at all.
    static INNERMOST: Cell<*const Frame> = const { Cell::new(core::ptr::null()) };
}

/// Calls `body` as a callback of this set, or as something that counts as one.
#[inline]
pub(super) fn within<S, R>(set: &S, body: impl FnOnce() -> R) -> R {
    let frame = Frame { set: core::ptr::from_ref(set).cast(), outer: INNERMOST.get() };
    let _leave = Leave(frame.outer);
    INNERMOST.set(&raw const frame);
    body()
}

/// Takes a frame off the chain, also when its callback panics.
struct Leave(*const Frame);

impl Drop for Leave {
    #[inline]
    fn drop(&mut self) {
        INNERMOST.set(self.0);
    }
}

/// Is this thread in a callback, of whatever timer?
pub(crate) fn is_in_callback() -> bool {
    !INNERMOST.get().is_null()
}

/// Is this thread in a callback of this set of timers?
pub(crate) fn is_in_callback_of<S>(set: &S) -> bool {
    let set = core::ptr::from_ref(set).cast();
    let mut at = INNERMOST.get();
    // SAFETY: a frame on the chain is a local of a `within` that has not returned: it takes the
    // frame off before it does, and other threads have chains of their own.
    while let Some(frame) = unsafe { at.as_ref() } {
        if core::ptr::eq(frame.set, set) {
            return true;
        }
        at = frame.outer;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    /// Goal: the chain is what the stack is, also after a panic.
    #[test]
    fn frames_nest_and_end() {
        let sets = [1u8, 2];
        let are_in = || [is_in_callback_of(&sets[0]), is_in_callback_of(&sets[1])];
        assert!(!is_in_callback());
        within(&sets[0], || {
            assert_eq!((is_in_callback(), are_in()), (true, [true, false]));
            let panicked = catch_unwind(|| {
                within(&sets[1], || {
                    assert_eq!(are_in(), [true, true]);
                    std::panic::panic_any(5u8);
                })
            });
            assert!(panicked.is_err());
            assert_eq!((is_in_callback(), are_in()), (true, [true, false]));
        });
        assert_eq!((is_in_callback(), are_in()), (false, [false, false]));
    }
}
