//! Timers in their caller's memory, and the detection of its misuse.
//!
//! Storage begins with a mark: a constant mixed with the storage's own address. Zeroed memory,
//! reused memory, and a copy of a timer do not carry this mark. The mark is written atomically, so
//! that of two threads that destroy one timer only one succeeds. Its lowest bit is set for a usual
//! timer: one comparison shows a function that is called often that it needs no other checks.

use crate::annotate;
use crate::object::Object;
use crate::status::{Outcome, Status, cancel_status, failure};
use core::cell::UnsafeCell;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use tickless::CancelError;

/// The memory of a C program in which one timer lives.
pub(crate) trait Storage: Sized {
    /// The timer's handle, whose copies refer to the contents of the slot.
    type Timer;
    type Slot;
    const MARK: u64;
    /// The name of the type in error messages.
    const NAME: &'static str;

    /// Returns whether [`usual`] finds the timer.
    fn is_usual(_: &Self::Timer) -> bool {
        false
    }

    /// Shuts the timer down, and releases its slot.
    ///
    /// # Safety
    /// After a success, the timer is dropped without another use.
    unsafe fn give_back(timer: &mut Self::Timer) -> Result<(), CancelError>;
}

const USUAL: u64 = 1;
const DESTROYED: u64 = 0x6465_7374_726f_7965;

/// The layout of storage that holds a timer.
#[repr(C)]
struct Stored<S: Storage> {
    mark: AtomicU64,
    timer: UnsafeCell<MaybeUninit<S::Timer>>,
    slot: UnsafeCell<MaybeUninit<S::Slot>>,
}

/// Returns a caller's pointer as a pointer to its contents, or an error if it is null or
/// misaligned.
#[inline]
fn place<S: Storage>(storage: *const S) -> Outcome<NonNull<Stored<S>>> {
    const { assert!(size_of::<Stored<S>>() <= size_of::<S>(), "the storage is too small") };
    const { assert!(align_of::<Stored<S>>() <= align_of::<S>(), "the storage is misaligned") };
    NonNull::new(storage.cast_mut().cast::<Stored<S>>())
        .filter(|place| place.is_aligned())
        .ok_or_else(|| no_place(storage))
}

#[cold]
#[inline(never)]
fn no_place<S: Storage>(storage: *const S) -> Status {
    let name = S::NAME;
    if storage.is_null() {
        return failure(Status::NullPointer, format_args!("the pointer to the {name} is null"));
    }
    failure(Status::Misaligned, format_args!("a {name} needs an address that is a multiple of 8"))
}

impl<S: Storage> Stored<S> {
    /// Returns the mark of a live timer at this address, which is not a usual one.
    #[inline(always)]
    fn live(place: *const Self) -> u64 {
        S::MARK ^ place.addr() as u64
    }

    /// Returns whether this is the mark of a live timer at this address.
    #[inline(always)]
    fn is_live(mark: u64, place: NonNull<Self>) -> bool {
        mark ^ Stored::live(place.as_ptr()) <= USUAL
    }

    #[cold]
    #[inline(never)]
    fn not_here(mark: u64, place: NonNull<Self>) -> Status {
        let name = S::NAME;
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
}

/// A C function borrows a copy of the handle, because the timer's callback can destroy the timer
/// while the C function that armed it is still running.
impl<S: Storage> Object for S {
    type Lent<'a> = ManuallyDrop<S::Timer>;

    // Inlined, so that a caller copies only the fields of the handle that it uses.
    #[inline]
    unsafe fn lend<'a>(storage: *const S) -> Outcome<Self::Lent<'a>> {
        let place = place(storage)?;
        // SAFETY: the caller promises that `storage` points to storage; the mark is only accessed
        // atomically.
        let mark = unsafe { (*place.as_ptr()).mark.load(Ordering::Acquire) };
        if !Stored::is_live(mark, place) {
            return Err(Stored::not_here(mark, place));
        }
        // SAFETY: the mark shows that the timer is initialised. The copied handle does not include
        // the contents of the slot, and `ManuallyDrop` keeps it from being dropped.
        Ok(unsafe { (*place.as_ptr()).timer.get().cast::<ManuallyDrop<S::Timer>>().read() })
    }
}

/// Returns the place of a usual timer's handle; the timer needs no annotations. `None` for any
/// other timer, and if there is none: [`Object::lend`] finds out.
///
/// # Safety
/// As for [`Object::lend`].
#[inline(always)]
pub(crate) unsafe fn usual<S: Storage>(storage: *const S) -> Option<*const S::Timer> {
    let place = storage.cast::<Stored<S>>();
    // SAFETY: the caller promises that `storage` is null or points to readable memory. The mark
    // shows that the timer is initialised: see `lend`. It is nowhere but in storage, which is
    // aligned.
    unsafe {
        if storage.is_null() {
            return None;
        }
        let mark = (&raw const (*place).mark).cast::<u64>().read_unaligned();
        (mark == Stored::live(place) ^ USUAL).then_some((&raw const (*place).timer).cast())
    }
}

/// Initialises a timer with `make`, which receives its slot. If `make` fails, nothing changes.
///
/// # Safety
/// `storage` is null or points to storage that nothing else uses during the call, and that is
/// neither freed nor moved until [`destroy`] has succeeded.
pub(crate) unsafe fn init<S: Storage>(
    storage: *mut S,
    make: impl FnOnce(NonNull<S::Slot>) -> Outcome<S::Timer>,
) -> Outcome {
    let place = place(storage)?;
    // SAFETY: the caller promises that `storage` points to storage. Memory that was never written
    // is read as a mark here, which is why the header asks for zeroed memory.
    let stored = unsafe { place.as_ref() };
    if Stored::is_live(stored.mark.load(Ordering::Acquire), place) {
        let what = format!("this {} is initialised already; destroy it first", S::NAME);
        return Err(failure(Status::AlreadyInitialised, what));
    }
    let timer = make(NonNull::from(&stored.slot).cast())?;
    let usual = if S::is_usual(&timer) && !annotate::is_wanted() { USUAL } else { 0 };
    // SAFETY: the caller promises that nothing else uses the storage.
    unsafe { (*stored.timer.get()).write(timer) };
    // Release: pairs with the Acquire load in `lend`; a thread that reads the mark sees the timer.
    stored.mark.store(Stored::live(place.as_ptr()) ^ usual, Ordering::Release);
    Ok(())
}

/// Destroys a timer. After an error the timer stays in its storage. After a success the memory may
/// be freed or reused.
///
/// # Safety
/// `storage` is null or points to storage that no other thread uses until it is initialised again.
pub(crate) unsafe fn destroy<S: Storage>(storage: *mut S) -> Outcome {
    let place = place(storage)?;
    // SAFETY: the caller promises that `storage` points to storage.
    let stored = unsafe { place.as_ref() };
    let gone = DESTROYED ^ place.addr().get() as u64;
    let take = |mark| Stored::is_live(mark, place).then_some(gone);
    let live = stored
        .mark
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
        .map_err(|mark| Stored::not_here(mark, place))?;
    // SAFETY: the mark showed that the timer is initialised. It is dropped only after a success,
    // after which neither this copy nor the storage is used.
    unsafe {
        let mut timer = stored.timer.get().cast::<ManuallyDrop<S::Timer>>().read();
        if let Err(error) = S::give_back(&mut timer) {
            stored.mark.store(live, Ordering::Release);
            return Err(cancel_status(error));
        }
        ManuallyDrop::drop(&mut timer);
    }
    annotate::acquire();
    Ok(())
}
