//! The command `tickless report`, which runs all studies and writes an HTML page: its arguments,
//! and the summary that it prints.

use crate::command::{Command, Exit, Failure, complain};
use crate::output::{bare, paragraph, print_with, write_table};
use crate::progress::Bars;
use crate::study;
use clap::ArgGroup;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tickless_lab::effort::Effort;
use tickless_lab::measure;
use tickless_lab::report::files::Files;
use tickless_lab::report::{Plan, Report, make, page};
use tickless_lab::studies::{STUDIES, Study, World};

/// Run all studies, simulated and live, and write one page
///
/// Writes report.html, a self-contained page, and report.json with the same figures for
/// programs. Takes about two minutes. A study that fails is shown as failed, with what to do;
/// the others go on.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/report.txt"))]
#[command(group = ArgGroup::new("how_long").args(["quick", "full"]))]
#[command(group = ArgGroup::new("where").args(["sim_only", "live_only"]))]
pub struct ReportArgs {
    /// Where to write: a folder, or the page's name, which ends in .html
    #[arg(short, long, alias = "out", value_name = "PATH", default_value = ".")]
    output: PathBuf,
    /// Under 20 seconds, longer on a busy machine: shows that it works
    #[arg(long)]
    quick: bool,
    /// As long as the original measurements took
    #[arg(long)]
    full: bool,
    /// Only these studies; may be given several times
    #[arg(long, value_name = "NAME", num_args = 1.., value_parser = study::names())]
    only: Vec<String>,
    /// Only on simulated machines
    #[arg(long)]
    sim_only: bool,
    /// Only on this machine
    #[arg(long)]
    live_only: bool,
    /// Seed of random choices: equal seeds make equal choices
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl Command for ReportArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let files = Files::at(&self.output);
        let report = self.write(&files).map_err(|error| {
            Failure::new(format_args!("cannot write the report: {error}; choose another --output"))
        })?;
        print_with(|out| show(&report, &files, out))?;
        Ok(if report.failures().next().is_some() { Exit::Failure } else { Exit::Success })
    }
}

impl ReportArgs {
    fn write(&self, files: &Files) -> io::Result<Report> {
        files.prepare()?;
        // Minutes without a word would look like a program that hangs.
        let times = slowness();
        if times > 1.5 {
            complain(format_args!(
                "other work, or a limit, keeps this program off its CPUs, so it takes up to \
                 {times:.1} times as long as on an idle machine, which is 20 s with --quick. Less: \
                 --only STUDY, --sim-only"
            ));
        }
        let bars = Bars::on_terminal();
        bars.end_on_interrupt();
        let report = make(&self.plan(), &|name| Box::new(bars.add(name)));
        let json = serde_json::to_string_pretty(&report)?;
        files.write(&page(&report), &json)?;
        Ok(report)
    }

    fn plan(&self) -> Plan {
        let is_wanted = |study: &&Study| {
            self.only.is_empty() || self.only.iter().any(|name| name == study.name)
        };
        Plan {
            studies: STUDIES.iter().filter(is_wanted).collect(),
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

/// How many times as long work takes as alone. The load average also counts those that give way.
fn slowness() -> f64 {
    let (cpus, until) = (measure::cpus().len(), Instant::now() + Duration::from_millis(300));
    let spin = || while Instant::now() < until {};
    let ((), used) = measure::timed(|| {
        std::thread::scope(|scope| (0..cpus).for_each(|_| drop(scope.spawn(spin))));
    });
    used.real_s * cpus as f64 / used.cpu_s().max(f64::EPSILON)
}

fn show(report: &Report, files: &Files, out: &mut dyn Write) -> io::Result<()> {
    let Report { seconds, effort, verdicts, .. } = report;
    let mut table = bare(&["", "published", "simulated", "live", "met", "checks"], 1);
    for verdict in verdicts {
        let figures = [&verdict.published, &verdict.simulated, &verdict.live];
        let lines =
            figures.map(|one| one.as_ref().map_or("-".to_string(), |figures| figures.line()));
        let checks = [&verdict.simulated, &verdict.live].map(|one| {
            let checks = one.as_ref().map(|it| format!("{}/{}", it.inside(), it.checked));
            checks.unwrap_or("-".to_string())
        });
        let row = [verdict.study.to_string()].into_iter().chain(lines).chain(checks);
        table.add_row(row);
    }
    write_table(&table, out)?;
    paragraph(
        out,
        "",
        "met: predictions that meet what was published; a miss is a finding, and no error. checks: \
         figures measured here that lie in their bands.",
    )?;
    writeln!(out)?;
    for verdict in verdicts {
        let [published, live] =
            [&verdict.simulated, &verdict.live].map(|one| one.as_ref().map(|figures| figures.unit));
        let unit = published.or(live).unwrap_or("");
        let other = live.filter(|live| *live != unit).map(|unit| format!("; live: {unit}"));
        writeln!(out, "{:<9} {unit}{}", verdict.study, other.unwrap_or_default())?;
    }
    writeln!(out)?;
    for (study, world, error) in report.failures() {
        writeln!(out, "{study}, {world}, FAILED: {error}")?;
    }
    writeln!(out, "{effort} report, {seconds:.1} s:")?;
    writeln!(out, "  {}", files.page.display())?;
    writeln!(out, "  {}", files.json.display())
}
