//! The command line of `tickless project`.

use crate::choice;
use crate::output::Format;
use crate::progress::Bar;
use std::fmt;
use std::path::PathBuf;
use tickless_fleet::campaign::Numbers;
use tickless_fleet::project::{Clock, ProjectError, Projected, Projection, Request, project};
use tickless_lab::progress::Progress;
use tickless_lab::{machines, studies::StudyError};
use tickless_trace::replay::streams::Streams;
use tickless_trace::replay::{Inference, ReplayPolicy};
use tickless_trace::{Trace, TraceError};

/// What follows `tickless project`.
#[derive(Debug, clap::Args)]
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
    #[arg(long, default_value = "tsc", value_parser = choice::of(&Clock::ALL, told))]
    clock: Clock,
    /// Only this policy; may be given several times
    #[arg(long, value_parser = choice::of(&ReplayPolicy::DEFAULT, about))]
    policy: Vec<ReplayPolicy>,
    /// Where randomness starts: which CPU of the trace each CPU plays, and from when on
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// How much of the trace to run, at most all; about a million operations if left out
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Why there is no projection.
#[derive(Debug)]
pub enum ProjectFailure {
    /// The trace cannot be used.
    Trace(TraceError),
    /// The machine does not exist or does not parse.
    Machine(StudyError),
    /// What was asked for cannot be.
    Request(String),
    /// The run.
    Project(ProjectError),
}

fn told(clock: Clock) -> (&'static str, &'static str) {
    let about = match clock {
        Clock::Tsc => "each CPU's own counter",
        Clock::Hpet => "one slow counter, read by everybody",
        Clock::Combined => "one slow counter, read by one CPU for all",
    };
    (clock.name(), about)
}

fn about(policy: ReplayPolicy) -> (&'static str, &'static str) {
    let about = match policy {
        ReplayPolicy::Eager => "every removal of the first timer programs the device",
        ReplayPolicy::Lazy => "no removal does",
        _ => "a cancel does, a restart is judged as a whole",
    };
    (policy.name(), about)
}

impl ProjectArgs {
    /// Runs the trace on the machine, once for each policy and number of CPUs.
    pub fn run(&self, complain: &dyn Fn(String)) -> Result<Projected, ProjectFailure> {
        let spec = machines::find(&self.machine).map_err(ProjectFailure::Machine)?;
        let own = u64::from(spec.costs().topology.cpus());
        let cpus: Vec<u64> = self.cpus.as_ref().map_or(vec![own], |cpus| cpus.iter().collect());
        let wrong = |what: String| Err(ProjectFailure::Request(what));
        if let Some(count) = cpus.iter().find(|count| !(1..=4_096).contains(*count)) {
            return wrong(format!("{count} CPUs; ask for 1 to 4096"));
        }
        if cpus.is_empty() {
            return wrong("--cpus names no number".to_string());
        }
        if let Some(seconds) = self.seconds.filter(|it| !(it.is_finite() && *it > 0.0)) {
            return wrong(format!("--seconds {seconds} is no time"));
        }
        let trace = Trace::read(&self.trace).map_err(ProjectFailure::Trace)?;
        trace.messages().for_each(|message| complain(message.to_string()));
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
                let point = project(&streams, &spec, &request).map_err(ProjectFailure::Project)?;
                points.push(point);
                progress.step();
            }
        }
        progress.end();
        Ok(Projected::new(&trace, &spec, self.seed, points))
    }
}

impl ProjectFailure {
    /// Is it the command line that has to be changed?
    pub fn is_usage(&self) -> bool {
        matches!(self, ProjectFailure::Machine(_) | ProjectFailure::Request(_))
    }
}

impl fmt::Display for ProjectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProjectFailure::Trace(error) => error.fmt(f),
            ProjectFailure::Machine(error) => error.fmt(f),
            ProjectFailure::Request(what) => f.write_str(what),
            ProjectFailure::Project(error) => error.fmt(f),
        }
    }
}
