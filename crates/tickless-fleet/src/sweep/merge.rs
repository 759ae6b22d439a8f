//! One table of all folders, if no cell is missing.

use super::folder::Index;
use super::{Folder, SweepError};
use crate::row::{Row, TableWriter};
use std::path::Path;

/// The content of a merged table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Merged {
    /// Cells of the campaign.
    pub cells: u64,
    /// Cells that failed: their row has an error.
    pub failed: u64,
    /// Rows of the table.
    pub rows: u64,
    /// Results that are left out, because the campaign no longer has their cells.
    pub left_out: u64,
}

/// Writes one table of the results in these folders, in the order of the campaign's cells. Holds a
/// few dozen bytes for each cell in memory, and one row.
///
/// # Errors
///
/// [`SweepError`] for missing and for double cells, for results of another version, for folders of
/// different campaigns, and for files that cannot be read or written. Then no table is written.
pub fn merge(folders: &[Folder], to: &Path) -> Result<Merged, SweepError> {
    let mut writer = TableWriter::create(to)?;
    let merged = rows(folders, |row| Ok(writer.add(row)?))?;
    writer.finish()?;
    Ok(merged)
}

/// Passes each row of the merged table to `take`.
///
/// # Errors
///
/// As [`merge`], and the errors of `take`.
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
    merged.left_out = index.places.len() as u64 - merged.cells;
    Ok(merged)
}
