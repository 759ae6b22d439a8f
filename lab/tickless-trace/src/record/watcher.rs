//! A second process that removes the tracefs instance (trace buffers) of a recorder that is killed.
//!
//! The watcher runs this program, and waits to read from a pipe of which only the recorder has the
//! other end. When the recorder ends, that end is closed and the watcher wakes. Unless the recorder
//! has written to the pipe that it cleaned up, the watcher removes the recorder's instances. It has
//! a process group of its own, so that Ctrl-C in a terminal does not reach it.

use super::instance::{is_left, own_prefix, remove_leftovers};
use crate::record::tracefs::Tracefs;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The argument that makes this program run as a watcher. Not documented: only recorders use it.
const WATCH: &str = "--watch-recorder";

#[derive(Debug)]
pub(super) struct Watcher {
    process: Child,
}

impl Watcher {
    /// Starts `program` as the watcher: in a process group of its own, which Ctrl-C does not reach.
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
            // If the watcher misses this message, it looks for our instances, and finds none.
            let _ = pipe.write_all(b"done");
        }
        let _ = self.process.wait();
    }
}

/// Runs the watcher if the program was started as one; if not, returns `false` at once. After
/// `true`, the watched process has ended, and the program should exit.
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

/// Waits for the recording process. If it ended without a message, removes its instances.
fn watch(prefix: &str) {
    let mut message = Vec::new();
    let _ = io::stdin().read_to_end(&mut message);
    if !message.is_empty() {
        return;
    }
    let Ok(tracefs) = Tracefs::find() else { return };
    // Try for ten seconds: an instance cannot be removed while the killed process has files open,
    // and closing them takes a while on a busy machine.
    const TRIES: u32 = 1_000;
    for _ in 0..TRIES {
        if !is_left(&tracefs, prefix) {
            return;
        }
        remove_leftovers(&tracefs);
        thread::park_timeout(Duration::from_millis(10));
    }
}
