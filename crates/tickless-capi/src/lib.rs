//! Tickless for C and C++. `include/tickless.h` is generated from these sources.
//!
//! Doc comments in this crate become the C header, so they address C programmers. The crate
//! guarantees:
//!
//! - No panic reaches C: every entry point runs inside `status::entry`, and every call into C has
//!   the type `C-unwind`, so that a C++ exception that leaves a callback aborts the process.
//! - Every argument that can be checked is checked: null and misaligned pointers, storage that was
//!   never initialised, was destroyed, or was copied (`storage`), unknown enum values and flags,
//!   sizes of structs (`sized`), and the thread that uses local timers. The header lists the misuse
//!   that cannot be detected.
//! - A timer lives in its caller's memory; initialising, starting and cancelling it allocates
//!   nothing. The Rust timer types do the work, on slots in that memory (`tickless::slots`).
//!
//! Every file of this crate may contain unsafe code, because pointers come from C and go to C.

#![expect(unsafe_code, reason = "pointers come from C and go to C")]

pub mod bandwidth;
pub mod clock_timer;
pub mod event_loop;
pub mod fired;
pub mod fixed;
pub mod labels;
pub mod local;
pub mod local_batches;
mod object;
mod one_thread;
pub mod options;
pub mod periodic;
mod sized;
pub mod stats;
pub mod status;
mod storage;
pub mod timer;
pub mod timers;
pub mod version;
pub mod virtual_time;
