//! Tickless for C and C++: `include/tickless.h` is made from these sources.
//!
//! Doc comments here are written for who reads the header. What they promise:
//!
//! - No panic crosses: every entry is wrapped (`status`), and every call into C is typed
//!   `C-unwind`, so that a C++ exception which gets out of a callback ends the process.
//! - Nothing is trusted that can be looked at: null and misaligned pointers, storage that was
//!   never initialised, was destroyed, or was copied (`storage`), enums and flags that do not
//!   exist, sizes of structs (`sized`), the thread of local timers. What cannot be seen is
//!   named in the header.
//! - A timer lives in its caller's memory; initialising, starting and cancelling it allocates
//!   nothing. The code is that of the Rust types, in slots (`tickless::slots`).
//!
//! All of this crate's files are unsafe addresses: pointers come from and go to C.

#![expect(unsafe_code, reason = "pointers come from C and go to C")]

pub mod bandwidth;
pub mod clock_timer;
pub mod event_loop;
pub mod fired;
pub mod fixed;
pub mod labels;
pub mod local;
pub mod local_batches;
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
