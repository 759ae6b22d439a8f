//! Forks the process.

use crate::support::PATIENCE;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Runs `body` in a forked child, which must exit in time.
pub fn in_child(body: impl FnOnce()) {
    // SAFETY: the child only runs `body`, which prints nothing, and exits without running any code
    // of the test harness.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let ended = catch_unwind(AssertUnwindSafe(body));
        // SAFETY: ends the process immediately.
        unsafe { libc::_exit(if ended.is_ok() { 0 } else { 1 }) }
    }
    assert!(pid > 0, "a child can be made");
    let begun = Instant::now();
    let mut status = 0;
    // SAFETY: the child is ours, and the status pointer is valid.
    while unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } == 0 {
        if begun.elapsed() > PATIENCE {
            // SAFETY: it is still our child, because no thread has reaped it.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(status, 0, "the child failed");
}
