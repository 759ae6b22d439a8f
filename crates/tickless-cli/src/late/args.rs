//! The command line of `tickless late`.

use crate::duration::{parse_seconds, parse_time};
use crate::output::Format;
use clap::ArgGroup;
use std::fmt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use tickless_core::time::Ns;
use tickless_trace::late::{EVENTS, Late, explain};
use tickless_trace::read::{Trace, TraceError};
use tickless_trace::record::{Options, RecordError, Recording, Tracefs};

/// What follows `tickless late`.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("what").required(true).args(["trace", "watch"]))]
pub struct LateArgs {
    /// A trace that was recorded with `tickless record --events late`
    trace: Option<PathBuf>,
    /// Record this machine now instead (root)
    #[arg(long)]
    watch: bool,
    /// How long to watch: seconds, or with ms, s, m
    #[arg(short = 'D', long, value_name = "TIME", value_parser = parse_seconds,
        default_value = "10s", conflicts_with = "trace")]
    duration: Duration,
    /// Explain sleeps that end later than this
    #[arg(long, value_name = "TIME", value_parser = threshold, default_value = "200us")]
    threshold: Duration,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

fn threshold(text: &str) -> Result<Duration, String> {
    parse_time(text, None)
}

/// Why nothing could be explained.
#[derive(Debug)]
pub enum LateError {
    /// The machine could not be watched.
    Record(RecordError),
    /// The trace cannot be used.
    Trace(TraceError),
}

impl fmt::Display for LateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LateError::Record(error) => error.fmt(f),
            LateError::Trace(error) => error.fmt(f),
        }
    }
}

impl LateArgs {
    /// Reads the trace, or records one, and explains it; `tell` is told what is wrong with it.
    ///
    /// # Errors
    /// When there is no trace to be had.
    pub fn run(&self, tell: &dyn Fn(&str)) -> Result<Late, LateError> {
        let trace = match &self.trace {
            Some(path) => Trace::read(path).map_err(LateError::Trace)?,
            None => self.watch(tell)?,
        };
        trace.messages().for_each(|message| tell(&message));
        Ok(explain(&trace, Ns::from_duration(self.threshold)))
    }

    fn watch(&self, tell: &dyn Fn(&str)) -> Result<Trace, LateError> {
        let tracefs = Tracefs::find().map_err(LateError::Record)?;
        // What this kernel lacks is told by what cannot be explained then.
        let has =
            |event: &&str| tracefs.root().join("events").join(event.replacen(':', "/", 1)).is_dir();
        let more = EVENTS.into_iter().filter(has).map(str::to_string).collect();
        let options = Options { more, ..Options::default() };
        let program = std::env::current_exe().ok();
        let record = || -> Result<Recording, RecordError> {
            let recording = Recording::prepare(tracefs, &options, program.as_deref())?;
            recording.notes().iter().for_each(|note| tell(note));
            recording.start()?;
            let end = Instant::now() + self.duration;
            while let Some(left) = end.checked_duration_since(Instant::now()) {
                if left.is_zero() {
                    break;
                }
                thread::park_timeout(left);
            }
            recording.stop()?;
            Ok(recording)
        };
        let recording = record().map_err(LateError::Record)?;
        let text = recording.text("tickless late --watch").map_err(LateError::Record)?;
        Trace::parse("this machine", text).map_err(LateError::Trace)
    }
}
