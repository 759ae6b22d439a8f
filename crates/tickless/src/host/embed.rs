//! Timers in memory that somebody else owns: what the C interface stands on.
//!
//! A [`Slot`] is a node like that of `owned`, without an allocation: its place is handed in, and
//! the callback in it is `Copy`, so that it can be called from a copy while its slot is freed.
//! Everything else, arming and the cancel family, is that of the ordinary types.
//!
//! # The end of a slot
//!
//! Nothing waits for the owner's memory to be given up, so the owner asks for it back with
//! `give_back`, which waits. Inside the slot's own callback it does not: the core never follows
//! the address of a timer whose callback has started unless it is to be armed again, and a
//! callback whose slot was given back asks for nothing (X4).
//!
//! This is no public interface: it may change with every version.

use super::Host;
use super::owned::{Glue, Owned, Task};
use crate::fired::Fired;
use crate::periodic::{self, Run, Then};
use crate::{CancelError, HrTimer, Missed, Period, Periodic, Timeout, Timers};
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use tickless_core::bases::Family;
use tickless_core::link::{QueueLink, Timer, WheelLink};

/// A timer's place in memory that somebody else owns.
#[repr(C)]
pub struct Slot<L, F> {
    timer: Timer<Host, L>,
    callback: F,
}

/// The place of a [`Timeout`].
pub type CoarseSlot<F> = Slot<WheelLink, F>;
/// The place of an [`HrTimer`].
pub type PreciseSlot<F> = Slot<QueueLink, F>;

/// The place of a [`Periodic`].
#[repr(C)]
pub struct PeriodSlot<F> {
    slot: PreciseSlot<Beat<F>>,
    run: Mutex<Run>,
}

impl<L, F> fmt::Debug for Slot<L, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for PeriodSlot<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeriodSlot").finish_non_exhaustive()
    }
}

/// What a periodic timer in a slot does when it fires.
#[derive(Debug)]
struct Beat<F> {
    run: NonNull<Mutex<Run>>,
    missed: Missed,
    callback: F,
}

impl<F: Copy> Clone for Beat<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Copy> Copy for Beat<F> {}

/// A callback for a slot. It is called from a copy, which outlives the slot, on any thread.
pub trait OnFired: Copy + Send + Sync + 'static {
    /// The timer has fired.
    fn fired(self, fired: &mut Fired<'_>);
}

/// A callback for the slot of a periodic timer; as [`OnFired`].
pub trait OnPeriod: Copy + Send + Sync + 'static {
    /// The timer has fired.
    fn period(self, period: &mut Period<'_, '_>);
}

/// What a slot calls, of either sort.
trait Callback: Copy + 'static {
    fn call(self, fired: &mut Fired<'_>, call: &Call);
}

impl<F: OnFired> Callback for F {
    fn call(self, fired: &mut Fired<'_>, _: &Call) {
        self.fired(fired);
    }
}

impl<F: OnPeriod> Callback for Beat<F> {
    fn call(self, fired: &mut Fired<'_>, call: &Call) {
        // SAFETY: `pass` looks at the run before the callback and, if the slot was not given back
        // in it, after it; so it is there.
        let run = || periodic::lock(unsafe { self.run.as_ref() });
        periodic::pass(run, self.missed, fired, |period| {
            self.callback.period(period);
            if call.is_gone.get() { Then::Gone } else { Then::GoesOn }
        });
    }
}

/// A callback of a slot on this thread's stack.
struct Call {
    slot: NonNull<()>,
    /// Was the slot given back in it?
    is_gone: Cell<bool>,
    outer: *const Call,
}

thread_local! {
    static INNERMOST: Cell<*const Call> = const { Cell::new(core::ptr::null()) };
}

/// A slot's task.
struct Embedded<L, F>(PhantomData<(L, F)>);

impl<L: Family, F: Callback> Embedded<L, F> {
    const GLUE: Task = &Glue::embedded(Self::call);

    /// # Safety
    /// `node` is a live slot of this type.
    unsafe fn call(node: NonNull<()>, fired: &mut Fired<'_>) {
        // SAFETY: as promised; the callback never changes.
        let callback = unsafe { (*node.cast::<Slot<L, F>>().as_ptr()).callback };
        let call = Call { slot: node, is_gone: Cell::new(false), outer: INNERMOST.get() };
        let _leave = Leave(call.outer);
        INNERMOST.set(&raw const call);
        callback.call(fired, &call);
        if call.is_gone.get() {
            fired.stop();
        }
    }

    /// Writes a slot, and hands out who owns the timer in it.
    ///
    /// # Safety
    /// As for [`timeout`].
    unsafe fn own(slot: NonNull<Slot<L, F>>, timers: &Timers, callback: F) -> Owned<L> {
        // SAFETY: the slot is the caller's to write; what the owner asks for, the caller keeps.
        unsafe {
            slot.write(Slot { timer: Timer::new(Self::GLUE), callback });
            Owned::around(slot.cast(), timers.shared.clone())
        }
    }
}

