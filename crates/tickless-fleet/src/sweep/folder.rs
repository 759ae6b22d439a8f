//! A folder of results: its plan, its locks, its parts.

use super::{Shard, SweepError};
use crate::campaign::{Key, Plan};
use crate::row::{Outcome, persist, readable};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A folder of results.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    plan: Plan,
}

/// How far a campaign is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Status {
    /// Cells of the campaign.
    pub cells: u64,
    /// Cells with figures.
    pub done: u64,
    /// Cells with an error.
    pub failed: u64,
    /// Cells that are left to do.
    pub missing: u64,
    /// Processes that work on it just now.
    pub running: u64,
}

/// The right to work on a shard, until it is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Claim {
    _lock: File,
}

/// Where the outcome of a cell is.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellLocation {
    pub(super) part: u32,
    offset: u64,
    pub(super) is_error: bool,
}

/// Where all outcomes are: a few dozen bytes each.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) parts: Vec<PathBuf>,
    pub(super) places: HashMap<Key, CellLocation>,
}

/// The first line of a part.
#[derive(Serialize, Deserialize)]
struct Head {
    tickless: String,
}

/// What a line says of its cell, without the figures.
#[derive(Deserialize)]
struct Line {
    key: Key,
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
}

const PLAN: &str = "campaign.json";

impl Folder {
    /// The folder for the results of a plan; makes it if there is none. If it holds a plan, this
    /// one takes its place: cells that both have stay done, and traces that the former one found
    /// stay cells.
    ///
    /// # Errors
    ///
    /// [`SweepError::OtherCampaign`] while processes work on another plan, and what is wrong with
    /// files.
    pub fn create(path: &Path, plan: Plan) -> Result<Folder, SweepError> {
        for folder in ["parts", "locks"] {
            let folder = path.join(folder);
            fs::create_dir_all(&folder).map_err(at(&folder))?;
        }
        let mut folder = Folder { path: path.to_path_buf(), plan };
        match Folder::open(path) {
            Ok(former) if former.plan == folder.plan => return Ok(folder),
            Ok(former) => {
                let before = former.plan.clone();
                folder.plan.keep_traces(&before);
                if folder.plan == before {
                    return Ok(folder);
                }
                if former.running()? > 0 {
                    return Err(SweepError::OtherCampaign(path.to_path_buf()));
                }
            }
            Err(SweepError::NoCampaign(_)) => {}
            Err(error) => return Err(error),
        }
        folder
            .write(&path.join(PLAN), |out| Ok(serde_json::to_writer_pretty(out, &folder.plan)?))?;
        Ok(folder)
    }

