//! The command `tickless fleet`, which summarises the traces of many machines: its arguments, and
//! its results as tables, JSON or CSV.

mod show;

use crate::command::{Command, Exit, Failure};
use crate::output::{Format, print};
use crate::progress::Bar;
use crate::traces;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tickless_fleet::fleet::{fleet, page};

/// Summarise the traces of many machines
///
/// Replays each trace under three policies. Shows over all machines the quantiles of device
/// writes, wakeups and what each policy would have saved, and the ten machines that differ
/// most, with the reason. A trace that cannot be used is a row with its error.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tickless fleet traces/*.txt.gz\n  \
    tickless fleet 'traces/*.dat' --html fleet.html\n  \
    tickless fleet traces/*.txt.gz --format csv > machines.csv\n\n\
    Exit status: 0 if done, 1 if no trace can be used or the results not written, 2 for a\n\
    wrong command line, 130 if interrupted.")]
pub struct FleetArgs {
    /// The traces, one for each machine: files, or patterns such as 'traces/*.gz'
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Also write a page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Command for FleetArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let files = traces::expand(&self.traces)?;
        let stop = Arc::new(AtomicBool::new(false));
        let progress = Bar::on_terminal();
        progress.stop_on_interrupt(Arc::clone(&stop));
        let fleet = fleet(&files, &stop, &progress);
        progress.end();
        if stop.load(Ordering::Relaxed) {
            let failure = Failure::new("interrupted; nothing is written");
            return Err(Failure { exit: Exit::Interrupted, ..failure });
        }
        if let Some(file) = &self.html {
            page(&fleet)
                .and_then(|page| std::fs::write(file, page))
                .map_err(|error| Failure::file(file, error))?;
        }
        print(&fleet, self.format)?;
        Ok(if fleet.failed() == fleet.machines.len() { Exit::Failure } else { Exit::Success })
    }
}
