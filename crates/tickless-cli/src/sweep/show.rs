//! The results of `tickless sweep`.

use crate::output::{Results, bare, write_csv, write_table};
use std::io::{self, Write};
use std::path::Path;
use tickless_fleet::sweep::{Done, Merged, Status};

/// Writes the counts of a run.
pub fn done(done: Done, out: &mut dyn Write) -> io::Result<()> {
    let Done { before, performed, failed, left } = done;
    write!(out, "{} cells performed", count(performed))?;
    if failed > 0 {
        write!(out, ", {} of which failed", count(failed))?;
    }
    writeln!(out, "; {} were there before", count(before))?;
    if left > 0 {
        writeln!(out, "interrupted; {} are left, run it again for them", count(left))?;
    }
    Ok(())
}

/// Writes the counts of a merged table.
pub fn merged(merged: Merged, path: &Path, out: &mut dyn Write) -> io::Result<()> {
    let Merged { cells, failed, rows, left_out } = merged;
    write!(out, "{}: {} rows of {} cells", path.display(), count(rows), count(cells))?;
    if failed > 0 {
        write!(out, ", {} of which failed", count(failed))?;
    }
    if left_out > 0 {
        write!(out, "; {} results of cells that the campaign no longer has", count(left_out))?;
    }
    writeln!(out)
}

impl Results for Status {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let Status { cells, done, failed, missing, running } = *self;
        let rows = [("all", cells), ("done", done), ("failed", failed), ("missing", missing)];
        let rows = rows.map(|(name, number)| [name.to_string(), count(number)]);
        write_table(bare(&["", "cells"], 1).add_rows(rows), out)?;
        let are = if running == 1 { "process works" } else { "processes work" };
        writeln!(out, "{running} {are} on it")
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        write_csv("", [self], out)
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
    fn a_count_has_groups_of_three_digits() {
        let counts = [0, 999, 1_000, 1_000_000_000].map(count);
        assert_eq!(counts, ["0", "999", "1,000", "1,000,000,000"]);
    }
}
