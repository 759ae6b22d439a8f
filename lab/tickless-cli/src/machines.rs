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
use tickless_machine::machines::FILES;
use tickless_machine::size::exactly;
use tickless_machine::spec::{Origin, Parameter, Spec};

/// Show the simulated machines, and measure this one
///
/// Without arguments, shows the list. With a name, shows every number of that machine, and
/// whether it was published, measured, assumed with a range, or fitted to a cell.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/machines.txt"))]
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
    /// Change a number of the named machine; may be given several times
    #[arg(long, value_name = "NUMBER=VALUE", requires = "name", value_parser = change)]
    set: Vec<(String, f64)>,
    /// A machine like the named one with so many CPUs; cores and sockets stay whole
    #[arg(long, value_name = "N", requires = "name")]
    cpus: Option<u16>,
    /// The name that the changed machine has in results
    #[arg(long, requires = "name")]
    title: Option<String>,
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
                (Some(name), Some(path)) => write_file(path, &self.changed(name)?.to_toml())?,
                (Some(name), None) => print(&list::Numbers::of(&self.changed(name)?), self.format)?,
                (None, Some(_)) => {
                    return Err(Failure::usage("-o needs --measure, or the name of a machine"));
                }
                (None, None) => print(&list::all()?[..], self.format)?,
            }
        }
        Ok(Exit::Success)
    }
}

impl MachinesArgs {
    /// A number that a machine's file could not have is refused.
    fn changed(&self, name: &str) -> Result<Spec, Failure> {
        let mut spec = find(name).map_err(Failure::lab)?;
        if let Some(cpus) = self.cpus {
            spec = exactly(&spec, cpus).map_err(Failure::usage)?;
        }
        if let Some(title) = &self.title {
            spec.name.clone_from(title);
        }
        for &(ref key, value) in &self.set {
            if !spec.parameters().any(|(known, _)| known == key) {
                let what =
                    format_args!("{name} has no number {key}; tickless machines {name} lists them");
                return Err(Failure::usage(what));
            }
            let origin = Origin::Source("set on the command line".to_string());
            spec = spec.with_parameter(key, Parameter { value, origin });
        }
        Spec::parse(name, &spec.to_toml()).map_err(Failure::usage)
    }
}

fn change(text: &str) -> Result<(String, f64), String> {
    let (key, value) = text.split_once('=').ok_or("write NUMBER=VALUE")?;
    let value = value.parse().map_err(|_| format!("{value:?} is not a number"))?;
    Ok((key.to_string(), value))
}

/// A path that is also the name of a machine is refused: it would be read as the name.
fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some((name, _)) = FILES.iter().find(|(name, _)| Path::new(name) == path) {
        let what = format_args!("{name} is the name of a machine; write ./{name} or another file");
        return Err(Failure::usage(what));
    }
    output::write(path, text.as_bytes()).map_err(|error| Failure::file(path, error))?;
    print_with(|out| writeln!(out, "{}", path.display()))
}
