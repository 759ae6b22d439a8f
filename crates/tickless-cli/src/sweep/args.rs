//! The command line of `tickless sweep`.

use super::show;
use crate::output::Format;
use crate::progress::Bar;
use std::fmt;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tickless_fleet::campaign::{CampaignError, Plan};
use tickless_fleet::sweep::{
    Done, Folder, Merged, Retry, Shard, ShardError, Status, SweepError, merge, run,
};

/// What follows `tickless sweep`.
#[derive(Debug, clap::Args)]
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
    ///
    /// With N alone the index is that of a Slurm array's task (SLURM_ARRAY_TASK_ID) or of an
    /// indexed Kubernetes job (JOB_COMPLETION_INDEX). In a Slurm array both are found without it.
    #[arg(long, value_name = "I/N")]
    shard: Option<String>,
    /// Perform cells that failed before once more
    #[arg(long)]
    retry: bool,
    /// How many threads; all CPUs if left out
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Do not ask, however many cells there are
    #[arg(long, short)]
    yes: bool,
}

#[derive(Debug, clap::Subcommand)]
enum SweepCommand {
    /// Write the results of folders as one table, if no cell is missing or there twice
    Merge(MergeArgs),
    /// Show how far a campaign is
    Status(StatusArgs),
}

#[derive(Debug, clap::Args)]
struct MergeArgs {
    /// Folders of one campaign
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// The table: a name in .csv, or in .parquet if the program is built with that feature
    #[arg(long, short, value_name = "FILE", default_value = "results.csv")]
    output: PathBuf,
}

#[derive(Debug, clap::Args)]
struct StatusArgs {
    /// The folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What the command has come to.
#[derive(Debug)]
pub enum Outcome {
    /// Cells were performed.
    Ran(Done),
    /// Ctrl-C ended it early; what was done is written.
    Interrupted(Done),
    /// A table was written.
    Merged(Merged, PathBuf),
    /// How far it is.
    Status(Status, Format),
}

/// Why it has come to nothing.
#[derive(Debug)]
pub enum SweepFailure {
    /// The campaign's file.
    Campaign(CampaignError),
    /// The shard.
    Shard(ShardError),
    /// There are very many cells, and nobody said yes.
    TooMany(u64),
    /// Threads cannot be had.
    Threads(String),
    /// The folder.
    Sweep(SweepError),
}

/// More cells than anybody types in on purpose.
const ASKS_FROM: u64 = 1_000_000;

impl SweepArgs {
    /// Does what was asked for.
    pub fn run(&self) -> Result<Outcome, SweepFailure> {
        match &self.command {
            Some(SweepCommand::Merge(args)) => args.run(),
            Some(SweepCommand::Status(args)) => {
                let folder = Folder::open(&args.folder)?;
                Ok(Outcome::Status(folder.status()?, args.format))
            }
            None => self.sweep(),
        }
    }

    fn sweep(&self) -> Result<Outcome, SweepFailure> {
        let (Some(spec), Some(out)) = (&self.spec, &self.out) else {
            // clap asks for both where there is no other command.
            return Ok(Outcome::Ran(Done::default()));
        };
        let environment = |name: &str| std::env::var(name).ok();
        let shard = Shard::find(self.shard.as_deref(), environment).map_err(SweepFailure::Shard)?;
        let plan = Plan::read(spec).map_err(SweepFailure::Campaign)?;
        let cells = plan.numbers();
        if cells > ASKS_FROM && !self.yes && !says_yes(cells) {
            return Err(SweepFailure::TooMany(cells));
        }
        let folder = Folder::create(out, plan)?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.unwrap_or(0))
            .build()
            .map_err(|error| SweepFailure::Threads(error.to_string()))?;
        let retry = if self.retry { Retry::Failed } else { Retry::No };
        let stop = Arc::new(AtomicBool::new(false));
        let progress = Bar::on_terminal();
        progress.stop_on_interrupt(Arc::clone(&stop));
        let done = run(&folder, shard, retry, &pool, &stop, &progress);
        progress.end();
        let done = done?;
        Ok(if done.left > 0 { Outcome::Interrupted(done) } else { Outcome::Ran(done) })
    }
}

impl MergeArgs {
    fn run(&self) -> Result<Outcome, SweepFailure> {
        let folders = self.folders.iter().map(|path: &PathBuf| Folder::open(Path::new(path)));
        let folders: Vec<Folder> = folders.collect::<Result<_, _>>()?;
        Ok(Outcome::Merged(merge(&folders, &self.output)?, self.output.clone()))
    }
}

/// Asks, if there is somebody to ask.
fn says_yes(cells: u64) -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    let question =
        format!("tickless: the campaign has {} cells. Go on? [y/N] ", show::count(cells));
    let asked = io::stderr().write_all(question.as_bytes());
    let mut answer = String::new();
    let answered = asked.and_then(|()| io::stdin().lock().read_line(&mut answer));
    answered.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

impl From<SweepError> for SweepFailure {
    fn from(error: SweepError) -> SweepFailure {
        SweepFailure::Sweep(error)
    }
}

impl SweepFailure {
    /// Is it the command line or the campaign's file that has to be changed?
    pub fn is_usage(&self) -> bool {
        !matches!(self, SweepFailure::Sweep(_) | SweepFailure::Threads(_))
    }
}

impl fmt::Display for SweepFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SweepFailure::Campaign(error) => error.fmt(f),
            SweepFailure::Shard(error) => error.fmt(f),
            SweepFailure::TooMany(cells) => write!(
                f,
                "the campaign has {} cells; exclude some, or say --yes",
                show::count(*cells)
            ),
            SweepFailure::Threads(error) => write!(f, "no threads: {error}; ask for fewer"),
            SweepFailure::Sweep(error) => error.fmt(f),
        }
    }
}
