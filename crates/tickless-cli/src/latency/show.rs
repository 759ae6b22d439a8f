//! The results as a table with a plot, JSON or CSV.

use super::plot::{Bins, plot};
use super::{Plan, Quantile, Sleeper, Slice};
use crate::measure::machine;
use crate::output::{Format, bare, figure, paragraph, print};
use serde::Serialize;
use std::io::{self, Write};

/// What one sleeper came to. Times are nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Who slept.
    pub sleeper: &'static str,
    /// The least lateness.
    pub min: u64,
    /// Its average.
    pub avg: f64,
    /// Its median.
    pub p50: u64,
    /// No later in 99 of 100.
    pub p99: u64,
    /// No later in 999 of 1000.
    pub p999: u64,
    /// The most.
    pub max: u64,
    /// Wakeups that were measured.
    pub samples: u64,
    /// Times any thread of the process was woken, each second.
    pub wakeups_per_s: f64,
    /// CPU time of the process, of one CPU's.
    pub cpu_percent: f64,
    /// Wakeups before their deadline.
    pub early: u64,
    /// Intervals without a wakeup of their own.
    pub missed: u64,
    /// Threads, or timers.
    pub threads: usize,
    /// From one wakeup to the next.
    pub interval_us: f64,
    /// Real-time priority; 0 for none.
    pub priority: u8,
    /// With `-h`: wakeups by microseconds.
    pub histogram: Option<Buckets>,
}

/// Wakeups by microseconds of lateness.
#[derive(Clone, Debug, Serialize)]
pub struct Buckets {
    /// The first: late by less than 1 us; and so on.
    pub counts: Vec<u64>,
    /// Later than all of them.
    pub above: u64,
}

impl Row {
    /// Of one sleeper; with a histogram of so many microseconds, if asked for.
    pub fn new(sleeper: Sleeper, plan: &Plan, slice: &Slice, histogram_us: Option<u32>) -> Row {
        let Slice { tally, usage } = slice;
        let quantile = |quantile| tally.lateness.value_at_quantile(quantile);
        let real_s = usage.real_s.max(f64::MIN_POSITIVE);
        Row {
            sleeper: sleeper.name(),
            min: tally.lateness.min(),
            avg: tally.average_ns(),
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: tally.lateness.max(),
            samples: tally.lateness.len(),
            wakeups_per_s: usage.voluntary_switches as f64 / real_s,
            cpu_percent: 100.0 * usage.cpu_s() / real_s,
            early: tally.early,
            missed: tally.missed,
            threads: plan.threads.len(),
            interval_us: plan.interval.as_nanos() as f64 / 1e3,
            priority: plan.priority.unwrap_or(0),
            histogram: histogram_us.map(|most_us| Buckets::of(slice, most_us)),
        }
    }

    /// One of its figures.
    pub fn quantile_ns(&self, quantile: Quantile) -> f64 {
        match quantile {
            Quantile::Min => self.min as f64,
            Quantile::Avg => self.avg,
            Quantile::P50 => self.p50 as f64,
            Quantile::P99 => self.p99 as f64,
            Quantile::P999 => self.p999 as f64,
            Quantile::Max => self.max as f64,
        }
    }
}

impl Buckets {
    fn of(slice: &Slice, most_us: u32) -> Buckets {
        let mut buckets = Buckets { counts: vec![0; most_us as usize], above: 0 };
        let lateness = &slice.tally.lateness;
        for value in lateness.iter_recorded() {
            let us = lateness.lowest_equivalent(value.value_iterated_to()) / 1_000;
            let count = value.count_since_last_iteration();
            match buckets.counts.get_mut(us as usize) {
                Some(bucket) => *bucket += count,
                None => buckets.above += count,
            }
        }
        buckets
    }
}

/// Prints what the sleepers came to.
pub fn show(
    results: &[(Row, Slice)],
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

/// The rows as one JSON array.
pub fn json(results: &[(Row, Slice)], out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<&Row> = results.iter().map(|(row, _)| row).collect();
    serde_json::to_writer_pretty(&mut *out, &rows)?;
    writeln!(out)
}

fn tables(
    results: &[(Row, Slice)],
    histogram_us: Option<u32>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if let Some((row, _)) = results.first() {
        paragraph(out, "", &title(row))?;
        writeln!(out)?;
    }
    let bins = histogram_us.map_or_else(Bins::logarithmic, |us| Bins::linear(us.into()));
    let tallies: Vec<_> = results.iter().map(|(row, slice)| (row.sleeper, &slice.tally)).collect();
    plot(&tallies, &bins).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    writeln!(out, "\nLateness in us (live), and what it took:")?;
    let header = ["", "min", "avg", "p50", "p99", "p99.9", "max", "samples", "wakes/s", "CPU %"];
    let mut table = bare(&header, 1);
    for (row, _) in results {
        let us = |ns: u64| figure(ns as f64 / 1e3);
        table.add_row([
            row.sleeper.to_string(),
            us(row.min),
            figure(row.avg / 1e3),
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
    for (row, _) in results.iter().filter(|(row, _)| row.missed + row.early > 0) {
        let Row { sleeper, missed, early, .. } = row;
        writeln!(out, "{sleeper}: {missed} intervals missed, {early} wakeups early")?;
    }
    Ok(())
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

fn csv(results: &[(Row, Slice)], out: &mut dyn Write) -> io::Result<()> {
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
    for (row, _) in results {
        csv.serialize((
            (row.sleeper, row.min, row.avg, row.p50, row.p99, row.p999, row.max),
            (row.samples, row.wakeups_per_s, row.cpu_percent, row.early, row.missed),
            (row.threads, row.interval_us, row.priority),
        ))?;
    }
    csv.flush()
}
