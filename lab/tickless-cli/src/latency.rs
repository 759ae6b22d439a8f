//! The command `tickless latency`, which measures how late threads wake.

mod broken;
mod limit;
mod show;

use self::broken::{Breaking, Broken};
use self::limit::Limit;
use crate::command::{Command, Exit, Failure, complain};
use crate::output::{Format, print};
use crate::progress::Bar;
use crate::record::may_overwrite;
use crate::values::{one_of, parse_seconds, parse_with_unit};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tickless_lab::latency::{Plan, Row, Sleeper, Slice, measure};
use tickless_lab::measure::cpus;
use tickless_lab::text::time;

/// Measure how late threads wake: our timers beside the kernel's own sleeps
///
/// Like cyclictest: a thread sleeps until a point in time, looks at the clock when it wakes,
/// and sleeps until an interval later. The sleepers are measured in turn, so that what
/// disturbs one disturbs all. Ctrl-C ends it early, and shows the results so far.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/latency.txt"))]
// By default clap uses `-h` for its help. Here `-h` is the histogram, as in cyclictest.
#[command(disable_help_flag = true)]
pub struct LatencyArgs {
    /// From one wakeup to the next, in microseconds
    #[arg(short, long, value_name = "US", default_value_t = 1_000,
        value_parser = clap::value_parser!(u64).range(1..=3_600_000_000))]
    interval: u64,
    /// Threads, or timers; one for each CPU if no number is given
    #[arg(short, long, value_name = "N", num_args = 0..=1, default_value_t = 1,
        default_missing_value = "0", value_parser = clap::value_parser!(u16).range(0..=4_096))]
    threads: u16,
    /// One thread for each CPU, and it stays there
    #[arg(short = 'S', long, conflicts_with = "threads")]
    smp: bool,
    /// Real-time (SCHED_FIFO), 1 to 99; fails if that is not permitted
    #[arg(short, long, value_name = "PRIO", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,
    /// How long each sleeper is measured: seconds, or with ms, s, m, h, d
    ///
    /// 10 s, unless the wakeups are counted.
    #[arg(short = 'D', long, value_name = "TIME", value_parser = parse_seconds)]
    duration: Option<Duration>,
    /// How many wakeups of each thread
    #[arg(short, long, value_name = "LOOPS", value_parser = clap::value_parser!(u64).range(1..))]
    loops: Option<u64>,
    /// A histogram by microseconds up to this
    #[arg(short = 'h', long, value_name = "US",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    histogram: Option<u32>,
    /// No progress bar
    #[arg(short, long)]
    quiet: bool,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The sleeper to measure; may be given several times
    ///
    /// All but `timeout` if left out: that one is coarse on purpose.
    #[arg(long, value_name = "SLEEPER", value_parser = one_of(&Sleeper::ALL, Sleeper::describe),
        value_delimiter = ',')]
    sleeper: Vec<Sleeper>,
    /// How much later than asked the kernel may wake threads that are not real-time, in ns
    ///
    /// Programs have 50000 unless they ask for less. timerfd takes no notice.
    #[arg(long, value_name = "NS", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    slack: u64,
    /// Fail if a figure exceeds this, such as p99=200us or hrtimer.max=2ms
    #[arg(long, value_name = "LIMIT", value_parser = Limit::parse)]
    limit: Vec<Limit>,
    /// Stop at the first wakeup that is later than this, keep the kernel's trace of what came
    /// before, and explain it (root)
    #[arg(long = "break", value_name = "TIME", value_parser = parse_with_unit)]
    break_above: Option<Duration>,
    /// The file for that trace; packed if it ends in .gz
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "late.txt.gz",
        requires = "break_above"
    )]
    output: PathBuf,
    /// Overwrite the file if it is there
    #[arg(long, requires = "break_above")]
    force: bool,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

#[derive(Serialize)]
struct Measured {
    #[serde(flatten)]
    row: Row,
    /// The late wakeup that ended all measurements, if it happened in this measurement.
    #[serde(rename = "break")]
    broken: Option<Broken>,
    #[serde(skip)]
    slice: Slice,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Latency {
    results: Vec<Measured>,
    #[serde(skip)]
    histogram_us: Option<u32>,
}

impl Command for LatencyArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let latency = Latency { results: self.measure()?, histogram_us: self.histogram };
        print(&latency, self.format)?;
        Ok(self.verdict(&latency))
    }
}

