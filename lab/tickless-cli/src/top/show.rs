//! Prints the tables of `tickless top` as text, JSON lines or CSV.

use super::View;
use super::cells::{cells, collision, header, lay_out, numbers_from, summary, total};
use crate::output::{Format, paragraph, width, write_csv};
use std::io::{self, Write};
use tickless_top::table::{Table, TableRow};

pub(super) fn show(
    table: &Table,
    view: &View,
    rows: usize,
    format: Format,
    number: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Table => text(table, view, rows, number, out),
        Format::Json => {
            serde_json::to_writer(&mut *out, table)?;
            writeln!(out)
        }
        Format::Csv => csv(table, number, out),
    }
}

fn text(
    table: &Table,
    &View { by, command_lines, .. }: &View,
    rows: usize,
    number: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    if number > 0 {
        writeln!(out)?;
    }
    let listed = || table.rows.iter().take(rows);
    let mut lines = vec![header(by).into_iter().map(str::to_string).collect()];
    lines.extend(listed().map(|row| cells(table, row, by)));
    lines.push(total(table, by));
    for line in lay_out(lines, numbers_from(by), width()) {
        writeln!(out, "{}", line.trim_end())?;
    }
    if command_lines {
        let mut shown: Vec<u32> = Vec::new();
        for TableRow { pid, command, .. } in listed() {
            if let Some(command) = command.as_ref().filter(|_| !shown.contains(pid)) {
                paragraph(out, &format!("{pid:>7}  "), command)?;
                shown.push(*pid);
            }
        }
    }
    listed().filter_map(collision).try_for_each(|text| paragraph(out, "! ", &text))?;
    let more = table.rows.len().saturating_sub(rows);
    if more > 0 {
        writeln!(out, "... and {more} more: see them with --rows")?;
    }
    paragraph(out, "", &summary(table))
}

fn csv(table: &Table, number: u64, out: &mut dyn Write) -> io::Result<()> {
    const HEADER: &str = "seconds,process,pid,function,family,arms,rearms,cancels,\
        expiries,wakes,device_writes,distance_ns,period_ns,cpu_ns,switches";
    let rows = table.rows.iter().map(|row| {
        let period = row.periods.first().map(|period| period.period_ns);
        (
            (table.seconds, &row.process, row.pid, &row.function, row.family),
            (row.arms, row.rearms, row.cancels, row.expiries, row.wakes),
            (row.device_writes, row.distance_ns, period, row.cpu_ns, row.switches),
        )
    });
    write_csv(if number == 0 { HEADER } else { "" }, rows, out)
}
