//! The command `tickless warp`, which runs a program in time that jumps.

mod page;

use crate::command::{Command, Exit, Failure, complain};
use crate::output::{Format, Results, bare, paragraph, write_csv, write_table};
use crate::values::{parse_date, parse_seconds};
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;
use tickless_lab::output::write;
use tickless_warp::report::{Report, Row};
use tickless_warp::{Ended, Options, Outcome, Outside, Pace, WarpError, end_by, run};

/// Run a program in time that jumps: a day of it in a second
///
/// Runs an unmodified program and all processes that it starts. Whenever every thread waits, the
/// clock moves to the earliest deadline that any of them waits for. CPU work runs natively. The
/// exit status, signals, terminal and streams are those of the program.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/warp.txt"))]
pub struct WarpArgs {
    /// End the program after this much of its time: seconds, or with ms, s, m, h, d
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    until: Option<Duration>,
    /// The time of day at the start, such as 2030-01-01T00:00:00Z
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    start: Option<i64>,
    /// Let time pass this many times as fast, such as 60x, instead of by jumps
    #[arg(long, value_name = "FACTOR", value_parser = parse_pace)]
    pace: Option<f64>,
    /// Let only jumps move the clock: computing takes no time
    #[arg(long, conflicts_with = "pace")]
    freeze: bool,
    /// What waiting for a terminal, standard input, a server outside of the program or another
    /// machine does: wait lets real time pass
    #[arg(long, value_name = "WHAT", value_enum, default_value = "wait")]
    outside: OutsideArg,
    /// Trap the instruction rdtsc too; each clock read then takes about 10 us
    #[arg(long)]
    tsc: bool,
    /// Order deadlines of equal time at random, by this seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Show at the end which threads waited for what
    #[arg(long)]
    report: bool,
    /// The form of the report; each form but a table implies --report
    #[arg(long, value_name = "FORM", value_enum, default_value = "table")]
    format: Format,
    /// Write the report to this file instead of standard error
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the report as a page with a timeline
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM", required = true)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum OutsideArg {
    Wait,
    Ignore,
}

fn parse_pace(text: &str) -> Result<f64, String> {
    let factor = text.strip_suffix('x').unwrap_or(text).parse().ok();
    let factor = factor.filter(|factor| (1e-3..=1e6).contains(factor));
    factor.ok_or_else(|| format!("{text:?} is no pace; write a number from 0.001x to 1000000x"))
}

impl Command for WarpArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let Some((program, args)) = self.command.split_first() else {
            return Err(Failure::usage("name a program"));
        };
        let options = Options {
            until: self.until,
            start_ns: self.start,
            pace: match (self.pace, self.freeze) {
                (Some(factor), _) => Pace::Times(factor),
                (None, true) => Pace::Frozen,
                (None, false) => Pace::Jump,
            },
            outside: match self.outside {
                OutsideArg::Wait => Outside::Wait,
                OutsideArg::Ignore => Outside::Ignore,
            },
            traps_counter: self.tsc,
            seed: self.seed,
            reports: self.wants_report() || self.html.is_some(),
        };
        let outcome = run(program, args, &options, &mut |note| {
            if !self.quiet {
                complain(note);
            }
        });
        let outcome = outcome.map_err(failure)?;
        if !self.quiet {
            complain(closing_line(&outcome));
        }
        self.show(&outcome)?;
        Ok(match outcome.ended {
            Ended::Status(status) => Exit::Status(status),
            Ended::Until => Exit::Status(124),
            Ended::Signal(signal) => {
                end_by(signal);
                Exit::Status(u8::try_from(128 + signal).unwrap_or(1))
            }
        })
    }
}

impl WarpArgs {
    fn wants_report(&self) -> bool {
        self.report || self.output.is_some() || self.format != Format::Table
    }

