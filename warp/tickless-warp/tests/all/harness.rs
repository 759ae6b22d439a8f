//! Runs a program under the example `warp`, with a timeout that ends the whole tree.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// No test takes this long, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(100);

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
pub(crate) fn warp_program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/warp");
    let built = program.metadata().and_then(|of| of.modified()).ok();
    let sources = newest(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(built >= Some(sources), "run all tests of this crate, which builds the example");
    program
}

/// When a file of a folder was last changed.
fn newest(folder: &Path) -> SystemTime {
    let changed = |path: PathBuf| match path.is_dir() {
        true => newest(&path),
        false => path.metadata().and_then(|of| of.modified()).unwrap(),
    };
    fs::read_dir(folder).unwrap().map(|file| changed(file.unwrap().path())).max().unwrap()
}

/// Runs `warp` with these words. Its end by [`LIMIT`] ends the tree too.
pub(crate) fn warp<S: AsRef<OsStr>>(words: &[S]) -> Done {
    run(&mut Command::new(warp_program()), words)
}

fn run<S: AsRef<OsStr>>(command: &mut Command, words: &[S]) -> Done {
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut streams: [Box<dyn Read + Send>; 2] =
        [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
    let start = Instant::now();
    let texts = std::thread::spawn(move || {
        let [out, err] = &mut streams;
        let mut texts = [String::new(), String::new()];
        out.read_to_string(&mut texts[0]).unwrap();
        err.read_to_string(&mut texts[1]).unwrap();
        texts
    });
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > LIMIT {
            child.kill().unwrap();
            let [out, err] = texts.join().unwrap();
            let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
            panic!("{words:?} hangs\n{out}\n{err}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = child.wait().unwrap();
    let [out, err] = texts.join().unwrap();
    Done { status, out, err }
}

pub(crate) fn shell(script: &str) -> Done {
    warp(&["sh", "-c", script])
}

/// Runs one of the ignored tests of this program in virtual time.
pub(crate) fn inside(test: &str) -> Done {
    run_inside(&mut Command::new(warp_program()), test)
}

/// As [`inside`], with a clock that only jumps move.
pub(crate) fn inside_frozen(test: &str) -> Done {
    run_inside(Command::new(warp_program()).arg("--freeze"), test)
}

/// As [`inside`], in a namespace of processes of its own.
pub(crate) fn inside_namespace(test: &str) -> Done {
    let mut command = Command::new(IN_NAMESPACE[0]);
    run_inside(command.args(&IN_NAMESPACE[1..]).arg(warp_program()), test)
}

/// What makes a namespace of processes for the command behind it.
pub(crate) const IN_NAMESPACE: [&str; 5] =
    ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];

/// As [`inside`], with these words before, lines of a process outside as its standard input, and a
/// pipe as descriptor 7 that a process outside reads now and then.
pub(crate) fn inside_pipeline(test: &str, before: &[&str]) -> Done {
    let mut shell = Command::new("sh");
    let script = "exec 8>&1; while sleep 0.1; do echo; done | \"$@\" 7>&1 >&8 8>&- |
        while sleep 0.1; do head -c 65536 | grep -q . || break; done";
    shell.args(["-c", script, "sh"]);
    run_inside(shell.args(before).arg(warp_program()), test)
}

fn run_inside(command: &mut Command, test: &str) -> Done {
    let own = std::env::current_exe().unwrap();
    let own = own.to_str().unwrap();
    let done = run(command, &[own, "--exact", test, "--ignored", "--nocapture"]);
    assert!(done.status.success(), "{test}\n{}\n{}", done.out, done.err);
    assert!(done.out.contains("1 passed"), "{}", done.out);
    done
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

pub(crate) fn spec(seconds: i64) -> libc::timespec {
    libc::timespec { tv_sec: seconds, tv_nsec: 0 }
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
