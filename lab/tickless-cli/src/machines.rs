//! The command `tickless machines`, which shows the simulated machines, and measures this one: its
//! arguments, and the machines with their numbers as tables.

mod list;

use crate::command::{Command, Exit, Failure};
use crate::output::{Format, print, print_with};
use crate::progress::Bar;
use clap::ArgGroup;
use std::path::{Path, PathBuf};
use tickless_lab::effort::Effort;
use tickless_lab::machines::find;
use tickless_lab::machines::measured::{self, IfBusy};
use tickless_lab::output;

/// Show the simulated machines, and measure this one
///
/// Without arguments, shows the list. With a name, shows every number of that machine, and
/// whether it was published, measured, assumed with a range, or fitted to a cell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tickless machines\n  \
    tickless machines ivybridge-ex-16s\n  \
    tickless machines --measure -o here.toml\n  \
    tickless machines x5675-2s -o mine.toml\n\n\
    Exit status: 0 if shown, 1 if that was not possible, 2 for a wrong command line,\n\
    130 if interrupted.")]
#[command(group = ArgGroup::new("what").args(["name", "measure"]))]
pub struct MachinesArgs {
    /// Show every number of this machine: a name from the list, or a file
    name: Option<String>,
    /// Measure this host, and write it as a machine's file
    #[arg(long)]
    measure: bool,
    /// Measure it even while it is busy with other work
    #[arg(long, requires = "measure")]
    anyway: bool,
    /// Write the file of the measured or named machine here
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A second or so: shows that it works
    #[arg(long)]
    quick: bool,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Command for MachinesArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let effort = if self.quick { Effort::Quick } else { Effort::Normal };
        if self.measure {
            let if_busy = if self.anyway { IfBusy::Measure } else { IfBusy::Refuse };
            let host = Bar::during(|progress| measured::quiet_host(effort, if_busy, progress));
            let file = host.map_err(Failure::lab)?.to_toml();
            match &self.output {
                None => print_with(|out| write!(out, "{file}"))?,
                Some(path) => write_file(path, &file)?,
            }
        } else {
            match (&self.name, &self.output) {
                (Some(name), Some(path)) => {
                    write_file(path, &find(name).map_err(Failure::lab)?.to_toml())?;
                }
                (Some(name), None) => {
                    print(&list::Numbers::of(&find(name).map_err(Failure::lab)?), self.format)?;
                }
                (None, Some(_)) => {
                    return Err(Failure::usage("-o needs --measure, or the name of a machine"));
                }
                (None, None) => print(&list::all()?[..], self.format)?,
            }
        }
        Ok(Exit::Success)
    }
}

fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    output::write(path, text.as_bytes()).map_err(|error| Failure::file(path, error))?;
    print_with(|out| writeln!(out, "{}", path.display()))
}
