//! The command `tickless sweep`, which computes the cells (single computations) of a campaign.

use crate::command::{Command, Exit, Failure};
use crate::output::print_with;
use crate::progress::Bar;
use indicatif::HumanCount;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tickless_fleet::campaign::Plan;
use tickless_fleet::sweep::run;

/// Run a campaign: studies, replays and projections over many machines, traces and seeds
///
/// Runs all cells on all CPUs, and writes one table. A cell that fails is a row with its error.
/// Each finished cell is kept in FILE.partial until the end, so you can stop it and continue
/// later: the same command runs the cells that are missing there.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tickless sweep campaign.toml -o results.csv\n\n\
    Exit status: 0 if done, failed cells included, 1 if a file cannot be written or is there\n\
    already, 2 for a wrong command line or campaign, 130 if interrupted.")]
pub struct SweepArgs {
    /// The campaign's file
    spec: PathBuf,
    /// The table, as CSV
    #[arg(long, short, value_name = "FILE", default_value = "results.csv")]
    output: PathBuf,
    /// How many threads; all CPUs if left out
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

impl Command for SweepArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let plan = Plan::read(&self.spec).map_err(Failure::usage)?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.unwrap_or(0))
            .build()
            .map_err(|error| {
            Failure::new(format_args!("no threads: {error}; ask for fewer"))
        })?;
        let stop = Arc::new(AtomicBool::new(false));
        let progress = Bar::on_terminal();
        progress.stop_on_interrupt(Arc::clone(&stop));
        let done = run(&plan, &self.output, &pool, &stop, &progress);
        progress.end();
        let done = done?;
        let [before, performed, failed, left] =
            [done.before, done.performed, done.failed, done.left].map(HumanCount);
        let failed = match done.failed {
            0 => String::new(),
            _ => format!(", {failed} of which failed"),
        };
        print_with(|out| {
            writeln!(out, "{performed} cells performed{failed}; {before} were there before")?;
            match done.left {
                0 => writeln!(out, "{}", self.output.display()),
                _ => writeln!(out, "interrupted; {left} are left, run it again for them"),
            }
        })?;
        Ok(if done.left > 0 { Exit::Interrupted } else { Exit::Success })
    }
}
