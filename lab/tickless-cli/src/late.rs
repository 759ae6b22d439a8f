//! The command `tickless late`, which explains late wakeups.

use crate::command::{Command, Exit, Failure};
use crate::output::{Format, Results, bare, paragraph, print, seen, write_csv, write_table};
use crate::record;
use crate::record::command::{End, Waiting};
use crate::selection::ThreadArgs;
use crate::traces;
use crate::values::{parse_seconds, parse_with_unit};
use clap::ArgGroup;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use tickless_core::time::Ns;
use tickless_lab::text::time;
use tickless_trace::Trace;
use tickless_trace::late::{
    CauseShare, EVENTS, Folded, Hop, Late, LateSleep, LongWait, Selection, Share, busiest, explain,
};
use tickless_trace::record::{Options, Tracefs};

/// Explain why threads ran late, or waited for a CPU
///
/// Follows each sleep from its deadline through the interrupt and the callback to the thread
/// that runs, and each wait for a CPU, and shows how long they took and what the CPU did then.
/// Reads a trace, or watches this machine (root). The most important result comes last.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/late.txt"))]
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
    /// Explain sleeps that end later than this, and waits that are longer
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
        let selection = Selection { folds: !self.all, ..self.threads.selection() };
        let threshold = Ns::from_duration(self.threshold);
        let mut late = Late { is_partial, ..explain(&trace, threshold, &selection) };
        traces::complain_of(&trace, self.format, &mut late.notes);
        if late.threads == 0 && !selection.is_any() {
            return Err(Failure::new(format_args!(
                "{}: no such process or thread in it. The busiest that it has: {}",
                late.file,
                busiest(&trace).join(", ")
            )));
        }
        if late.sleeps == 0 && is_blind(&late) && self.trace.is_some() {
            return Err(Failure::new(format_args!(
                "{}: no sched_switch in it, so no thread is seen to sleep or to wait for a CPU. \
                 Record with tickless record --events late",
                late.file
            )));
        }
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
        record::start(&recording)?;
        let end = waiting.pass(self.duration);
        recording.stop()?;
        Ok((recording.trace("this machine", "tickless late --watch")?, end == End::Signal))
    }
}

/// Returns whether no wait for a CPU can be seen in the trace.
fn is_blind(late: &Late) -> bool {
    late.missing.iter().any(|missing| missing.starts_with("no sched_switch"))
}

