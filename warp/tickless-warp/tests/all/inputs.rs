//! Programs that are missing, odd, or hostile to tracing.

use crate::harness::{inside, shell, takes, warp, warp_program};
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn exit_statuses_and_signals_are_the_programs() {
    assert_eq!(shell("exit 7").status.code(), Some(7));
    assert_eq!(shell("kill -TERM $$").status.signal(), Some(libc::SIGTERM));
    assert_eq!(shell("kill -SEGV $$").status.signal(), Some(libc::SIGSEGV));
}

#[test]
fn a_missing_program_is_named() {
    let done = warp(&["/no/such/program"]);
    assert!(!done.status.success());
    assert!(done.err.contains("/no/such/program: cannot be run"), "{}", done.err);
}

#[test]
fn a_program_that_is_traced_already_is_refused() {
    let done = warp(&[&*warp_program(), "true"]);
    assert!(!done.status.success());
    assert!(done.err.contains("traces this one"), "{}", done.err);
    assert_eq!(done.err.matches("EPERM").count(), 1, "{}", done.err);
}

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

#[test]
fn processes_that_outlive_the_program_are_ended() {
    let done = shell("(setsid sh -c 'while :; do sleep 1; done' &) & sleep 2; echo done");
    assert_eq!(done.out, "done\n");
    assert!(done.err.contains("have been ended"), "{}", done.err);
}

#[test]
fn the_tree_ends_with_its_tracer() {
    let mut tracer = Command::new(warp_program())
        .args(["sh", "-c", "echo $$; read line </dev/null; sleep 1; exec cat /dev/zero >/dev/null"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = tracer.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    let child: i32 = line.trim().parse().unwrap();
    tracer.kill().unwrap();
    tracer.wait().unwrap();
    for _ in 0..1_000 {
        if unsafe { libc::kill(child, 0) } != 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the program has outlived its tracer");
}

#[test]
fn a_thread_may_run_another_program() {
    inside(|| {
        let mut status = 0;
        for _ in 0..20 {
            let child = unsafe { libc::fork() };
            if child == 0 {
                for _ in 0..3 {
                    std::thread::spawn(|| std::thread::sleep(Duration::from_secs(1_000)));
                }
                // The new program takes the number of the process; the other threads end.
                std::thread::spawn(|| unsafe {
                    let words = [c"sleep".as_ptr(), c"5".as_ptr(), std::ptr::null()];
                    libc::execvp(words[0], words.as_ptr());
                });
                std::thread::sleep(Duration::from_secs(1_000));
                unsafe { libc::_exit(1) };
            }
            takes("the new program", 5.0, || unsafe { libc::waitpid(child, &raw mut status, 0) });
            assert_eq!(status, 0);
        }
    });
}

/// The programs run at once, because each message comes after 10 s.
#[test]
fn programs_that_make_no_progress_are_explained() {
    let own = std::env::current_exe().unwrap();
    let own = own.to_str().unwrap();
    let inside = |test| [own, "--exact", test, "--ignored"];
    let by_counter = inside("inputs::inside_counter_loop");
    let by_sleeps = inside("inputs::inside_counter_sleeps");
    let without_clock = ["sh", "-c", "sleep 5 & exec cat /dev/zero >/dev/null"];
    let programs: [(&[&str], &[&str], &str); 5] = [
        (&["--freeze"], &without_clock, "stands still"),
        (&["--freeze"], &by_counter, "run it without --freeze"),
        (&[], &by_sleeps, "it ends with --tsc"),
        (&[], &["sh", "-c", "while :; do :; done"], "--pace 60x shortens"),
        (&[], &["sh", "-c", "kill -STOP $$"], "nothing in the program causes"),
    ];
    let children = programs.map(|(options, words, text)| {
        // The other tests, which measure times, come first.
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(warp_program()).args(options).args(words);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        (command.spawn().unwrap(), text)
    });
    for (mut warp, text) in children {
        let mut line = String::new();
        BufReader::new(warp.stderr.take().unwrap()).read_line(&mut line).unwrap();
        warp.kill().unwrap();
        warp.wait().unwrap();
        assert!(line.contains(text), "{line}");
    }
}

#[test]
#[ignore = "another test runs it in virtual time"]
fn inside_counter_loop() {
    let counter = || unsafe { core::arch::x86_64::_rdtsc() };
    let start = counter();
    while counter() - start < 1 << 43 {}
}

/// As fio waits for its next request.
#[test]
#[ignore = "another test runs it in virtual time"]
fn inside_counter_sleeps() {
    let counter = || unsafe { core::arch::x86_64::_rdtsc() };
    let start = counter();
    while counter() - start < 1 << 43 {
        std::thread::sleep(Duration::from_secs(1));
    }
}
