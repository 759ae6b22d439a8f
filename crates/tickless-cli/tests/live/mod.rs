//! Helpers of tests that use the machine's own kernel.
#![allow(dead_code)]

use std::fs::{self, OpenOptions};
use std::io::{Write, stderr};
use std::os::unix::{fs::MetadataExt, process::CommandExt};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tickless_lab::measure::{be_urgent, cpus, stay_on};
use tickless_trace::record::Tracefs;

/// Reports that a test did not run, and why, to the terminal and to the gate. The test harness
/// would hide the output of a test that passes.
pub fn skip(test: &str, why: impl std::fmt::Display) {
    let line = format!("SKIPPED: {test}: {why}\n");
    let _ = stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("CI_SKIPPED")
        && let Ok(mut file) = OpenOptions::new().append(true).open(path)
    {
        let _ = file.write_all(line.as_bytes());
    }
}

/// The output of a program that gets Ctrl-C half a second after its start: its handler is installed
/// by then, and its work has not ended.
pub fn interrupted(command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    child.wait_with_output().unwrap()
}

/// Runs the program on this machine's kernel until Ctrl-C. It must mark its results as partial, and
/// end with the status of an interrupt.
pub fn shows_what_was_seen(test: &str, command: &mut Command) {
    if tracefs(test).is_none() {
        return;
    }
    let output = interrupted(command);
    let [shown, said] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(shown.contains("PARTIAL"), "{shown}");
}

/// The output of a program that is run without rights; none, after a message, if this user cannot
/// give up rights.
pub fn without_rights(test: &str, command: &mut Command) -> Option<Output> {
    const NOBODY: u32 = 65_534;
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output();
    if output.is_err() {
        // The user `nobody` could not reach the program below a folder that it may not enter.
        skip(test, "nobody cannot run the program");
    }
    output.ok()
}

/// The folders in tracefs that a process made and that are there.
pub fn instances_of(tracefs: &Tracefs, pid: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(tracefs.root().join("instances")).unwrap().flatten();
    let is_its = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(&format!("tickless-{pid}-"))
    };
    entries.map(|entry| entry.path()).filter(is_its).collect()
}

/// The machine's tracefs; none, after a message, if this user may not use it.
pub fn tracefs(test: &str) -> Option<Tracefs> {
    Tracefs::find().map_err(|error| skip(test, error)).ok()
}

/// Waits for a condition, which `what` names if it never becomes true.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A thread that keeps a CPU to itself most of the time, with real-time priority. Ends with the
/// value.
pub struct Spinner {
    pub cpu: usize,
    pub pid: u32,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// One spinner at a time, so that other threads get a CPU.
    _alone: MutexGuard<'static, ()>,
}

impl Spinner {
    /// Its priority; it does not delay threads of a higher one.
    pub const PRIORITY: u8 = 20;

    /// Spins and rests in turn for these times; none, after a message, without real-time rights or
    /// without a tracefs.
    pub fn start(test: &str, spin: Duration, rest: Duration) -> Option<Spinner> {
        tracefs(test)?;
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let cpu = cpus()[0];
        let end = Arc::new(AtomicBool::new(false));
        let (is_over, (tell, told)) = (Arc::clone(&end), std::sync::mpsc::channel());
        let thread = std::thread::Builder::new().name("planted".to_string()).spawn(move || {
            let ready = stay_on(cpu).and_then(|()| be_urgent(Spinner::PRIORITY));
            let pid = nix::unistd::gettid().as_raw().cast_unsigned();
            let is_ready = ready.is_ok();
            tell.send(ready.map(|()| pid)).unwrap();
            while is_ready && !is_over.load(Ordering::Relaxed) {
                let until = Instant::now() + spin;
                while Instant::now() < until {}
                std::thread::sleep(rest);
            }
        });
        let thread = Some(thread.unwrap());
        match told.recv().unwrap() {
            Ok(pid) => Some(Spinner { cpu, pid, end, thread, _alone: alone }),
            Err(error) => {
                skip(test, error);
                None
            }
        }
    }

    /// Its name in the output of `tickless late`.
    pub fn cause(&self) -> String {
        format!("thread planted-{} kept the CPU", self.pid)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
