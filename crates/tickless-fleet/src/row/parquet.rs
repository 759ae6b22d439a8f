//! Rows as Apache Parquet, a column after the other.

use super::Row;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::io::{self, Write};
use std::sync::Arc;

/// The columns, in the order of [`Row`]'s fields.
const SCHEMA: &str = "message row {
    required binary key (utf8);
    required binary version (utf8);
    required binary kind (utf8);
    optional binary study (utf8);
    optional binary machine (utf8);
    optional binary machine_hash (utf8);
    optional binary trace (utf8);
    optional int64 cpus;
    optional binary policy (utf8);
    optional binary clock (utf8);
    optional int64 hz;
    optional int64 seed;
    optional binary figure (utf8);
    optional binary unit (utf8);
    optional binary role (utf8);
    optional double value;
    optional double low;
    optional double high;
    optional binary error (utf8);
}";

/// Rows in a group: what is held in memory.
const GROUP: usize = 65_536;

pub(super) struct Sink<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    rows: Vec<Row>,
}

impl<W: Write + Send> Sink<W> {
    pub(super) fn new(out: W) -> io::Result<Sink<W>> {
        let schema = parse_message_type(SCHEMA).map_err(other)?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties));
        Ok(Sink { writer: writer.map_err(other)?, rows: Vec::new() })
    }

    pub(super) fn add(&mut self, row: Row) -> io::Result<()> {
        self.rows.push(row);
        if self.rows.len() >= GROUP { self.write() } else { Ok(()) }
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        self.write()?;
        self.writer.into_inner().map_err(other)
    }

    fn write(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group().map_err(other)?;
        group_of(&rows, &mut group).and_then(|()| group.close().map(drop)).map_err(other)
    }
}

fn group_of<W: Write + Send>(
    rows: &[Row],
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<(), ParquetError> {
    required(group, rows, |row| &row.key)?;
    required(group, rows, |row| &row.version)?;
    required(group, rows, |row| &row.kind)?;
    text(group, rows, |row| row.study.as_deref())?;
    text(group, rows, |row| row.machine.as_deref())?;
    text(group, rows, |row| row.machine_hash.as_deref())?;
    text(group, rows, |row| row.trace.as_deref())?;
    optional::<Int64Type, _>(group, rows, |row| row.cpus)?;
    text(group, rows, |row| row.policy.as_deref())?;
    text(group, rows, |row| row.clock.as_deref())?;
    optional::<Int64Type, _>(group, rows, |row| row.hz)?;
    optional::<Int64Type, _>(group, rows, |row| row.seed)?;
    text(group, rows, |row| row.figure.as_deref())?;
    text(group, rows, |row| row.unit.as_deref())?;
    text(group, rows, |row| row.role.as_deref())?;
    optional::<DoubleType, _>(group, rows, |row| row.value)?;
    optional::<DoubleType, _>(group, rows, |row| row.low)?;
    optional::<DoubleType, _>(group, rows, |row| row.high)?;
    text(group, rows, |row| row.error.as_deref())
}

fn required<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
    of: impl Fn(&Row) -> &str,
) -> Result<(), ParquetError> {
    let values: Vec<ByteArray> = rows.iter().map(|row| ByteArray::from(of(row))).collect();
    column::<ByteArrayType, _>(group, &values, None)
}

fn text<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
    of: impl Fn(&Row) -> Option<&str>,
) -> Result<(), ParquetError> {
    optional::<ByteArrayType, _>(group, rows, |row| of(row).map(ByteArray::from))
}

fn optional<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
    of: impl Fn(&Row) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let all: Vec<Option<T::T>> = rows.iter().map(of).collect();
    // A level says whether there is a value.
    let levels: Vec<i16> = all.iter().map(|one| i16::from(one.is_some())).collect();
    let values: Vec<T::T> = all.into_iter().flatten().collect();
    column::<T, W>(group, &values, Some(&levels))
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("a column too many".to_string()));
    };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

fn other(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}
