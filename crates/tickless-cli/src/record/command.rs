//! The recorded command, and what ends a recording.
//!
//! No thread here wakes during the recording: all wait for an event.

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
    /// The time has passed.
    Time,
    /// SIGINT, SIGTERM or SIGHUP.
    Signal,
    /// The command ended, with the status that a shell would show.
    Command(u8),
}

/// An event that a recorder waits for.
enum Happened {
    Signal,
    Ended(Option<ExitStatus>),
}

/// Receives signals and the end of the command.
pub(crate) struct Waiting {
    happened: Receiver<Happened>,
    tell: Sender<Happened>,
}

impl Waiting {
    /// Installs handlers: from here on SIGINT, SIGTERM and SIGHUP end the recording and not the
    /// program.
    pub(crate) fn new() -> Waiting {
        let (tell, happened) = channel();
        let signal = tell.clone();
        // Without a handler, a signal ends the program, and the watcher process cleans up.
        let _ = ctrlc::set_handler(move || {
            let _ = signal.send(Happened::Signal);
        });
        Waiting { happened, tell }
    }

    /// Waits for a signal, for at most this time.
    pub(crate) fn pass(&self, duration: Duration) -> End {
        match self.happened.recv_timeout(duration) {
            Ok(_) => End::Signal,
            Err(_) => End::Time,
        }
    }

    /// Runs a command until it ends. The first signal is passed on to it, the second kills it.
    ///
    /// # Errors
    /// [`RecordError::Command`] if it cannot be started.
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
                    // Fails if the command has just ended; the terminal may have signalled it too.
                    let _ = kill(pid, signal);
                    signal = Signal::SIGKILL;
                }
                Ok(Happened::Ended(status)) => return Ok(End::Command(code(status))),
                Err(_) => return Ok(End::Signal),
            }
        }
    }
}

/// The status as shells number it: the command's, or 128 and the signal.
fn code(status: Option<ExitStatus>) -> u8 {
    let code = status.and_then(|status| status.code().or_else(|| Some(128 + status.signal()?)));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_becomes_128_and_its_number() {
        assert_eq!(code(Some(ExitStatus::from_raw(3 << 8))), 3);
        assert_eq!(code(Some(ExitStatus::from_raw(15))), 143);
        assert_eq!(code(None), 1);
    }
}
