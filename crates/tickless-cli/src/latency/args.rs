//! The command line of `tickless latency`, with options named as cyclictest names them.

use super::limit::Limit;
use super::show::{json, show};
use crate::choice;
use crate::duration::parse_seconds;
use crate::output::Format;
use crate::progress::Bar;
use clap::builder::TypedValueParser;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tickless_lab::latency::{Plan, Row, Sleeper, Slice, Until, measure};
use tickless_lab::measure::{MeasureError, cpus};

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
            Sleeper::Timeout => "Our coarse timer, late by up to 13 % and a tick on purpose",
        };
        (sleeper.name(), about)
    })
}

/// What came of it.
pub struct Latency {
    results: Vec<(Row, Slice)>,
    format: Format,
    histogram_us: Option<u32>,
    file: Option<PathBuf>,
    limits: Vec<Limit>,
}

impl LatencyArgs {
    /// Measures what was asked for. Ctrl-C ends it early, with what there is.
    pub fn run(&self) -> Result<Latency, MeasureError> {
        let stop = Arc::new(AtomicBool::new(false));
        let progress = if self.quiet { Bar::hidden() } else { Bar::on_terminal() };
        progress.stop_on_interrupt(Arc::clone(&stop));
        let sleepers = match self.sleeper.as_slice() {
            [] => &Sleeper::EXACT,
            some => some,
        };
        let (plan, turns) = self.plan(stop);
        let slices = measure(sleepers, &plan, turns, &progress);
        progress.end();
        let row = |(&sleeper, slice): (&Sleeper, Slice)| {
            (Row::new(sleeper, &plan, &slice, self.histogram), slice)
        };
        Ok(Latency {
            results: sleepers.iter().zip(slices?).map(row).collect(),
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
        let plan = Plan { interval, threads, priority, slack_ns: slack, phase: None, until, stop };
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
        let rows: Vec<&Row> = self.results.iter().map(|(row, _)| row).collect();
        self.limits.iter().filter_map(|limit| limit.unknown(&rows)).collect()
    }

    /// What exceeds a limit.
    pub fn exceeded(&self) -> Vec<String> {
        let rows = self.results.iter().map(|(row, _)| row);
        rows.flat_map(|row| self.limits.iter().filter_map(|limit| limit.exceeded(row))).collect()
    }
}
