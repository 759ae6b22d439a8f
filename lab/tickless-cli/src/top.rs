//! The command `tickless top`, which shows the processes that use timers.

mod cells;
mod live;
mod screen;
mod show;

use crate::command::{Command, Exit, Failure};
use crate::output::{Format, print_with};
use crate::record::command::{End, Waiting};
use crate::values::parse_seconds;
use std::io::{self, IsTerminal};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};
use tickless_top::Ebpf;
use tickless_top::table::{By, Sort, Table, between};

/// The longest time between two calls of [`Ebpf::poll`].
const POLL: Duration = Duration::from_millis(100);

/// Show live which processes arm timers, cancel them, and wake idle CPUs
///
/// Counts the kernel's timer events by eBPF programs in the kernel (root). The columns are the
/// share of a CPU that the process used, and rates per second: switches from its threads to others,
/// idle CPUs woken, writes of timer devices, timers armed, of these armed again while pending, the
/// share that was cancelled, and timers that fired. Then come the kind of timer, how far ahead it
/// is armed, and its period: x2 for two timers, ! if some expire together with those of a process
/// that is named below. The last row has the totals. A narrow terminal has fewer columns.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/top.txt"))]
pub struct TopArgs {
    /// A row for each callback of each process
    #[arg(short, long)]
    callbacks: bool,
    /// Show the command lines of processes
    #[arg(short = 'l', long)]
    command_lines: bool,
    /// Sort by the column with this heading
    #[arg(short, long, value_name = "COLUMN", value_enum, default_value_t)]
    sort: Sort,
    /// Only rows whose process, number or callback has this in it
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,
    /// How long each table counts: seconds, or with ms, s, m
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
    /// How to print; JSON has a line for each table
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) by: By,
    pub(super) sort: Sort,
    pub(super) filter: String,
    pub(super) command_lines: bool,
}

impl View {
    pub(super) fn apply(&self, table: &mut Table) {
        if !self.filter.is_empty() {
            table.filter(&self.filter);
        }
        table.sort(self.sort);
        table.rows.iter_mut().for_each(|row| row.command = cells::command(row.pid));
    }
}

impl Command for TopArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let tables = if self.once { NonZeroU64::new(1) } else { self.batch };
        if tables.is_none() && !(io::stdout().is_terminal() && io::stdin().is_terminal()) {
            return Err(Failure::new(
                "standard output is no terminal. Print tables with --once or --batch N",
            ));
        }
        let by = if self.callbacks { By::Callback } else { By::Process };
        let view = View {
            by,
            sort: self.sort,
            filter: self.filter.clone(),
            command_lines: self.command_lines,
        };
        let waiting = Waiting::new();
        let counting = Ebpf::start()?;
        match tables {
            Some(tables) => self.print(tables, &waiting, counting, &view),
            None => live::run(&waiting, counting, self.interval, view).map(|()| Exit::Success),
        }
    }
}

impl TopArgs {
    fn print(
        &self,
        tables: NonZeroU64,
        waiting: &Waiting,
        mut counting: Ebpf,
        view: &View,
    ) -> Result<Exit, Failure> {
        let mut before = counting.snapshot()?;
        for number in 0..tables.get() {
            let end = pass(waiting, &mut counting, self.interval);
            let after = counting.snapshot()?;
            let mut table = between(&before, &after, view.by);
            table.is_partial = end == End::Signal;
            view.apply(&mut table);
            print_with(|out| show::show(&table, view, self.rows, self.format, number, out))?;
            if end == End::Signal {
                return Ok(Exit::Interrupted);
            }
            before = after;
        }
        Ok(Exit::Success)
    }
}

/// Waits for an interval. Polls the counters in that time, to lose no event.
fn pass(waiting: &Waiting, counting: &mut Ebpf, interval: Duration) -> End {
    let end = Instant::now() + interval;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return End::Time;
        }
        if waiting.pass(left.min(POLL)) == End::Signal {
            return End::Signal;
        }
        counting.poll();
    }
}
