//! Forks the process.

use crate::support::PATIENCE;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Runs `body` in a forked child, which must exit in time. `std` can start no threads there,
/// because another thread perhaps held its lock of all threads.
pub fn in_child(body: impl FnOnce()) {
    // SAFETY: the child only runs `body`, which prints nothing, and exits without running any code
    // of the test harness.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let status = i32::from(catch_unwind(AssertUnwindSafe(body)).is_err());
        // SAFETY: ends the process immediately.
        unsafe { libc::_exit(status) }
    }
    assert!(pid > 0, "a child can be made");
    assert_eq!(wait_for(pid), 0, "the child failed");
}

fn wait_for(child: libc::pid_t) -> libc::c_int {
    let begun = Instant::now();
    let mut status = 0;
    // SAFETY: the child is ours, and the status pointer is valid.
    while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
        if begun.elapsed() > PATIENCE {
            // SAFETY: it is still our child, because no thread has reaped it.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    status
}
