//! Forks the process.

use crate::support::PATIENCE;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

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

/// Counts its polls, not the time: a machine that stands still for longer fails no test.
fn wait_for(child: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    for _ in 0..PATIENCE.as_millis() {
        // SAFETY: the child is ours, and the status pointer is valid.
        if unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } != 0 {
            return status;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    for thread in std::fs::read_dir(format!("/proc/{child}/task")).into_iter().flatten().flatten() {
        let shown = |file| std::fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        let [name, call, stat] = ["comm", "syscall", "stat"].map(shown);
        eprintln!("{} in {}: {stat}", name.trim(), call.trim());
    }
    // SAFETY: it is still our child, because no thread has reaped it.
    unsafe { libc::kill(child, libc::SIGKILL) };
    panic!("the child hangs");
}
