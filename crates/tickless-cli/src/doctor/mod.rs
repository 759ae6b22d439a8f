//! The command `tickless doctor`: its arguments, and its findings as text, JSON or CSV.

mod show;

use crate::command::{Command, Exit, Failure};
use crate::duration::parse_seconds;
use crate::output::{Format, print};
use crate::progress::Bar;
use clap::builder::{PossibleValue, PossibleValuesParser};
use std::time::Duration;
use tickless_lab::doctor::gather::{GatherOptions, gather};
use tickless_lab::doctor::{Check, Verdict, checks, judge};

/// Find needless costs of this machine's timers, and what to do about them
///
/// Watches for some seconds: the clock source, device writes, cancels, idle ticks, timers that
/// expire together, and late sleeps. Shows for each the figure, how it was obtained, what to
/// do, and which study explains it. As root it records the kernel's timers and sees more; what
/// it could not see is unknown, with the reason. It does not change the machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    sudo tickless doctor\n  \
    tickless doctor -D 10s --check idle-ticks,clock-source\n  \
    sudo tickless doctor --strict --format json\n\n\
    Exit status: 0 if nothing is bad (--strict: nor worth a look), 1 if the results cannot\n\
    be written, 2 for a wrong command line, 3 if something is bad (--strict: or worth a\n\
    look), 130 if interrupted.")]
pub struct DoctorArgs {
    /// How long to watch the machine: seconds, or with ms, s, m, h
    #[arg(short = 'D', long, value_name = "TIME", value_parser = parse_seconds,
        default_value = "3s")]
    duration: Duration,
    /// Only this check; may be given several times
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = names())]
    check: Vec<String>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Fail on warnings too
    #[arg(long)]
    strict: bool,
}

fn names() -> PossibleValuesParser {
    let value = |check: &Check| PossibleValue::new(check.name).help(check.about);
    PossibleValuesParser::new(checks().into_iter().map(value))
}

impl Command for DoctorArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let progress = Bar::on_terminal();
        progress.end_on_interrupt();
        let is_asked = |check: &&Check| {
            self.check.is_empty() || self.check.iter().any(|name| name == check.name)
        };
        let checks: Vec<&'static Check> = checks().into_iter().filter(is_asked).collect();
        let options =
            GatherOptions { duration: self.duration, program: std::env::current_exe().ok() };
        let facts = gather(&checks, &options, &progress);
        progress.end();
        let findings = judge(&checks, &facts);
        print(&findings[..], self.format)?;
        let limit = if self.strict { Verdict::Warn } else { Verdict::Bad };
        let is_failed = findings.iter().any(|finding| finding.verdict >= limit);
        Ok(if is_failed { Exit::OutOfBounds } else { Exit::Success })
    }
}
