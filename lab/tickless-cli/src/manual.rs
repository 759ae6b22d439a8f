//! Generates shell completions and man pages from clap's description of the command line.

use crate::command::{Exit, Failure};
use crate::output::print_with;
use clap_complete::Shell;
use clap_mangen::Man;
use std::fs;
use std::path::{Path, PathBuf};
use tickless_lab::output::write;

/// Print shell completions
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/completions.txt"))]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Print a man page, or write all of them
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/man.txt"))]
pub struct ManArgs {
    /// The command; the program itself if left out
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Option<String>,
    /// Write the pages of the program and of all commands into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl CompletionsArgs {
    pub fn run(&self, mut program: clap::Command) -> Result<Exit, Failure> {
        let name = program.get_name().to_string();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, name, &mut script);
        print_with(|out| out.write_all(&script))?;
        Ok(Exit::Success)
    }
}

impl ManArgs {
    pub fn run(&self, program: clap::Command) -> Result<Exit, Failure> {
        // Disable clap's `help` command, which would get a man page for each command.
        let mut program = program.disable_help_subcommand(true);
        // This gives each command its full name, such as `tickless-replay`.
        program.build();
        match (&self.dir, &self.command) {
            (Some(dir), _) => write_all(&program, dir)?,
            (None, None) => print_with(|out| Man::new(program).render(out))?,
            (None, Some(name)) => {
                let command = program.find_subcommand(name).cloned().ok_or_else(|| {
                    Failure::new(format_args!("there is no command {name}; see tickless help"))
                })?;
                print_with(|out| Man::new(command).render(out))?;
            }
        }
        Ok(Exit::Success)
    }
}

fn write_all(program: &clap::Command, dir: &Path) -> Result<(), Failure> {
    fs::create_dir_all(dir).map_err(|error| Failure::file(dir, error))?;
    for command in [program].into_iter().chain(program.get_subcommands()) {
        let man = Man::new(command.clone());
        let path = dir.join(man.get_filename());
        let mut page = Vec::new();
        let written = man.render(&mut page).and_then(|()| write(&path, &page));
        written.map_err(|error| Failure::file(&path, error))?;
    }
    Ok(())
}
