//! The results of earlier runs, read from their files, for the page's picture and its first table.

use crate::sample::Figure;
use serde::Deserialize;
use std::path::Path;

/// The parts of a report that the picture and the table need.
#[derive(Debug, Default, Deserialize)]
pub struct Results {
    pub tables: Vec<ResultTable>,
}

#[derive(Debug, Deserialize)]
pub struct ResultTable {
    pub case: String,
    pub columns: Vec<String>,
    pub rows: Vec<ResultRow>,
}

#[derive(Debug, Deserialize)]
pub struct ResultRow {
    pub name: String,
    pub cells: Vec<Option<ResultCell>>,
}

#[derive(Debug, Deserialize)]
pub struct ResultCell {
    pub figure: Figure,
}

impl Results {
    /// Reads a file that `--json` has written.
    pub fn read(path: &Path) -> Result<Results, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        serde_json::from_str(&text)
            .map_err(|error| format!("{} is not a report: {error}", path.display()))
    }

    /// All tables of several files.
    pub fn read_all(paths: &[impl AsRef<Path>]) -> Result<Results, String> {
        let mut all = Results::default();
        for path in paths {
            all.tables.extend(Results::read(path.as_ref())?.tables);
        }
        Ok(all)
    }

    /// The medians of a case's column, in ns, by row; the first table that has the column.
    pub fn column(&self, case: &str, column: &str) -> Option<Vec<(&str, f64)>> {
        let of_case = self.tables.iter().filter(|table| table.case == case);
        let mut found = of_case.filter_map(|table| {
            let place = table.columns.iter().position(|name| name == column)?;
            let rows = table.rows.iter().filter_map(|row| {
                let cell = row.cells.get(place)?.as_ref()?;
                Some((row.name.as_str(), cell.figure.median))
            });
            Some(rows.collect())
        });
        found.next()
    }
}
