//! The command `tickless doctor`, which finds needless costs of timers.

use crate::command::{Command, Exit, Failure};
use crate::output::{Format, Results, paragraph, print, write_csv};
use crate::progress::Bar;
use crate::values::{one_name_of, parse_seconds};
use clap::builder::PossibleValuesParser;
use console::Style;
use std::io::{self, Write};
use std::time::Duration;
use tickless_lab::doctor::gather::{GatherOptions, gather};
use tickless_lab::doctor::{Check, Finding, Verdict, judge};
use tickless_lab::measure::{disturbance, machine};
use tickless_lab::studies::checks;
use tickless_lab::text::figure;

/// Find needless costs of this machine's timers, and what to do about them
///
/// Watches for some seconds: the clock source, device writes, cancels, idle ticks, timers that
/// expire together, late sleeps, throttled groups, and what else makes threads late: stolen time,
/// frequency and idle states, stopped real-time threads, interrupts on one CPU. Shows for each the
/// figure, how it was obtained, what to do, and which study explains it. As root it records the
/// kernel's timers and sees more; what it could not see is unknown, with the reason. It does
/// not change the machine.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/doctor.txt"))]
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
    one_name_of(checks().into_iter().map(|check| (check.name, check.text("about"))))
}

impl Command for DoctorArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let is_asked = |check: &&Check| {
            self.check.is_empty() || self.check.iter().any(|name| name == check.name)
        };
        let checks: Vec<&'static Check> = checks().into_iter().filter(is_asked).collect();
        let options =
            GatherOptions { duration: self.duration, program: std::env::current_exe().ok() };
        let facts = Bar::during(|progress| gather(&checks, &options, progress));
        let findings = judge(&checks, &facts);
        print(&findings[..], self.format)?;
        let limit = if self.strict { Verdict::Warn } else { Verdict::Bad };
        let is_failed = findings.iter().any(|finding| finding.verdict >= limit);
        Ok(if is_failed { Exit::OutOfBounds } else { Exit::Success })
    }
}

impl Results for [Finding] {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        paragraph(out, "", &machine())?;
        disturbance().map_or(Ok(()), |other| paragraph(out, "  - ", &other))?;
        let mut sorted: Vec<&Finding> = self.iter().collect();
        sorted.sort_by_key(|finding| finding.verdict);
        for finding in sorted {
            let Finding { check, verdict, how, advice, study, .. } = finding;
            let value = finding
                .figure
                .map_or_else(String::new, |value| format!("{} {}", figure(value), finding.unit));
            let padded = style(*verdict).apply_to(format!("{:<7}", verdict.name()));
            writeln!(out, "\n{}", format!("{padded}  {check:<17} {value}").trim_end())?;
            paragraph(out, "         ", how)?;
            if *verdict > Verdict::Unknown {
                paragraph(out, "      -> ", advice)?;
                if !study.is_empty() {
                    let study = format!("Explained by: tickless study {study} --live");
                    paragraph(out, "         ", &study)?;
                }
            }
        }
        let count = |verdict: Verdict| self.iter().filter(|of| of.verdict == verdict).count();
        let all = [Verdict::Bad, Verdict::Warn, Verdict::Unknown, Verdict::Ok];
        let counts = all.map(|verdict| format!("{} {}", count(verdict), verdict.name()));
        writeln!(out, "\n{}", counts.join(", "))
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        write_csv("check,verdict,figure,unit,how,advice,study", self, out)
    }
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Ok => Style::new().green(),
        Verdict::Unknown => Style::new().dim(),
        Verdict::Warn => Style::new().yellow(),
        Verdict::Bad => Style::new().red(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_finding_is_last_with_its_advice() {
        let of = |verdict, figure| Finding {
            check: "a-check",
            verdict,
            figure,
            unit: "things",
            how: "by, counting".to_string(),
            advice: "do it".to_string(),
            study: "rearm",
        };
        let findings = [of(Verdict::Bad, Some(2.5)), of(Verdict::Unknown, None)];
        let mut out = Vec::new();
        findings.tables(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let [unknown, bad] = ["unknown  a-check", "bad      a-check           2.50 things"]
            .map(|line| text.find(line).unwrap_or_else(|| panic!("{line}: {text}")));
        assert!(unknown < bad, "{text}");
        assert_eq!(text.matches("-> do it").count(), 1, "{text}");
        assert!(text.contains("tickless study rearm"), "{text}");
        assert!(text.ends_with("1 bad, 0 warn, 1 unknown, 0 ok\n"), "{text}");
    }
}
