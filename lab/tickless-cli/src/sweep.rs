//! The command `tickless sweep`, which computes the cells (single computations) of a campaign.

use crate::command::{Command, Exit, Failure};
use crate::output::{Format, Results, bare, print, print_with, write_csv, write_table};
use crate::progress::Bar;
use indicatif::HumanCount;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tickless_fleet::campaign::Plan;
use tickless_fleet::sweep::{Folder, Merged, Retry, Shard, Status, merge, run};

/// Run a campaign: studies, replays and projections over many machines, traces and seeds
///
/// Runs the cells that are missing in the folder, and no others, on all CPUs. So you can stop
/// it and continue later, and split it over machines with --shard. A cell that fails is a row
/// with its error. Ctrl-C writes the results so far.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tickless sweep campaign.toml --out results\n  \
    tickless sweep campaign.toml --out results --shard 0/8\n  \
    tickless sweep status results\n  \
    tickless sweep merge results -o results.csv\n\n\
    Exit status: 0 if done, failed cells included, 1 if files cannot be written or a merge is\n\
    not whole, 2 for a wrong command line or campaign, 130 if interrupted.")]
#[command(args_conflicts_with_subcommands = true)]
pub struct SweepArgs {
    #[command(subcommand)]
    command: Option<SweepCommand>,
    /// The campaign's file
    #[arg(required = true)]
    spec: Option<PathBuf>,
    /// The folder for the results; what is there already is not done again
    #[arg(long, value_name = "DIR", required = true)]
    out: Option<PathBuf>,
    /// Only every N-th cell, from the I-th, counted from 0
    #[arg(long, value_name = "I/N", default_value = "0/1")]
    shard: Shard,
    /// Perform cells that failed before once more
    #[arg(long)]
    retry: bool,
    /// How many threads; all CPUs if left out
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Debug, clap::Subcommand)]
enum SweepCommand {
    /// Write the results of folders as one table, if no cell is missing or there twice
    Merge {
        /// Folders of one campaign
        #[arg(required = true, value_name = "DIR")]
        folders: Vec<PathBuf>,
        /// The table: a name that ends in .csv
        #[arg(long, short, value_name = "FILE", default_value = "results.csv")]
        output: PathBuf,
    },
    /// Show how far a campaign is
    Status {
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// How to print it
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

impl Command for SweepArgs {
    fn run(&self) -> Result<Exit, Failure> {
        match &self.command {
            Some(SweepCommand::Merge { folders, output }) => {
                let folders = folders.iter().map(|path| Folder::open(path));
                let folders: Vec<Folder> = folders.collect::<Result<_, _>>()?;
                let Merged { cells, failed, rows } = merge(&folders, output)?;
                let (file, cells, rows) = (output.display(), HumanCount(cells), HumanCount(rows));
                let of_which = of_which(failed);
                print_with(|out| writeln!(out, "{file}: {rows} rows of {cells} cells{of_which}"))?;
            }
            Some(SweepCommand::Status { folder, format }) => {
                print(&Folder::open(folder)?.status()?, *format)?;
            }
            None => return self.sweep(),
        }
        Ok(Exit::Success)
    }
}

impl SweepArgs {
    fn sweep(&self) -> Result<Exit, Failure> {
        let (Some(spec), Some(out)) = (&self.spec, &self.out) else {
            // Never happens: clap requires both arguments if no subcommand is given.
            return Ok(Exit::Usage);
        };
        let plan = Plan::read(spec).map_err(Failure::usage)?;
        let folder = Folder::create(out, plan)?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.unwrap_or(0))
            .build()
            .map_err(|error| {
            Failure::new(format_args!("no threads: {error}; ask for fewer"))
        })?;
        let retry = if self.retry { Retry::Failed } else { Retry::No };
        let stop = Arc::new(AtomicBool::new(false));
        let progress = Bar::on_terminal();
        progress.stop_on_interrupt(Arc::clone(&stop));
        let done = run(&folder, self.shard, retry, &pool, &stop, &progress);
        progress.end();
        let done = done?;
        let [before, performed, left] = [done.before, done.performed, done.left].map(HumanCount);
        let failed = of_which(done.failed);
        print_with(|out| {
            writeln!(out, "{performed} cells performed{failed}; {before} were there before")?;
            match done.left {
                0 => Ok(()),
                _ => writeln!(out, "interrupted; {left} are left, run it again for them"),
            }
        })?;
        Ok(if done.left > 0 { Exit::Interrupted } else { Exit::Success })
    }
}

fn of_which(failed: u64) -> String {
    if failed > 0 { format!(", {} of which failed", HumanCount(failed)) } else { String::new() }
}

impl Results for Status {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let Status { cells, done, failed, missing, running } = *self;
        let rows = [("all", cells), ("done", done), ("failed", failed), ("missing", missing)];
        let rows = rows.map(|(name, number)| [name.to_string(), HumanCount(number).to_string()]);
        write_table(bare(&["", "cells"], 1).add_rows(rows), out)?;
        let are = if running == 1 { "process works" } else { "processes work" };
        writeln!(out, "{running} {are} on it")
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        write_csv("", [self], out)
    }
}
