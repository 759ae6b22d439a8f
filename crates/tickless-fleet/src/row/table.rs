//! A table of rows as a file, and files that appear whole.

use super::Row;
#[cfg(feature = "parquet")]
use parquet::{
    basic::Compression,
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    record::RecordWriter,
};
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
#[cfg(feature = "parquet")]
use std::sync::Arc;
use tempfile::NamedTempFile;

/// Why a table cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file's name ends in neither `.parquet` nor `.csv`.
    #[error("{0}: name a file that ends in .parquet or .csv")]
    Name(PathBuf),
    /// The file's name ends in `.parquet`, and this program is built without the feature.
    #[error(
        "{0}: this program is built without Parquet; name a file that ends in .csv, or install it \
         with `cargo install tickless-cli --features parquet` or `pip install ./python`"
    )]
    NoParquet(PathBuf),
    /// The file cannot be written.
    #[error("{path}: cannot be written: {error}; name another file")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Writes a table row by row. The file appears, whole, when [`finish`](TableWriter::finish)
/// returns. Until then a temporary file holds the rows, which is removed with this value.
#[derive(Debug)]
pub struct TableWriter {
    path: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    Csv(csv::Writer<BufWriter<NamedTempFile>>),
    #[cfg(feature = "parquet")]
    Parquet {
        writer: SerializedFileWriter<NamedTempFile>,
        rows: Vec<Row>,
    },
}

/// The number of rows in a group of a Parquet file: what is held in memory.
#[cfg(feature = "parquet")]
const GROUP: usize = 65_536;

impl TableWriter {
    /// Begins a file: Apache Parquet, compressed with Snappy, or CSV with a line of names, by the
    /// end of its name.
    ///
    /// # Errors
    ///
    /// See [`TableError`].
    pub fn create(path: &Path) -> Result<TableWriter, TableError> {
        let write = |error| TableError::Write { path: path.to_path_buf(), error };
        let file = || temporary(parent(path)).map_err(write);
        let sink = match path.extension().and_then(|end| end.to_str()) {
            #[cfg(feature = "parquet")]
            Some("parquet") => parquet_sink(file()?).map_err(|error| write(error.into()))?,
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => return Err(TableError::NoParquet(path.to_path_buf())),
            Some("csv") => Sink::Csv(csv::Writer::from_writer(BufWriter::new(file()?))),
            _ => return Err(TableError::Name(path.to_path_buf())),
        };
        Ok(TableWriter { path: path.to_path_buf(), sink })
    }

    /// Adds a row.
    ///
    /// # Errors
    ///
    /// [`TableError::Write`].
    pub fn add(&mut self, row: Row) -> Result<(), TableError> {
        let added = match &mut self.sink {
            Sink::Csv(writer) => writer.serialize(&row).map_err(io::Error::from),
            #[cfg(feature = "parquet")]
            Sink::Parquet { writer, rows } => {
                rows.push(row);
                if rows.len() < GROUP { Ok(()) } else { write_group(writer, rows) }
            }
        };
        added.map_err(|error| TableError::Write { path: self.path.clone(), error })
    }

    /// Writes the remaining rows, and gives the file its name.
    ///
    /// # Errors
    ///
    /// [`TableError::Write`]; the name then has the file that it had before, or none.
    pub fn finish(self) -> Result<(), TableError> {
        let TableWriter { path, sink } = self;
        let file = match sink {
            Sink::Csv(writer) => (|| {
                let out = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
                out.into_inner().map_err(io::IntoInnerError::into_error)
            })(),
            #[cfg(feature = "parquet")]
            Sink::Parquet { mut writer, mut rows } => write_group(&mut writer, &mut rows)
                .and_then(|()| writer.into_inner().map_err(io::Error::from)),
        };
        file.and_then(|file| persist(file, &path))
            .map_err(|error| TableError::Write { path: path.clone(), error })
    }
}

#[cfg(feature = "parquet")]
fn parquet_sink(file: NamedTempFile) -> Result<Sink, parquet::errors::ParquetError> {
    let snappy = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let schema = (&[Row::default()][..]).schema()?;
    let writer = SerializedFileWriter::new(file, schema, Arc::new(snappy))?;
    Ok(Sink::Parquet { writer, rows: Vec::new() })
}

/// Writes rows as a group, and clears them.
#[cfg(feature = "parquet")]
fn write_group(
    writer: &mut SerializedFileWriter<NamedTempFile>,
    rows: &mut Vec<Row>,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut group = writer.next_row_group()?;
    (&rows[..]).write_to_row_group(&mut group)?;
    group.close()?;
    rows.clear();
    Ok(())
}

/// The folder of a file.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// A file without a name of its own. Other users may read it as far as the umask allows.
pub(crate) fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mode = std::fs::Permissions::from_mode(0o666);
    tempfile::Builder::new().permissions(mode).prefix(".tickless-").tempfile_in(folder)
}

/// Gives a file its name once its content is on the disk, and waits until the name is too.
pub(crate) fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(parent(path))?.sync_all()
}
