//! The command line of `tickless latency`, with options named as cyclictest names them.

use super::broken::{BreakError, Breaking, Broken};
use super::limit::Limit;
use super::show::{json, show};
use crate::choice;
use crate::duration::{parse_seconds, parse_time};
use crate::output::Format;
use crate::progress::Bar;
use crate::record::overwrite;
use clap::builder::TypedValueParser;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tickless_lab::latency::{Plan, Row, Sleeper, Slice, Until, measure};
use tickless_lab::measure::{MeasureError, cpus};
use tickless_lab::text::time;

/// What follows `tickless latency`.
#[derive(Debug, clap::Args)]
// -h is cyclictest's histogram.
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
    /// The results as JSON: to a file, or instead of the table
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    json: Option<Option<PathBuf>>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Who sleeps; may be given several times
    ///
    /// All but `timeout` if left out: that one is coarse on purpose.
    #[arg(long, value_name = "SLEEPER", value_parser = sleepers(), value_delimiter = ',')]
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
    #[arg(long = "break", value_name = "TIME", value_parser = break_at)]
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
    /// Overwrite the file if it is there, without asking
    #[arg(long, requires = "break_above")]
    force: bool,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

fn sleepers() -> impl TypedValueParser<Value = Sleeper> {
    choice::of(&Sleeper::ALL, |sleeper| {
        let about = match sleeper {
            Sleeper::ClockNanosleep => "A thread in clock_nanosleep, as in cyclictest",
            Sleeper::Timerfd => "A thread that reads a timerfd",
            Sleeper::Hrtimer => "Our high-resolution timer: its callback, on its driver's thread",
            Sleeper::HrtimerSpin => "The same, with a driver that gets up 100 us before and spins",
            Sleeper::HrtimerAuto => "The same, learning how long before, for a 20th of a CPU",
            Sleeper::Timeout => "Our coarse timer, late by up to 13 % and a tick on purpose",
        };
        (sleeper.name(), about)
    })
}

fn break_at(text: &str) -> Result<Duration, String> {
    parse_time(text, None)
}

/// Why nothing was measured.
#[derive(Debug)]
pub enum LatencyError {
    /// The system refused.
    Measure(MeasureError),
    /// The kernel cannot be recorded.
    Break(BreakError),
}

impl fmt::Display for LatencyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LatencyError::Measure(error) => error.fmt(f),
            LatencyError::Break(error) => error.fmt(f),
        }
    }
}

/// What one sleeper came to.
pub(super) struct Measured {
    pub(super) row: Row,
    pub(super) slice: Slice,
    /// The wakeup that ended the measurement, if it was this sleeper's.
    pub(super) broken: Option<Broken>,
}

/// What came of it.
pub struct Latency {
    results: Vec<Measured>,
    format: Format,
    histogram_us: Option<u32>,
    file: Option<PathBuf>,
    limits: Vec<Limit>,
}

impl LatencyArgs {
    /// Measures what was asked for. Ctrl-C ends it early, with what there is; `tell` is told what
    /// people should know before.
    ///
    /// # Errors
    /// When the system refuses a way to sleep, or the kernel cannot be recorded.
    pub fn run(&self, tell: &dyn Fn(&str)) -> Result<Latency, LatencyError> {
        let stop = Arc::new(AtomicBool::new(false));
        let progress = if self.quiet { Bar::hidden() } else { Bar::on_terminal() };
        progress.stop_on_interrupt(Arc::clone(&stop));
        let sleepers = match self.sleeper.as_slice() {
            [] => &Sleeper::EXACT,
            some => some,
        };
        let (mut plan, turns) = self.plan(stop);
        let start = |above| {
            if !self.force {
                overwrite::allow(&self.output)?;
            }
            Breaking::start(above, &self.output, tell)
        };
        let breaking = self.break_above.map(start).transpose().map_err(LatencyError::Break)?;
        let breaking = breaking.map(|(breaking, at_break)| {
            plan.break_at = Some(at_break);
            breaking
        });
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
        // It holds a file of the instance, which cannot be removed then.
        drop(plan);
        let slices = slices.map_err(LatencyError::Measure)?;
        let sample = slices.iter().find_map(|slice| slice.tally.broke);
        let broken = breaking.map(|breaking| breaking.end(sample, tell)).transpose();
        let broken = broken.map_err(LatencyError::Break)?.flatten();
        let measured = rows.into_iter().zip(slices).map(|(row, slice)| Measured {
            broken: broken.clone().filter(|_| slice.tally.broke.is_some()),
            row,
            slice,
        });
        Ok(Latency {
            results: measured.collect(),
            format: if matches!(self.json, Some(None)) { Format::Json } else { self.format },
            histogram_us: self.histogram,
            file: self.json.clone().flatten(),
            limits: self.limit.clone(),
        })
    }

