//! The command line of `tickless top`.

use super::{batch, live};
use crate::choice;
use crate::duration::parse_seconds;
use crate::output::Format;
use crate::record::command::Waiting;
use clap::builder::TypedValueParser;
use std::fmt;
use std::io::{self, IsTerminal};
use std::num::NonZeroU64;
use std::process::ExitCode;
use std::time::Duration;
use tickless_top::source::{Choice, Counting, SourceError};
use tickless_top::table::{By, Sort, Table};

/// What follows `tickless top`.
#[derive(Debug, clap::Args)]
pub struct TopArgs {
    /// A row for each callback of each process
    #[arg(short, long)]
    callbacks: bool,
    /// Sort by this column
    #[arg(short, long, value_name = "COLUMN", value_parser = sorts(), default_value = "wakeups")]
    sort: Sort,
    /// Only rows whose process, number or callback has this in it
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,
    /// How long each table looks: seconds, or with ms, s, m
    #[arg(short, long, value_name = "TIME", value_parser = parse_seconds, default_value = "2s")]
    interval: Duration,
    /// Print one table, and end
    #[arg(long, conflicts_with = "batch")]
    once: bool,
    /// Print this many tables, one after the other
    #[arg(long, value_name = "N")]
    batch: Option<NonZeroU64>,
    /// At most this many rows in each printed table
    #[arg(short = 'n', long, value_name = "N", default_value = "20")]
    rows: usize,
    /// Where events are counted
    #[arg(long, value_name = "SOURCE", value_parser = sources(), default_value = "auto")]
    source: Choice,
    /// How to print; JSON has a line for each table
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

fn sorts() -> impl TypedValueParser<Value = Sort> {
    choice::of(&Sort::ALL, |sort| {
        let about = match sort {
            Sort::Wakeups => "Idle CPUs woken",
            Sort::Arms => "Timers armed",
            Sort::Cancels => "Timers cancelled",
            Sort::Expiries => "Timers that expired",
            Sort::Rearms => "Armings of pending timers",
            Sort::Share => "Cancelled, of those armed",
            Sort::Writes => "Writes of timer devices",
            Sort::Name => "The process's name",
        };
        (sort.name(), about)
    })
}

fn sources() -> impl TypedValueParser<Value = Choice> {
    choice::of(&Choice::ALL, |choice| {
        let about = match choice {
            Choice::Auto => "eBPF where it can be had, or else tracefs",
            Choice::Tracefs => "By this program: a tracefs instance hands over every event",
            Choice::Ebpf => "In the kernel, by eBPF programs: costs least",
        };
        (choice.name(), about)
    })
}

/// Why nothing is shown.
#[derive(Debug)]
pub enum TopError {
    /// Nothing can be counted.
    Source(SourceError),
    /// Standard output is no terminal.
    NoTerminal,
    /// The terminal or the output refuses.
    Output(io::Error),
}

impl fmt::Display for TopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopError::Source(error) => error.fmt(f),
            TopError::NoTerminal => {
                f.write_str("standard output is no terminal. Print tables with --once or --batch N")
            }
            TopError::Output(error) => error.fmt(f),
        }
    }
}

impl From<SourceError> for TopError {
    fn from(error: SourceError) -> TopError {
        TopError::Source(error)
    }
}

impl From<io::Error> for TopError {
    fn from(error: io::Error) -> TopError {
        TopError::Output(error)
    }
}

/// What is shown of what was counted.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) by: By,
    pub(super) sort: Sort,
    pub(super) filter: String,
}

impl View {
    /// Sorts a table, and leaves out what is not to be seen.
    pub(super) fn apply(&self, table: &mut Table) {
        if !self.filter.is_empty() {
            table.filter(&self.filter);
        }
        table.sort(self.sort);
    }
}

impl TopArgs {
    /// Shows tables until it is told to end; `tell` is told what people should know before.
    ///
    /// # Errors
    /// When nothing can be counted or shown.
    pub fn run(&self, tell: &dyn Fn(&str)) -> Result<ExitCode, TopError> {
        let tables = if self.once { NonZeroU64::new(1) } else { self.batch };
        if tables.is_none() && !(io::stdout().is_terminal() && io::stdin().is_terminal()) {
            return Err(TopError::NoTerminal);
        }
        let by = if self.callbacks { By::Callback } else { By::Process };
        let view = View { by, sort: self.sort, filter: self.filter.clone() };
        let program = std::env::current_exe().ok();
        // Before there is anything to leave behind.
        let waiting = Waiting::new();
        let mut notes = Vec::new();
        let mut note = |text: &str| notes.push(text.to_string());
        let counting = Counting::start(self.source, program.as_deref(), &mut note)?;
        match tables {
            Some(tables) => {
                notes.iter().for_each(|note| tell(note));
                let batch = batch::Batch { tables, rows: self.rows, format: self.format };
                batch.run(&waiting, counting, self.interval, &view)
            }
            None => live::run(&waiting, counting, self.interval, view, notes)
                .map(|()| ExitCode::SUCCESS),
        }
    }
}
