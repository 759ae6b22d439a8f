//! Prints the results of a replay as tables, JSON or CSV.

use crate::output::{Results, bare, note, paragraph, seen, write_csv, write_table};
use std::io::{self, Write};
use tickless_lab::text::time;
use tickless_trace::replay::{
    Agreement, Comparison, Measure, OperationCounts, Overlap, PhaseSet, Quantiles, Summary, Verdict,
};

impl Results for Summary {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let trace = &self.trace;
        let hz = trace.hz.map_or_else(|| "unknown".to_string(), |hz| hz.to_string());
        let cpus = if trace.cpus == 1 { "CPU" } else { "CPUs" };
        let seen = seen(trace.seen_percent);
        writeln!(
            out,
            "{}: {} {cpus}, {:.3} s{seen}, HZ {hz}",
            trace.file, trace.cpus, trace.seconds
        )?;
        writeln!(out, "\nWhat the kernel did with its timers:")?;
        operations(&self.operations, out)?;
        if !self.top_functions.is_empty() {
            writeln!(out, "\nArmed most:")?;
            top_functions(self, out)?;
        }
        for group in self.overlap.iter().take(OVERLAPS_SHOWN) {
            overlap(group, out)?;
        }
        writeln!(out, "\nWhat the core does with the same operations, under each policy:")?;
        policies(self, out)?;
        writeln!(out, "\nHow late timers fired, against the end of their window:")?;
        lateness(self, out)?;
        ticks(self, out)?;
        upgrade(self, out)?;
        paragraph(out, "", note("replay recorded"))?;
        if self.policies.iter().any(|result| Some(result.policy) != of_kernel(self)) {
            paragraph(out, "", note("replay wakeups"))?;
        }
        writeln!(out)?;
        match &self.agreement {
            Some(agreement) => agreement_lines(agreement, out)?,
            None => paragraph(out, "", note("replay agreement"))?,
        }
        self.notes.iter().try_for_each(|note| paragraph(out, "  - ", note))
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = "policy,device_writes,wakeups,expirations,spurious_wakeups,early,\
            lateness_p50_ns,lateness_p99_ns,lateness_max_ns,wheel_lateness_p50_ns,\
            wheel_lateness_p99_ns,wheel_lateness_max_ns,queue_lateness_p50_ns,\
            queue_lateness_p99_ns,queue_lateness_max_ns";
        let lateness = |quantiles: Option<Quantiles>| {
            quantiles.map_or([None; 3], |it| [it.p50, it.p99, it.max].map(Some))
        };
        let replayed = self.policies.iter().map(|it| {
            let counts = (Some(it.device_writes), Some(it.wakeups), it.expirations);
            let wheel_and_queue = (lateness(it.wheel_lateness_ns), lateness(it.queue_lateness_ns));
            let (spurious, early) = (Some(it.spurious_wakeups), Some(it.early));
            (it.policy, counts, spurious, early, lateness(Some(it.lateness_ns)), wheel_and_queue)
        });
        let it = &self.trace.recorded;
        let counts = (it.device_writes, it.timer_interrupts, it.expirations);
        let wheel_and_queue = (lateness(it.wheel_lateness_ns), lateness(it.queue_lateness_ns));
        let recorded = ("recorded", counts, None, None, lateness(None), wheel_and_queue);
        write_csv(header, replayed.chain([recorded]), out)
    }
}

/// The highest number of groups of periodic timers that the tables show. JSON has all.
const OVERLAPS_SHOWN: usize = 3;

fn of_kernel(summary: &Summary) -> Option<&'static str> {
    summary.agreement.as_ref().map(|agreement| agreement.policy)
}

fn operations(operations: &OperationCounts, out: &mut dyn Write) -> io::Result<()> {
    let header = ["", "armed", "share", "re-armed", "cancelled", "expired", "not to fire"];
    let mut table = bare(&header, 1);
    let share = |starts: u64| percent(100.0 * starts as f64 / operations.start.max(1) as f64);
    let OperationCounts { wheel, queue, .. } = *operations;
    for (name, counts) in [("wheel", wheel), ("queue", queue), ("all", operations.all())] {
        table.add_row([
            name.to_string(),
            counts.start.to_string(),
            share(counts.start),
            counts.restart.to_string(),
            counts.cancel.to_string(),
            counts.expire.to_string(),
            percent(counts.cancelled_percent()),
        ]);
    }
    write_table(&table, out)?;
    paragraph(out, "", note("replay operations"))
}

fn top_functions(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    const SHOWN: usize = 5;
    const NAME_LEN_MAX: usize = 50;
    let mut table = bare(&["function", "family", "times"], 2);
    for top in summary.top_functions.iter().take(SHOWN) {
        let name: String = top.function.chars().take(NAME_LEN_MAX).collect();
        table.add_row([&name, top.family, &top.starts.to_string()]);
    }
    write_table(&table, out)
}

fn overlap(group: &Overlap, out: &mut dyn Write) -> io::Result<()> {
    const STRIP: usize = 50;
    let Overlap { function, period_ns, expirations, within_ns, together, .. } = group;
    let count = group.recorded.phases_ns.len();
    writeln!(out)?;
    let text = format!(
        "{count} timers of {function} every {}: {} of {expirations} expiries had another one \
         within {}.",
        time(*period_ns),
        percent(100.0 * *together as f64 / (*expirations).max(1) as f64),
        time(*within_ns),
    );
    paragraph(out, "", &text)?;
    for (name, set) in [("recorded", &group.recorded), ("spread", &group.spread)] {
        let PhaseSet { gap_min_ns, together_timers, .. } = *set;
        let strip = set.strip(*period_ns, STRIP);
        let nearest = time(gap_min_ns);
        writeln!(out, " {name:<9}|{strip}| nearest {nearest}")?;
        if together_timers > 0 && name == "spread" {
            writeln!(out, " {together_timers} of them would still expire together")?;
        }
    }
    Ok(())
}

