//! A process that outlives a killed recorder, and removes its instance.
//!
//! It runs this program, and waits to read from a pipe whose other end only the recorder has. When
//! the recorder ends, that end closes and the watcher wakes. Unless the recorder has written to the
//! pipe that it cleaned up, the watcher removes the recorder's instances. It has a process group of
//! its own, so that a terminal's signals do not reach it.

use super::Tracefs;
use super::instance::{is_left, own_prefix, remove_leftovers};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The argument that makes the program a watcher. It is no documented command, since only recorders
/// use it.
const WATCH: &str = "--watch-recorder";

/// A watcher of this process. Dropping it ends the watcher.
#[derive(Debug)]
pub(super) struct Watcher {
    process: Child,
}

impl Watcher {
    /// Starts a process of `program` that watches this one.
    pub(super) fn start(program: &Path) -> io::Result<Watcher> {
        let process = Command::new(program)
            .args([WATCH, &own_prefix()])
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
            // If this fails, the watcher finds no instance.
            let _ = pipe.write_all(b"done");
        }
        let _ = self.process.wait();
    }
}

/// Returns whether the program was started as a watcher. If so, the watched process has ended, and
/// the program should exit.
pub fn watch_if_asked() -> bool {
    let mut args = std::env::args_os().skip(1);
    if args.next().as_deref() != Some(OsStr::new(WATCH)) {
        return false;
    }
    if let Some(prefix) = args.next().and_then(|prefix| prefix.into_string().ok()) {
        watch(&prefix);
    }
    true
}

fn watch(prefix: &str) {
    let mut message = Vec::new();
    let _ = io::stdin().read_to_end(&mut message);
    if !message.is_empty() {
        return;
    }
    let Ok(tracefs) = Tracefs::find() else { return };
    // A killed process takes a while to close its files, longer on a busy machine.
    const TRIES: u32 = 1_000;
    for _ in 0..TRIES {
        if !is_left(&tracefs, prefix) {
            return;
        }
        remove_leftovers(&tracefs);
        thread::park_timeout(Duration::from_millis(10));
    }
}
