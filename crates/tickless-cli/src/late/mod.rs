//! The command `tickless late`, which explains late wakeups: its arguments, and the causes as
//! tables, JSON or CSV.

pub(crate) mod show;

use crate::command::{Command, Exit, Failure, complain};
use crate::duration::{parse_seconds, parse_with_unit};
use crate::output::{Format, print};
use crate::record::command::{End, Waiting};
use crate::traces;
use clap::ArgGroup;
use std::path::PathBuf;
use std::time::Duration;
use tickless_core::time::Ns;
use tickless_trace::Trace;
use tickless_trace::late::{EVENTS, Late, explain};
use tickless_trace::record::{IdleStops, Options, Recording, Tracefs};

/// Explain why threads that slept ran late
///
/// Follows each sleep from its deadline through the interrupt and the callback to the thread
/// that runs, and shows for each hop how long it took and what the CPU did then. Reads a
/// trace, or watches this machine (root). The most important result comes last.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    sudo tickless late --watch -D 10s --threshold 500us\n  \
    sudo tickless record --events late -o slow.txt.gz -D 30s\n  \
    tickless late slow.txt.gz --format json\n\n\
    Exit status: 0 if explained, 1 if there is no trace or the results are not written,\n\
    2 for a wrong command line, 130 if --watch was interrupted.")]
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
    #[arg(long, value_name = "TIME", value_parser = parse_with_unit, default_value = "200us")]
    threshold: Duration,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Command for LateArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let (trace, is_partial) = match &self.trace {
            Some(path) => (traces::read(path)?, false),
            None => self.watch()?,
        };
        trace.messages().for_each(complain);
        let late = Late { is_partial, ..explain(&trace, Ns::from_duration(self.threshold)) };
        print(&late, self.format)?;
        Ok(if is_partial { Exit::Interrupted } else { Exit::Success })
    }
}

impl LateArgs {
    /// Records this machine for the given time, or until Ctrl-C. Returns the trace, and whether
    /// Ctrl-C ended it.
    fn watch(&self) -> Result<(Trace, bool), Failure> {
        let tracefs = Tracefs::find()?;
        // Record only the events that this kernel has. The explanations name those that it lacks.
        let more = tracefs.having(&EVENTS);
        let options = Options { more, ..Options::default() };
        let program = std::env::current_exe().ok();
        // Install the signal handlers before the kernel's tracing is changed, so that a signal ends
        // the recording in an orderly way and the tracing is restored.
        let waiting = Waiting::new();
        let recording = Recording::prepare(tracefs, &options, program.as_deref())?;
        recording.notes().iter().for_each(complain);
        let before = IdleStops::now();
        recording.start()?;
        let end = waiting.pass(self.duration);
        recording.stop()?;
        let mut text = Vec::new();
        // Write the trace as text and parse it: the text has notes about lost events, which the
        // parser reports.
        recording.write("tickless late --watch", &before, &mut text)?;
        Ok((Trace::parse("this machine", text.as_slice())?, end == End::Signal))
    }
}
