//! A session: lists the missing cells of a shard (a share of a campaign's cells), for a caller that
//! computes them itself and passes the results back.

use super::error::SweepError;
use super::folder::{Folder, Index};
use super::shard::Shard;
use crate::campaign::{Cell, Key};
use crate::row::Outcome;
use std::collections::HashSet;
use std::fs::File;
use std::ops::Deref;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Retry {
    /// Failed cells are not computed again: their error counts as their result.
    #[default]
    No,
    Failed,
}

/// A shard (a share of a campaign's cells), locked for this process until the session is dropped.
#[derive(Debug)]
pub struct Session<F> {
    folder: F,
    shard: Shard,
    known: HashSet<Key>,
    _claim: File,
}

impl<F: Deref<Target = Folder>> Session<F> {
    /// Locks a shard, and finds its results. `retry`: whether failed cells count as missing.
    pub fn begin(folder: F, shard: Shard, retry: Retry) -> Result<Self, SweepError> {
        let claim = folder.claim(shard)?;
        let mut index = Index::default();
        index.read(&folder)?;
        let places = index.places.into_iter();
        let known = places.filter(|(_, place)| !place.is_error || retry == Retry::No);
        let known = known.map(|(key, _)| key).collect();
        Ok(Session { folder, shard, known, _claim: claim })
    }

    /// The number of all cells of the shard, whether they have results or not.
    pub fn total(&self) -> u64 {
        self.cells().count() as u64
    }

    pub fn missing(&self) -> impl Iterator<Item = (Key, Cell)> + '_ {
        let version = &self.folder.plan().version;
        let keyed = move |cell: Cell| (cell.key(version), cell);
        self.cells().map(keyed).filter(|(key, _)| !self.known.contains(key))
    }

    pub fn add(&self, outcomes: &[Outcome]) -> Result<(), SweepError> {
        self.folder.add(outcomes)
    }

    fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        self.folder.plan().cells(self.shard.index, self.shard.count)
    }
}
