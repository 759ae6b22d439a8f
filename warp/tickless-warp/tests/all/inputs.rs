//! Programs that are odd, or hostile to tracing.

use crate::harness::warp_program;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Runs a program under a filter that denies a system call, or that notifies.
fn under_filter(denied: libc::c_long, flags: libc::c_ulong, words: &[&str]) -> (bool, String) {
    let op = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let equal = libc::sock_filter { jf: 1, ..op(0x15, denied as u32) };
    let deny = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut filter = [op(0x20, 0), equal, op(6, deny), op(6, libc::SECCOMP_RET_ALLOW)];
    let install = move || unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        match libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) {
            // It stays open in the program, which does not read it.
            fd @ 0.. => {
                libc::fcntl(fd as i32, libc::F_SETFD, 0);
                Ok(())
            }
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    let mut command = Command::new(warp_program());
    let out = unsafe { command.args(words).pre_exec(install) }.output().unwrap();
    (out.status.success(), String::from_utf8(out.stderr).unwrap())
}

#[test]
fn refusals_of_the_kernel_are_explained() {
    let (done, err) = under_filter(libc::SYS_ptrace, 0, &["true"]);
    assert!(!done && err.contains("refuses to trace the program"), "{err}");
    let (done, err) = under_filter(libc::SYS_seccomp, 0, &["true"]);
    assert!(!done && err.contains("refuses a filter for system calls"), "{err}");
}

#[test]
fn waits_are_traced_where_notices_have_a_reader() {
    let words = ["sh", "-c", "sleep 50; sleep 50"];
    let (done, err) = under_filter(-1, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER, &words);
    assert!(done && err.contains("warp: 100.") && err.contains(" 2 jumps"), "{err}");
}
