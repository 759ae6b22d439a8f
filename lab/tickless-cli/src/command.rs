//! What all commands share: the trait by which they run, their exit statuses and their errors.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use tickless_lab::LabError;

/// A command of the program. The type holds the arguments that clap parses; `run` does the work.
pub trait Command {
    fn run(&self) -> Result<Exit, Failure>;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Success,
    Failure,
    /// The command line, or a file that it names, is wrong: the user must change it.
    Usage,
    /// The command has succeeded, but a result is outside of the bounds that the user has set.
    OutOfBounds,
    Interrupted,
    Status(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::OutOfBounds => 3,
            // The number that shells use for an interrupted program: 128 plus the number of SIGINT.
            Exit::Interrupted => 130,
            Exit::Status(status) => status,
        })
    }
}

#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    /// What happened, and what the user can do about it. `None` if the reader of standard output
    /// has closed it, which is no error.
    pub message: Option<String>,
}

impl Failure {
    pub fn new(message: impl Display) -> Failure {
        Failure { exit: Exit::Failure, message: Some(message.to_string()) }
    }

    pub fn usage(message: impl Display) -> Failure {
        Failure { exit: Exit::Usage, ..Failure::new(message) }
    }

    /// Converts an error. A wrong request gets the exit status for wrong arguments.
    pub fn lab(error: LabError) -> Failure {
        match error {
            LabError::Request { .. } => Failure::usage(error),
            _ => Failure::new(error),
        }
    }

    /// Converts an error of writing the results. A pipe that its reader closed counts as success.
    pub fn output(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure { exit: Exit::Success, message: None };
        }
        Failure::new(format_args!("cannot write the results: {error}; send them to another place"))
    }

    pub fn file(path: &Path, error: io::Error) -> Failure {
        let path = path.display();
        Failure::new(format_args!("{path}: cannot be written ({error}). Name another place"))
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::new(error)
    }
}

pub fn complain(message: impl Display) {
    // Ignore the error: if standard error is closed, there is no other place to report it.
    let _ = writeln!(io::stderr(), "tickless: {message}");
}
