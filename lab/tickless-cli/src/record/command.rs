//! Runs the command that is recorded, and waits for the event that ends a recording: a signal, a
//! timeout, or the end of the command.
//!
//! All threads here block until an event comes. They do not poll, because their own wakeups would
//! appear in the recording.

use crate::command::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Time,
    Signal,
    /// The command has ended. The number is the exit status that a shell would show.
    Command(u8),
}

enum Happened {
    Signal,
    Ended(Option<ExitStatus>),
}

pub(crate) struct Waiting {
    happened: Receiver<Happened>,
    tell: Sender<Happened>,
}

impl Waiting {
    /// Installs signal handlers: from now on SIGINT, SIGTERM and SIGHUP end the recording, not the
    /// program. Call this before changing the kernel's tracing, or a signal can leave it changed.
    pub(crate) fn new() -> Waiting {
        let (tell, happened) = channel();
        let signal = tell.clone();
        // Ignore errors: without a handler, a signal ends the program, and the watcher process
        // cleans up the kernel's tracing.
        let _ = ctrlc::set_handler(move || {
            let _ = signal.send(Happened::Signal);
        });
        Waiting { happened, tell }
    }

    /// Waits for a time, or until a signal comes or the command ends.
    pub(crate) fn pass(&self, duration: Duration) -> End {
        match self.happened.recv_timeout(duration) {
            Ok(_) => End::Signal,
            Err(_) => End::Time,
        }
    }

    /// Runs a command and waits until it ends. The first signal is passed on to the command as
    /// SIGTERM; the second one kills it.
    pub(crate) fn run(&self, command: &[OsString]) -> Result<End, Failure> {
        let (name, args) = command.split_first().unwrap_or_else(|| unreachable!("never empty"));
        let child = Command::new(name).args(args).spawn();
        let mut child = child.map_err(|error| {
            let name = name.to_string_lossy();
            Failure::new(format_args!(
                "{name}: cannot be started ({error}). Check the name of the command"
            ))
        })?;
        let pid = Pid::from_child(&child);
        let tell = self.tell.clone();
        thread::spawn(move || {
            let _ = tell.send(Happened::Ended(child.wait().ok()));
        });
        let mut signal = Signal::TERM;
        loop {
            match self.happened.recv() {
                Ok(Happened::Signal) => {
                    // Ignore errors: perhaps the command has ended already, because a terminal
                    // sends Ctrl-C to the command too.
                    let _ = kill_process(pid, signal);
                    signal = Signal::KILL;
                }
                Ok(Happened::Ended(status)) => return Ok(End::Command(code(status))),
                Err(_) => return Ok(End::Signal),
            }
        }
    }
}

/// Returns the exit status that a shell would show: that of the command, or 128 plus the number of
/// the signal that killed it.
fn code(status: Option<ExitStatus>) -> u8 {
    let code = status.and_then(|status| status.code().or_else(|| Some(128 + status.signal()?)));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
