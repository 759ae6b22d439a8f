//! How all commands print their results.
//!
//! Tables fit 80 columns, or the terminal if that is narrower. The most important result comes
//! last, so that it is still visible in a terminal of 24 lines. Colours only emphasise what the
//! words already express. `console` uses them in terminals, and not if `NO_COLOR` is set.

use crate::command::Failure;
use comfy_table::{CellAlignment, ContentArrangement, Table, TableStyle};
use serde::Serialize;
use std::io::{self, Write};
use std::sync::OnceLock;
use terminal_size::{Width, terminal_size_of};
use tickless_lab::text::field;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Format {
    /// Tables for people
    #[default]
    Table,
    /// One JSON document
    Json,
    /// A line of names, then one for each row
    Csv,
}

pub trait Results: Serialize {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()>;

    fn csv(&self, out: &mut dyn Write) -> io::Result<()>;

    fn write(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Table => self.tables(out),
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                writeln!(out)
            }
            Format::Csv => self.csv(out),
        }
    }
}

pub fn print(results: &(impl Results + ?Sized), format: Format) -> Result<(), Failure> {
    print_with(|out| results.write(format, out))
}

pub fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write(&mut out).and_then(|()| out.flush()).map_err(Failure::output)
}

/// Writes rows as CSV. If a row is a struct, its fields name the columns. For other types, `header`
/// must have the names of the columns, separated by commas.
pub fn write_csv<R: Serialize>(
    header: &str,
    rows: impl IntoIterator<Item = R>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut csv = csv::WriterBuilder::new().has_headers(header.is_empty()).from_writer(out);
    if !header.is_empty() {
        csv.write_record(header.split(','))?;
    }
    rows.into_iter().try_for_each(|row| csv.serialize(row))?;
    csv.flush()
}

/// The longest line of a table or paragraph, in characters, even if the terminal is wider.
pub const WIDTH_MAX: usize = 80;

/// Returns the width of lines: that of the environment variable `COLUMNS`, or else of the terminal,
/// but at least 40 and at most [`WIDTH_MAX`].
pub fn width() -> usize {
    const LEAST: usize = 40;
    static WIDTH: OnceLock<usize> = OnceLock::new();
    *WIDTH.get_or_init(|| {
        let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let terminal = || terminal_size_of(io::stdout()).map(|(Width(columns), _)| columns.into());
        asked
            .or_else(terminal)
            .filter(|&columns: &usize| columns > 0)
            .unwrap_or(WIDTH_MAX)
            .clamp(LEAST, WIDTH_MAX)
    })
}

/// Makes a table without ruled lines. Columns from index `numbers_from` on are aligned as numbers.
pub fn bare<S: ToString>(header: &[S], numbers_from: usize) -> Table {
    let mut table = Table::new();
    let header = header.iter().map(S::to_string);
    table.load_style(TableStyle::new()).set_header(header);
    for column in table.column_iter_mut().skip(numbers_from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

pub fn to_width(table: &mut Table) {
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width() as u16);
}

/// Writes a table without trailing spaces. If the table is too wide, first narrows the gaps between
/// its columns, and then breaks the text in its cells.
pub fn write_table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    for line in fitted(table, width()).lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Makes a table narrower if it is too wide: with less padding, and then with wrapped cells.
fn fitted(table: &Table, width: usize) -> Table {
    let is_long = |line: String| line.trim_end().chars().count() > width;
    let mut table = table.clone();
    if table.lines().any(is_long) {
        table.column_iter_mut().for_each(|column| {
            column.set_padding((0, 1));
        });
    }
    if table.lines().any(is_long) {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width as u16);
    }
    table
}

/// Says how much of the CPUs' time a trace shows, behind its name; nothing if it is all of it.
pub fn seen(percent: f64) -> String {
    match percent < 100.0 {
        true => format!(" ({percent:.1} % of the CPUs' time seen: events are missing)"),
        false => String::new(),
    }
}

/// Returns the text of `notes.txt` that has this name.
pub fn note(name: &str) -> &'static str {
    field(include_str!("notes.txt"), name)
}

/// Writes `bullet` and a text in lines of at most [`width`] characters, as [`wrapped`] does.
pub fn paragraph(out: &mut dyn Write, bullet: &str, text: &str) -> io::Result<()> {
    wrapped(bullet, text, width()).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Breaks `bullet` and a text into lines of at most `width` characters. Further lines are indented
/// by the width of the bullet.
pub fn wrapped(bullet: &str, text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = bullet.to_string();
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() + 1 > width && line.len() > bullet.len() {
            lines.push(std::mem::replace(&mut line, " ".repeat(bullet.len())));
        }
        if line.len() > bullet.len() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_table_loses_its_gaps_before_it_breaks_cells() {
        let mut table = bare(&["name", "first", "second"], 1);
        table.add_row(["sleeper", "123456", "1234567"]);
        let lines = |width| -> Vec<String> {
            fitted(&table, width).lines().map(|line| line.trim_end().to_string()).collect()
        };
        assert_eq!(lines(80), [" name      first   second", " sleeper  123456  1234567"]);
        assert_eq!(lines(23), ["name     first  second", "sleeper 123456 1234567"]);
        let broken = lines(20);
        assert!(broken.len() > 2 && broken.iter().all(|line| line.len() <= 20), "{broken:?}");
    }

    #[test]
    fn paragraphs_are_wrapped_and_indented() {
        let lines = wrapped("  - ", "some words and averyveryverylongword", 16);
        assert_eq!(lines, ["  - some words", "    and", "    averyveryverylongword"]);
    }
}
