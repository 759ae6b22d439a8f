//! What stands in a caller's storage, and how misuse of it is noticed.
//!
//! Storage begins with a mark, a constant mixed with the storage's own address: zeroed memory,
//! old memory, and a copy of a timer do not have it. A mark is read and written atomically, so
//! that of two threads that destroy one timer only one does.

use crate::status::{Outcome, Status, failure};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

/// What timers of one sort have in their mark, and how errors call them.
pub(crate) struct Kind {
    pub(crate) mark: u64,
    pub(crate) name: &'static str,
}

const DESTROYED: u64 = 0x6465_7374_726f_7965;

/// The layout of storage that holds a `T`.
#[repr(C)]
pub(crate) struct Stored<T> {
    mark: AtomicU64,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// A caller's pointer that is neither null nor misaligned.
pub(crate) fn place<T, S>(storage: *const S, kind: &Kind) -> Outcome<NonNull<Stored<T>>> {
    const { assert!(size_of::<Stored<T>>() <= size_of::<S>(), "the storage is too small") };
    const { assert!(align_of::<Stored<T>>() <= align_of::<S>(), "the storage is misaligned") };
    let Some(place) = NonNull::new(storage.cast_mut().cast::<Stored<T>>()) else {
        return Err(failure(
            Status::NullPointer,
            format_args!("the pointer to the {} is null", kind.name),
        ));
    };
    if !place.is_aligned() {
        let what = format_args!("a {} needs an address that is a multiple of 8", kind.name);
        return Err(failure(Status::Misaligned, what));
    }
    Ok(place)
}

impl<T> Stored<T> {
    /// The mark of a timer that stands here.
    fn live(place: NonNull<Self>, kind: &Kind) -> u64 {
        kind.mark ^ place.addr().get() as u64
    }

    /// Its value, if it was initialised and not destroyed.
    ///
    /// # Safety
    /// `place` leads to storage, and stays as it is while the pointer is used.
    pub(crate) unsafe fn value(place: NonNull<Self>, kind: &Kind) -> Outcome<NonNull<T>> {
        // SAFETY: as promised; a mark is only ever used as an atomic.
        let mark = unsafe { place.as_ref() }.mark.load(Ordering::Acquire);
        if mark == Self::live(place, kind) {
            // SAFETY: a field of a place that is there.
            let value = unsafe { UnsafeCell::raw_get(&raw const (*place.as_ptr()).value) };
            return Ok(NonNull::new(value.cast()).unwrap_or(NonNull::dangling()));
        }
        Err(Self::not_here(mark, place, kind))
    }

    #[cold]
    fn not_here(mark: u64, place: NonNull<Self>, kind: &Kind) -> Status {
        let name = kind.name;
        let destroyed = DESTROYED ^ place.addr().get() as u64;
        let what = match mark {
            0 => format_args!("the {name} was never initialised; call its init first"),
            _ if mark == destroyed => {
                format_args!("the {name} has been destroyed; initialise it anew to use it again")
            }
            _ => format_args!(
                "here is no {name}: it was never initialised, or was copied or moved from elsewhere"
            ),
        };
        failure(Status::NotInitialised, what)
    }

    /// Has `fill` initialise its value; nothing changes if that fails.
    ///
    /// # Safety
    /// As for [`value`](Stored::value), and nobody else uses the storage meanwhile.
    pub(crate) unsafe fn fill(
        place: NonNull<Self>,
        kind: &Kind,
        fill: impl FnOnce(NonNull<T>) -> Outcome,
    ) -> Outcome {
        // SAFETY: as promised. Memory that was never written is read as a mark here: the header
        // asks for zeroed memory where that is to be noticed.
        let stored = unsafe { place.as_ref() };
        if stored.mark.load(Ordering::Acquire) == Self::live(place, kind) {
            let what = format_args!("this {} is initialised already; destroy it first", kind.name);
            return Err(failure(Status::AlreadyInitialised, what));
        }
        fill(NonNull::from(&stored.value).cast())?;
        // Release: who finds the mark finds the value.
        stored.mark.store(Self::live(place, kind), Ordering::Release);
        Ok(())
    }

    /// Has `empty` take the value out; the timer stays if that fails.
    ///
    /// # Safety
    /// As for [`value`](Stored::value). The memory may be anybody's once `empty` has succeeded
    /// and this has returned.
    pub(crate) unsafe fn empty(
        place: NonNull<Self>,
        kind: &Kind,
        empty: impl FnOnce(NonNull<T>) -> Outcome,
    ) -> Outcome {
        // SAFETY: as promised.
        let stored = unsafe { place.as_ref() };
        let (live, gone) = (Self::live(place, kind), DESTROYED ^ place.addr().get() as u64);
        let (taken, not) = (Ordering::AcqRel, Ordering::Acquire);
        if let Err(mark) = stored.mark.compare_exchange(live, gone, taken, not) {
            return Err(Self::not_here(mark, place, kind));
        }
        let emptied = empty(NonNull::from(&stored.value).cast());
        if emptied.is_err() {
            stored.mark.store(live, Ordering::Release);
        }
        emptied
    }
}
