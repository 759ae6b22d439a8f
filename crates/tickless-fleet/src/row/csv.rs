//! Rows as comma-separated values.

use super::Row;
use std::io::{self, BufWriter, Write};

pub(super) struct Sink<W: Write> {
    writer: csv::Writer<BufWriter<W>>,
}

impl<W: Write> Sink<W> {
    pub(super) fn new(out: W) -> io::Result<Sink<W>> {
        Ok(Sink { writer: csv::Writer::from_writer(BufWriter::new(out)) })
    }

    pub(super) fn add(&mut self, row: &Row) -> io::Result<()> {
        self.writer.serialize(row).map_err(io::Error::other)
    }

    pub(super) fn finish(self) -> io::Result<W> {
        let out = self.writer.into_inner().map_err(|error| error.into_error())?;
        out.into_inner().map_err(|error| error.into_error())
    }
}
