//! A replay's results for people and for programs.

use super::summary::{Agreement, PolicyResult, Quantiles, Summary};
use comfy_table::{CellAlignment, Table, TableStyle};
use std::io::{self, Write};

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Format {
    /// Tables for people.
    #[default]
    Table,
    /// One JSON object.
    Json,
    /// One line for each policy.
    Csv,
}

/// Prints a summary.
pub fn show(summary: &Summary, format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Table => table(summary, out),
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, summary)?;
            writeln!(out)
        }
        Format::Csv => csv(summary, out),
    }
}

fn table(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let trace = &summary.trace;
    let hz = trace.hz.map_or_else(|| "unknown HZ".to_string(), |hz| format!("HZ {hz}"));
    writeln!(out, "{}: {} CPUs, {:.3} s, {hz}", trace.file, trace.cpus, trace.seconds)?;
    operations(summary, out)?;
    writeln!(out, "\nReplayed under each policy, beside what the trace recorded:")?;
    policies(summary, out)?;
    if let Some(agreement) = &summary.agreement {
        agreement_line(agreement, out)?;
    }
    if !summary.top_functions.is_empty() {
        writeln!(out, "\nArmed most:")?;
        let mut table = bare(&["function", "family", "starts"], 2);
        for top in &summary.top_functions {
            table.add_row([&top.function, top.family, &top.starts.to_string()]);
        }
        writeln!(out, "{table}")?;
    }
    Ok(())
}

fn operations(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let mut table = bare(&["", "starts", "of pending", "cancels", "expiries", "share"], 1);
    let all = summary.operations.start.max(1) as f64;
    for (name, counts) in [("wheel", summary.operations.wheel), ("queue", summary.operations.queue)]
    {
        table.add_row([
            name.to_string(),
            counts.start.to_string(),
            counts.restart.to_string(),
            counts.cancel.to_string(),
            counts.expire.to_string(),
            format!("{:.1} %", 100.0 * counts.start as f64 / all),
        ]);
    }
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "{:.1} % of all armings were cancelled or moved before they fired.",
        summary.cancelled_percent
    )
}

fn policies(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let mut table = bare(
        &[
            "",
            "device writes",
            "wakeups",
            "spurious",
            "fired",
            "early",
            "late p50/p99/max us: queue",
            "wheel",
        ],
        1,
    );
    for result in &summary.policies {
        table.add_row([
            result.policy.to_string(),
            result.device_writes.to_string(),
            result.wakeups.to_string(),
            result.spurious_wakeups.to_string(),
            result.expirations.to_string(),
            result.early.to_string(),
            micros(result.queue_lateness_ns),
            micros(result.wheel_lateness_ns),
        ]);
    }
    let number = |value: Option<u64>| value.map_or("-".to_string(), |value| value.to_string());
    let recorded = summary.trace.recorded;
    table.add_row([
        "recorded".to_string(),
        number(recorded.device_writes),
        number(recorded.timer_interrupts),
        "-".to_string(),
        summary.operations.expire.to_string(),
        "-".to_string(),
        "-".to_string(),
        "-".to_string(),
    ]);
    writeln!(out, "{table}")
}

fn agreement_line(agreement: &Agreement, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "The kernel that recorded this is {}: {} device writes replayed against {} recorded, \
         {:+.1} %{}.",
        agreement.policy,
        agreement.replayed,
        agreement.recorded,
        agreement.off_percent,
        if agreement.inside { "" } else { ", which is more than this replay should be off" }
    )?;
    for reason in &agreement.why {
        writeln!(out, "  - {reason}")?;
    }
    Ok(())
}

fn csv(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "policy,device_writes,wakeups,expirations,spurious_wakeups,early,\
         lateness_p50_ns,lateness_p99_ns,lateness_max_ns"
    )?;
    for result in &summary.policies {
        let PolicyResult { policy, device_writes, wakeups, expirations, .. } = result;
        let PolicyResult { spurious_wakeups, early, lateness_ns: late, .. } = result;
        writeln!(
            out,
            "{policy},{device_writes},{wakeups},{expirations},{spurious_wakeups},{early},{},{},{}",
            late.p50, late.p99, late.max
        )?;
    }
    Ok(())
}

fn micros(quantiles: Quantiles) -> String {
    let us = |ns: u64| {
        if ns < 100_000 { format!("{:.1}", ns as f64 / 1e3) } else { (ns / 1000).to_string() }
    };
    format!("{} / {} / {}", us(quantiles.p50), us(quantiles.p99), us(quantiles.max))
}

/// A table without lines; columns from `numbers_from` on are numbers.
fn bare(header: &[&str], numbers_from: usize) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new()).set_header(header);
    for column in table.column_iter_mut().skip(numbers_from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