impl LatencyArgs {
    /// With `--break`, records what precedes a late wakeup.
    fn measure(&self) -> Result<Vec<Measured>, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let progress = if self.quiet { Bar::hidden() } else { Bar::on_terminal() };
        progress.stop_on_interrupt(Arc::clone(&stop));
        let sleepers = match self.sleeper.as_slice() {
            [] => Sleeper::EXACT,
            some => some,
        };
        let (mut plan, turns) = self.plan(stop);
        let mut breaking = None;
        if let Some(above) = self.break_above {
            if !self.force {
                may_overwrite(&self.output)?;
            }
            let (started, at_break) = Breaking::start(above, &self.output)?;
            plan.break_at = Some(at_break);
            breaking = Some(started);
        }
        let slices = measure(sleepers, &plan, turns, &progress);
        progress.end();
        let rows: Vec<Row> = match &slices {
            Ok(slices) => {
                let of = sleepers.iter().zip(slices);
                of.map(|(&sleeper, slice)| Row::new(sleeper, &plan, slice, self.histogram))
                    .collect()
            }
            Err(_) => Vec::new(),
        };
        // The plan holds an open file of the tracefs instance (this program's own trace buffer in
        // the kernel). The kernel does not remove the instance while the file is open.
        drop(plan);
        let slices = slices.map_err(Failure::lab)?;
        let sample = slices.iter().find_map(|slice| slice.tally.broke);
        let broken = breaking.map(|breaking| breaking.end(sample)).transpose()?.flatten();
        let measured = rows.into_iter().zip(slices).map(|(row, slice)| Measured {
            broken: broken.clone().filter(|_| slice.tally.broke.is_some()),
            row,
            slice,
        });
        Ok(measured.collect())
    }

    fn verdict(&self, Latency { results, .. }: &Latency) -> Exit {
        let late = results.iter().filter_map(|one| {
            let broken = one.broken.as_ref()?;
            let (sleeper, late, file) = (one.row.sleeper, time(broken.late_ns), &broken.file);
            Some(format!(
                "{sleeper}: a wakeup was {late} late, more than --break; the trace of it is {file}"
            ))
        });
        let rows: Vec<&Row> = results.iter().map(|one| &one.row).collect();
        let of_row = |row: &&Row| -> Vec<String> {
            self.limit.iter().filter_map(|limit| limit.exceeded(row)).collect()
        };
        let exceeded: Vec<String> = late.take(1).chain(rows.iter().flat_map(of_row)).collect();
        let unknown = self.limit.iter().filter_map(|limit| limit.unknown(&rows));
        let unknown: Vec<String> = unknown.collect();
        exceeded.iter().chain(&unknown).for_each(complain);
        match (exceeded.is_empty(), unknown.is_empty()) {
            (false, _) => Exit::OutOfBounds,
            (true, false) => Exit::Usage,
            (true, true) => Exit::Success,
        }
    }

    /// Returns the plan of one turn, and the number of turns, in which all ways to sleep alternate.
    fn plan(&self, stop: Arc<AtomicBool>) -> (Plan, usize) {
        const TURNS_MAX: u32 = 20;
        const DEFAULT: Duration = Duration::from_secs(10);
        let duration = match (self.duration, self.loops) {
            (None, None) => Some(DEFAULT),
            (duration, _) => duration,
        };
        let interval = Duration::from_micros(self.interval);
        // Each turn starts new threads, so each turn should have at least 200 wakeups.
        let by_time = duration.map(|duration| duration.as_nanos() / interval.as_nanos());
        let wakeups = by_time.unwrap_or(u128::MAX).min(self.loops.unwrap_or(u64::MAX).into());
        let most = (wakeups / 200).clamp(1, TURNS_MAX.into()) as u32;
        // The number of turns must divide the number of wakeups, so that the total is as requested.
        let divides = |turns: &u32| self.loops.is_none_or(|loops| loops % u64::from(*turns) == 0);
        let turns = (1..=most).rev().find(divides).unwrap_or(1);
        let threads = match (self.smp, self.threads) {
            (true, _) => cpus().into_iter().map(Some).collect(),
            (false, 0) => vec![None; cpus().len()],
            (false, threads) => vec![None; threads.into()],
        };
        let plan = Plan {
            interval,
            threads,
            priority: self.priority,
            slack_ns: self.slack,
            loops: self.loops.map(|loops| loops / u64::from(turns)),
            duration: duration.map(|duration| duration / turns),
            stop,
            ..Plan::default()
        };
        (plan, turns as usize)
    }
}
