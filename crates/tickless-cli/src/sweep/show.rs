//! The results of `tickless sweep`.

use crate::output::{Results, bare, write_csv, write_table};
use indicatif::HumanCount;
use std::io::{self, Write};
use std::path::Path;
use tickless_fleet::sweep::{Done, Merged, Status};

/// Prints how many cells a run has computed.
pub fn done(done: Done, out: &mut dyn Write) -> io::Result<()> {
    let Done { before, performed, failed, left } = done;
    write!(out, "{} cells performed", HumanCount(performed))?;
    if failed > 0 {
        write!(out, ", {} of which failed", HumanCount(failed))?;
    }
    writeln!(out, "; {} were there before", HumanCount(before))?;
    if left > 0 {
        writeln!(out, "interrupted; {} are left, run it again for them", HumanCount(left))?;
    }
    Ok(())
}

/// Prints how many cells and rows a merged table has.
pub fn merged(merged: Merged, path: &Path, out: &mut dyn Write) -> io::Result<()> {
    let Merged { cells, failed, rows, left_out } = merged;
    write!(out, "{}: {} rows of {} cells", path.display(), HumanCount(rows), HumanCount(cells))?;
    if failed > 0 {
        write!(out, ", {} of which failed", HumanCount(failed))?;
    }
    if left_out > 0 {
        write!(out, "; {} results of cells that the campaign no longer has", HumanCount(left_out))?;
    }
    writeln!(out)
}

impl Results for Status {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let Status { cells, done, failed, missing, running } = *self;
        let rows = [("all", cells), ("done", done), ("failed", failed), ("missing", missing)];
        let rows = rows.map(|(name, number)| [name.to_string(), HumanCount(number).to_string()]);
        write_table(bare(&["", "cells"], 1).add_rows(rows), out)?;
        let are = if running == 1 { "process works" } else { "processes work" };
        writeln!(out, "{running} {are} on it")
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        write_csv("", [self], out)
    }
}
