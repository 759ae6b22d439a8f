//! Merges the folders of a campaign's results into one table. Fails if the result of any cell
//! (single computation) is missing.

use super::error::SweepError;
use super::folder::{Folder, Index};
use crate::row::Row;
use std::io::{self, BufWriter};
use std::path::Path;
use tickless_lab::output::{parent, persist, temporary};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Merged {
    pub cells: u64,
    pub failed: u64,
    pub rows: u64,
}

/// Writes the results in these folders as one table, in the order of the campaign's cells: a CSV
/// file, whose name must end in `.csv`. Memory use is a few dozen bytes for each cell.
pub fn merge(folders: &[Folder], to: &Path) -> Result<Merged, SweepError> {
    if to.extension().is_none_or(|end| end != "csv") {
        return Err(SweepError::TableName(to.to_path_buf()));
    }
    let refused = |error| SweepError::Table { path: to.to_path_buf(), error };
    let file = temporary(parent(to)).map_err(refused)?;
    let mut csv = csv::Writer::from_writer(BufWriter::new(file));
    let merged = rows(folders, |row| csv.serialize(row).map_err(|error| refused(error.into())))?;
    let finish = || {
        let out = csv.into_inner().map_err(csv::IntoInnerError::into_error)?;
        persist(out.into_inner().map_err(io::IntoInnerError::into_error)?, to)
    };
    finish().map_err(refused)?;
    Ok(merged)
}

/// Passes the rows of all cells to `take`, in the plan's order. Fails if a cell is missing.
pub fn rows(
    folders: &[Folder],
    mut take: impl FnMut(Row) -> Result<(), SweepError>,
) -> Result<Merged, SweepError> {
    let Some(first) = folders.first() else { return Ok(Merged::default()) };
    let mut index = Index::default();
    for folder in folders {
        if !folder.plan().is_same_campaign(first.plan()) {
            return Err(SweepError::Differ(first.path().into(), folder.path().into()));
        }
        index.read(folder)?;
    }
    let plan = first.plan();
    let keys = || plan.cells(0, 1).map(|cell| (cell.key(&plan.version), cell));
    let mut missing = keys().map(|(key, _)| key).filter(|key| !index.places.contains_key(key));
    if let Some(example) = missing.next() {
        return Err(SweepError::Missing { count: 1 + missing.count() as u64, example });
    }
    let mut merged = Merged::default();
    for (key, cell) in keys() {
        let outcome = index.outcome(index.places[&key])?;
        merged.cells += 1;
        merged.failed += u64::from(outcome.error.is_some());
        for row in outcome.rows(&cell, &plan.version) {
            merged.rows += 1;
            take(row)?;
        }
    }
    Ok(merged)
}
