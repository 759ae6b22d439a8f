//! The folder in which a campaign's results are stored: its plan, its locks, and its *parts*, which
//! are files of results.

use super::error::SweepError;
use super::shard::Shard;
use crate::campaign::{Key, Plan};
use crate::row::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tickless_lab::output::{persist, temporary};

#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    plan: Plan,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Status {
    pub cells: u64,
    pub done: u64,
    pub failed: u64,
    pub missing: u64,
    pub running: u64,
}

/// Where the outcome of a cell is stored: in which part (file of results), and at which offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellLocation {
    part: usize,
    offset: u64,
    length: usize,
    pub(super) is_error: bool,
}

/// Where the outcomes of all cells are stored. Takes a few dozen bytes of memory for each.
#[derive(Debug, Default)]
pub(super) struct Index {
    parts: Vec<PathBuf>,
    pub(super) places: HashMap<Key, CellLocation>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    tickless: String,
}

/// The last line of a part, with a checksum: a damaged digit would still be valid JSON.
#[derive(Serialize, Deserialize)]
struct Tail {
    checksum: Key,
}

/// The fields of an outcome's line that the index needs. The other fields are not parsed.
#[derive(Deserialize)]
struct Indexed {
    key: Key,
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
}

const PLAN: &str = "campaign.json";

impl Folder {
    /// Creates or opens the folder for the results of a plan. If the folder has another plan, the
    /// new one replaces it: results of cells that both plans have remain valid, and traces that
    /// only the earlier plan has found are kept.
    pub fn create(path: &Path, mut plan: Plan) -> Result<Folder, SweepError> {
        for folder in ["parts", "locks"] {
            let folder = path.join(folder);
            fs::create_dir_all(&folder).map_err(at(&folder))?;
        }
        match Folder::open(path) {
            Ok(former) => {
                if former.plan != plan {
                    plan.keep_traces(&former.plan);
                }
                if former.plan == plan {
                    return Ok(former);
                }
                if former.running()? > 0 {
                    return Err(SweepError::OtherCampaign(path.to_path_buf()));
                }
            }
            Err(SweepError::NoCampaign(_)) => {}
            Err(error) => return Err(error),
        }
        let folder = Folder { path: path.to_path_buf(), plan };
        folder
            .write(&path.join(PLAN), |out| Ok(serde_json::to_writer_pretty(out, &folder.plan)?))?;
        Ok(folder)
    }

    pub fn open(path: &Path) -> Result<Folder, SweepError> {
        let file = path.join(PLAN);
        let text = fs::read_to_string(&file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => SweepError::NoCampaign(path.to_path_buf()),
            _ => at(&file)(error),
        })?;
        let plan =
            serde_json::from_str(&text).map_err(|error| damaged(&file, error.line(), error))?;
        Ok(Folder { path: path.to_path_buf(), plan })
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn status(&self) -> Result<Status, SweepError> {
        let mut index = Index::default();
        index.read(self)?;
        let mut status = Status { running: self.running()?, ..Status::default() };
        for cell in self.plan.cells(0, 1) {
            status.cells += 1;
            match index.places.get(&cell.key(&self.plan.version)) {
                Some(place) if place.is_error => status.failed += 1,
                Some(_) => status.done += 1,
                None => status.missing += 1,
            }
        }
        Ok(status)
    }

    /// Locks a shard (a share of the cells) for this process, until the returned file is closed.
    /// Fails if another process has locked this shard, or any shard with another `count`: shards
    /// with different counts can have cells in common, unlike two shards with the same `count`.
    pub(super) fn claim(&self, shard: Shard) -> Result<File, SweepError> {
        let Shard { index, count } = shard;
        let end = format!("-of-{count}");
        let path = self.path.join("locks").join(format!("{index}{end}"));
        let lock = File::options().create(true).append(true).open(&path).map_err(at(&path))?;
        if is_locked(&lock, &path)? {
            return Err(SweepError::Locked { path });
        }
        let is_other = |path: &PathBuf| !path.to_string_lossy().ends_with(&end);
        match self.locked()?.into_iter().find(is_other) {
            Some(path) => Err(SweepError::Locked { path }),
            None => Ok(lock),
        }
    }

    fn locked(&self) -> Result<Vec<PathBuf>, SweepError> {
        let mut locked = Vec::new();
        for path in self.files("locks")? {
            let lock = File::open(&path).map_err(at(&path))?;
            if is_locked(&lock, &path)? {
                locked.push(path);
            }
        }
        Ok(locked)
    }

    fn running(&self) -> Result<u64, SweepError> {
        Ok(self.locked()?.len() as u64)
    }

