//! The command around which is recorded, and what ends a recording.
//!
//! Nothing here wakes while it is recorded: all threads wait for something to happen.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;
use tickless_trace::record::RecordError;

/// What ended a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The time was over.
    Time,
    /// A signal that asks to end.
    Signal,
    /// The command ended, with the status that a shell would show.
    Command(u8),
}

/// Something that happened to a recorder.
enum Happened {
    Signal,
    Ended(Option<ExitStatus>),
}

/// What a recorder waits for.
pub(crate) struct Waiting {
    happened: Receiver<Happened>,
    tell: Sender<Happened>,
}

impl Waiting {
    /// From now on SIGINT, SIGTERM and SIGHUP end the recording and not the program.
    pub(crate) fn new() -> Waiting {
        let (tell, happened) = channel();
        let signal = tell.clone();
        // Where there cannot be a handler, a signal ends the program, and the watcher cleans up.
        let _ = ctrlc::set_handler(move || {
            let _ = signal.send(Happened::Signal);
        });
        Waiting { happened, tell }
    }

    /// Waits for a signal, but no longer than this.
    pub(crate) fn pass(&self, duration: Duration) -> End {
        match self.happened.recv_timeout(duration) {
            Ok(_) => End::Signal,
            Err(_) => End::Time,
        }
    }

    /// Runs a command until it ends. The first signal is passed on to it, another kills it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn run(&self, command: &[OsString]) -> Result<End, RecordError> {
        let (name, args) = command.split_first().unwrap_or_else(|| unreachable!("never empty"));
        let child = Command::new(name).args(args).spawn();
        let mut child = child.map_err(|error| RecordError::Command {
            name: name.to_string_lossy().into_owned(),
            error,
        })?;
        let pid = Pid::from_raw(child.id().cast_signed());
        let tell = self.tell.clone();
        thread::spawn(move || {
            let _ = tell.send(Happened::Ended(child.wait().ok()));
        });
        let mut signal = Signal::SIGTERM;
        loop {
            match self.happened.recv() {
                Ok(Happened::Signal) => {
                    // It may have ended in this moment, or had the signal from the terminal.
                    let _ = kill(pid, signal);
                    signal = Signal::SIGKILL;
                }
                Ok(Happened::Ended(status)) => return Ok(End::Command(code(status))),
                Err(_) => return Ok(End::Signal),
            }
        }
    }
}

/// As shells number it: a status, or 128 and the signal.
fn code(status: Option<ExitStatus>) -> u8 {
    let code = status.and_then(|status| status.code().or_else(|| Some(128 + status.signal()?)));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_shells() {
        assert_eq!(code(Some(ExitStatus::from_raw(3 << 8))), 3);
        assert_eq!(code(Some(ExitStatus::from_raw(15))), 143);
        assert_eq!(code(None), 1);
    }
}
