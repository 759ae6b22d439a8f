//! The command line.

use crate::replay::{self, Format};
use crate::trace::{Trace, TraceError};
use clap::{Parser, Subcommand, ValueEnum};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use tickless_core::rearm::Policy;

/// Measures, explains and predicts what timers cost.
#[derive(Debug, Parser)]
#[command(name = "tickless", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Drive a recorded kernel timer trace through the timer core, once for each policy
    ///
    /// Shows how often the event device would have been programmed, how many wakeups would have
    /// found nothing to do, and how late timers would have fired, beside what the trace itself
    /// recorded. Reads ftrace text, plain or gzip, and what `trace-cmd report` and `perf script`
    /// print.
    #[command(after_help = "Examples:\n  \
        tickless replay traces/nginx.txt.gz\n  \
        tickless replay trace.txt --policy lazy --format json\n\n\
        Exit status: 0 if replayed, 1 if a trace cannot be used, 2 for a wrong command line, \n\
        3 with --strict if the replay is more than 5 % off the recorded device writes.")]
    Replay(ReplayArgs),
}

#[derive(Debug, clap::Args)]
struct ReplayArgs {
    /// The trace
    trace: PathBuf,
    /// Only this policy; may be given several times
    #[arg(long, value_enum)]
    policy: Vec<PolicyArg>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Fail if the replay does not come within 5 % of the recorded device writes
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PolicyArg {
    /// Every removal of the first timer programs the device
    Eager,
    /// No removal does
    Lazy,
    /// A cancel does, a restart is judged as a whole: what the kernel does today
    RestartAware,
}

impl From<PolicyArg> for Policy {
    fn from(arg: PolicyArg) -> Policy {
        match arg {
            PolicyArg::Eager => Policy::Eager,
            PolicyArg::Lazy => Policy::Lazy,
            PolicyArg::RestartAware => Policy::RestartAware,
        }
    }
}

/// Why the program ends without having done what it was asked to do.
#[derive(Debug)]
enum Failure {
    Trace(TraceError),
    Output(io::Error),
}

/// The whole program.
pub fn main() -> ExitCode {
    let Command::Replay(args) = Cli::parse().command;
    match run_replay(&args) {
        Ok(code) => code,
        // Whoever read our output has seen enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Output(error)) => fail(&format!("cannot write the results: {error}")),
        Err(Failure::Trace(error)) => fail(&error.to_string()),
    }
}

fn run_replay(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let trace = Trace::read(&args.trace).map_err(Failure::Trace)?;
    for message in trace.messages() {
        eprintln!("tickless: {message}");
    }
    let policies: Vec<Policy> = match args.policy.as_slice() {
        [] => Policy::ALL.to_vec(),
        some => some.iter().map(|&policy| policy.into()).collect(),
    };
    let summary = replay::summarise(&trace, &policies);
    let mut out = io::stdout().lock();
    replay::show(&summary, args.format, &mut out).map_err(Failure::Output)?;
    out.flush().map_err(Failure::Output)?;
    let off = summary.agreement.as_ref().is_some_and(|agreement| !agreement.inside);
    Ok(if args.strict && off { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

fn fail(message: &str) -> ExitCode {
    eprintln!("tickless: {message}");
    ExitCode::FAILURE
}
