//! The command `tickless compare`, which shows what has changed between two results.

mod change;
mod others;
mod rank;
mod results;

use self::change::{Change, Comparison, Verdict, compare};
use self::results::Results;
use crate::command::{Command, Exit, Failure, complain};
use crate::output::{self, Format, paragraph, print, write_csv};
use std::io::{self, Write};
use std::path::PathBuf;
use tickless_lab::text::grouped;

/// Show what moved between two results, beside both spreads
///
/// Takes two report.json, the JSON output of study, latency or replay, or the histograms of
/// cyclictest (--json, -h) or of rtla timerlat hist. Two results of latency are compared turn by
/// turn, by a rank test that one disturbed turn does not deceive. Other figures moved if their two
/// values are farther apart than both spreads, from the least to the greatest repetition, are wide
/// together. Simulated figures and counts of a replay have no spread: any difference is a move.
/// What was measured too few times is not judged. Figures are costs: times, and counts of work.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/compare.txt"))]
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
        if let (Some(of_a), Some(of_b)) = (a.turn_intervals, b.turn_intervals)
            && (of_a - of_b).abs() * 10.0 > of_a
        {
            return Err(Failure::new(format_args!(
                "turns of {of_a} and of {of_b} intervals have different extremes without any \
                 change. Measure both for the same time (-D, -i, -l)"
            )));
        }
        let names = [&self.a, &self.b].map(|path| path.display().to_string());
        let mut comparison = compare([&names[0], &names[1]], &a, &b);
        comparison.shows_all = self.all;
        print(&comparison, self.format)?;
        let is_unknown = |change: &Change| change.verdict == Verdict::Unknown;
        if self.fail_above.is_some() && comparison.changes.iter().all(is_unknown) {
            return Err(Failure::new("--fail-above: nothing could be judged. See the notes"));
        }
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
        let Comparison { kind, a, b, changes, only_in_a, only_in_b, notes, shows_all } = self;
        let header = format!(
            "{kind} of {a} and {b}: what moved, the median of the first -> of the second, in \
             brackets from the least to the greatest turn or repetition"
        );
        paragraph(out, "", &header)?;
        writeln!(out)?;
        for change in changes.iter().filter(|change| *shows_all || change.is_moved()) {
            let (scale, unit) = match change.unit.as_str() {
                "ns" => (1e3, "us"),
                unit => (1.0, unit),
            };
            let [a, b] = [&change.a, &change.b].map(|of| {
                let [value, low, high] =
                    [of.value, of.low, of.high].map(|value| grouped(value / scale));
                if low == high { value } else { format!("{value} ({low}..{high})") }
            });
            writeln!(out, "{}", change.figure)?;
            paragraph(out, "    ", &format!("{}: {a} -> {b} {unit}", moved(change)))?;
        }
        for (of, only) in [(a, only_in_a), (b, only_in_b)] {
            if !only.is_empty() {
                paragraph(out, "", &format!("only in {of}: {}", only.join(", ")))?;
            }
        }
        notes.iter().try_for_each(|note| paragraph(out, "", note))?;
        let count = |verdict| changes.iter().filter(|change| change.verdict == verdict).count();
        let [grew, shrank, same, unknown] =
            [Verdict::Grew, Verdict::Shrank, Verdict::Same, Verdict::Unknown].map(count);
        let text = format!(
            "{grew} figures grew, {shrank} shrank, {same} are equal or not distinguishable, \
             {unknown} were measured too few times to judge"
        );
        paragraph(out, "", &text)
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = "figure,unit,a,a_low,a_high,b,b_low,b_high,percent,verdict,by_chance";
        let row = |change: &Change| {
            let Change { figure, unit, a, b, percent, by_chance, verdict } = change.clone();
            let (a, b) = ((a.value, a.low, a.high), (b.value, b.low, b.high));
            (figure, unit, a, b, percent, verdict, by_chance)
        };
        write_csv(header, self.changes.iter().map(row), out)
    }
}

/// Describes how much a figure changed, and whether that is more than chance.
fn moved(change: &Change) -> String {
    let by = match change.percent {
        Some(percent) => format!("{percent:+.1} %"),
        None => "from 0".to_string(),
    };
    match change.verdict {
        Verdict::Grew | Verdict::Shrank if change.percent.is_none() => format!("moved {by}"),
        Verdict::Grew | Verdict::Shrank => format!("moved by {by}"),
        Verdict::Same if change.percent == Some(0.0) => "equal".to_string(),
        Verdict::Same => format!("not distinguishable ({by})"),
        Verdict::Unknown => format!("not judged ({by})"),
    }
}
