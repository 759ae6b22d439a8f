//! The command `tickless project`, which runs a recorded trace on simulated machines: its
//! arguments, and its results as tables, JSON or CSV.

mod show;

use crate::choice::{self, policy};
use crate::command::{Command, Exit, Failure, complain};
use crate::output::{Format, print};
use crate::progress::Bar;
use std::path::PathBuf;
use tickless_fleet::campaign::Numbers;
use tickless_fleet::project::{Clock, Projected, Projection, Request, project};
use tickless_lab::machines;
use tickless_lab::progress::Progress;
use tickless_trace::Trace;
use tickless_trace::replay::streams::Streams;
use tickless_trace::replay::{Inference, ReplayPolicy};

/// Project what the timers of a recorded program would cost on another machine
///
/// Lays the operations of a trace onto the CPUs of a simulated machine and runs them through
/// the timer core at that machine's prices. With several numbers of CPUs it shows what limits
/// first. Rates and shares do not need the whole trace, so it runs about a million operations
/// unless --seconds says more.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tickless project traces/nginx.txt.gz --machine ivybridge-ex-16s --cpus 2,30,120,480\n  \
    tickless project trace.txt.gz --machine new.toml --clock hpet --policy lazy\n  \
    tickless machines --measure -o here.toml && \\\n    \
    tickless project trace.txt.gz --machine here.toml --seconds 10\n\n\
    Exit status: 0 if projected, 1 if a trace cannot be used or the results not written,\n\
    2 for a wrong command line or machine, 130 if interrupted.")]
pub struct ProjectArgs {
    /// The trace
    trace: PathBuf,
    /// The machine: a name from `tickless machines`, or a file
    #[arg(long, value_name = "NAME|FILE")]
    machine: String,
    /// How many CPUs, such as 2,16,480: the points of a curve; the machine's own number if left out
    #[arg(long, value_name = "LIST")]
    cpus: Option<Numbers>,
    /// The counter that the time is read from
    #[arg(long, default_value = "tsc", value_parser = choice::of(&Clock::ALL, named))]
    clock: Clock,
    /// Only this policy; may be given several times
    #[arg(long, value_parser = policy(&ReplayPolicy::DEFAULT))]
    policy: Vec<ReplayPolicy>,
    /// Seed of the choices: which CPU of the trace each CPU repeats, and from which moment
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// How much of the trace to run, at most all; about a million operations if left out
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

fn named(clock: Clock) -> (&'static str, &'static str) {
    let about = match clock {
        Clock::Tsc => "each CPU's own counter",
        Clock::Hpet => "one slow counter, which every CPU reads",
        Clock::Combined => "one slow counter, which one CPU reads for all",
    };
    (clock.name(), about)
}

impl Command for ProjectArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let spec = machines::find(&self.machine).map_err(Failure::usage)?;
        let own = u64::from(spec.costs().topology.cpus());
        let cpus: Vec<u64> = self.cpus.as_ref().map_or(vec![own], |cpus| cpus.iter().collect());
        if let Some(count) = cpus.iter().find(|count| !(1..=4_096).contains(*count)) {
            return Err(Failure::usage(format_args!("{count} CPUs; ask for 1 to 4096")));
        }
        if let Some(seconds) = self.seconds.filter(|it| !(it.is_finite() && *it > 0.0)) {
            return Err(Failure::usage(format_args!("--seconds {seconds} is no time")));
        }
        let trace = Trace::read(&self.trace)?;
        trace.messages().for_each(complain);
        let streams = Streams::of(&trace, Inference::On);
        let policies = match self.policy.as_slice() {
            [] => &ReplayPolicy::DEFAULT[..],
            some => some,
        };
        let progress = Bar::on_terminal();
        progress.end_on_interrupt();
        progress.begin("projecting", cpus.len() * policies.len());
        let mut points: Vec<Projection> = Vec::new();
        for count in cpus {
            for &policy in policies {
                let request = Request {
                    cpus: count as u16,
                    policy,
                    clock: self.clock,
                    seed: self.seed,
                    seconds: self.seconds,
                };
                let point = project(&streams, &spec, &request)?;
                points.push(point);
                progress.step();
            }
        }
        progress.end();
        print(&Projected::new(&trace, &spec, self.seed, points), self.format)?;
        Ok(Exit::Success)
    }
}
