//! Writes a table of rows as a CSV or Parquet file, and writes files atomically: they appear under
//! their name only when they are complete.

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

#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("{0}: name a file that ends in .parquet or .csv")]
    Name(PathBuf),
    #[error(
        "{0}: this program is built without Parquet; name a file that ends in .csv, or install it \
         with `cargo install tickless-cli --features parquet` or `pip install ./python`"
    )]
    NoParquet(PathBuf),
    #[error("{path}: cannot be written: {error}; name another file")]
    Write { path: PathBuf, error: io::Error },
}

/// Writes a table row by row into a temporary file, which is removed if this value is dropped.
/// [`finish`](TableWriter::finish) completes the file and renames it.
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

/// The number of rows in a row group of a Parquet file. The rows of one group are held in memory.
#[cfg(feature = "parquet")]
const GROUP: usize = 65_536;

impl TableWriter {
    /// Begins a file. Its name decides the format: `.parquet` for Apache Parquet, compressed with
    /// Snappy; `.csv` for CSV with a header line.
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
