//! The command `tickless replay`, which replays recorded timer traces: its arguments, and its
//! results as tables, JSON or CSV.

mod many;
mod show;

use crate::command::{Command, Exit, Failure, complain};
use crate::output::{Format, print};
use crate::traces;
use crate::values::policy;
use std::path::{Path, PathBuf};
use tickless_trace::replay::{
    Comparison, Inference, Measure, ReplayPolicy, Summary, Verdict, other_ticks, summarise,
    upgraded,
};

/// Drive a recorded kernel timer trace through the timer core, once for each policy
///
/// Shows how often the event device would have been programmed, how many wakeups would have
/// found nothing to do, and how late timers would have fired, beside what the trace itself
/// recorded. Reads `trace.dat`, `perf.data`, and the text of ftrace, `trace-cmd report` and
/// `perf script`; plain or gzip. Several traces give a table with a row each and a total.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/replay.txt"))]
pub struct ReplayArgs {
    /// The traces: files, patterns such as '*.gz', or - for standard input
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Only this policy; may be given several times
    #[arg(long, value_parser = policy(&ReplayPolicy::ALL))]
    policy: Vec<ReplayPolicy>,
    /// Show also what a tick of this rate would have cost, stopped on idle CPUs and not; may be
    /// given several times. Linux can be configured with 24 to 1200, depending on the processor
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(24..=1_200))]
    hz: Vec<u32>,
    /// Show also what this kernel would have done, with its slice timer on (its default) and off.
    /// Needs a recording with -e sched:sched_switch -e sched:sched_wakeup
    #[arg(long, value_name = "VERSION", value_parser = ["7.2"])]
    upgrade: Option<String>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Replay what is recorded and nothing else
    ///
    /// Otherwise an operation without a record is inferred where the record contradicts itself
    /// without it, and counted.
    #[arg(long)]
    no_inference: bool,
    /// Fail unless the trace is sound and the replay comes within 5 % of all that it recorded
    #[arg(long)]
    strict: bool,
}

impl Command for ReplayArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let files = traces::expand(&self.traces)?;
        if let [file] = files.as_slice() {
            let summary = self.replay(file)?;
            print(&summary, self.format)?;
            return Ok(self.verdict(&summary));
        }
        let has_more = !self.hz.is_empty() || self.upgrade.is_some();
        if has_more && self.format != Format::Json {
            return Err(Failure::usage(
                "--hz or --upgrade with several traces needs --format json",
            ));
        }
        // A trace that cannot be used is left out of the table. The command continues with the next
        // trace, and fails at the end.
        let mut summaries = Vec::new();
        let mut exit = Exit::Success;
        for file in &files {
            match self.replay(file) {
                Ok(summary) => summaries.push(summary),
                Err(failure) => {
                    failure.message.iter().for_each(complain);
                    exit = Exit::Failure;
                }
            }
        }
        print(&summaries[..], self.format)?;
        for summary in &summaries {
            let verdict = self.verdict(summary);
            exit = if exit == Exit::Success { verdict } else { exit };
        }
        Ok(exit)
    }
}

impl ReplayArgs {
    fn replay(&self, file: &Path) -> Result<Summary, Failure> {
        let policies = match self.policy.as_slice() {
            [] => &ReplayPolicy::DEFAULT[..],
            some => some,
        };
        let inference = if self.no_inference { Inference::Off } else { Inference::On };
        let trace = traces::read(file)?;
        let lacks = |what: &str| Failure::new(format_args!("{}: {what}", trace.path));
        let (mut ticks, mut upgrade) = (Vec::new(), Vec::new());
        if !self.hz.is_empty() {
            const WHAT: &str = "--hz needs the CPUs' ticks, and the trace has none. Record all \
                                events of the system timer";
            ticks = other_ticks(&trace, inference, &self.hz).ok_or_else(|| lacks(WHAT))?;
        }
        if self.upgrade.is_some() {
            const WHAT: &str = "--upgrade needs to know which tasks wait for a CPU. Record also \
                                -e sched:sched_switch -e sched:sched_wakeup";
            upgrade = upgraded(&trace, inference).ok_or_else(|| lacks(WHAT))?;
        }
        let mut summary = summarise(&trace, policies, inference);
        traces::complain_of(&trace, self.format, &mut summary.notes);
        Ok(Summary { ticks, upgrade, ..summary })
    }

    fn verdict(&self, summary: &Summary) -> Exit {
        if !self.strict {
            return Exit::Success;
        }
        let file = &summary.trace.file;
        let Some(agreement) = &summary.agreement else {
            complain(format_args!(
                "{file}: --strict compares with recorded device writes, and there are none. \
                 Record msr:write_msr with the filter 'msr == 0x6e0'; since Linux 7.1 \
                 timer:hrtimer_rearm"
            ));
            return Exit::OutOfBounds;
        };
        if agreement.agrees {
            return Exit::Success;
        }
        if !agreement.damage.is_empty() {
            complain(format_args!("{file}: the trace cannot have happened like that, see above"));
        }
        for Measure { measure, recorded, replayed, inside } in &agreement.measures {
            if !inside {
                let measure = measure.replace('_', " ");
                complain(format_args!(
                    "{file}: {measure} {replayed} replayed, {recorded} recorded: more than 5 % off"
                ));
            }
        }
        for Comparison { policy, verdict, .. } in &agreement.others {
            if *verdict == Verdict::FitsBetter {
                let kernel = agreement.policy;
                complain(format_args!(
                    "{file}: {policy} fits better than {kernel}, which its kernel should have"
                ));
            }
        }
        Exit::OutOfBounds
    }
}
