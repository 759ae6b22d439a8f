//! The command line of `tickless late`.

use crate::duration::{parse_seconds, parse_time};
use crate::output::Format;
use crate::record::command::{End, Waiting};
use crate::traces;
use clap::ArgGroup;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tickless_core::time::Ns;
use tickless_trace::late::{EVENTS, Late, explain};
use tickless_trace::read::{Trace, TraceError};
use tickless_trace::record::{IdleStops, Options, RecordError, Recording, Tracefs};

/// What follows `tickless late`.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("what").required(true).args(["trace", "watch"]))]
pub struct LateArgs {
    /// A trace that was recorded with `tickless record --events late`; - is standard input
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
    /// Reads the trace, or records one until its time is over or Ctrl-C, and
    /// explains it; `tell` is told what is wrong with it.
    ///
    /// # Errors
    /// When there is no trace to be had.
    pub fn run(&self, tell: &dyn Fn(&str)) -> Result<Late, LateError> {
        let (trace, is_partial) = match &self.trace {
            Some(path) => (traces::read(path).map_err(LateError::Trace)?, false),
            None => self.watch(tell)?,
        };
        trace.messages().for_each(|message| tell(&message));
        Ok(Late { is_partial, ..explain(&trace, Ns::from_duration(self.threshold)) })
    }

    fn watch(&self, tell: &dyn Fn(&str)) -> Result<(Trace, bool), LateError> {
        let tracefs = Tracefs::find().map_err(LateError::Record)?;
        // What this kernel lacks is told by what cannot be explained then.
        let more = tracefs.having(&EVENTS);
        let options = Options { more, ..Options::default() };
        let program = std::env::current_exe().ok();
        // Before there is anything to leave behind.
        let waiting = Waiting::new();
        let mut text = Vec::new();
        let record = || -> Result<End, RecordError> {
            let recording = Recording::prepare(tracefs, &options, program.as_deref())?;
            recording.notes().iter().for_each(|note| tell(note));
            let before = IdleStops::now();
            recording.start()?;
            let end = waiting.pass(self.duration);
            recording.stop()?;
            // What is missing is said in the text, and told when that is read.
            recording.write("tickless late --watch", &before, &mut text)?;
            Ok(end)
        };
        let end = record().map_err(LateError::Record)?;
        let trace = Trace::parse("this machine", text.as_slice()).map_err(LateError::Trace)?;
        Ok((trace, end == End::Signal))
    }
}
