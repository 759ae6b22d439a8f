//! Runs a program under the example `warp`, with a timeout that ends the whole tree.

use libc::{c_int, timespec};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::{Instant, SystemTime};

/// No test takes so many seconds, also on a busy machine.
const LIMIT: &str = "100";

pub(crate) struct Done {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    /// The virtual time that has passed, in seconds, from the closing line.
    pub(crate) fn passed(&self) -> f64 {
        let line = self.err.lines().rev().find_map(|line| line.strip_prefix("warp: "));
        let seconds = line.and_then(|line| line.split(" s passed").next()?.parse().ok());
        seconds.unwrap_or_else(|| panic!("no closing line: {}", self.err))
    }
}

/// The program that runs others in virtual time. Cargo builds it only with all tests of the crate,
/// so with `--test all` it may be older than the code; the test must not pass or fail by that.
pub(crate) fn warp_program() -> String {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/warp");
    let built = program.metadata().and_then(|of| of.modified()).ok();
    let sources = newest(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(built >= Some(sources), "run all tests of this crate, which builds the example");
    program.to_str().unwrap().to_string()
}

/// When a file of a folder was last changed.
fn newest(folder: &Path) -> SystemTime {
    let changed = |path: PathBuf| match path.is_dir() {
        true => newest(&path),
        false => path.metadata().and_then(|of| of.modified()).unwrap(),
    };
    fs::read_dir(folder).unwrap().map(|file| changed(file.unwrap().path())).max().unwrap()
}

/// Runs `warp` with these words.
pub(crate) fn warp(words: &[&str]) -> Done {
    run(&[&[&*warp_program()], words].concat())
}

/// Runs a command, and ends it after [`LIMIT`], which ends the tree too.
pub(crate) fn run(words: &[&str]) -> Done {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", LIMIT]).args(words).env(AGAIN, "").stdin(Stdio::null());
    let Output { status, stdout, stderr } = command.output().unwrap();
    let [out, err] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
    assert_ne!(status.signal(), Some(libc::SIGKILL), "{words:?} hangs\n{out}\n{err}");
    Done { status, out, err }
}

/// Where a test runs in virtual time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Plain,
    /// With a clock that only jumps move.
    Frozen,
    /// In a namespace of processes of its own, which only root can make.
    Namespace,
    /// With lines of a process outside as its standard input, and as descriptor 7 a pipe that a
    /// process outside reads now and then.
    Pipeline,
    PipelineToNamespace,
}

const NAMESPACE: [&str; 5] = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
const PIPELINE: [&str; 4] = [
    "sh",
    "-c",
    "exec 8>&1; while sleep 0.1; do echo; done | \"$@\" 7>&1 >&8 8>&- |
        while sleep 0.1; do head -c 65536 | grep -q . || break; done",
    "sh",
];
/// Set where a test is run again.
const AGAIN: &str = "TICKLESS_AGAIN";

/// Runs a test's body in virtual time: this test again, by `warp`.
pub(crate) fn inside(body: impl FnOnce()) {
    inside_each(&[Place::Plain], body);
}

/// As [`inside`], in each of these places.
pub(crate) fn inside_each(places: &[Place], body: impl FnOnce()) -> Vec<Done> {
    let Some(test) = this_test() else {
        body();
        return Vec::new();
    };
    let is_root = unsafe { libc::geteuid() } == 0;
    let mut done = Vec::new();
    for place in places {
        let before: &[&[&str]] = match place {
            Place::Plain | Place::Frozen => &[],
            Place::Namespace => &[&NAMESPACE],
            Place::Pipeline => &[&PIPELINE],
            Place::PipelineToNamespace => &[&PIPELINE, &NAMESPACE],
        };
        if before.contains(&&NAMESPACE[..]) && !is_root {
            continue;
        }
        let program = warp_program();
        let mut words = before.concat();
        words.push(&program);
        words.extend((*place == Place::Frozen).then_some("--freeze"));
        words.extend(test.iter().map(String::as_str));
        let new = run(&words);
        assert!(new.status.success(), "{}\n{}", new.out, new.err);
        assert!(new.out.contains("1 passed"), "{}", new.out);
        done.push(new);
    }
    done
}

/// The words that run the calling test again; `None` if it has been run by them.
pub(crate) fn this_test() -> Option<[String; 4]> {
    let own = std::env::current_exe().unwrap().to_str().unwrap().to_string();
    let name = std::thread::current().name().unwrap().to_string();
    std::env::var_os(AGAIN).is_none().then(|| [own, "--exact".into(), name, "--nocapture".into()])
}

/// Checks that something takes a time, and at most half a second more. What was armed before the
/// call ends a little earlier.
pub(crate) fn takes<T>(what: &str, seconds: f64, call: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = call();
    let took = start.elapsed().as_secs_f64();
    assert!(
        (seconds - 0.01..seconds + 0.5).contains(&took),
        "{what} took {took} s, not {seconds} s"
    );
    result
}

/// Waits so often that the tracer finds this thread alone when its next wait begins.
pub(crate) fn wait_alone() {
    (0..40).for_each(|_| unsafe { assert_eq!(libc::poll(std::ptr::null_mut(), 0, 1), 0) });
}

pub(crate) fn spec(seconds: i64) -> timespec {
    timespec { tv_sec: seconds, tv_nsec: 0 }
}

/// Blocks these signals, and returns their set.
pub(crate) fn block(signals: &[c_int]) -> libc::sigset_t {
    let mut set = unsafe { std::mem::zeroed() };
    signals
        .iter()
        .for_each(|signal| unsafe { assert_eq!(libc::sigaddset(&raw mut set, *signal), 0) });
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    set
}

/// Reads a clock by a function of the vDSO.
pub(crate) fn now(clock: c_int) -> timespec {
    let mut now = spec(0);
    assert_eq!(unsafe { libc::clock_gettime(clock, &raw mut now) }, 0);
    now
}

/// Reads a clock by a system call.
pub(crate) fn now_by_call(clock: c_int) -> timespec {
    let mut now = spec(0);
    let result = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &raw mut now) };
    assert_eq!(result, 0);
    now
}

/// Runs a test in a process with one thread, which gets all signals of the process.
pub(crate) fn in_child(test: fn()) {
    let child = unsafe { libc::fork() };
    if child == 0 {
        let failed = std::panic::catch_unwind(test).is_err();
        unsafe { libc::_exit(i32::from(failed)) };
    }
    let mut status = 0;
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
}
