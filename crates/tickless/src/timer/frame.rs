//! Which callbacks the calling thread is in.
//!
//! A callback may run inside another one: it may move a virtual clock, and with it run timers
//! of another set. Each stands in a [`Frame`] on the thread's stack, and the frames form a
//! chain, innermost first. What is asked of it: is this thread in a callback of these timers,
//! and is it in a callback at all, where waiting for other callbacks could be waiting for each
//! other?
//!
//! A timer in somebody else's memory may give that up inside its own callback: its frame says
//! whether that is so, since the timer itself is gone then.

use core::cell::Cell;
use tickless_core::bases::running::Runner;
use tickless_core::time::CpuId;

/// Which callback a runner of a base is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallbackId {
    /// The set of timers that it belongs to: an address that is compared and never followed.
    pub set: usize,
    /// The base.
    pub cpu: CpuId,
    /// Which of its runners.
    pub runner: Runner,
    /// The timer's address, which is not followed either; 0 if it is no timer's.
    pub timer: usize,
}

impl CallbackId {
    /// That of a timer.
    pub(crate) fn of<S>(timer: usize, set: &S, cpu: CpuId, runner: Runner) -> CallbackId {
        CallbackId { set: core::ptr::from_ref(set).addr(), cpu, runner, timer }
    }
}

/// A set of timers, to which this can be said from inside one of its callbacks.
pub(crate) trait Nudge {
    /// Who waits for a callback of this base is to think again about that.
    fn nudge(&self, cpu: CpuId);
}

/// One callback on this thread's stack.
struct Frame {
    runs: *const Runs,
    timer: usize,
    outer: *const Frame,
    slot: Cell<SlotState>,
}

/// Who runs callbacks: a runner of a base of a set of timers.
pub(crate) struct Runs {
    set: *const dyn Nudge,
    cpu: CpuId,
    runner: Runner,
}

impl Runs {
    pub(crate) fn on<S: Nudge + 'static>(set: &S, cpu: CpuId, runner: Runner) -> Runs {
        Runs { set: core::ptr::from_ref(set), cpu, runner }
    }

    /// Something of this set that counts as a callback, on no base.
    pub(crate) fn nowhere<S: Nudge + 'static>(set: &S) -> Runs {
        Runs::on(set, CpuId(u16::MAX), Runner::Handler)
    }
}

impl Frame {
    fn runs(&self) -> &Runs {
        // SAFETY: `within` has a reference to it for as long as this frame is on the chain.
        unsafe { &*self.runs }
    }

    fn callback(&self) -> CallbackId {
        let Runs { set, cpu, runner } = *self.runs();
        CallbackId { set: set.cast::<()>().addr(), cpu, runner, timer: self.timer }
    }
}

/// What becomes of the slot of the timer whose callback a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SlotState {
    /// It stays: there is none, or it is still wanted when the frame ends.
    Kept,
    /// It may be given back.
    MayGo,
    /// It was given back.
    Gone,
}

thread_local! {
    /// Has no destructor, so it can be used for as long as its thread runs at all.
    static INNERMOST: Cell<*const Frame> = const { Cell::new(core::ptr::null()) };
}

/// Calls `body` as the callback of a timer, or, with 0, as something that counts as one.
#[inline(always)]
pub(crate) fn within<R>(runs: &Runs, timer: usize, body: impl FnOnce() -> R) -> R {
    let outer = INNERMOST.get();
    let frame = Frame { runs, timer, outer, slot: Cell::new(SlotState::Kept) };
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

/// Calls `body`, in which the slot of the innermost frame's timer may be given back. Returns
/// whether it was.
pub(super) fn slot_may_go(body: impl FnOnce()) -> bool {
    // SAFETY: as in `any`; the frame stays on the chain until whatever calls this has returned.
    let Some(frame) = (unsafe { INNERMOST.get().as_ref() }) else {
        body();
        return false;
    };
    frame.slot.set(SlotState::MayGo);
    // If it panics the slot may go until the frame ends: nothing looks at it then.
    body();
    if frame.slot.get() == SlotState::Gone {
        return true;
    }
    frame.slot.set(SlotState::Kept);
    false
}

/// Was the slot of the innermost frame's timer given back?
pub(crate) fn slot_is_gone() -> bool {
    // SAFETY: as in `any`.
    unsafe { INNERMOST.get().as_ref() }.is_some_and(|frame| frame.slot.get() == SlotState::Gone)
}

/// Gives back the slot of this timer, if this thread is in its callback and that can do without:
/// returns whether that is so.
pub(super) fn give_back_slot(timer: usize) -> bool {
    let mut was_given_back = false;
    any(|frame| {
        let is_its = frame.timer == timer && frame.slot.get() != SlotState::Kept;
        if is_its {
            // One that is gone already was another timer's, which lived at the same address.
            was_given_back = frame.slot.replace(SlotState::Gone) == SlotState::MayGo;
        }
        is_its
    });
    was_given_back
}

/// Is this thread in a callback, of whatever timer?
pub(crate) fn is_in_callback() -> bool {
    !INNERMOST.get().is_null()
}

/// Is this thread in a callback of this set of timers?
pub(crate) fn is_in_callback_of<S>(set: &S) -> bool {
    let set = core::ptr::from_ref(set).addr();
    any(|frame| frame.runs().set.cast::<()>().addr() == set)
}

/// Is this thread in this timer's own callback?
pub(crate) fn is_in_callback_of_timer(timer: usize) -> bool {
    any(|frame| frame.timer == timer)
}

/// The callback that this thread is in, the innermost one if there are several.
pub(super) fn innermost() -> Option<CallbackId> {
    // SAFETY: as in `any`.
    unsafe { INNERMOST.get().as_ref() }.map(Frame::callback)
}

/// The callbacks that this thread is in, innermost first, whichever timers they are of.
pub(super) fn callbacks() -> Vec<CallbackId> {
    let mut callbacks = Vec::new();
    any(|frame| {
        callbacks.push(frame.callback());
        false
    });
    callbacks
}

/// Has those who wait for the callbacks that this thread is in think again, if any do.
pub(super) fn nudge_waiters(is_waited_for: impl Fn(CallbackId) -> bool) {
    any(|frame| {
        if is_waited_for(frame.callback()) {
            // SAFETY: the set outlives its callback, whose frame this is.
            unsafe { &*frame.runs().set }.nudge(frame.runs().cpu);
        }
        false
    });
}

fn any(mut is_it: impl FnMut(&Frame) -> bool) -> bool {
    let mut at = INNERMOST.get();
    // SAFETY: a frame on the chain is a local of a `within` that has not returned: it takes the
    // frame off before it does, and other threads have chains of their own.
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
    use std::panic::catch_unwind;

    impl Nudge for u8 {
        fn nudge(&self, _: CpuId) {}
    }

    /// Goal: the chain is what the stack is, also after a panic.
    #[test]
    fn frames_nest_and_end() {
        let sets = [1u8, 2];
        let runs = |set| Runs::on(set, CpuId(0), Runner::Handler);
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
}