    /// One turn of each sleeper, and how many turns.
    fn plan(&self, stop: Arc<AtomicBool>) -> (Plan, usize) {
        const TURNS_MAX: u32 = 10;
        const DEFAULT: Duration = Duration::from_secs(10);
        let duration = match (self.duration, self.loops) {
            (None, None) => Some(DEFAULT),
            (duration, _) => duration,
        };
        let interval = Duration::from_micros(self.interval);
        // Long enough for some hundred wakeups a turn: each begins with threads that are new.
        let by_time = duration.map(|duration| duration.as_nanos() / interval.as_nanos());
        let wakeups = by_time.unwrap_or(u128::MAX).min(self.loops.unwrap_or(u64::MAX).into());
        let most = (wakeups / 200).clamp(1, TURNS_MAX.into()) as u32;
        // As many wakeups as were asked for, no more: a number of turns that divides them.
        let divides = |turns: &u32| self.loops.is_none_or(|loops| loops % u64::from(*turns) == 0);
        let turns = (1..=most).rev().find(divides).unwrap_or(1);
        let threads = match (self.smp, self.threads) {
            (true, _) => cpus().into_iter().map(Some).collect(),
            (false, 0) => vec![None; cpus().len()],
            (false, threads) => vec![None; threads.into()],
        };
        let until = Until {
            loops: self.loops.map(|loops| loops / u64::from(turns)),
            duration: duration.map(|duration| duration / turns),
        };
        let Self { priority, slack, .. } = *self;
        let plan = Plan {
            interval,
            threads,
            priority,
            slack_ns: slack,
            phase: None,
            until,
            stop,
            break_at: None,
        };
        (plan, turns as usize)
    }
}

impl Latency {
    /// Prints it, and writes the file that was asked for.
    pub fn show(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(path) = &self.file {
            let explain = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            };
            let mut file = BufWriter::new(File::create(path).map_err(explain)?);
            json(&self.results, &mut file).map_err(explain)?;
            file.flush().map_err(explain)?;
        }
        show(&self.results, self.format, self.histogram_us, out)
    }

    /// Limits that could not be held against anything.
    pub fn unknown(&self) -> Vec<String> {
        let rows: Vec<&Row> = self.results.iter().map(|one| &one.row).collect();
        self.limits.iter().filter_map(|limit| limit.unknown(&rows)).collect()
    }

    /// The wakeup that ended it, if one was later than `--break`.
    pub fn broken(&self) -> Option<String> {
        let one = self.results.iter().find(|one| one.broken.is_some())?;
        let broken = one.broken.as_ref()?;
        Some(format!(
            "{}: a wakeup was {} late, more than --break; the trace of it is {}",
            one.row.sleeper,
            time(broken.late().0),
            broken.file()
        ))
    }

    /// What exceeds a limit.
    pub fn exceeded(&self) -> Vec<String> {
        let rows = self.results.iter().map(|one| &one.row);
        rows.flat_map(|row| self.limits.iter().filter_map(|limit| limit.exceeded(row))).collect()
    }
}
