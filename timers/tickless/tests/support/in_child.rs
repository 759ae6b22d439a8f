//! Forks the process.

use crate::support::PATIENCE;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// What a child exits with in which `std` cannot start threads.
const NO_THREADS: i32 = 77;

/// Runs `body` in a forked child, which must exit in time.
///
/// `std` holds a lock while a thread of its starts or ends. A child that was forked at that time
/// can never start a thread, whatever the library does; another one is forked in its place.
pub fn in_child(body: impl FnOnce()) {
    for _ in 0..10 {
        // SAFETY: the child only runs `body`, which prints nothing, and exits without running any
        // code of the test harness.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let status = if !std_starts_threads() {
                NO_THREADS
            } else {
                i32::from(catch_unwind(AssertUnwindSafe(body)).is_err())
            };
            // SAFETY: ends the process immediately.
            unsafe { libc::_exit(status) }
        }
        assert!(pid > 0, "a child can be made");
        let status = wait_for(pid);
        if !(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == NO_THREADS) {
            assert_eq!(status, 0, "the child failed");
            return;
        }
    }
    panic!("ten children could not start a thread");
}

/// Returns whether a thread starts and ends in this process.
fn std_starts_threads() -> bool {
    let probe = std::thread::spawn(|| {});
    let begun = Instant::now();
    while !probe.is_finished() {
        if begun.elapsed() > Duration::from_secs(3) {
            return false;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    probe.join().is_ok()
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
