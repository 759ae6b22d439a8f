//! Prints the results of `tickless latency`, as tables with a plot, JSON or CSV.

use super::broken::Broken;
use super::{Latency, Measured};
use crate::bars::bars_beside;
use crate::late::{write_causes, write_hops};
use crate::output::{Results, bare, paragraph, write_csv, write_table};
use std::io::{self, Write};
use tickless_lab::latency::{Bins, Row, Tally};
use tickless_lab::measure::machine;
use tickless_lab::text::{figure, time};

impl Results for Latency {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let Latency { results, histogram_us } = self;
        if let Some(first) = results.first() {
            paragraph(out, "", &title(&first.row))?;
            writeln!(out)?;
        }
        let bins = histogram_us.map_or_else(Bins::logarithmic, |us| Bins::linear(us.into()));
        let tallies: Vec<_> =
            results.iter().map(|one| (one.row.sleeper, &one.slice.tally)).collect();
        plot(&tallies, &bins).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out, "\nLateness in us (live), and what it took:")?;
        let header =
            ["", "min", "avg", "p50", "p99", "p99.9", "max", "samples", "wakes/s", "CPU %"];
        let mut table = bare(&header, 1);
        for Measured { row, .. } in results {
            let figures = row.figures;
            let us =
                |ns: Option<u64>| ns.map_or_else(|| "-".to_string(), |ns| figure(ns as f64 / 1e3));
            table.add_row([
                row.sleeper.to_string(),
                us(figures.min),
                figures.avg.map_or_else(|| "-".to_string(), |ns| figure(ns / 1e3)),
                us(figures.p50),
                us(figures.p99),
                us(figures.p999),
                us(figures.max),
                figures.samples.to_string(),
                figure(row.wakeups_per_s),
                figure(figures.cpu_percent),
            ]);
        }
        write_table(&table, out)?;
        let rows = results.iter().map(|one| &one.row);
        for row in rows.filter(|row| row.figures.missed + row.early > 0) {
            let (Row { sleeper, early, .. }, missed) = (row, row.figures.missed);
            writeln!(out, "{sleeper}: {missed} intervals missed, {early} wakeups early")?;
        }
        results.iter().try_for_each(|one| match &one.broken {
            Some(broken) => explained(one.row.sleeper, broken, out),
            None => Ok(()),
        })
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = "sleeper,min,avg,p50,p99,p999,max,samples,wakeups_per_s,cpu_percent,early,\
            missed,threads,interval_us,priority";
        let rows = self.results.iter().map(|Measured { row, .. }| {
            let of = row.figures;
            (
                (row.sleeper, of.min, of.avg, of.p50, of.p99, of.p999, of.max),
                (of.samples, row.wakeups_per_s, of.cpu_percent, row.early, of.missed),
                (row.threads, row.interval_us, row.priority),
            )
        });
        write_csv(header, rows, out)
    }
}

fn plot(tallies: &[(&str, &Tally)], bins: &Bins) -> Vec<String> {
    let all: Vec<Vec<u64>> = tallies.iter().map(|(_, tally)| bins.counts(tally)).collect();
    let names = tallies.iter().map(|(name, _)| *name);
    let columns: Vec<(&str, &[u64])> = names.zip(all.iter().map(Vec::as_slice)).collect();
    bars_beside(&bins.ends_us().collect::<Vec<u64>>(), &columns)
}

fn explained(sleeper: &str, broken: &Broken, out: &mut dyn Write) -> io::Result<()> {
    let (late, above) = (time(broken.late_ns), time(broken.above_ns));
    let thread = broken.thread;
    let text = format!("Stopped: {sleeper}, thread {thread}, was {late} late, more than {above}:");
    writeln!(out)?;
    paragraph(out, "", &text)?;
    match &broken.hops {
        Some(hops) => write_hops(hops, out)?,
        None => paragraph(out, "  - ", "the trace does not have the end of this sleep")?,
    }
    write_causes(&broken.causes, out)?;
    let file = &broken.file;
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
