//! The command line of `tickless machines`.

use super::list;
use crate::output::Format;
use crate::progress::Bar;
use clap::ArgGroup;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use tickless_lab::machines::fuzz::{self, Histories};
use tickless_lab::machines::measured::{self, IfBusy};
use tickless_lab::machines::{find, validate};
use tickless_lab::progress::Progress;
use tickless_lab::studies::{Effort, Study, StudyError};

/// What follows `tickless machines`.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("what").args(["name", "measure", "validate", "fuzz"]))]
pub struct MachinesArgs {
    /// Show every number of this machine: a name from the list, or a file
    name: Option<String>,
    /// Measure this host, and write it as a machine's file
    #[arg(long)]
    measure: bool,
    /// Predict this host by simulation, and measure what was predicted
    #[arg(long)]
    validate: bool,
    /// Run random histories of the timer core on simulated machines, from this seed on
    #[arg(long, value_name = "SEED")]
    fuzz: Option<u64>,
    /// How many histories
    #[arg(long, value_name = "N", default_value_t = 1, requires = "fuzz")]
    histories: u64,
    /// Measure it even while it is busy with other work
    #[arg(long, requires = "measure")]
    anyway: bool,
    /// Write the measured machine's file here
    #[arg(short, long, value_name = "FILE", requires = "measure")]
    output: Option<PathBuf>,
    /// A second or so: shows that it works
    #[arg(long)]
    quick: bool,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Fail if a prediction is not in its band
    #[arg(long, requires = "validate")]
    strict: bool,
}

/// What came of it.
#[derive(Debug)]
pub enum Outcome {
    /// Text to be printed.
    Text(Vec<u8>),
    /// Predictions beside measurements, to be shown like any study.
    Study(Box<Study>, Format),
    /// The same; a figure outside of its band is a failure.
    Strict(Box<Study>, Format),
    /// A history that broke a rule: what, and how to see it again.
    Broken(String),
}

impl MachinesArgs {
    /// Does what was asked for.
    pub fn run(&self) -> Result<Outcome, StudyError> {
        let progress = Bar::on_terminal();
        progress.end_on_interrupt();
        let outcome = self.outcome(&progress);
        progress.end();
        outcome
    }

    fn outcome(&self, progress: &dyn Progress) -> Result<Outcome, StudyError> {
        let effort = if self.quick { Effort::Quick } else { Effort::Normal };
        if self.validate {
            let study = Box::new(validate::run(effort, progress)?);
            let shown = if self.strict { Outcome::Strict } else { Outcome::Study };
            return Ok(shown(study, self.format));
        }
        if let Some(seed) = self.fuzz {
            return Ok(match fuzz::run(seed, self.histories, progress)? {
                Histories::Sound(text) => Outcome::Text(text.into_bytes()),
                Histories::Broken(violation) => Outcome::Broken(violation),
            });
        }
        if self.measure {
            let if_busy = if self.anyway { IfBusy::Measure } else { IfBusy::Refuse };
            let spec = measured::quiet_host(effort, if_busy, progress)?;
            return self.write(&spec.to_toml());
        }
        let mut text = Vec::new();
        let shown = match &self.name {
            Some(name) => list::numbers(&find(name)?, self.format, &mut text),
            None => list::machines(&list::all()?, self.format, &mut text),
        };
        shown.map_err(StudyError::system("the results could not be put together; try again"))?;
        Ok(Outcome::Text(text))
    }

    fn write(&self, file: &str) -> Result<Outcome, StudyError> {
        let Some(path) = &self.output else { return Ok(Outcome::Text(file.into())) };
        fs::write(path, file)
            .map_err(StudyError::system("the machine's file could not be written; name another"))?;
        let mut text = Vec::new();
        writeln!(text, "{}", path.display())
            .map_err(|error: io::Error| StudyError::system("no memory")(error))?;
        Ok(Outcome::Text(text))
    }
}
