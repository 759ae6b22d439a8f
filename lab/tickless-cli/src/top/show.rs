//! Prints the tables of `tickless top` as text, JSON lines or CSV.

use super::View;
use super::cells::{cells, header, numbers_from, summary, total};
use crate::output::{Format, bare, paragraph, write_csv, write_table};
use comfy_table::ColumnConstraint;
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
    let mut printed = bare(&header(by), numbers_from(by));
    for column in printed.column_iter_mut() {
        column.set_padding((0, 1));
    }
    // The column of process numbers is never narrowed, so that no number is broken into two lines.
    if let Some(pid) = printed.column_mut(numbers_from(by)) {
        pid.set_constraint(ColumnConstraint::ContentWidth);
    }
    for row in table.rows.iter().take(rows) {
        let mut cells = cells(table, row, by);
        cells.iter_mut().take(numbers_from(by)).for_each(shorten);
        printed.add_row(cells);
    }
    printed.add_row(total(table, by));
    write_table(&printed, out)?;
    if command_lines {
        let mut shown: Vec<u32> = Vec::new();
        for TableRow { pid, command, .. } in table.rows.iter().take(rows) {
            if let Some(command) = command.as_ref().filter(|_| !shown.contains(pid)) {
                paragraph(out, &format!("{pid:>7}  "), command)?;
                shown.push(*pid);
            }
        }
    }
    let more = table.rows.len().saturating_sub(rows);
    if more > 0 {
        writeln!(out, "... and {more} more: see them with --rows")?;
    }
    paragraph(out, "", &summary(table))
}

fn shorten(name: &mut String) {
    const LETTERS_MAX: usize = 20;
    if name.chars().count() > LETTERS_MAX {
        *name = name.chars().take(LETTERS_MAX - 1).chain(['~']).collect();
    }
}

fn csv(table: &Table, number: u64, out: &mut dyn Write) -> io::Result<()> {
    const HEADER: &str = "seconds,process,pid,function,family,arms,rearms,cancels,\
        expiries,wakes,device_writes,distance_ns,period_ns";
    let rows = table.rows.iter().map(|row| {
        let period = row.periods.first().map(|period| period.period_ns);
        (
            (table.seconds, &row.process, row.pid, &row.function, row.family),
            (row.arms, row.rearms, row.cancels, row.expiries, row.wakes),
            (row.device_writes, row.distance_ns, period),
        )
    });
    write_csv(if number == 0 { HEADER } else { "" }, rows, out)
}
