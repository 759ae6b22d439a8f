//! A study: its name, its cells, and how it is run.

use super::cell::Cell;
use super::published::PublishedReport;
use super::request::{Request, World};
use super::result::StudyResult;
use crate::doctor::checks::Check;
use crate::error::LabError;
use crate::progress::Progress;
use std::io;
use tickless_machine::spec::Spec;

pub type Runner = fn(&Request, &dyn Progress) -> Result<StudyResult, LabError>;

#[derive(Debug)]
pub struct Study {
    pub name: &'static str,
    pub about: &'static str,
    /// The content of `report.txt`.
    pub text: &'static str,
    pub needs: &'static [&'static str],
    pub cells: fn(&Spec) -> io::Result<Vec<Cell>>,
    pub sim: Runner,
    pub live: Runner,
    pub checks: &'static [Check],
}

impl Study {
    pub fn published(&self) -> PublishedReport {
        PublishedReport::of(self.text)
    }

    pub fn run(&self, request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
        let run = match request.world {
            World::Live => self.live,
            World::Sim => self.sim,
        };
        run(request, progress)
    }
}

/// The two settings that a study compares. Everything else is the same in both runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sides<T> {
    pub before: T,
    pub after: T,
}

impl<T: Copy> Sides<T> {
    /// Returns a pair for tests, in which both sides have the setting of `after`. A study with this
    /// pair measures no difference, so it must not confirm a published difference.
    #[must_use]
    pub const fn broken(self) -> Sides<T> {
        Sides { before: self.after, after: self.after }
    }
}