    /// A folder that holds a campaign.
    ///
    /// # Errors
    ///
    /// [`SweepError::NoCampaign`], and what is wrong with its plan.
    pub fn open(path: &Path) -> Result<Folder, SweepError> {
        let file = path.join(PLAN);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SweepError::NoCampaign(path.to_path_buf()));
            }
            Err(error) => return Err(SweepError::File { path: file, error }),
        };
        let plan = serde_json::from_str(&text).map_err(damaged(&file))?;
        Ok(Folder { path: path.to_path_buf(), plan })
    }

    /// The plan of its campaign.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How far it is. Reads all results.
    ///
    /// # Errors
    ///
    /// What is wrong with files.
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

    /// Claims a shard. Shards of one count are apart; one of another count may have the same
    /// cells.
    pub(super) fn claim(&self, shard: Shard) -> Result<Claim, SweepError> {
        let path = self.lock_path(shard);
        let lock = File::options().create(true).append(true).open(&path).map_err(at(&path))?;
        if !try_lock(&lock, &path)? {
            return Err(SweepError::Locked { path });
        }
        let end = format!("-of-{}", shard.count);
        for (path, is_locked) in self.locks()? {
            let is_apart = path.to_string_lossy().ends_with(&end);
            if is_locked && !is_apart {
                return Err(SweepError::Locked { path });
            }
        }
        Ok(Claim { _lock: lock })
    }

    fn lock_path(&self, Shard { index, count }: Shard) -> PathBuf {
        self.path.join("locks").join(format!("{index}-of-{count}"))
    }

    /// The locks, and whether some process has them.
    fn locks(&self) -> Result<Vec<(PathBuf, bool)>, SweepError> {
        let folder = self.path.join("locks");
        let mut locks = Vec::new();
        for entry in fs::read_dir(&folder).map_err(at(&folder))? {
            let path = entry.map_err(at(&folder))?.path();
            let lock = File::open(&path).map_err(at(&path))?;
            let is_locked = !try_lock(&lock, &path)?;
            locks.push((path, is_locked));
        }
        Ok(locks)
    }

    fn running(&self) -> Result<u64, SweepError> {
        Ok(self.locks()?.iter().filter(|(_, is_locked)| *is_locked).count() as u64)
    }

    /// Writes outcomes as a part of its own. Its name is that of its cells, so that no part takes
    /// the place of another one.
    pub(super) fn add(&self, outcomes: &[Outcome]) -> Result<(), SweepError> {
        if outcomes.is_empty() {
            return Ok(());
        }
        let name = format!("{}.jsonl", Key::of_all(outcomes.iter().map(|outcome| outcome.key)));
        self.write(&self.path.join("parts").join(name), |out| {
            let head = Head { tickless: self.plan.version.clone() };
            serde_json::to_writer(&mut *out, &head)?;
            for outcome in outcomes {
                writeln!(out)?;
                serde_json::to_writer(&mut *out, outcome)?;
            }
            writeln!(out)
        })
    }

    /// Writes a file whole or not at all.
    fn write(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), SweepError> {
        let whole = || {
            let mut file = tempfile::Builder::new()
                .permissions(readable())
                .prefix(".tickless-")
                .tempfile_in(&self.path)?;
            let mut out = BufWriter::new(&mut file);
            fill(&mut out)?;
            out.flush()?;
            drop(out);
            persist(file, path)
        };
        whole().map_err(at(path))
    }

    fn part_paths(&self) -> Result<Vec<PathBuf>, SweepError> {
        let folder = self.path.join("parts");
        let mut paths = Vec::new();
        for entry in fs::read_dir(&folder).map_err(at(&folder))? {
            let path = entry.map_err(at(&folder))?.path();
            if path.extension().is_some_and(|end| end == "jsonl") {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }
}

impl Index {
    /// Adds what a folder has. An outcome with figures takes the place of one with an error; two
    /// with figures are one too many.
    pub(super) fn read(&mut self, folder: &Folder) -> Result<(), SweepError> {
        for path in folder.part_paths()? {
            self.read_part(folder, path)?;
        }
        Ok(())
    }

    fn read_part(&mut self, folder: &Folder, path: PathBuf) -> Result<(), SweepError> {
        let part = self.parts.len() as u32;
        self.parts.push(path.clone());
        let mut reader = BufReader::new(File::open(&path).map_err(at(&path))?);
        let mut text = String::new();
        let mut offset = reader.read_line(&mut text).map_err(at(&path))? as u64;
        let head: Head = serde_json::from_str(&text).map_err(damaged(&path))?;
        if head.tickless != folder.plan.version {
            let wanted = folder.plan.version.clone();
            return Err(SweepError::Version { path, found: head.tickless, wanted });
        }
        for number in 2.. {
            text.clear();
            let length = reader.read_line(&mut text).map_err(at(&path))? as u64;
            if length == 0 {
                break;
            }
            let line: Line = serde_json::from_str(&text).map_err(|error| {
                let what = error.to_string();
                SweepError::Damaged { path: path.clone(), line: number, what }
            })?;
            self.place(line.key, CellLocation { part, offset, is_error: line.error.is_some() })?;
            offset += length;
        }
        Ok(())
    }

    fn place(&mut self, key: Key, place: CellLocation) -> Result<(), SweepError> {
        match self.places.get(&key) {
            Some(known) if !known.is_error && !place.is_error => {
                let path = |place: &CellLocation| self.parts[place.part as usize].clone();
                Err(SweepError::Double { key, parts: [path(known), path(&place)] })
            }
            Some(known) if !known.is_error => Ok(()),
            _ => {
                self.places.insert(key, place);
                Ok(())
            }
        }
    }

    /// Reads one outcome.
    pub(super) fn outcome(
        &self,
        place: CellLocation,
        open: &mut OpenParts,
    ) -> Result<Outcome, SweepError> {
        let path = &self.parts[place.part as usize];
        let reader = open.of(place.part, path)?;
        let mut text = String::new();
        reader.seek(SeekFrom::Start(place.offset)).map_err(at(path))?;
        reader.read_line(&mut text).map_err(at(path))?;
        serde_json::from_str(&text).map_err(damaged(path))
    }
}

/// Parts that are open for reading; no more than a process may have.
#[derive(Debug, Default)]
pub(super) struct OpenParts {
    readers: HashMap<u32, BufReader<File>>,
}

impl OpenParts {
    fn of(&mut self, part: u32, path: &Path) -> Result<&mut BufReader<File>, SweepError> {
        const MOST: usize = 256;
        if self.readers.len() >= MOST && !self.readers.contains_key(&part) {
            self.readers.clear();
        }
        match self.readers.entry(part) {
            std::collections::hash_map::Entry::Occupied(open) => Ok(open.into_mut()),
            std::collections::hash_map::Entry::Vacant(room) => {
                Ok(room.insert(BufReader::new(File::open(path).map_err(at(path))?)))
            }
        }
    }
}

fn try_lock(file: &File, path: &Path) -> Result<bool, SweepError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(at(path)(error)),
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> SweepError + '_ {
    |error| SweepError::File { path: path.to_path_buf(), error }
}

fn damaged(path: &Path) -> impl Fn(serde_json::Error) -> SweepError + '_ {
    |error| SweepError::Damaged {
        path: path.to_path_buf(),
        line: error.line(),
        what: error.to_string(),
    }
}