    fn show(&self, outcome: &Outcome) -> Result<(), Failure> {
        let Some(report) = &outcome.report else { return Ok(()) };
        if let Some(path) = &self.html {
            let title = self.command.join(OsStr::new(" "));
            let page = page::page(&title.to_string_lossy(), &closing_line(outcome), report);
            write(path, page.as_ref()).map_err(|error| Failure::file(path, error))?;
        }
        if !self.wants_report() {
            return Ok(());
        }
        let mut text = Vec::new();
        let Outcome { ended, passed, used, jumps, .. } = *outcome;
        let [passed_s, used_s] = [passed, used].map(|time| time.as_secs_f64());
        let waits = Waits { ended, passed_s, used_s, jumps, report };
        waits.write(self.format, &mut text).map_err(Failure::output)?;
        match &self.output {
            Some(path) => write(path, &text).map_err(|error| Failure::file(path, error)),
            // Standard output is the program's.
            None => io::stderr().write_all(&text).map_err(Failure::output),
        }
    }
}

/// The report, as tables or for programs.
#[derive(Serialize)]
struct Waits<'a> {
    ended: Ended,
    passed_s: f64,
    used_s: f64,
    jumps: u64,
    #[serde(flatten)]
    report: &'a Report,
}

/// The most rows that the printed table shows. The report's other formats have all rows.
const ROWS: usize = 30;

impl Results for Waits<'_> {
    fn tables(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let heads = ["process", "thread", "call", "waits", "timeouts", "waited s", "jumped s"];
        let mut table = bare(&heads, 3);
        for row in self.report.rows.iter().take(ROWS) {
            let Row { pid, process, tid, thread, call, waits, timeouts, .. } = row;
            table.add_row([
                format!("{pid} {process}"),
                format!("{tid} {thread}"),
                call.clone(),
                waits.to_string(),
                timeouts.to_string(),
                format!("{:.3}", row.waited_s),
                format!("{:.3}", row.jumped_s),
            ]);
        }
        write_table(&table, out)?;
        let more = self.report.rows.len().saturating_sub(ROWS);
        if more > 0 {
            writeln!(out, "{more} more rows, which waited less: --format csv has all")?;
        }
        paragraph(
            out,
            "",
            "waited: the time of all these waits, which overlap. jumped: the time that the program \
             would take less without them.",
        )
    }

    fn csv(&self, out: &mut dyn io::Write) -> io::Result<()> {
        write_csv("", &self.report.rows, out)
    }
}

/// Chooses the exit status as shells and `env` do, such as 127 if the program was not found.
fn failure(error: WarpError) -> Failure {
    let status = match &error {
        WarpError::Program { error, .. } if error.kind() == std::io::ErrorKind::NotFound => 127,
        WarpError::Program { .. } => 126,
        _ => 125,
    };
    Failure { exit: Exit::Status(status), ..Failure::new(error) }
}

fn closing_line(outcome: &Outcome) -> String {
    let Outcome { passed, used, jumps, .. } = outcome;
    let plural = if *jumps == 1 { "" } else { "s" };
    format!("{} passed, {:.3} s used, {jumps} jump{plural}", words(*passed), used.as_secs_f64())
}

fn words(time: Duration) -> String {
    let seconds = time.as_secs();
    let mut text = String::new();
    for (unit, length, range) in [("d", 86_400, u64::MAX), ("h", 3_600, 24), ("min", 60, 60)] {
        if seconds >= length {
            let _ = write!(text, "{} {unit} ", seconds / length % range);
        }
    }
    let rest = Duration::new(seconds % 60, time.subsec_nanos());
    let _ = write!(text, "{:.3} s", rest.as_secs_f64());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable() {
        for (ms, want) in [
            (5, "0.005 s"),
            (59_999, "59.999 s"),
            (3_600_012, "1 h 0 min 0.012 s"),
            (31 * 86_400_000 + 61_000, "31 d 0 h 1 min 1.000 s"),
        ] {
            assert_eq!(words(Duration::from_millis(ms)), want);
        }
    }

    #[test]
    fn paces_are_positive_numbers() {
        assert_eq!([parse_pace("60x"), parse_pace("0.5")], [Ok(60.0), Ok(0.5)]);
        for wrong in ["", "x", "0", "-1x", "nan", "inf", "60xx", "1e9x"] {
            assert!(parse_pace(wrong).is_err(), "{wrong:?}");
        }
    }
}
