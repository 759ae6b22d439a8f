//! The command line.
//!
//! Results go to standard output, everything else to standard error. If the output is closed, the
//! program ends without a panic: a reader such as `head` has perhaps read enough.

use crate::command::{self, Command as _, Exit, Failure, complain};
use crate::manual::{CompletionsArgs, ManArgs};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;
use tickless_trace::record;

/// Measures, explains and predicts what timers cost.
#[derive(Debug, Parser)]
#[command(name = "tickless", version, arg_required_else_help = true)]
#[command(after_help = include_str!("help/tickless.txt"))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Declares the commands of the program, each with its arguments.
macro_rules! commands {
    ($($name:ident($args:ty),)*) => {
        // The help text of each command is at the struct of its arguments.
        #[derive(Debug, Subcommand)]
        enum Command {
            $($name($args),)*
            Completions(CompletionsArgs),
            Man(ManArgs),
        }

        impl command::Command for Command {
            fn run(&self) -> Result<Exit, Failure> {
                match self {
                    $(Command::$name(args) => args.run(),)*
                    Command::Completions(args) => args.run(program()),
                    Command::Man(args) => args.run(program()),
                }
            }
        }
    };
}

commands! {
    Report(crate::report::ReportArgs),
    Replay(crate::replay::ReplayArgs),
    Record(crate::record::RecordArgs),
    Study(crate::study::StudyArgs),
    Top(crate::top::TopArgs),
    Late(crate::late::LateArgs),
    Quota(crate::quota::QuotaArgs),
    Latency(crate::latency::LatencyArgs),
    Warp(crate::warp::WarpArgs),
    Compare(crate::compare::CompareArgs),
    Machines(crate::machines::MachinesArgs),
    Doctor(crate::doctor::DoctorArgs),
    Project(crate::project::ProjectArgs),
    Sweep(crate::sweep::SweepArgs),
}

/// Describes the command line. The help of each command says where all are listed by symptom.
fn program() -> clap::Command {
    Cli::command().mut_subcommands(|command| {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        command.after_help(format!(
            "{help}\nWhich command for which symptom: docs/book/src/symptoms.md"
        ))
    })
}

/// Runs the program. A recording starts the program once more, as the watcher that removes what a
/// killed recording leaves.
pub fn main() -> ExitCode {
    if record::watch_if_asked() {
        return ExitCode::SUCCESS;
    }
    let matches = program().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let exit = cli.command.run().unwrap_or_else(|failure| {
        failure.message.iter().for_each(complain);
        failure.exit
    });
    exit.into()
}
