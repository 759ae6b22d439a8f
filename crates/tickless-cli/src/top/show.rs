//! Prints the tables of `tickless top` as text, JSON lines or CSV.

use super::cells::{cells, header, numbers_from, summary};
use crate::output::{Format, bare, paragraph, write_csv, write_table};
use std::io::{self, Write};
use tickless_top::table::{By, Table};

pub(super) fn show(
    table: &Table,
    by: By,
    rows: usize,
    format: Format,
    number: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Table => text(table, by, rows, number, out),
        Format::Json => {
            serde_json::to_writer(&mut *out, table)?;
            writeln!(out)
        }
        Format::Csv => csv(table, number, out),
    }
}

fn text(table: &Table, by: By, rows: usize, number: u64, out: &mut dyn Write) -> io::Result<()> {
    if number > 0 {
        writeln!(out)?;
    }
    let mut printed = bare(&header(by), numbers_from(by));
    for column in printed.column_iter_mut() {
        column.set_padding((0, 1));
    }
    for row in table.rows.iter().take(rows) {
        let mut cells = cells(table, row, by);
        cells.iter_mut().take(numbers_from(by)).for_each(shorten);
        printed.add_row(cells);
    }
    write_table(&printed, out)?;
    let more = table.rows.len().saturating_sub(rows);
    if more > 0 {
        writeln!(out, "... and {more} more: see them with --rows")?;
    }
    paragraph(out, "", &summary(table))
}

/// Shortens a name that is too long by cutting out its middle, because its end is the process
/// number.
fn shorten(name: &mut String) {
    const LETTERS_MAX: usize = 20;
    const END: usize = 8;
    let letters: Vec<char> = name.chars().collect();
    if letters.len() > LETTERS_MAX {
        let (start, end) = (&letters[..LETTERS_MAX - END - 1], &letters[letters.len() - END..]);
        *name = start.iter().chain(&['~']).chain(end).collect();
    }
}

fn csv(table: &Table, number: u64, out: &mut dyn Write) -> io::Result<()> {
    const HEADER: &str = "source,seconds,process,pid,function,family,arms,rearms,cancels,\
        expiries,idle_wakeups,device_writes,distance_ns,period_ns";
    let rows = table.rows.iter().map(|row| {
        let period = row.periods.first().map(|period| period.period_ns);
        (
            (&table.source, table.seconds, &row.process, row.pid, &row.function, row.family),
            (row.arms, row.rearms, row.cancels, row.expiries, row.idle_wakeups),
            (row.device_writes, row.distance_ns, period),
        )
    });
    write_csv(if number == 0 { HEADER } else { "" }, rows, out)
}
