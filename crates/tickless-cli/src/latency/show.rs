//! The results as a table with a plot, JSON or CSV.

use super::args::Measured;
use super::broken::Broken;
use super::plot::plot;
use crate::late;
use crate::output::{Format, bare, paragraph, print};
use serde::Serialize;
use std::io::{self, Write};
use tickless_lab::latency::{Bins, Row};
use tickless_lab::measure::machine;
use tickless_lab::text::{figure, time};

/// Prints what the sleepers came to.
pub fn show(
    results: &[Measured],
    format: Format,
    histogram_us: Option<u32>,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Table => tables(results, histogram_us, out),
        Format::Json => json(results, out),
        Format::Csv => csv(results, out),
    }
}

/// A row as JSON has it.
#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    row: &'a Row,
    #[serde(rename = "break")]
    broken: Option<&'a Broken>,
}

/// The rows as one JSON array.
pub fn json(results: &[Measured], out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<Printed<'_>> =
        results.iter().map(|one| Printed { row: &one.row, broken: one.broken.as_ref() }).collect();
    serde_json::to_writer_pretty(&mut *out, &rows)?;
    writeln!(out)
}

fn tables(results: &[Measured], histogram_us: Option<u32>, out: &mut dyn Write) -> io::Result<()> {
    if let Some(first) = results.first() {
        paragraph(out, "", &title(&first.row))?;
        writeln!(out)?;
    }
    let bins = histogram_us.map_or_else(Bins::logarithmic, |us| Bins::linear(us.into()));
    let tallies: Vec<_> = results.iter().map(|one| (one.row.sleeper, &one.slice.tally)).collect();
    plot(&tallies, &bins).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    writeln!(out, "\nLateness in us (live), and what it took:")?;
    let header = ["", "min", "avg", "p50", "p99", "p99.9", "max", "samples", "wakes/s", "CPU %"];
    let mut table = bare(&header, 1);
    for Measured { row, .. } in results {
        let us = |ns: Option<u64>| ns.map_or_else(|| "-".to_string(), |ns| figure(ns as f64 / 1e3));
        table.add_row([
            row.sleeper.to_string(),
            us(row.min),
            row.avg.map_or_else(|| "-".to_string(), |ns| figure(ns / 1e3)),
            us(row.p50),
            us(row.p99),
            us(row.p999),
            us(row.max),
            row.samples.to_string(),
            figure(row.wakeups_per_s),
            figure(row.cpu_percent),
        ]);
    }
    print(&table, out)?;
    let rows = results.iter().map(|one| &one.row);
    for row in rows.filter(|row| row.missed + row.early > 0) {
        let Row { sleeper, missed, early, .. } = row;
        writeln!(out, "{sleeper}: {missed} intervals missed, {early} wakeups early")?;
    }
    results.iter().try_for_each(|one| match &one.broken {
        Some(broken) => explained(one.row.sleeper, broken, out),
        None => Ok(()),
    })
}

fn explained(sleeper: &str, broken: &Broken, out: &mut dyn Write) -> io::Result<()> {
    let (late, above) = (time(broken.late().0), time(broken.above().0));
    let thread = broken.thread();
    let text = format!("Stopped: {sleeper}, thread {thread}, was {late} late, more than {above}:");
    writeln!(out)?;
    paragraph(out, "", &text)?;
    match broken.hops() {
        Some(hops) => late::show::hops(hops, out)?,
        None => paragraph(out, "  - ", "the trace does not have the end of this sleep")?,
    }
    if !broken.causes().is_empty() {
        late::show::causes(broken.causes(), out)?;
    }
    let file = broken.file();
    paragraph(out, "", &format!("The trace of what came before: tickless late {file}"))
}

fn title(row: &Row) -> String {
    let threads = if row.threads == 1 { "thread" } else { "threads" };
    let urgency = match row.priority {
        0 => "without real-time priority".to_string(),
        priority => format!("real-time priority {priority}"),
    };
    format!(
        "{}: {} {threads}, every {} us, {urgency}",
        machine(),
        row.threads,
        figure(row.interval_us)
    )
}

fn csv(results: &[Measured], out: &mut dyn Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record([
        "sleeper",
        "min",
        "avg",
        "p50",
        "p99",
        "p999",
        "max",
        "samples",
        "wakeups_per_s",
        "cpu_percent",
        "early",
        "missed",
        "threads",
        "interval_us",
        "priority",
    ])?;
    for Measured { row, .. } in results {
        csv.serialize((
            (row.sleeper, row.min, row.avg, row.p50, row.p99, row.p999, row.max),
            (row.samples, row.wakeups_per_s, row.cpu_percent, row.early, row.missed),
            (row.threads, row.interval_us, row.priority),
        ))?;
    }
    csv.flush()
}
