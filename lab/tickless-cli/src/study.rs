//! The command `tickless study`, which measures a mechanism beside the behaviour that it replaced:
//! its arguments, and its results as tables, JSON or CSV.

mod show;

use crate::command::{Command, Exit, Failure, complain};
use crate::output::{Format, print};
use crate::progress::Bar;
use crate::values::{Numbers, one_name_of};
use clap::ArgGroup;
use clap::builder::PossibleValuesParser;
use tickless_lab::effort::Effort;
use tickless_lab::studies::{Request, STUDIES, Study, StudyResult, World};

/// Measure a mechanism beside the behaviour that it replaced
///
/// Each study is named after the mechanism. Every figure is labelled: published (by the authors
/// of the mechanism, on their machine), calibrated, predicted, or live (measured now: the
/// median of the repetitions, with the least and the greatest). `tickless report` draws them.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/study.txt"))]
#[command(group = ArgGroup::new("where").args(["live", "sim"]))]
#[command(group = ArgGroup::new("how_long").args(["quick", "full"]))]
pub struct StudyArgs {
    /// The study
    #[arg(value_parser = names())]
    name: String,
    /// Measure on this machine
    #[arg(long)]
    live: bool,
    /// Measure on a simulated machine, which is the default
    #[arg(long)]
    sim: bool,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// A second or so: shows that it works
    #[arg(long)]
    quick: bool,
    /// As long as the original measurement took
    #[arg(long)]
    full: bool,
    /// The points of a curve, such as 2,8,32 or 1-4: CPUs, or bases for `cancel`
    #[arg(long, value_name = "LIST", value_parser = |text: &str| {
        Numbers::within(text, 1..=65_536)
    })]
    cpus: Option<Numbers>,
    /// Seed of random choices: equal seeds make equal choices
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Show how far predicted figures depend on what was assumed of the machine
    #[arg(long, conflicts_with = "live")]
    sensitivity: bool,
    /// Simulate this machine instead of the published ones: a name from `tickless machines`, or
    /// a file
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "live")]
    machine: Option<String>,
    /// Fail if a figure is not in the band where it should be
    #[arg(long)]
    strict: bool,
}

impl Command for StudyArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let Some(study) = Study::named(&self.name) else {
            return Err(Failure::usage(format_args!("there is no study {}", self.name)));
        };
        let result = Bar::during(|progress| study.run(&self.request(), progress));
        let result = result.map_err(Failure::lab)?;
        print(&result, self.format)?;
        Ok(if self.strict { verdict(&result) } else { Exit::Success })
    }
}

fn verdict(study: &StudyResult) -> Exit {
    let mut exit = Exit::Success;
    for cell in study.outside() {
        complain(format_args!("{} is {} {}, outside its band", cell.id, cell.value, cell.unit));
        exit = Exit::OutOfBounds;
    }
    exit
}

impl StudyArgs {
    fn request(&self) -> Request {
        Request {
            world: if self.live { World::Live } else { World::Sim },
            effort: match (self.quick, self.full) {
                (true, _) => Effort::Quick,
                (_, true) => Effort::Full,
                _ => Effort::Normal,
            },
            cpus: self.cpus.as_ref().map(|cpus| cpus.0.iter().map(|&one| one as u32).collect()),
            seed: self.seed,
            sensitivity: self.sensitivity,
            machine: self.machine.clone(),
        }
    }
}

pub fn names() -> PossibleValuesParser {
    one_name_of(STUDIES.iter().map(|study| (study.name, study.about)))
}
