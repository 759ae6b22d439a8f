//! getrusage(2), which rustix lacks.

use std::mem::MaybeUninit;

/// Returns what the calling thread or process has used since it started.
pub fn used(whose: libc::c_int) -> libc::rusage {
    let mut usage = MaybeUninit::zeroed();
    // SAFETY: the call only writes to `usage`, for which zeros are valid: it fails for no `whose`
    // of this crate, and would leave them.
    unsafe {
        libc::getrusage(whose, usage.as_mut_ptr());
        usage.assume_init()
    }
}
