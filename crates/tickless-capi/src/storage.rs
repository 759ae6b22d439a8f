//! The contents of a caller's storage, and the detection of its misuse.
//!
//! Storage begins with a mark: a constant mixed with the storage's own address. Zeroed memory,
//! reused memory, and a copy of a timer do not carry this mark. The mark is read and written
//! atomically, so that of two threads that destroy one timer only one succeeds.

use crate::status::{Outcome, Status, failure};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

/// The mark of one timer type, and its name in error messages.
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

/// Returns a caller's pointer as a pointer to its contents, or an error if it is null or
/// misaligned.
pub(crate) fn place<T, S>(storage: *const S, kind: &Kind) -> Outcome<NonNull<Stored<T>>> {
    const { assert!(size_of::<Stored<T>>() <= size_of::<S>(), "the storage is too small") };
    const { assert!(align_of::<Stored<T>>() <= align_of::<S>(), "the storage is misaligned") };
    let Some(place) = NonNull::new(storage.cast_mut().cast::<Stored<T>>()) else {
        return Err(failure(
            Status::NullPointer,
            format!("the pointer to the {} is null", kind.name),
        ));
    };
    if !place.is_aligned() {
        let what = format!("a {} needs an address that is a multiple of 8", kind.name);
        return Err(failure(Status::Misaligned, what));
    }
    Ok(place)
}

impl<T> Stored<T> {
    /// Returns the mark of a live timer at this address.
    fn live(place: NonNull<Self>, kind: &Kind) -> u64 {
        kind.mark ^ place.addr().get() as u64
    }

    /// Returns the value, or an error unless it was initialised and not destroyed.
    ///
    /// # Safety
    /// `place` points to storage that is not freed or moved while the pointer is used.
    pub(crate) unsafe fn value(place: NonNull<Self>, kind: &Kind) -> Outcome<NonNull<T>> {
        // SAFETY: the caller promises that `place` points to storage; the mark is only accessed
        // atomically.
        let mark = unsafe { place.as_ref() }.mark.load(Ordering::Acquire);
        if mark == Self::live(place, kind) {
            // SAFETY: the caller promises that `place` points to storage, so the field is in
            // bounds.
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
            0 => format!("the {name} was never initialised; call its init first"),
            _ if mark == destroyed => {
                format!("the {name} has been destroyed; initialise it to use it again")
            }
            _ => format!(
                "the storage holds no {name}: it was never initialised, or was copied or moved"
            ),
        };
        failure(Status::NotInitialised, what)
    }

    /// Initialises the value with `fill`. If `fill` fails, nothing changes.
    ///
    /// # Safety
    /// As for [`value`](Stored::value), and nothing else uses the storage during the call.
    pub(crate) unsafe fn fill(
        place: NonNull<Self>,
        kind: &Kind,
        fill: impl FnOnce(NonNull<T>) -> Outcome,
    ) -> Outcome {
        // SAFETY: the caller promises that `place` points to storage. Memory that was never written
        // is read as a mark here, which is why the header asks for zeroed memory.
        let stored = unsafe { place.as_ref() };
        if stored.mark.load(Ordering::Acquire) == Self::live(place, kind) {
            let what = format!("this {} is initialised already; destroy it first", kind.name);
            return Err(failure(Status::AlreadyInitialised, what));
        }
        fill(NonNull::from(&stored.value).cast())?;
        // Release: pairs with the Acquire load in `value`; a thread that reads the mark sees the
        // value.
        stored.mark.store(Self::live(place, kind), Ordering::Release);
        Ok(())
    }

    /// Marks the timer as destroyed, and has `empty` take the value out of the storage. If `empty`
    /// fails, the timer stays valid.
    ///
    /// # Safety
    /// As for [`value`](Stored::value). The memory may be freed or reused once `empty` has
    /// succeeded and this function has returned.
    pub(crate) unsafe fn empty(
        place: NonNull<Self>,
        kind: &Kind,
        empty: impl FnOnce(NonNull<T>) -> Outcome,
    ) -> Outcome {
        // SAFETY: the caller promises that `place` points to storage.
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
