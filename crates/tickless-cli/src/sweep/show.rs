//! What a campaign has come to, for people and for programs.

use super::args::Outcome;
use crate::output::{Format, bare, print};
use std::io::{self, Write};
use tickless_fleet::sweep::{Done, Status};

/// Prints what the command has come to.
pub fn show(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    match outcome {
        Outcome::Ran(done) => ran(*done, out),
        Outcome::Interrupted(done) => {
            ran(*done, out)?;
            writeln!(out, "interrupted; {} are left, run it again for them", count(done.left))
        }
        Outcome::Merged(merged, path) => {
            let (rows, cells) = (count(merged.rows), count(merged.cells));
            write!(out, "{}: {rows} rows of {cells} cells", path.display())?;
            if merged.failed > 0 {
                write!(out, ", {} of which failed", count(merged.failed))?;
            }
            if merged.left_out > 0 {
                let left_out = count(merged.left_out);
                write!(out, "; {left_out} results of cells that the campaign no longer has")?;
            }
            writeln!(out)
        }
        Outcome::Status(status, format) => show_status(status, *format, out),
    }
}

fn ran(done: Done, out: &mut dyn Write) -> io::Result<()> {
    let Done { before, performed, failed, .. } = done;
    write!(out, "{} cells performed", count(performed))?;
    if failed > 0 {
        write!(out, ", {} of which failed", count(failed))?;
    }
    writeln!(out, "; {} were there before", count(before))
}

fn show_status(status: &Status, format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, status)?;
            writeln!(out)
        }
        Format::Csv => {
            let mut writer = csv::Writer::from_writer(out);
            writer.serialize(status).map_err(io::Error::other)?;
            writer.flush()
        }
        Format::Table => {
            let Status { cells, done, failed, missing, running } = *status;
            let mut table = bare(&["", "cells"], 1);
            for (name, number) in
                [("all", cells), ("done", done), ("failed", failed), ("missing", missing)]
            {
                table.add_row([name.to_string(), count(number)]);
            }
            print(&table, out)?;
            let are = if running == 1 { "process works" } else { "processes work" };
            writeln!(out, "{running} {are} on it")
        }
    }
}

/// A number in groups of three digits.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_can_be_read() {
        let counts = [0, 999, 1_000, 1_000_000_000].map(count);
        assert_eq!(counts, ["0", "999", "1,000", "1,000,000,000"]);
    }
}
