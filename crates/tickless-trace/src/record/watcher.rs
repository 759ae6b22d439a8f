//! A process that outlives a killed recorder, and removes its instance.
//!
//! It is this program once more, waiting to read from a pipe of which the recorder has the only
//! other end. However the recorder ends, that end closes and the watcher wakes. Unless the recorder
//! said before that all is well, it removes the instances of that recorder that are still there.
//! It is in a process group of its own, so that a terminal's signals do not reach it.

use super::Tracefs;
use super::instance::{is_left, names_of_mine, remove_leftovers};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// What the program is told to be a watcher with. No command of its own: nobody should type it.
const WATCH: &str = "--watch-recorder";

/// A watcher of this process. Dropping it lets it go.
#[derive(Debug)]
pub(super) struct Watcher {
    process: Child,
}

impl Watcher {
    /// Has a process of `program` watch this one from now on.
    pub(super) fn start(program: &Path) -> io::Result<Watcher> {
        let process = Command::new(program)
            .args([WATCH, &names_of_mine()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            .process_group(0)
            .spawn()?;
        Ok(Watcher { process })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.process.stdin.take() {
            // If it cannot be told it looks for itself.
            let _ = pipe.write_all(b"done");
        }
        let _ = self.process.wait();
    }
}

/// Whether the program was started as a watcher. If so it has watched when this returns, and
/// there is nothing else to do.
pub fn watch_if_asked() -> bool {
    let mut args = std::env::args_os().skip(1);
    if args.next().as_deref() != Some(OsStr::new(WATCH)) {
        return false;
    }
    if let Some(names) = args.next().and_then(|names| names.into_string().ok()) {
        watch(&names);
    }
    true
}

fn watch(names: &str) {
    let mut said = Vec::new();
    let _ = io::stdin().read_to_end(&mut said);
    if !said.is_empty() {
        return;
    }
    let Ok(tracefs) = Tracefs::find() else { return };
    // A process that is killed takes a while to let go of its files, longer on a busy machine.
    const TRIES: u32 = 1_000;
    for _ in 0..TRIES {
        if !is_left(&tracefs, names) {
            return;
        }
        remove_leftovers(&tracefs);
        thread::park_timeout(Duration::from_millis(10));
    }
}
