//! The command `tickless compare`, which shows what has changed between two results.

mod change;
mod others;
mod results;

use self::change::{Change, Comparison, Verdict, compare};
use self::results::Results;
use crate::command::{Command, Exit, Failure, complain};
use crate::output::{self, Format, paragraph, print, write_csv};
use std::io::{self, Write};
use std::path::PathBuf;
use tickless_lab::text::figure;

/// Show what moved between two results, beside both spreads
///
/// Takes two report.json, the JSON output of study, latency or replay, or the histograms of
/// cyclictest (--json, -h) or of rtla timerlat hist. A figure moved
/// if its two values are farther apart than both spreads, from the least to the greatest
/// repetition, are wide together. Simulated figures and counts of a replay have no spread: any
/// difference is a move. What was measured fewer than four times is not judged. Figures are
/// costs: times, and counts of work.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tickless compare before/report.json after/report.json\n  \
    tickless compare monday.json today.json --fail-above 10%\n\n\
    Exit status: 0 if compared, 1 if that was not possible or the results not written,\n\
    2 for a wrong command line, 3 if a figure is worse by more than --fail-above.")]
pub struct CompareArgs {
    /// Results: report.json, what study, latency or replay print with --format json, or what
    /// cyclictest or rtla timerlat hist print
    a: PathBuf,
    /// Results of the same kind, to compare with them
    b: PathBuf,
    /// Fail if a figure moved for the worse by more than this
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_above: Option<f64>,
    /// Show also what did not move, and what was measured too few times to tell
    #[arg(long)]
    all: bool,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse();
    let usable = number.ok().filter(|percent: &f64| percent.is_finite() && *percent >= 0.0);
    usable.ok_or_else(|| format!("{text:?} is no percentage; write 10%"))
}

impl Command for CompareArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let (a, b) = (Results::read(&self.a)?, Results::read(&self.b)?);
        if a.kind != b.kind {
            return Err(Failure::new(format_args!(
                "one is of {}, the other of {}. Give two results of one kind",
                a.kind, b.kind
            )));
        }
        let names = [&self.a, &self.b].map(|path| path.display().to_string());
        let mut comparison = compare([&names[0], &names[1]], &a, &b);
        comparison.shows_all = self.all;
        print(&comparison, self.format)?;
        let is_worse =
            |change: &&Change| self.fail_above.is_some_and(|percent| change.is_worse_by(percent));
        let worse = comparison.changes.iter().filter(is_worse);
        let worse: Vec<&str> = worse.map(|change| change.figure.as_str()).collect();
        if !worse.is_empty() {
            complain(format_args!("worse by more than --fail-above: {}", worse.join(", ")));
        }
        Ok(if !worse.is_empty() { Exit::OutOfBounds } else { Exit::Success })
    }
}

impl output::Results for Comparison {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let Comparison { kind, a, b, changes, only_in_a, only_in_b, shows_all } = self;
        let is_moved = |change: &&Change| change.is_moved();
        for change in changes.iter().filter(|change| *shows_all || is_moved(change)) {
            let [a, b] = [&change.a, &change.b].map(|of| match of.low == of.high {
                true => figure(of.value),
                false => {
                    format!("{} ({}..{})", figure(of.value), figure(of.low), figure(of.high))
                }
            });
            writeln!(out, "{}", change.figure)?;
            let text = format!("{}: {a} -> {b} {}", moved(change), change.unit);
            paragraph(out, "    ", &text)?;
        }
        for (of, only) in [(a, only_in_a), (b, only_in_b)] {
            if !only.is_empty() {
                paragraph(out, "", &format!("only in {of}: {}", only.join(", ")))?;
            }
        }
        let count = |verdict| changes.iter().filter(|change| change.verdict == verdict).count();
        let [grew, shrank, same, unknown] =
            [Verdict::Grew, Verdict::Shrank, Verdict::Same, Verdict::Unknown].map(count);
        let text = format!(
            "{kind} of {a} (a) and {b} (b): {grew} figures grew, {shrank} shrank, {same} did not \
             move; {unknown} differ, but were measured too few times to tell"
        );
        paragraph(out, "", &text)
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = "figure,unit,a,a_low,a_high,b,b_low,b_high,percent,verdict";
        let row = |change: &Change| {
            let Change { figure, unit, a, b, percent, verdict } = change.clone();
            let (a, b) = ((a.value, a.low, a.high), (b.value, b.low, b.high));
            (figure, unit, a, b, percent, verdict)
        };
        write_csv(header, self.changes.iter().map(row), out)
    }
}

/// Describes how much a figure changed, in brackets if the change does not count.
fn moved(change: &Change) -> String {
    let by = match change.percent {
        Some(percent) => format!("{percent:+.1} %"),
        None => "from 0".to_string(),
    };
    if change.is_moved() { by } else { format!("({by})") }
}
