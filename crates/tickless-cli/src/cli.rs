//! The command line.
//!
//! Results go to standard output, everything else to standard error. If the output is closed, the
//! program ends without a panic: a reader such as `head` may have read enough.

use crate::command::{self, Exit, complain};
use crate::compare::CompareArgs;
use crate::doctor::DoctorArgs;
use crate::fleet::FleetArgs;
use crate::late::LateArgs;
use crate::latency::LatencyArgs;
use crate::machines::MachinesArgs;
use crate::manual::{CompletionsArgs, ManArgs};
use crate::project::ProjectArgs;
use crate::quota::QuotaArgs;
use crate::record::RecordArgs;
use crate::replay::ReplayArgs;
use crate::report::ReportArgs;
use crate::study::StudyArgs;
use crate::sweep::SweepArgs;
use crate::top::TopArgs;
use crate::warp::WarpArgs;
use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;
use tickless_trace::record;

/// Measures, explains and predicts what timers cost.
#[derive(Debug, Parser)]
#[command(name = "tickless", version, arg_required_else_help = true)]
#[command(after_help = "Examples:\n  \
    tickless replay traces/nginx.txt.gz\n  \
    sudo tickless top\n  \
    sudo tickless record -- make test && tickless replay trace.txt.gz\n  \
    tickless report\n  \
    tickless study rearm --live\n  \
    tickless latency -S -D 5\n  \
    tickless warp -- cargo test\n  \
    tickless help study")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// The help text of each command is at the struct of its arguments.
#[derive(Debug, Subcommand)]
enum Command {
    Report(ReportArgs),
    Replay(ReplayArgs),
    Record(RecordArgs),
    Study(StudyArgs),
    Top(TopArgs),
    Late(LateArgs),
    Quota(QuotaArgs),
    Latency(LatencyArgs),
    Warp(WarpArgs),
    Compare(CompareArgs),
    Machines(MachinesArgs),
    Doctor(DoctorArgs),
    Project(ProjectArgs),
    Fleet(FleetArgs),
    Sweep(SweepArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

pub fn description() -> clap::Command {
    Cli::command()
}

/// Runs the program. A recording starts the program once more, as the watcher that removes what a
/// killed recording leaves.
pub fn main() -> ExitCode {
    if record::watch_if_asked() {
        return ExitCode::SUCCESS;
    }
    let cli = Cli::parse();
    let command: &dyn command::Command = match &cli.command {
        Command::Report(args) => args,
        Command::Replay(args) => args,
        Command::Record(args) => args,
        Command::Study(args) => args,
        Command::Top(args) => args,
        Command::Late(args) => args,
        Command::Quota(args) => args,
        Command::Latency(args) => args,
        Command::Warp(args) => args,
        Command::Compare(args) => args,
        Command::Machines(args) => args,
        Command::Doctor(args) => args,
        Command::Project(args) => args,
        Command::Fleet(args) => args,
        Command::Sweep(args) => args,
        Command::Completions(args) => args,
        Command::Man(args) => args,
    };
    let exit: Exit = command.run().unwrap_or_else(|failure| {
        failure.message.iter().for_each(complain);
        failure.exit
    });
    exit.into()
}
