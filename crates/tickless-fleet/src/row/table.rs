//! A table of rows as a file.

#[cfg(feature = "parquet")]
use super::parquet;
use super::{Row, csv};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The form of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Apache Parquet, compressed with Snappy.
    #[cfg(feature = "parquet")]
    Parquet,
    /// A line of names, then one for each row.
    Csv,
}

/// Why a table cannot be written.
#[derive(Debug)]
pub enum TableError {
    /// The file's name ends in neither `.parquet` nor `.csv`.
    Name(PathBuf),
    /// The file's name ends in `.parquet`, and this program is built without the feature.
    NoParquet(PathBuf),
    /// The file cannot be written.
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl Format {
    /// By the end of a file's name.
    ///
    /// # Errors
    ///
    /// [`TableError::Name`] for any other; [`TableError::NoParquet`] for `.parquet` without the
    /// feature of that name.
    pub fn of(path: &Path) -> Result<Format, TableError> {
        match path.extension().and_then(|end| end.to_str()) {
            #[cfg(feature = "parquet")]
            Some("parquet") => Ok(Format::Parquet),
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => Err(TableError::NoParquet(path.to_path_buf())),
            Some("csv") => Ok(Format::Csv),
            _ => Err(TableError::Name(path.to_path_buf())),
        }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::Name(path) => {
                write!(f, "{}: name a file that ends in .parquet or .csv", path.display())
            }
            TableError::NoParquet(path) => write!(
                f,
                "{}: this program is built without Parquet; name a file that ends in .csv, or \
                 install it with `cargo install tickless-cli --features parquet` or \
                 `pip install tickless`",
                path.display()
            ),
            TableError::Write { path, error } => {
                write!(f, "{}: cannot be written: {error}; name another file", path.display())
            }
        }
    }
}

impl std::error::Error for TableError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TableError::Write { error, .. } => Some(error),
            TableError::Name(_) | TableError::NoParquet(_) => None,
        }
    }
}

/// Writes a table row by row. The file is there, whole, after [`finish`](TableWriter::finish), and
/// not before: until then it has another name, which goes away with this value.
pub struct TableWriter {
    path: PathBuf,
    sink: Sink,
}

enum Sink {
    Csv(csv::Sink<NamedTempFile>),
    #[cfg(feature = "parquet")]
    Parquet(parquet::Sink<NamedTempFile>),
}

impl fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

impl TableWriter {
    /// Begins a file, in the form that its name says.
    ///
    /// # Errors
    ///
    /// See [`TableError`].
    pub fn create(path: &Path) -> Result<TableWriter, TableError> {
        let format = Format::of(path)?;
        let write = |error| TableError::Write { path: path.to_path_buf(), error };
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .permissions(readable())
            .prefix(".tickless-")
            .tempfile_in(folder)
            .map_err(write)?;
        let sink = match format {
            Format::Csv => csv::Sink::new(file).map(Sink::Csv),
            #[cfg(feature = "parquet")]
            Format::Parquet => parquet::Sink::new(file).map(Sink::Parquet),
        };
        Ok(TableWriter { path: path.to_path_buf(), sink: sink.map_err(write)? })
    }

    /// Adds a row.
    ///
    /// # Errors
    ///
    /// [`TableError::Write`].
    pub fn add(&mut self, row: Row) -> Result<(), TableError> {
        let done = match &mut self.sink {
            Sink::Csv(sink) => sink.add(&row),
            #[cfg(feature = "parquet")]
            Sink::Parquet(sink) => sink.add(row),
        };
        done.map_err(|error| TableError::Write { path: self.path.clone(), error })
    }

    /// Writes what is left, and gives the file its name.
    ///
    /// # Errors
    ///
    /// [`TableError::Write`]; then there is no file of that name, or the one that was there.
    pub fn finish(self) -> Result<(), TableError> {
        let TableWriter { path, sink } = self;
        let file = match sink {
            Sink::Csv(sink) => sink.finish(),
            #[cfg(feature = "parquet")]
            Sink::Parquet(sink) => sink.finish(),
        };
        file.and_then(|file| persist(file, &path))
            .map_err(|error| TableError::Write { path: path.clone(), error })
    }
}

/// Gives a file its name once all of it is on the disk, and the name too.
pub(crate) fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    match path.parent() {
        Some(folder) if folder != Path::new("") => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// Others may read results, as they may what programs write elsewhere; the umask says.
pub(crate) fn readable() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666)
}
