//! The command `tickless late`, which explains late wakeups.

use crate::command::{Command, Exit, Failure, complain};
use crate::duration::{parse_seconds, parse_with_unit};
use crate::output::{Format, Results, bare, paragraph, print, seen, write_csv, write_table};
use crate::record;
use crate::record::command::{End, Waiting};
use crate::selection::ThreadArgs;
use crate::traces;
use clap::ArgGroup;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use tickless_core::time::Ns;
use tickless_lab::text::time;
use tickless_trace::Trace;
use tickless_trace::late::{CauseShare, EVENTS, Folded, Hop, Late, LateSleep, Selection, explain};
use tickless_trace::record::{Options, Tracefs};

/// Explain why threads that slept ran late
///
/// Follows each sleep from its deadline through the interrupt and the callback to the thread
/// that runs, and shows for each hop how long it took and what the CPU did then. Reads a
/// trace, or watches this machine (root). The most important result comes last.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    sudo tickless late --watch -D 10s --threshold 500us\n  \
    sudo tickless late --watch --process nginx\n  \
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
    #[command(flatten)]
    threads: ThreadArgs,
    /// Explain also sleeps of the kernel's threads, and those that the timer wheel rounded up
    ///
    /// Otherwise they are counted.
    #[arg(long)]
    all: bool,
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
        let selection = Selection { folds: !self.all, ..self.threads.selection() };
        let threshold = Ns::from_duration(self.threshold);
        let late = Late { is_partial, ..explain(&trace, threshold, &selection) };
        print(&late, self.format)?;
        Ok(if is_partial { Exit::Interrupted } else { Exit::Success })
    }
}

impl LateArgs {
    /// Records for the requested time. Returns the trace, and whether a signal ended the recording.
    fn watch(&self) -> Result<(Trace, bool), Failure> {
        let tracefs = Tracefs::find()?;
        // Record only the events that this kernel has. The explanations name those that it lacks.
        let more = tracefs.having(&EVENTS);
        let options = Options { more, ..Options::default() };
        let waiting = Waiting::new();
        let recording = record::prepare(tracefs, &options)?;
        recording.start()?;
        let end = waiting.pass(self.duration);
        recording.stop()?;
        let mut text = Vec::new();
        // Write the trace as text and parse the text, which has the number of lost events.
        recording.write("tickless late --watch", &mut text)?;
        Ok((Trace::parse("this machine", text.as_slice())?, end == End::Signal))
    }
}

impl Results for Late {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let Late { file, threshold_ns, sleeps, late: count, folded, causes, worst, .. } = self;
        let threshold = time(*threshold_ns);
        paragraph(
            out,
            "",
            &format!(
                "{file}{}: {count} of {sleeps} sleeps more than {threshold} late",
                seen(self.seen_percent)
            ),
        )?;
        let Folded { kernel_threads, wheel } = folded;
        if kernel_threads + wheel > 0 {
            let text = format!(
                "Not shown, see them with --all: {kernel_threads} of kernel threads, {wheel} that \
                 the timer wheel rounded up"
            );
            paragraph(out, "", &text)?;
        }
        if self.is_partial {
            writeln!(out, "PARTIAL: it was interrupted.")?;
        }
        self.missing.iter().try_for_each(|missing| paragraph(out, "  - ", missing))?;
        if worst.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nThe latest:")?;
        for LateSleep { thread, pid, cpu, due_ns, late_ns, hops } in worst {
            let hops: Vec<String> = hops
                .iter()
                .map(|hop| format!("{} {} ({})", hop.hop, time(hop.ns), hop.cause))
                .collect();
            let due = *due_ns as f64 / 1e9;
            let text = format!("{thread}-{pid} on CPU {cpu} at {due:.6}: {}: ", time(*late_ns));
            paragraph(out, "  - ", &(text + &hops.join(", ")))?;
        }
        write_causes(causes, out)
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        write_csv("cause,sleeps,ns,percent", &self.causes, out)
    }
}

pub fn write_hops(hops: &[Hop], out: &mut dyn Write) -> io::Result<()> {
    hops.iter().try_for_each(|Hop { hop, ns, cause }| {
        paragraph(out, "  - ", &format!("{hop}: {} ({cause})", time(*ns)))
    })
}

pub fn write_causes(causes: &[CauseShare], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nWhat all lateness over the threshold was spent on:")?;
    let mut table = bare(&["share", "time", "sleeps", "cause"], 0);
    if let Some(cause) = table.column_mut(3) {
        cause.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    const SHOWN: usize = 15;
    for CauseShare { cause, sleeps, ns, percent } in causes.iter().take(SHOWN) {
        table.add_row([format!("{percent:.1} %"), time(*ns), sleeps.to_string(), cause.clone()]);
    }
    write_table(&table, out)
}