    /// Writes outcomes into a new part (a file of results). The file's name is a hash of its cells,
    /// so no part overwrites another.
    pub(super) fn add(&self, outcomes: &[Outcome]) -> Result<(), SweepError> {
        if outcomes.is_empty() {
            return Ok(());
        }
        let name = format!("{}.jsonl", Key::of_all(outcomes.iter().map(|outcome| outcome.key)));
        self.write(&self.path.join("parts").join(name), |out| {
            let mut text = serde_json::to_vec(&Head { tickless: self.plan.version.clone() })?;
            for outcome in outcomes {
                text.push(b'\n');
                serde_json::to_writer(&mut text, outcome)?;
            }
            text.push(b'\n');
            out.write_all(&text)?;
            serde_json::to_writer(&mut *out, &Tail { checksum: Key::of_text(&text) })?;
            writeln!(out)
        })
    }

    /// Writes a file under a temporary name, and renames it when it is complete.
    fn write(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), SweepError> {
        let whole = || {
            let mut out = BufWriter::new(temporary(&self.path)?);
            fill(&mut out)?;
            persist(out.into_inner().map_err(io::IntoInnerError::into_error)?, path)
        };
        whole().map_err(at(path))
    }

    fn files(&self, folder: &str) -> Result<Vec<PathBuf>, SweepError> {
        let folder = self.path.join(folder);
        let entries = fs::read_dir(&folder).map_err(at(&folder))?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()).map_err(at(&folder)));
        let mut paths = paths.collect::<Result<Vec<_>, _>>()?;
        paths.sort();
        Ok(paths)
    }
}

impl Index {
    /// Adds the locations of all outcomes in a folder. If a cell has both an error and a success,
    /// the success counts.
    pub(super) fn read(&mut self, folder: &Folder) -> Result<(), SweepError> {
        let is_part = |path: &PathBuf| path.extension().is_some_and(|end| end == "jsonl");
        for path in folder.files("parts")?.into_iter().filter(is_part) {
            self.read_part(folder, path)?;
        }
        Ok(())
    }

    /// Reads where each result of a part (file) is. Fails if two parts have a success of one cell.
    fn read_part(&mut self, folder: &Folder, path: PathBuf) -> Result<(), SweepError> {
        let part = self.parts.len();
        self.parts.push(path.clone());
        let text = fs::read_to_string(&path).map_err(at(&path))?;
        let mut lines = text.split_inclusive('\n');
        let first = lines.next().unwrap_or_default();
        let head: Head = serde_json::from_str(first).map_err(|error| damaged(&path, 1, error))?;
        if head.tickless != folder.plan.version {
            let wanted = folder.plan.version.clone();
            return Err(SweepError::Version { path, found: head.tickless, wanted });
        }
        let last = lines.next_back().unwrap_or_default();
        let mut offset = first.len();
        for (number, line) in (2..).zip(lines) {
            let Indexed { key, error } =
                serde_json::from_str(line).map_err(|error| damaged(&path, number, error))?;
            let length = line.len();
            let place =
                CellLocation { part, offset: offset as u64, length, is_error: error.is_some() };
            match self.places.get(&key) {
                Some(known) if !known.is_error && !place.is_error => {
                    let parts = [self.parts[known.part].clone(), path];
                    return Err(SweepError::Double { key, parts });
                }
                Some(known) if !known.is_error => {}
                _ => _ = self.places.insert(key, place),
            }
            offset += length;
        }
        match serde_json::from_str::<Tail>(last) {
            Ok(Tail { checksum }) if checksum == Key::of_text(&text.as_bytes()[..offset]) => Ok(()),
            _ => Err(SweepError::Damaged {
                path,
                line: text.lines().count(),
                what: "the checksum does not fit the lines before; they were changed".into(),
            }),
        }
    }

    /// Reads a result from its part.
    pub(super) fn outcome(&self, place: CellLocation) -> Result<Outcome, SweepError> {
        let path = &self.parts[place.part];
        let file = File::open(path).map_err(at(path))?;
        let mut text = vec![0; place.length];
        file.read_exact_at(&mut text, place.offset).map_err(at(path))?;
        serde_json::from_slice(&text).map_err(|error| damaged(path, error.line(), error))
    }
}

/// Returns whether another process has locked the file. If none has, locks it for this process.
fn is_locked(file: &File, path: &Path) -> Result<bool, SweepError> {
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(at(path)(error)),
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> SweepError + '_ {
    |error| SweepError::File { path: path.to_path_buf(), error }
}

fn damaged(path: &Path, line: usize, error: serde_json::Error) -> SweepError {
    SweepError::Damaged { path: path.to_path_buf(), line, what: error.to_string() }
}