/// Takes a call off the chain, also when its callback panics.
struct Leave(*const Call);

impl Drop for Leave {
    fn drop(&mut self) {
        INNERMOST.set(self.0);
    }
}

/// Is this thread in the callback of this slot's timer? Then that does not know it any more.
pub(super) fn leave_own_callback(slot: NonNull<()>) -> bool {
    let mut at = INNERMOST.get();
    // SAFETY: a call on the chain is a local of a `call` that has not returned, on this thread.
    while let Some(call) = unsafe { at.as_ref() } {
        if call.slot == slot {
            // One that is gone already was another timer's, which lived at the same address.
            return !call.is_gone.replace(true);
        }
        at = call.outer;
    }
    false
}

/// A coarse timer in a slot. Allocates nothing.
///
/// # Safety
/// - The slot is the caller's to write, and stays where it is, and is not used otherwise, until
///   `give_back` of what is returned has succeeded.
/// - That is called before the timer is dropped.
/// - The callback may be called from any thread.
pub unsafe fn timeout<F: OnFired>(
    timers: &Timers,
    slot: NonNull<CoarseSlot<F>>,
    callback: F,
) -> Timeout {
    // SAFETY: as promised.
    Timeout::around(unsafe { Embedded::own(slot, timers, callback) })
}

/// A high-resolution timer in a slot. Allocates nothing.
///
/// # Safety
/// As for [`timeout`].
pub unsafe fn hrtimer<F: OnFired>(
    timers: &Timers,
    slot: NonNull<PreciseSlot<F>>,
    callback: F,
) -> HrTimer {
    // SAFETY: as promised.
    HrTimer::around(unsafe { Embedded::own(slot, timers, callback) })
}

/// A periodic timer in a slot. Allocates nothing.
///
/// # Safety
/// As for [`timeout`].
pub unsafe fn periodic<F: OnPeriod>(
    timers: &Timers,
    slot: NonNull<PeriodSlot<F>>,
    missed: Missed,
    callback: F,
) -> Periodic {
    // SAFETY: as promised; the run is used for as long as the slot is there.
    unsafe {
        let run = NonNull::new_unchecked(&raw mut (*slot.as_ptr()).run);
        run.write(Mutex::default());
        let beat = Beat { run, missed, callback };
        let timer = NonNull::new_unchecked(&raw mut (*slot.as_ptr()).slot);
        let timer = HrTimer::around(Embedded::own(timer, timers, beat));
        Periodic::around(timer, OwnOrLent::Lent(run))
    }
}

const _: () = assert!(!core::mem::needs_drop::<Mutex<Run>>(), "a slot is given up undropped");

/// Where a periodic timer keeps what its handle and its callback share.
#[derive(Debug)]
pub(crate) enum OwnOrLent<T: 'static> {
    Own(Arc<T>),
    /// In a slot, for as long as that is not given back.
    Lent(NonNull<T>),
}

// SAFETY: either way it gives out shared references to a `T`, and nothing else.
unsafe impl<T: Send + Sync> Send for OwnOrLent<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for OwnOrLent<T> {}

impl<T> core::ops::Deref for OwnOrLent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            OwnOrLent::Own(own) => own,
            // SAFETY: whoever lends a place keeps it until the timer is given back, and then only
            // drops that, which does not look here.
            OwnOrLent::Lent(lent) => unsafe { lent.as_ref() },
        }
    }
}

macro_rules! give_back {
    ($type:ident) => {
        impl $type {
            /// Shuts the timer down, waits for its callback as `shutdown_sync` does, and gives
            /// up its slot; inside that very callback without waiting. After an error the timer
            /// is shut down, and still in its slot.
            ///
            /// # Safety
            /// The timer came from a slot. After a success it is dropped and nothing else.
            #[doc(hidden)]
            pub unsafe fn give_back(&mut self) -> Result<(), CancelError> {
                // SAFETY: as promised.
                unsafe { self.timer.give_back() }
            }
        }
    };
}

give_back!(Timeout);
give_back!(HrTimer);

impl Periodic {
    /// The same for a periodic timer.
    ///
    /// # Safety
    /// The timer came from a slot. After a success it is dropped and nothing else.
    #[doc(hidden)]
    pub unsafe fn give_back(&mut self) -> Result<(), CancelError> {
        self.halt();
        // SAFETY: as promised.
        unsafe { self.timer.give_back() }
    }
}

/// How many timers, of whatever sort, and clones keep these from ending.
pub fn users(timers: &Timers) -> usize {
    // Acquire: who finds nobody left sees what they have done.
    timers.shared.handles.load(Ordering::Acquire) - 1
}

/// Is the calling thread in a callback of these timers?
pub fn is_in_callback_of(timers: &Timers) -> bool {
    super::frame::is_in_callback_of(&*timers.shared)
}

/// How many bases these timers have.
pub fn bases(timers: &Timers) -> usize {
    timers.shared.bases.count()
}
