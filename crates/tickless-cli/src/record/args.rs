//! The command line of `tickless record`, and a recording from its beginning to its end.

use super::command::{End, Waiting};
use super::output::Output;
use super::{overwrite, size};
use crate::choice;
use crate::duration::parse_seconds;
use clap::builder::TypedValueParser;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tickless_core::time::CpuId;
use tickless_trace::late;
use tickless_trace::read::Cause;
use tickless_trace::record::{
    IdleStops, Options, RecordError, Recording, Statistics, TraceClock, Tracefs,
};

/// What follows `tickless record`.
#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// The file to write; packed if it ends in .gz
    #[arg(short, long, value_name = "FILE", default_value = "trace.txt.gz")]
    output: PathBuf,
    /// Overwrite the file if it is there, without asking
    #[arg(long)]
    force: bool,
    /// How long: seconds, or with ms, s, m, h, d; until Ctrl-C if that comes first
    #[arg(short = 'D', long, value_name = "TIME", value_parser = parse_seconds,
        default_value = "2s", conflicts_with = "command")]
    duration: Duration,
    /// Buffer for each CPU, such as 64M; if too small, the oldest events are lost, and counted
    ///
    /// An event takes about 70 bytes. 32M, or less where memory is short, if left out.
    #[arg(short, long, value_name = "SIZE", value_parser = size::parse)]
    buffer: Option<u64>,
    /// Whose time stands in the trace
    #[arg(long, value_name = "CLOCK", value_parser = clocks(), default_value = "mono")]
    clock: TraceClock,
    /// Record this too, such as sched:sched_switch; may be given several times
    #[arg(short, long, value_name = "EVENT")]
    event: Vec<String>,
    /// Record also what `tickless late` needs to explain late sleeps
    #[arg(long, value_name = "FOR", value_parser = ["late"])]
    events: Option<String>,
    /// Record while this command runs
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn clocks() -> impl TypedValueParser<Value = TraceClock> {
    choice::of(&TraceClock::ALL, |clock| {
        let about = match clock {
            TraceClock::Mono => "CLOCK_MONOTONIC, on which timers are",
            TraceClock::MonoRaw => "The same, never slewed",
            TraceClock::Boot => "CLOCK_BOOTTIME, which goes on while the machine sleeps",
            TraceClock::Tai => "CLOCK_TAI",
            TraceClock::Local => "The scheduler's clock: fast, and may differ between CPUs",
            TraceClock::Global => "The same, in one order for all CPUs: slow",
        };
        (clock.name(), about)
    })
}

/// What was recorded.
#[derive(Debug)]
pub struct Recorded {
    path: PathBuf,
    seconds: f64,
    buffer_kb: u64,
    statistics: Statistics,
    end: End,
    unseen: Vec<CpuId>,
}

impl RecordArgs {
    /// Records; `tell` is told what people should know before.
    ///
    /// # Errors
    /// When it cannot be recorded, or not be written.
    pub fn run(&self, tell: &dyn Fn(&str)) -> Result<Recorded, RecordError> {
        let tracefs = Tracefs::find()?;
        if !self.force {
            overwrite::allow(&self.output)?;
        }
        let output = Output::open(&self.output)?;
        // Before there is anything to leave behind.
        let waiting = Waiting::new();
        let mut more = self.event.clone();
        if self.events.is_some() {
            more.extend(late::EVENTS.map(str::to_string));
        }
        let options = Options { buffer_kb: self.buffer, clock: self.clock, more };
        let program = std::env::current_exe().ok();
        let recording = Recording::prepare(tracefs, &options, program.as_deref())?;
        recording.notes().iter().for_each(|note| tell(note));
        let before = IdleStops::now();
        recording.start()?;
        let start = Instant::now();
        let end = match self.command.as_slice() {
            [] => waiting.pass(self.duration),
            command => waiting.run(command)?,
        };
        let seconds = start.elapsed().as_secs_f64();
        recording.stop()?;
        let statistics = recording.statistics();
        let mut unseen = Vec::new();
        output.replace(|out| {
            unseen = recording.write(&self.what(), &before, out)?;
            Ok(())
        })?;
        let (path, buffer_kb) = (self.output.clone(), recording.buffer_kb());
        Ok(Recorded { path, seconds, buffer_kb, statistics, end, unseen })
    }

    fn what(&self) -> String {
        match self.command.as_slice() {
            [] => "tickless record".to_string(),
            command => {
                let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
                words.join(" ")
            }
        }
    }
}

impl Recorded {
    /// The status of the command, if one was run and ended.
    pub fn command_status(&self) -> Option<u8> {
        match self.end {
            End::Command(status) => Some(status),
            End::Time | End::Signal => None,
        }
    }

    /// Of which idle threads the kernel recorded nothing.
    pub fn unseen(&self) -> impl Iterator<Item = String> {
        self.unseen.iter().map(|&cpu| Cause::IdleNotRecorded { cpu }.to_string())
    }

    /// What to do about events that were dropped, or if there were none.
    pub fn complaint(&self) -> Option<String> {
        let Statistics { kept, .. } = self.statistics;
        let dropped = self.statistics.dropped();
        if kept + dropped == 0 {
            return Some("nothing happened, or it ended before it began; record again".to_string());
        }
        let larger = size::show(self.buffer_kb * self.statistics.times_larger());
        (dropped > 0).then(|| {
            format!(
                "{dropped} of {} events were dropped, the oldest first: buffers of {} for each \
                 CPU were too small. Record again with --buffer {larger}, or for less time",
                kept + dropped,
                size::show(self.buffer_kb),
            )
        })
    }
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Recorded { path, seconds, statistics, .. } = self;
        let path = path.display();
        write!(f, "{path}: {seconds:.2} s, {} events. ", statistics.kept)?;
        write!(f, "See what they cost: tickless replay {path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a loss is told with the size that would have been enough; no loss is not told.
    #[test]
    fn losses_are_told() {
        let mut recorded = Recorded {
            path: "t.gz".into(),
            seconds: 2.0,
            buffer_kb: 4,
            statistics: Statistics { kept: 100, ..Statistics::default() },
            end: End::Command(3),
            unseen: Vec::new(),
        };
        assert_eq!((recorded.complaint(), recorded.command_status()), (None, Some(3)));
        recorded.statistics.kept = 0;
        assert!(recorded.complaint().unwrap().contains("record again"));
        recorded.statistics = Statistics { kept: 100, overwritten: 250, ..recorded.statistics };
        let complaint = recorded.complaint().unwrap();
        for word in ["250 of 350", "4K", "--buffer 16K"] {
            assert!(complaint.contains(word), "{word}: {complaint}");
        }
    }
}
