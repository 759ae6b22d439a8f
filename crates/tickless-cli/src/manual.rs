//! Shell completions and man pages, from the same source as the command line itself.
//!
//! Nothing here knows a command or an option by name: what the program takes, they tell.

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What follows `tickless completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// For which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// What follows `tickless man`.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Of which command; of the program itself if left out
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Option<String>,
    /// Write the pages of the program and of all commands into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Why there is no page.
#[derive(Debug)]
pub enum ManualError {
    /// There is no such command.
    NoCommand {
        /// Its name.
        name: String,
    },
    /// A page could not be written.
    Write {
        /// Where to.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl fmt::Display for ManualError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManualError::NoCommand { name } => {
                write!(f, "there is no command {name}; see tickless help")
            }
            ManualError::Write { path, error } => {
                let path = path.display();
                write!(f, "{path}: cannot be written ({error}). Name another folder with --dir")
            }
        }
    }
}

impl std::error::Error for ManualError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ManualError::NoCommand { .. } => None,
            ManualError::Write { error, .. } => Some(error),
        }
    }
}

impl CompletionsArgs {
    /// The script that a shell reads.
    pub(crate) fn script(&self, mut program: Command) -> Vec<u8> {
        let mut script = Vec::new();
        let name = program.get_name().to_string();
        clap_complete::generate(self.shell, &mut program, name, &mut script);
        script
    }
}

impl ManArgs {
    /// The page to be printed; empty if pages were written instead.
    ///
    /// # Errors
    /// When there is no such command, or a page cannot be written.
    pub(crate) fn page(&self, mut program: Command) -> Result<Vec<u8>, ManualError> {
        // Full names, as in `tickless-replay`.
        program = program.disable_help_subcommand(true);
        program.build();
        match (&self.dir, &self.command) {
            (Some(dir), _) => write_all(&program, dir).map(|()| Vec::new()),
            (None, None) => Ok(page(&Man::new(program))),
            (None, Some(name)) => {
                let command = program.find_subcommand(name).cloned();
                let command = command.ok_or_else(|| ManualError::NoCommand { name: name.clone() });
                command.map(|command| page(&Man::new(command)))
            }
        }
    }
}

fn write_all(program: &Command, dir: &Path) -> Result<(), ManualError> {
    let refused =
        |path: &Path, error: io::Error| ManualError::Write { path: path.to_path_buf(), error };
    fs::create_dir_all(dir).map_err(|error| refused(dir, error))?;
    for command in [program].into_iter().chain(program.get_subcommands()) {
        let man = Man::new(command.clone());
        let path = dir.join(man.get_filename());
        fs::write(&path, page(&man)).map_err(|error| refused(&path, error))?;
    }
    Ok(())
}

fn page(man: &Man) -> Vec<u8> {
    let mut page = Vec::new();
    // A vector takes everything.
    let _ = man.render(&mut page);
    page
}
