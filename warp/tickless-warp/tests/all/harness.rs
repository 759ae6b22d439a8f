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

pub(crate) fn run<S: AsRef<OsStr>>(command: &mut Command, words: &[S]) -> Done {
    command
        .env(AGAIN, "")
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
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
        let mut command = Command::new("env");
        command.args(before.concat()).arg(warp_program());
        command.args((*place == Place::Frozen).then_some("--freeze"));
        let new = run(&mut command, &test);
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