impl Results for Late {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let Late { file, threshold_ns, sleeps, late, folded, causes, worst, waits, .. } = self;
        let (threshold, seen) = (time(*threshold_ns), seen(self.seen_percent));
        let of_sleeps = match sleeps {
            0 => "no timed sleeps".to_string(),
            _ => format!("{late} of {sleeps} sleeps more than {threshold} late"),
        };
        let of_waits = match waits.waits {
            0 => "no waits for a CPU".to_string(),
            count => format!(
                "{} of {count} waits for a CPU longer than {threshold}: {} of {}",
                waits.late,
                time(waits.late_ns),
                time(waits.ns)
            ),
        };
        paragraph(out, "", &format!("{file}{seen}: {of_sleeps}; {of_waits}"))?;
        let Folded { kernel_threads, wheel } = folded;
        if kernel_threads + wheel > 0 {
            let text = format!(
                "Not shown, see them with --all: {kernel_threads} of kernel threads, {wheel} that \
                 the timer wheel rounded up"
            );
            paragraph(out, "", &text)?;
        }
        if let Some(steal @ 1..) = self.steal_ns {
            let text = format!(
                "The hypervisor took {} of this machine's CPUs (steal): it is in the times below, \
                 and the trace does not show where",
                time(steal)
            );
            paragraph(out, "", &text)?;
        }
        if self.is_partial {
            writeln!(out, "PARTIAL: it was interrupted.")?;
        }
        self.missing
            .iter()
            .chain(&self.notes)
            .try_for_each(|missing| paragraph(out, "  - ", missing))?;
        let title = "What ended the sleeps of these threads, timed or not:";
        write_shares(title, ["share", "time", "sleeps", "woken by"], &self.woken_by, out)?;
        if *late + waits.late == 0 {
            let has_seen = self.seen_percent == 100.0 || *sleeps + waits.waits > 0;
            let what = match is_blind(self) || self.never_ran || !has_seen {
                true => "What was late is not to be seen",
                false => "Nothing was late",
            };
            return writeln!(out, "\n{what}.");
        }
        let latest = worst.iter().map(|LateSleep { thread, pid, cpu, due_ns, late_ns, hops }| {
            let (due, late) = (*due_ns as f64 / 1e9, time(*late_ns));
            format!("{thread}-{pid} on CPU {cpu} at {due:.6}: {late}: {}", in_line(hops))
        });
        write_list("The latest:", latest.collect(), out)?;
        // The waits that are a part of those sleeps have been shown.
        let is_part = |wait: &LongWait, it: &LateSleep| {
            wait.pid == it.pid && (it.due_ns..it.due_ns + it.late_ns).contains(&wait.ready_ns)
        };
        let longest = waits.worst.iter().filter(|wait| !worst.iter().any(|it| is_part(wait, it)));
        let longest =
            longest.map(|LongWait { thread, pid, ready_ns, waited_ns, is_preempted, hops }| {
                let (at, waited) = (*ready_ns as f64 / 1e9, time(*waited_ns));
                let why = if *is_preempted { "lost its CPU" } else { "woken" };
                format!("{thread}-{pid}, {why} at {at:.6}: {waited}: {}", in_line(hops))
            });
        write_list("The longest other waits for a CPU:", longest.collect(), out)?;
        write_causes(causes, out)?;
        let title = "What all waits for a CPU over the threshold were spent on:";
        write_shares(title, ["share", "time", "waits", "cause"], &waits.causes, out)?;
        if waits.threads > waits.programs.len() {
            let title = "The same threads by program:";
            write_shares(title, ["share", "time", "waits", "program"], &waits.programs, out)?;
        }
        Ok(())
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let sleeps = self.causes.iter().map(|it| (&it.cause, it.sleeps, it.ns, it.percent, 0));
        let waits = self.waits.causes.iter().map(|it| (&it.cause, 0, it.ns, it.percent, it.times));
        write_csv("cause,sleeps,ns,percent,waits", sleeps.chain(waits), out)
    }
}

fn in_line(hops: &[Hop]) -> String {
    let hop = |hop: &Hop| format!("{} {} ({})", hop.hop, time(hop.ns), hop.cause);
    hops.iter().map(hop).collect::<Vec<_>>().join(", ")
}

pub fn write_hops(hops: &[Hop], out: &mut dyn Write) -> io::Result<()> {
    hops.iter().try_for_each(|Hop { hop, ns, cause }| {
        paragraph(out, "  - ", &format!("{hop}: {} ({cause})", time(*ns)))
    })
}

pub fn write_causes(causes: &[CauseShare], out: &mut dyn Write) -> io::Result<()> {
    let share = |it: &CauseShare| {
        let cause = it.cause.clone();
        Share { cause, times: it.sleeps, ns: it.ns, percent: it.percent }
    };
    let shares: Vec<Share> = causes.iter().map(share).collect();
    let title = "What all lateness over the threshold was spent on:";
    write_shares(title, ["share", "time", "sleeps", "cause"], &shares, out)
}

fn write_list(title: &str, lines: Vec<String>, out: &mut dyn Write) -> io::Result<()> {
    if !lines.is_empty() {
        writeln!(out, "\n{title}")?;
    }
    lines.iter().try_for_each(|line| paragraph(out, "  - ", line))
}

fn write_shares(
    title: &str,
    header: [&str; 4],
    shares: &[Share],
    out: &mut dyn Write,
) -> io::Result<()> {
    if shares.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    let mut table = bare(&header, 0);
    if let Some(cause) = table.column_mut(3) {
        cause.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    const SHOWN: usize = 15;
    let (shown, others) = shares.split_at(shares.len().min(SHOWN));
    let rest = (!others.is_empty()).then(|| Share {
        cause: format!("... and {} more: see them with --format json", others.len()),
        times: others.iter().map(|it| it.times).sum(),
        ns: others.iter().map(|it| it.ns).sum(),
        percent: others.iter().map(|it| it.percent).sum(),
    });
    for Share { cause, times, ns, percent } in shown.iter().chain(&rest) {
        table.add_row([format!("{percent:.1} %"), time(*ns), times.to_string(), cause.clone()]);
    }
    write_table(&table, out)
}
