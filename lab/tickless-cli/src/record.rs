//! The command `tickless record`, which records what the kernel does with its timers.

pub(crate) mod command;
mod output;

pub(crate) use output::{Output, may_overwrite};

use self::command::{End, Waiting};
use crate::command::{Command, Exit, Failure, complain};
use crate::values::{parse_seconds, parse_size, show_size};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tickless_trace::cgroup::Watch;
use tickless_trace::late;
use tickless_trace::quota;
use tickless_trace::read::Cause;
use tickless_trace::record::{Options, RecordError, Recording, Statistics, Tracefs};

/// Record what the kernel does with its timers, for replay
///
/// Records the timer events of all CPUs, the timer interrupts, and the writes to the timer
/// device, from tracefs (root). Does not disturb other users of tracing, and leaves nothing
/// behind, however it ends. Ctrl-C ends it early, and keeps what was recorded.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/record.txt"))]
pub struct RecordArgs {
    /// The file to write; packed if it ends in .gz, for trace-cmd and KernelShark if in .dat
    #[arg(short, long, value_name = "FILE", default_value = "trace.txt.gz")]
    output: PathBuf,
    /// Overwrite the file if it is there
    #[arg(long)]
    force: bool,
    /// How long: seconds, or with ms, s, m, h, d; until Ctrl-C if that comes first
    #[arg(short = 'D', long, value_name = "TIME", value_parser = parse_seconds,
        default_value = "2s", conflicts_with = "command")]
    duration: Duration,
    /// Buffer for each CPU, such as 64M; if too small, the oldest events are lost, and counted
    ///
    /// An event takes about 70 bytes. 32M, or less where memory is short, if left out.
    #[arg(short, long, value_name = "SIZE", value_parser = parse_size)]
    buffer: Option<u64>,
    /// Record this too, such as sched:sched_switch; may be given several times
    #[arg(short, long, value_name = "EVENT")]
    event: Vec<String>,
    /// Record also what `tickless late` needs, or `tickless quota`
    #[arg(long, value_name = "FOR")]
    events: Option<Purpose>,
    /// With --events quota, the control group; all with a limit if left out
    #[arg(long, value_name = "PATH", requires = "events")]
    cgroup: Option<PathBuf>,
    /// Record while this command runs
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Purpose {
    Late,
    Quota,
}

/// Prepares a recording, and prints what it lacks.
pub(crate) fn prepare(tracefs: Tracefs, options: &Options) -> Result<Recording, RecordError> {
    let program = std::env::current_exe().ok();
    let recording = Recording::prepare(tracefs, options, program.as_deref())?;
    recording.notes.iter().for_each(complain);
    Ok(recording)
}

/// Starts a recording, and says so: on a busy machine, that is long after the program was started.
pub(crate) fn start(recording: &Recording) -> Result<(), RecordError> {
    complain("recording begins now");
    recording.start()
}

impl Command for RecordArgs {
    fn run(&self) -> Result<Exit, Failure> {
        if output::is_dat(&self.output) && self.events.is_some() {
            return Err(Failure::usage(
                "a .dat file lacks what late and quota need beside the events. Name another file \
                 with -o, or events with -e",
            ));
        }
        let mut groups = match self.events {
            Some(Purpose::Quota) => Some(Watch::prepare(self.cgroup.as_deref())?),
            _ if self.cgroup.is_some() => {
                return Err(Failure::usage("--cgroup belongs to --events quota"));
            }
            _ => None,
        };
        if groups.as_ref().is_some_and(Watch::is_empty) {
            return Err(Failure::new(
                "no control group has a CPU limit here. Name the group with --cgroup; it needs no \
                 limit",
            ));
        }
        let tracefs = Tracefs::find()?;
        if !self.force {
            may_overwrite(&self.output)?;
        }
        let output = Output::open(&self.output)?;
        let waiting = Waiting::new();
        let mut more = self.event.clone();
        match self.events {
            Some(Purpose::Late) => more.extend(late::EVENTS.map(str::to_string)),
            Some(Purpose::Quota) => more.extend(quota::EVENTS.map(str::to_string)),
            None => {}
        }
        let options = Options { buffer_kb: self.buffer, more };
        let mut recording = prepare(tracefs, &options)?;
        if groups.is_some() {
            recording.limited = None;
        }
        groups.iter_mut().for_each(Watch::start);
        start(&recording)?;
        let start = Instant::now();
        let end = match self.command.as_slice() {
            [] => waiting.pass(self.duration),
            command => waiting.run(command)?,
        };
        let seconds = start.elapsed().as_secs_f64();
        recording.stop()?;
        complain(format_args!("recording has ended after {seconds:.2} s; writing the file"));
        groups.iter_mut().for_each(Watch::stop);
        let statistics = recording.statistics();
        let groups = groups.map(Watch::seen).unwrap_or_default();
        for group in groups.iter().filter(|group| group.counters.is_none()) {
            complain(format_args!(
                "{}: this control group was removed while it was recorded, so its counters are \
                 missing",
                group.path
            ));
        }
        let mut unseen = Vec::new();
        if output::is_dat(&self.output) {
            output.replace_file(|file| recording.write_dat(file))?;
        } else {
            output.replace(|out| {
                unseen = recording.write(&self.title(), out)?;
                let written = groups.iter().try_for_each(|group| writeln!(out, "{group}"));
                written.map_err(RecordError::Output)
            })?;
        }
        let (path, advice) = (self.output.display(), self.advice());
        complain(format_args!("{path}: {seconds:.2} s, {} events. {advice}", statistics.kept));
        loss(&statistics, recording.buffer_kb).iter().for_each(complain);
        unseen.into_iter().for_each(|cpu| complain(Cause::IdleNotRecorded { cpu }));
        Ok(match end {
            End::Command(status) => Exit::Status(status),
            End::Time | End::Signal => Exit::Success,
        })
    }
}

impl RecordArgs {
    fn title(&self) -> String {
        match self.command.as_slice() {
            [] => "tickless record".to_string(),
            command => {
                let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
                words.join(" ")
            }
        }
    }

    fn advice(&self) -> String {
        let path = self.output.display();
        match self.events {
            Some(Purpose::Late) => format!("See what was late: tickless late {path}"),
            Some(Purpose::Quota) => format!("Try other limits: tickless quota {path}"),
            None => format!("See what they cost: tickless replay {path}"),
        }
    }
}

/// Returns a message if nothing was recorded, or not all.
fn loss(statistics: &Statistics, buffer_kb: u64) -> Option<String> {
    let dropped = statistics.dropped;
    let all = statistics.kept + dropped;
    if all == 0 {
        return Some("nothing happened, or it ended before it began; record again".to_string());
    }
    let larger = show_size(buffer_kb * statistics.times_larger());
    (dropped > 0).then(|| {
        format!(
            "{dropped} of {all} events were dropped, the oldest first: buffers of {} for each CPU \
             were too small. Record again with --buffer {larger}, or for less time",
            show_size(buffer_kb),
        )
    })
}
