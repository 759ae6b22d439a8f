//! The command line of `tickless report`.

use crate::output::{bare, print};
use crate::progress::Bars;
use clap::ArgGroup;
use clap::builder::PossibleValuesParser;
use std::io::{self, Write};
use std::path::PathBuf;
use tickless_lab::report::files::Files;
use tickless_lab::report::{Plan, Report, make, page};
use tickless_lab::studies::{Effort, OFFERS, Offer, World};

/// What follows `tickless report`.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("how_long").args(["quick", "full"]))]
#[command(group = ArgGroup::new("where").args(["sim_only", "live_only"]))]
pub struct ReportArgs {
    /// Where to write: a folder, or the page's name, which ends in .html
    #[arg(long, value_name = "PATH", default_value = ".")]
    out: PathBuf,
    /// Under 20 seconds: shows that it works
    #[arg(long)]
    quick: bool,
    /// As long as the original measurements took
    #[arg(long)]
    full: bool,
    /// Only these studies; may be given several times
    #[arg(long, value_name = "NAME", num_args = 1.., value_parser = names())]
    only: Vec<String>,
    /// Only on simulated machines
    #[arg(long)]
    sim_only: bool,
    /// Only on this machine
    #[arg(long)]
    live_only: bool,
    /// Where randomness starts: the same seed, the same choices
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(OFFERS.iter().map(|offer| offer.name))
}

/// A report that has been written.
#[derive(Debug)]
pub struct Written {
    /// What came out.
    pub report: Report,
    files: Files,
}

impl ReportArgs {
    /// Runs the studies and writes the files.
    pub fn run(&self) -> io::Result<Written> {
        let files = Files::at(&self.out);
        files.prepare()?;
        let bars = Bars::on_terminal();
        let halves = files.clone();
        bars.end_on_interrupt(move || halves.remove_halves());
        let report = make(&self.plan(), &|name| Box::new(bars.add(name)));
        let json = serde_json::to_string_pretty(&report)?;
        files.write(&page(&report)?, &json)?;
        Ok(Written { report, files })
    }

    fn plan(&self) -> Plan {
        let is_wanted = |offer: &&Offer| {
            self.only.is_empty() || self.only.iter().any(|name| name == offer.name)
        };
        Plan {
            offers: OFFERS.iter().filter(is_wanted).collect(),
            worlds: match (self.sim_only, self.live_only) {
                (true, _) => vec![World::Sim],
                (_, true) => vec![World::Live],
                _ => vec![World::Sim, World::Live],
            },
            effort: match (self.quick, self.full) {
                (true, _) => Effort::Quick,
                (_, true) => Effort::Full,
                _ => Effort::Brief,
            },
            seed: self.seed,
        }
    }
}

impl Written {
    /// Says what came out, and where it is.
    pub fn show(&self, out: &mut dyn Write) -> io::Result<()> {
        let Report { seconds, effort, verdicts, .. } = &self.report;
        let mut table = bare(&["", "published", "simulated", "live", "checks"], 1);
        for verdict in verdicts {
            let figures = [&verdict.published, &verdict.simulated, &verdict.live];
            let lines =
                figures.map(|one| one.as_ref().map_or("-".to_string(), |figures| figures.line()));
            let both = [&verdict.simulated, &verdict.live].into_iter().flatten();
            let checked: usize = both.clone().map(|figures| figures.checked).sum();
            let outside: usize = both.map(|figures| figures.outside.len()).sum();
            let checks = format!("{}/{checked}", checked.saturating_sub(outside));
            let row = [verdict.study.to_string()].into_iter().chain(lines).chain([checks]);
            table.add_row(row);
        }
        print(&table, out)?;
        writeln!(out)?;
        for verdict in verdicts {
            let [published, live] = [&verdict.simulated, &verdict.live]
                .map(|one| one.as_ref().map(|figures| figures.unit));
            let unit = published.or(live).unwrap_or("");
            let other = live.filter(|live| *live != unit).map(|unit| format!("; live: {unit}"));
            writeln!(out, "{:<9} {unit}{}", verdict.study, other.unwrap_or_default())?;
        }
        writeln!(out)?;
        for (study, world, error) in self.report.failures() {
            writeln!(out, "{study}, {world}, FAILED: {error}")?;
        }
        writeln!(out, "{effort} report, {seconds:.1} s:")?;
        writeln!(out, "  {}", self.files.page.display())?;
        writeln!(out, "  {}", self.files.json.display())
    }
}
