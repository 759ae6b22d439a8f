//! Writes a table of rows as a CSV file, and writes files atomically: they appear under their name
//! only when they are complete.

use super::Row;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("{0}: name a file that ends in .csv")]
    Name(PathBuf),
    #[error("{path}: cannot be written: {error}; name another file")]
    Write { path: PathBuf, error: io::Error },
}

/// Writes a table row by row into a temporary file, which is removed if this value is dropped.
/// [`finish`](TableWriter::finish) completes the file and renames it.
#[derive(Debug)]
pub struct TableWriter {
    path: PathBuf,
    csv: csv::Writer<BufWriter<NamedTempFile>>,
}

impl TableWriter {
    /// Begins a CSV file with a header line. Its name must end in `.csv`.
    pub fn create(path: &Path) -> Result<TableWriter, TableError> {
        if path.extension().is_none_or(|end| end != "csv") {
            return Err(TableError::Name(path.to_path_buf()));
        }
        let file = temporary(parent(path))
            .map_err(|error| TableError::Write { path: path.to_path_buf(), error })?;
        let csv = csv::Writer::from_writer(BufWriter::new(file));
        Ok(TableWriter { path: path.to_path_buf(), csv })
    }

    pub fn add(&mut self, row: &Row) -> Result<(), TableError> {
        self.csv
            .serialize(row)
            .map_err(|error| TableError::Write { path: self.path.clone(), error: error.into() })
    }

    pub fn finish(self) -> Result<(), TableError> {
        let TableWriter { path, csv } = self;
        let write = || {
            let out = csv.into_inner().map_err(csv::IntoInnerError::into_error)?;
            persist(out.into_inner().map_err(io::IntoInnerError::into_error)?, &path)
        };
        write().map_err(|error| TableError::Write { path: path.clone(), error })
    }
}

pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Creates a temporary file. Other users may read it if the umask allows that.
pub(crate) fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mode = std::fs::Permissions::from_mode(0o666);
    tempfile::Builder::new().permissions(mode).prefix(".tickless-").tempfile_in(folder)
}

/// Waits until a temporary file's content is on the disk, renames the file, and waits until the new
/// name is on the disk too.
pub(crate) fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(parent(path))?.sync_all()
}
