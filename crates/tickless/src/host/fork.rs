//! Telling the child of a fork from its parent.
//!
//! A child has its parent's memory and none of its threads: drivers are gone, and a lock that
//! one of them held at that moment is held for ever. So in a child nothing may wait for
//! anything that came from the parent.
//!
//! Asking for the process id would be a system call for every arming. Instead the C library
//! calls back in each child, and that counts: one load of a line that never changes.

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Once;

/// Goes up in every child, so that it differs from what it was in its parent.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The process that something belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Process(u32);

impl Process {
    /// This one.
    pub(crate) fn this() -> Process {
        static COUNTING: Once = Once::new();
        // SAFETY: `in_child` stays, and does nothing that a child may not do between fork and
        // exec. A refusal, for lack of memory, leaves children untold.
        COUNTING.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        });
        Process(GENERATION.load(Ordering::Relaxed))
    }

    /// Is it this one, and not its parent?
    #[inline]
    pub(crate) fn is_this(self) -> bool {
        // Relaxed: only written where there is one thread.
        self.0 == GENERATION.load(Ordering::Relaxed)
    }
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
