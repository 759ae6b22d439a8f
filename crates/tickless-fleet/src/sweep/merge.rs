//! One table of all folders, if they make a whole.

use super::folder::{Index, OpenParts};
use super::{Folder, SweepError};
use crate::row::{Row, TableWriter};
use std::path::Path;

/// What went into a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Merged {
    /// Cells of the campaign.
    pub cells: u64,
    /// Cells that failed: their row has an error.
    pub failed: u64,
    /// Rows of the table.
    pub rows: u64,
    /// Results of cells that the campaign no longer has; they are left out.
    pub left_out: u64,
}

/// Writes one table of what these folders hold, in the order of the campaign's cells. Holds some
/// dozens of bytes for each cell, and no more for the rows.
///
/// # Errors
///
/// Cells that are missing or double, results of another version, folders of different campaigns,
/// and what is wrong with files. Then no table is written.
pub fn merge(folders: &[Folder], to: &Path) -> Result<Merged, SweepError> {
    let mut writer = TableWriter::create(to)?;
    let merged = rows(folders, |row| writer.add(row).map_err(SweepError::from))?;
    writer.finish()?;
    Ok(merged)
}

/// The same with a function that takes each row.
///
/// # Errors
///
/// As [`merge`], and whatever `take` returns.
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
    let is_missing = |key: &_| !index.places.contains_key(key);
    let mut missing = keys().map(|(key, _)| key).filter(is_missing);
    if let Some(example) = missing.next() {
        return Err(SweepError::Missing { count: 1 + missing.count() as u64, example });
    }
    let mut merged = Merged::default();
    let mut open = OpenParts::default();
    for (key, cell) in keys() {
        let outcome = index.outcome(index.places[&key], &mut open)?;
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
