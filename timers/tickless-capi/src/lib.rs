//! Tickless for C and C++. `include/tickless.h` is generated from these sources.
//!
//! Doc comments in this crate become the C header, so they address C programmers. The crate
//! guarantees:
//!
//! - No panic reaches C: every entry point (a function that C calls) runs inside `status::entry`,
//!   and every call into C has the type `C-unwind`, so that a C++ exception that leaves a callback
//!   aborts the process.
//! - Every argument that can be checked is checked: null and misaligned pointers, storage that was
//!   never initialised, was destroyed, or was copied (`storage`), unknown enum values and flags,
//!   sizes of structs (`sized`), and the thread that uses local timers. The header lists the misuse
//!   that cannot be detected.
//! - A timer lives in its caller's memory; initialising, starting and cancelling it allocates
//!   nothing. The Rust timer types do the work, on slots in that memory (`tickless::slots`).
//!
//! Every file of this crate may contain unsafe code, because pointers come from C and go to C.
//!
//! # Safety
//!
//! All entry points have one contract, which `header/head.txt` states for C programmers. The caller
//! must ensure:
//!
//! - A pointer to an object is null, or came from the function that creates such objects, and the
//!   object has not been destroyed. A pointer to storage points to readable memory.
//! - No other thread uses an object while it is initialised, adopted or destroyed.
//! - An initialised timer's storage is neither written, moved nor freed before it is destroyed.
//! - The expiry that a callback receives is used in that callback only.
//! - A pointer for a result is null or writable. A struct with a size field has that size, an array
//!   has the number of elements that is passed with it, and a text ends with a zero.

#![expect(unsafe_code, reason = "pointers come from C and go to C")]
#![expect(clippy::missing_safety_doc, reason = "the entry points share the contract above")]
#![expect(unsafe_op_in_unsafe_fn, reason = "entry points rely on the contract above throughout")]

#[deny(unsafe_op_in_unsafe_fn)]
mod annotate;
pub mod bandwidth;
pub mod clock_timer;
pub mod event_loop;
pub mod fired;
pub mod fixed;
pub mod labels;
pub mod local;
pub mod local_batches;
#[deny(unsafe_op_in_unsafe_fn)]
mod object;
#[deny(unsafe_op_in_unsafe_fn)]
mod one_thread;
pub mod options;
pub mod periodic;
#[deny(unsafe_op_in_unsafe_fn)]
mod sized;
pub mod stats;
pub mod status;
#[deny(unsafe_op_in_unsafe_fn)]
mod storage;
pub mod timer;
pub mod timers;
pub mod version;
pub mod virtual_time;
