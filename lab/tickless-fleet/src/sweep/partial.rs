//! The file of a sweep that has not ended: a line of JSON for each finished cell.

use super::SweepError;
use crate::campaign::{Cell, Key, VERSION};
use crate::row::Outcome;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tickless_lab::output::{parent, persist, temporary};

/// The file, which this process has locked, and where in it each cell is: a few dozen bytes of
/// memory for each.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) path: PathBuf,
    file: File,
    cells: HashMap<Key, Range<u64>>,
    end: u64,
}

/// The fields of a line that are read when the file is opened.
#[derive(Deserialize)]
struct Line {
    key: Key,
    #[serde(rename = "figures")]
    _figures: Option<IgnoredAny>,
    #[serde(rename = "error")]
    _error: Option<IgnoredAny>,
}

impl Partial {
    /// Opens or creates the file beside `to`. Returns also which cells it has.
    pub(super) fn open(to: &Path) -> Result<(Partial, HashSet<Key>), SweepError> {
        let mut path = to.as_os_str().to_owned();
        path.push(".partial");
        let path = PathBuf::from(path);
        let file = File::options().create(true).read(true).append(true).open(&path);
        let file = file.map_err(at(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SweepError::Locked(path)),
            Err(TryLockError::Error(error)) => return Err(at(&path)(error)),
        }
        let mut partial = Partial { path, file, cells: HashMap::new(), end: 0 };
        partial.read()?;
        let known = partial.cells.keys().copied().collect();
        Ok((partial, known))
    }

    /// Finds the cells. A last line without its end is removed: the run that wrote it was killed,
    /// or the disk was full.
    fn read(&mut self) -> Result<(), SweepError> {
        let mut lines = BufReader::new(&self.file);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            lines.read_until(b'\n', &mut line).map_err(at(&self.path))?;
            if line.last() != Some(&b'\n') {
                break;
            }
            let Line { key, .. } =
                serde_json::from_slice(&line).map_err(|error| SweepError::Damaged {
                    path: self.path.clone(),
                    line: number,
                    what: error.to_string(),
                })?;
            let begin = self.end;
            self.end += line.len() as u64;
            self.cells.insert(key, begin..self.end);
        }
        self.file.set_len(self.end).map_err(at(&self.path))
    }

    pub(super) fn add(&mut self, outcome: &Outcome) -> Result<(), SweepError> {
        let write = || {
            let mut line = serde_json::to_vec(outcome)?;
            line.push(b'\n');
            (&self.file).write_all(&line)?;
            Ok(line.len() as u64)
        };
        let begin = self.end;
        self.end += write().map_err(|error| {
            // Another thread may still append a cell. If this fails too, the line has no end.
            let _ = self.file.set_len(self.end);
            at(&self.path)(error)
        })?;
        self.cells.insert(outcome.key, begin..self.end);
        Ok(())
    }

    /// Writes the rows of these cells, all of which it has, as the table `to`. Removes the file.
    pub(super) fn finish(
        self,
        to: &Path,
        cells: impl Iterator<Item = (Key, Cell)>,
    ) -> Result<(), SweepError> {
        let write = || {
            let mut csv = csv::Writer::from_writer(BufWriter::new(temporary(parent(to))?));
            for (key, cell) in cells {
                let Range { start, end } = self.cells[&key].clone();
                let mut line = vec![0; (end - start) as usize];
                self.file.read_exact_at(&mut line, start)?;
                let outcome: Outcome = serde_json::from_slice(&line)?;
                outcome.rows(&cell, VERSION).try_for_each(|row| csv.serialize(row))?;
            }
            let out = csv.into_inner().map_err(csv::IntoInnerError::into_error)?;
            persist(out.into_inner().map_err(io::IntoInnerError::into_error)?, to)?;
            fs::remove_file(&self.path)
        };
        write().map_err(at(to))
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> SweepError + '_ {
    |error| SweepError::File { path: path.to_path_buf(), error }
}
