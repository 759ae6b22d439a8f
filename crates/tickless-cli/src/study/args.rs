//! The command line of `tickless study`.

use crate::output::Format;
use crate::progress::Bar;
use clap::ArgGroup;
use clap::builder::{PossibleValue, PossibleValuesParser};
use std::path::PathBuf;
use tickless_lab::studies::{Effort, OFFERS, Offer, Request, SimOptions, Study, StudyError, World};

/// What follows `tickless study`.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("where").args(["live", "sim"]))]
#[command(group = ArgGroup::new("how_long").args(["quick", "full"]))]
pub struct StudyArgs {
    /// The study
    #[arg(value_parser = names())]
    name: String,
    /// Measure on this machine
    #[arg(long)]
    live: bool,
    /// Measure on a simulated machine; so it is if neither is given
    #[arg(long)]
    sim: bool,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// A second or so: shows that it works
    #[arg(long)]
    quick: bool,
    /// As long as the original measurement took
    #[arg(long)]
    full: bool,
    /// The points of a curve, such as 2,8,32 or 1-4: CPUs, or bases for `cancel`
    #[arg(long, value_name = "LIST", value_parser = parse_list)]
    cpus: Option<Cpus>,
    /// Where randomness starts: the same seed, the same choices
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Show how far predicted figures move with what was assumed of the machine
    #[arg(long, conflicts_with = "live")]
    sensitivity: bool,
    /// Simulate this machine instead of the published ones: a name from `tickless machines`, or
    /// a file
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "live")]
    machine: Option<String>,
    /// Write a timeline of a short stretch, for ui.perfetto.dev or chrome://tracing
    #[arg(long, value_name = "FILE", conflicts_with = "live")]
    timeline: Option<PathBuf>,
    /// Fail if a figure is not in the band where it should be
    #[arg(long)]
    pub(crate) strict: bool,
}

/// So that clap does not take the list for an option that may be given several times.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Cpus(Vec<u32>);

impl StudyArgs {
    /// Runs the study that was asked for.
    pub fn run(&self) -> Result<Study, StudyError> {
        let Some(offer) = Offer::named(&self.name) else {
            let what = format!("there is no study {}; see tickless help study", self.name);
            return Err(StudyError::Request { what });
        };
        let progress = Bar::on_terminal();
        progress.end_on_interrupt();
        let study = offer.run(&self.request(), &progress);
        progress.end();
        study
    }

    fn request(&self) -> Request {
        Request {
            world: if self.live { World::Live } else { World::Sim },
            effort: match (self.quick, self.full) {
                (true, _) => Effort::Quick,
                (_, true) => Effort::Full,
                _ => Effort::Normal,
            },
            cpus: self.cpus.as_ref().map(|Cpus(cpus)| cpus.clone()),
            seed: self.seed,
            sensitivity: self.sensitivity,
            sim: SimOptions { machine: self.machine.clone(), timeline: self.timeline.clone() },
        }
    }
}

fn names() -> PossibleValuesParser {
    let value = |offer: &Offer| PossibleValue::new(offer.name).help(offer.about);
    PossibleValuesParser::new(OFFERS.iter().map(value))
}

/// Numbers and ranges of numbers, in the order given.
fn parse_list(text: &str) -> Result<Cpus, String> {
    const MOST: u32 = 65_536;
    let number = |text: &str| match text.trim().parse() {
        Ok(0) | Err(_) => Err(format!("{text:?} is not a number from 1 on")),
        Ok(number) if number > MOST => Err(format!("{number} is more than {MOST}")),
        Ok(number) => Ok(number),
    };
    let mut list = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => list.push(number(part)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return Err(format!("{part} goes down; write {last}-{first}"));
                }
                list.extend(first..=last);
            }
        }
    }
    Ok(Cpus(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_numbers_and_ranges() {
        assert_eq!(parse_list("2,8, 32").unwrap().0, [2, 8, 32]);
        assert_eq!(parse_list("1-4,7").unwrap().0, [1, 2, 3, 4, 7]);
        for wrong in ["", "0", "a", "4-1", "1,,2", "-3", "1-", "99999999", "1-99999"] {
            assert!(parse_list(wrong).is_err(), "{wrong:?}");
        }
    }
}