fn policies(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let header = ["", "device writes", "wakeups", "spurious", "fired", "early"];
    let mut table = bare(&header, 1);
    let mut row = |name: &str, counts: [Option<u64>; 5]| {
        table.add_row([name.to_string()].into_iter().chain(counts.map(known)));
    };
    for it in &summary.policies {
        let (writes, wakeups) = (Some(it.device_writes), Some(it.wakeups));
        let (spurious, early) = (Some(it.spurious_wakeups), Some(it.early));
        row(it.policy, [writes, wakeups, spurious, Some(it.expirations), early]);
    }
    let it = &summary.trace.recorded;
    let (writes, wakeups) = (it.device_writes, it.timer_interrupts);
    row("recorded", [writes, wakeups, None, Some(it.expirations), None]);
    write_table(&table, out)
}

fn lateness(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let header = ["", "queue p50", "p99", "max", "wheel p50", "p99", "max"];
    let mut table = bare(&header, 1);
    let mut row = |name: &str, queue: Option<Quantiles>, wheel: Option<Quantiles>| {
        let cells = [queue, wheel].into_iter().flat_map(|quantiles| match quantiles {
            Some(Quantiles { p50, p99, max }) => [time(p50), time(p99), time(max)],
            None => ["-".to_string(), "-".to_string(), "-".to_string()],
        });
        table.add_row(std::iter::once(name.to_string()).chain(cells));
    };
    for result in &summary.policies {
        row(result.policy, result.queue_lateness_ns, result.wheel_lateness_ns);
    }
    let recorded = &summary.trace.recorded;
    row("recorded", recorded.queue_lateness_ns, recorded.wheel_lateness_ns);
    write_table(&table, out)
}

fn ticks(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let Some(first) = summary.ticks.first() else { return Ok(()) };
    writeln!(out, "\nWith other ticks, under {}:", first.policy)?;
    let header = ["", "device writes", "wakeups", "while idle", "wheel late p50", "p99"];
    let mut table = bare(&header, 1);
    for result in &summary.ticks {
        let tick = if result.stopped { "stopped" } else { "running" };
        let late = |of: fn(Quantiles) -> u64| {
            result.wheel_lateness_ns.map_or_else(|| "-".to_string(), |late| time(of(late)))
        };
        table.add_row([
            format!("{} Hz, {tick}", result.hz),
            result.device_writes.to_string(),
            result.wakeups.to_string(),
            result.idle_wakeups.to_string(),
            late(|late| late.p50),
            late(|late| late.p99),
        ]);
    }
    write_table(&table, out)?;
    paragraph(out, "", note("replay ticks"))
}

fn upgrade(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    if summary.upgrade.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nOn Linux 7.2:")?;
    let mut table = bare(&["", "device writes", "wakeups", "spurious"], 1);
    for result in &summary.upgrade {
        table.add_row([
            format!("slice timer {}", if result.slice_timer { "on" } else { "off" }),
            result.device_writes.to_string(),
            result.wakeups.to_string(),
            result.spurious_wakeups.to_string(),
        ]);
    }
    write_table(&table, out)?;
    paragraph(out, "", note("replay upgrade"))
}

fn agreement_lines(agreement: &Agreement, out: &mut dyn Write) -> io::Result<()> {
    let verdict = if agreement.inside { "" } else { ", which is more than a replay should be off" };
    let text = format!(
        "Agreement: the kernel that recorded this is {}, and wrote its event devices {} times; \
         the replay does {} times, {:+.1} %{verdict}.",
        agreement.policy, agreement.recorded, agreement.replayed, agreement.off_percent,
    );
    paragraph(out, "", &text)?;
    for measure in agreement.measures.iter().filter(|measure| !measure.inside) {
        let Measure { measure, recorded, replayed, .. } = measure;
        let name = measure.replace('_', " ");
        paragraph(out, "  - ", &format!("{name}: {recorded} recorded, {replayed} replayed"))?;
    }
    agreement
        .others
        .iter()
        .try_for_each(|other| paragraph(out, "  - ", &distinction(other, agreement.policy)))?;
    for damage in &agreement.damage {
        paragraph(out, "  - ", &format!("not to be trusted: {damage}"))?;
    }
    agreement.why.iter().try_for_each(|reason| paragraph(out, "  - ", reason))
}

/// Describes whether the trace shows that the recorded kernel cannot have used this policy: whether
/// the replay under this policy differs enough from the replay under the kernel's own policy.
fn distinction(other: &Comparison, kernel: &str) -> String {
    let Comparison { policy, differs_in, differs_by, verdict, .. } = other;
    let by = format!("{differs_by} {} apart", differs_in.replace('_', " "));
    match verdict {
        Verdict::RuledOut => format!("{policy} instead is ruled out: {by}"),
        Verdict::FitsBetter => {
            format!("{policy} instead fits better: {by}. Was the kernel not {kernel}?")
        }
        Verdict::CannotTell if *differs_by == 0 => {
            format!("{policy} instead cannot be told from it: the same counts")
        }
        Verdict::CannotTell => format!("{policy} instead cannot be told from it: only {by}"),
    }
}

pub(super) fn known(value: Option<u64>) -> String {
    value.map_or("-".to_string(), |value| value.to_string())
}

fn percent(value: f64) -> String {
    format!("{value:.1} %")
}
