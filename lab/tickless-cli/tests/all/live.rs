//! Helpers of tests that use the machine's own kernel.

use crate::run::{Ended, interrupted, program};
use std::fs;
use std::os::unix::{fs::MetadataExt, process::CommandExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tickless_lab::measure::{be_urgent, cpus, stay_on};
use tickless_trace::record::Tracefs;

#[path = "../../../tickless-trace/tests/support/skip.rs"]
mod skip;
pub use skip::skip;

pub fn tracefs() -> Option<Tracefs> {
    Tracefs::find().map_err(skip).ok()
}

/// Locks out the other tests that plant something in this machine, or that kill recorders.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a command line on this machine's kernel until Ctrl-C. It must mark its results as partial,
/// and end with the status of an interrupt.
pub fn shows_what_was_seen(line: &str) {
    if tracefs().is_some() {
        let shown = interrupted(line).exits(130, &[]).out;
        assert!(shown.contains("PARTIAL"), "{shown}");
    }
}

/// Runs a command line without rights; none, after a message, if this user cannot give up rights.
pub fn without_rights(line: &str) -> Option<Ended> {
    const NOBODY: u32 = 65_534;
    let mut command = program(line);
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    // The user `nobody` cannot reach the program below a folder that it may not enter.
    command.output().map_err(|_| skip("nobody cannot run the program")).ok().map(Ended::from)
}

pub fn is_refused_without_rights(line: &str) -> Option<Ended> {
    let refused = without_rights(line)?.exits(1, &[]);
    let is_advised = refused.err.contains("sudo") || refused.err.contains("no tracefs");
    assert!(is_advised, "{refused:?}");
    Some(refused)
}

pub fn instances_of(tracefs: &Tracefs, pid: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(tracefs.root.join("instances")).unwrap().flatten();
    let is_its = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(&format!("tickless-{pid}-"))
    };
    entries.map(|entry| entry.path()).filter(is_its).collect()
}

/// Starts a command line, and sends the signal while it records. No instance may remain in tracefs.
/// Returns how the program ended.
pub fn leaves_nothing(tracefs: &Tracefs, line: &str, signal: &str) -> Ended {
    let child = program(line).spawn().unwrap();
    let pid = child.id();
    // A new instance is on, but without events, until it is set up.
    let is_set = |instance: &Path, file: &str| {
        fs::read_to_string(instance.join(file)).is_ok_and(|text| !text.starts_with('0'))
    };
    wait_until("it records", || {
        let instances = instances_of(tracefs, pid);
        instances.iter().any(|it| is_set(it, "events/timer/enable") && is_set(it, "tracing_on"))
    });
    // For something that is sure to be in the recording.
    std::thread::sleep(Duration::from_millis(100));
    crate::run::signal(pid, signal);
    // A killed program has a watcher, which must not depend on a parent that waits for it.
    wait_until("nothing is left", || instances_of(tracefs, pid).is_empty());
    child.wait_with_output().unwrap().into()
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A thread that keeps a CPU to itself most of the time, by its priority. Ends with the value.
pub struct Spinner {
    pub cpu: usize,
    pub pid: u32,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _alone: MutexGuard<'static, ()>,
}

impl Spinner {
    /// Spins and rests in turn for these times; none, after a message, without real-time rights or
    /// without a tracefs.
    pub fn start(spin: Duration, rest: Duration) -> Option<Spinner> {
        tracefs()?;
        let alone = alone();
        let cpu = cpus()[0];
        let end = Arc::new(AtomicBool::new(false));
        let (is_over, (tell, told)) = (Arc::clone(&end), std::sync::mpsc::channel());
        let thread = std::thread::Builder::new().name("planted".to_string()).spawn(move || {
            // It does not delay threads of a higher priority.
            let ready = stay_on(cpu).and_then(|()| be_urgent(20));
            let pid = rustix::thread::gettid().as_raw_pid().cast_unsigned();
            let is_ready = ready.is_ok();
            tell.send(ready.map(|()| pid)).unwrap();
            while is_ready && !is_over.load(Ordering::Relaxed) {
                let until = Instant::now() + spin;
                while Instant::now() < until {}
                std::thread::sleep(rest);
            }
        });
        let thread = Some(thread.unwrap());
        let pid = told.recv().unwrap().map_err(skip).ok()?;
        Some(Spinner { cpu, pid, end, thread, _alone: alone })
    }

    pub fn cause(&self) -> String {
        format!("thread planted-{} (real-time priority 20) kept the CPU", self.pid)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
