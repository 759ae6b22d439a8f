//! The studies: each mechanism beside the behaviour it replaced, and what that is worth.
//!
//! A study measures on this machine (*live*) or on a simulated one (*sim*) and returns a
//! [`StudyResult`]: cells, each labelled with the origin of its figure, and answers to the
//! questions that the published report left open.
//!
//! # Rules
//!
//! A parameter of a simulated machine is only ever set from a cell that is *calibrated*.
//! *Predicted* cells follow without a parameter of their own, inside their band or not. What a
//! formula gives from the same parameters is *implied* and proves nothing. Both sides of a
//! comparison run the same code with one switch changed. A cell has a verdict only if it loses the
//! verdict when that switch is broken: tests give each study the same setting twice
//! ([`Sides::broken`]).
//!
//! # To add a study
//!
//! Make a folder with a `pub const STUDY` of type [`Study`], and add it to [`STUDIES`]. The command
//! line, the report, the book's table, the doctor and campaigns read that list. In each folder,
//! `model` has the workload on a simulated machine, its cells with their roles and bands; `sim` the
//! simulated run, with plots, answers and notes; `live` the run on this machine; `published` the
//! published report, and its tables with our figures beside; `doctor` the mechanism's checks.
//!
//! | file | contents |
//! |---|---|
//! | `rearm`, `clock`, `cancel`, `deferred`, `phase` | a folder for each study |
//! | `schedule` | a prediction without a published counterpart; only campaigns run it |
//! | `request`, `result` | what a study is asked, and what it returns |
//! | `cell` | a figure, its role, its claim, its score |
//! | `plot` | a plot as data: curve, bars, histogram, strip of a period |
//! | `published` | the form of a published report and its tables |
//! | `sim` | what the simulated runs have in common |
//! | `columns` | what the live runs have in common: figures, their cells and rows |
//! | `fit` | numbers that are set from calibrated cells |
//! | `sensitivity` | the effect of assumed numbers on predicted cells |
//! | `error` | why a study could not be run, and what to do |

pub mod cancel;
mod cell;
pub mod clock;
mod columns;
pub mod deferred;
mod error;
mod fit;
pub mod phase;
pub mod plot;
pub mod published;
pub mod rearm;
mod request;
mod result;
pub mod schedule;
mod sensitivity;
mod sim;

pub use cell::{Band, Cell, Claim, Figure, Role, Scale, claim, wanted};
pub use error::StudyError;
pub use fit::fitted;
pub use plot::Plot;
pub use request::{Effort, Request, SimOptions, World};
pub use result::{Answer, Exhibit, StudyResult};
pub use sensitivity::{Sensitivity, sensitivity};

use crate::doctor::Check;
use crate::progress::Progress;
use published::PublishedReport;
use std::io;
use tickless_machine::spec::Spec;

/// All studies, in the order of the report.
pub const STUDIES: &[Study] =
    &[rearm::STUDY, clock::STUDY, cancel::STUDY, deferred::STUDY, phase::STUDY];

/// Runs a study.
pub type Runner = fn(&Request, &dyn Progress) -> Result<StudyResult, StudyError>;

/// A study.
#[derive(Debug)]
pub struct Study {
    /// Its name on the command line and in JSON.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// What was published about its mechanism.
    pub published: PublishedReport,
    /// The numbers of a machine's file that its workload needs.
    pub needs: &'static [&'static str],
    /// Its cells on any simulated machine.
    pub cells: fn(&Spec) -> io::Result<Vec<Cell>>,
    /// The run on a simulated machine.
    pub sim: Runner,
    /// The run on this machine.
    pub live: Runner,
    /// The doctor's checks for its mechanism.
    pub checks: &'static [Check],
}

impl Study {
    /// Returns the study of this name.
    pub fn named(name: &str) -> Option<&'static Study> {
        STUDIES.iter().find(|study| study.name == name)
    }

    /// Runs it as requested.
    pub fn run(
        &self,
        request: &Request,
        progress: &dyn Progress,
    ) -> Result<StudyResult, StudyError> {
        let run = match request.world {
            World::Live => self.live,
            World::Sim => self.sim,
        };
        run(request, progress)
    }
}

/// The two settings of a mechanism's switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sides<T> {
    /// Without the mechanism.
    pub before: T,
    /// With it.
    pub after: T,
}

impl<T: Copy> Sides<T> {
    /// Returns a switch without effect: both sides have the setting of `after`. Every cell must
    /// lose its verdict with it.
    #[must_use]
    pub const fn broken(self) -> Sides<T> {
        Sides { before: self.after, after: self.after }
    }
}
