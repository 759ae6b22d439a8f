//! A fleet for people and for programs.

use crate::output::{Format, bare, paragraph, print};
use std::io::{self, Write};
use tickless_fleet::fleet::{FIGURES, Fleet};
use tickless_lab::text::figure;

/// Prints a fleet.
pub fn show(fleet: &Fleet, format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Table => tables(fleet, out),
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, fleet)?;
            writeln!(out)
        }
        Format::Csv => csv(fleet, out),
    }
}

fn csv(fleet: &Fleet, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let mut header = vec!["trace", "cpus", "seconds"];
    header.extend(FIGURES.iter().map(|figure| figure.name));
    header.extend(["arms_most", "arms_most_percent", "error"]);
    writer.write_record(&header)?;
    for machine in &fleet.machines {
        let mut cells = vec![machine.trace.clone()];
        match &machine.figures {
            Some(figures) => {
                cells.extend([figures.cpus.to_string(), figures.seconds.to_string()]);
                cells.extend(FIGURES.iter().map(|figure| (figure.of)(figures).to_string()));
                cells.push(figures.arms_most.clone());
                cells.push(figures.arms_most_percent.to_string());
            }
            None => cells.resize(header.len() - 1, String::new()),
        }
        cells.push(machine.error.clone().unwrap_or_default());
        writer.write_record(&cells)?;
    }
    writer.flush()
}

fn tables(fleet: &Fleet, out: &mut dyn Write) -> io::Result<()> {
    let failed = fleet.failed();
    writeln!(out, "{} traces, of which {failed} cannot be used", fleet.machines.len())?;
    let errors = fleet.machines.iter().filter_map(|machine| machine.error.as_ref());
    errors.take(ERRORS_MAX).try_for_each(|error| paragraph(out, "  - ", error))?;
    if failed > ERRORS_MAX {
        paragraph(out, "  - ", "and more: --format json and csv have all of them")?;
    }
    if fleet.quantiles.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nEach CPU's second, over all machines:")?;
    let mut table = bare(&["", "5 %", "25 %", "median", "75 %", "95 %"], 1);
    for (spread, about) in fleet.quantiles.iter().zip(FIGURES) {
        let mut cells = vec![format!("{}, {}", about.about, spread.unit)];
        let values = [spread.p5, spread.p25, spread.p50, spread.p75, spread.p95];
        cells.extend(values.map(figure));
        table.add_row(cells);
    }
    print(&table, out)?;
    writeln!(out, "\nMachines that differ most:")?;
    for differs in &fleet.differ {
        paragraph(out, "  - ", &format!("{}: {}", differs.trace, differs.why))?;
    }
    Ok(())
}

/// Errors that people want to read.
const ERRORS_MAX: usize = 10;
