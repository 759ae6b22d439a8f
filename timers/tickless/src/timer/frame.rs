//! The callbacks on the calling thread's stack.
//!
//! A callback can run inside another one: it can advance a virtual clock, which fires timers of
//! another set. Each callback has a [`Frame`] on the stack; they form a chain, innermost first.
//!
//! # Identity
//!
//! A frame names its timer by address. A callback can drop its own timer, and make another timer in
//! the same memory. So a function that ends a timer inside the timer's own callback
//! [detaches](detach) the callback: its frame names no timer any more. An address in the chain
//! therefore always belongs to the timer whose callback runs.

use core::cell::Cell;
use core::ptr::{from_ref, null};
use tickless_core::time::CpuId;

/// A set of timers. Makes the threads that wait for callbacks of one of its bases check again
/// whether they are in a deadlock.
pub(crate) trait RecheckWaits {
    fn recheck_waits(&self, cpu: CpuId);
}

/// The base whose callbacks a thread executes, and the set that the base belongs to.
pub(crate) struct Runs {
    set: *const dyn RecheckWaits,
    cpu: CpuId,
}

impl Runs {
    pub(crate) fn on<S: RecheckWaits + 'static>(set: &S, cpu: CpuId) -> Runs {
        Runs { set: from_ref(set), cpu }
    }

    /// Makes the `Runs` for code that counts as a callback but belongs to no base, such as wakers.
    pub(crate) fn nowhere<S: RecheckWaits + 'static>(set: &S) -> Runs {
        Runs::on(set, CpuId(u16::MAX))
    }
}

pub(super) struct Frame {
    runs: *const Runs,
    /// The timer's address; 0 if there is none, or its callback has been detached.
    timer: Cell<usize>,
    outer: *const Frame,
}

impl Frame {
    #[inline(always)]
    pub(super) fn new(runs: &Runs, timer: usize) -> Frame {
        Frame { runs, timer: Cell::new(timer), outer: INNERMOST.get() }
    }

    /// Puts the frame onto this thread's chain, as its innermost one, until the result is dropped.
    ///
    /// # Safety
    /// - The result is dropped in the block that called this, before the frame and the frame's
    ///   `Runs` are gone, and it is not forgotten.
    /// - Frames leave the chain in the reverse order of entering it.
    #[inline(always)]
    pub(super) unsafe fn enter(&self) -> Entered {
        INNERMOST.set(self);
        Entered(self.outer)
    }

    fn runs(&self) -> &Runs {
        // SAFETY: `enter` requires that the `Runs` exist for as long as this frame is on the chain.
        unsafe { &*self.runs }
    }
}

thread_local! {
    /// The innermost frame of this thread's chain. Has no destructor.
    static INNERMOST: Cell<*const Frame> = const { Cell::new(null()) };
}

/// Calls `body`, which counts as the callback of the timer at this address; 0 stands for no timer.
#[inline(always)]
pub(crate) fn within<R>(runs: &Runs, timer: usize, body: impl FnOnce() -> R) -> R {
    let frame = Frame::new(runs, timer);
    // SAFETY: `_entered` is dropped at the end of this function, also when `body` panics.
    let _entered = unsafe { frame.enter() };
    body()
}

/// Takes the innermost frame off the chain when dropped, also when its callback panics.
pub(super) struct Entered(*const Frame);

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        INNERMOST.set(self.0);
    }
}

/// If this thread is in the callback of this timer, detaches the callback: its runner neither calls
/// nor rearms the timer any more. Returns `false` if the thread is not in that callback.
pub(super) fn detach(timer: usize) -> bool {
    find(|frame| frame.timer.get() == timer).map(|frame| frame.timer.set(0)).is_some()
}

pub(crate) fn is_detached() -> bool {
    find(|_| true).is_some_and(|frame| frame.timer.get() == 0)
}

pub(crate) fn is_in_callback() -> bool {
    !INNERMOST.get().is_null()
}

pub(crate) fn is_in_callback_of<S>(set: &S) -> bool {
    let set = from_ref(set).addr();
    find(|frame| frame.runs().set.cast::<()>().addr() == set).is_some()
}

pub(crate) fn is_in_callback_of_timer(timer: usize) -> bool {
    find(|frame| frame.timer.get() == timer).is_some()
}

/// Returns the address of the timer whose callback runs, without frames 0.
pub(super) fn innermost_timer() -> usize {
    find(|_| true).map_or(0, |frame| frame.timer.get())
}

/// Returns the addresses of the timers whose callbacks run on this thread's stack, innermost first;
/// 0 for those that have been detached.
pub(super) fn timers() -> Vec<usize> {
    let mut timers = Vec::new();
    find(|frame| {
        timers.push(frame.timer.get());
        false
    });
    timers
}

/// Makes the threads that wait for one of this thread's callbacks check again for a deadlock.
pub(super) fn recheck_waiters(is_waited_for: impl Fn(usize) -> bool) {
    find(|frame| {
        if is_waited_for(frame.timer.get()) {
            // SAFETY: the set outlives its callback, whose frame this is.
            unsafe { &*frame.runs().set }.recheck_waits(frame.runs().cpu);
        }
        false
    });
}

/// Returns the innermost frame that `is_it` accepts. The frame stays on the chain during the call.
#[inline]
fn find<'a>(mut is_it: impl FnMut(&'a Frame) -> bool) -> Option<&'a Frame> {
    let mut at = INNERMOST.get();
    // SAFETY: a frame on the chain is a local variable of a function that has not returned, because
    // that function takes the frame off first. Each thread has its own chain, and no caller in this
    // file keeps the reference.
    while let Some(frame) = unsafe { at.as_ref() } {
        if is_it(frame) {
            return Some(frame);
        }
        at = frame.outer;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    impl RecheckWaits for u8 {
        fn recheck_waits(&self, _: CpuId) {}
    }

    /// Goal: the chain matches the stack, also after a panic.
    #[test]
    fn frames_nest_and_end() {
        let sets = [1u8, 2];
        let runs = |set| Runs::on(set, CpuId(0));
        let are_in = || [is_in_callback_of(&sets[0]), is_in_callback_of(&sets[1])];
        assert!(!is_in_callback());
        within(&runs(&sets[0]), 0, || {
            assert_eq!((is_in_callback(), are_in()), (true, [true, false]));
            let panicked = catch_unwind(|| {
                within(&runs(&sets[1]), 0, || {
                    assert_eq!(are_in(), [true, true]);
                    std::panic::panic_any(5u8);
                })
            });
            assert!(panicked.is_err());
            assert_eq!((is_in_callback(), are_in()), (true, [true, false]));
        });
        assert_eq!((is_in_callback(), are_in()), (false, [false, false]));
    }

    /// Goal: X4 (identity is not the address).
    #[test]
    fn a_detached_callback_names_no_timer() {
        let runs = Runs::on(&3u8, CpuId(0));
        assert!(!detach(64) && !is_detached());
        within(&runs, 64, || {
            within(&runs, 128, || {
                assert!(detach(64) && !is_detached(), "the outer one");
                assert_eq!(timers(), [128, 0]);
                assert!(!detach(64) && !is_in_callback_of_timer(64));
            });
            assert!(is_detached() && is_in_callback());
            within(&runs, 64, || assert!(is_in_callback_of_timer(64) && !is_detached()));
            assert!(!is_in_callback_of_timer(64));
        });
    }
}
