//! The command line of `tickless doctor`.

use crate::duration::parse_seconds;
use crate::output::Format;
use crate::progress::Bar;
use clap::builder::{PossibleValue, PossibleValuesParser};
use std::time::Duration;
use tickless_lab::doctor::gather::{Look, gather};
use tickless_lab::doctor::{CHECKS, Check, Finding, Verdict, judge};

/// What follows `tickless doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// How long to look at the machine: seconds, or with ms, s, m, h
    #[arg(short = 'D', long, value_name = "TIME", value_parser = parse_seconds,
        default_value = "3s")]
    duration: Duration,
    /// Only this check; may be given several times
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = names())]
    check: Vec<String>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Fail on what is worth a look, too
    #[arg(long)]
    strict: bool,
}

fn names() -> PossibleValuesParser {
    let value = |check: &Check| PossibleValue::new(check.name).help(check.about);
    PossibleValuesParser::new(CHECKS.iter().map(value))
}

impl DoctorArgs {
    /// Looks, and judges.
    pub fn run(&self) -> Vec<Finding> {
        let progress = Bar::on_terminal();
        progress.end_on_interrupt();
        let checks = self.checks();
        let look = Look { duration: self.duration, program: std::env::current_exe().ok() };
        let facts = gather(&checks, &look, &progress);
        progress.end();
        judge(&checks, &facts)
    }

    fn checks(&self) -> Vec<&'static Check> {
        let is_asked = |check: &&Check| {
            self.check.is_empty() || self.check.iter().any(|name| name == check.name)
        };
        CHECKS.iter().filter(is_asked).collect()
    }

    /// Is there a finding that scripts should stop at?
    pub fn is_failed(&self, findings: &[Finding]) -> bool {
        let limit = if self.strict { Verdict::Warn } else { Verdict::Bad };
        findings.iter().any(|finding| finding.verdict >= limit)
    }
}
