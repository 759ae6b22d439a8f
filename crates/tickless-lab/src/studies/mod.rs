//! The studies: each mechanism beside the behaviour it replaced, and what that is worth.
//!
//! A study measures on the machine at hand (*live*) or on a simulated one (*sim*) and hands back
//! a [`Study`]: cells, each labelled with where its figure comes from, and answers to what the
//! thread behind it left open. One command shows them all alike.
//!
//! | file | what |
//! |---|---|
//! | `offer` | which studies there are, and in which worlds |
//! | `plot` | a plot as data: curve, bars, histogram, strip of a period |
//! | `wanted` | a band in words |
//! | `sim` | the studies on simulated machines |
//! | `sim_plots`, `sim_answers` | their curves; what they say about the threads' open questions |
//! | `error` | why a study could not be run, and what to do |
//! | `clock` | one reads a slow shared counter for all |
//! | `rearm` | removing a timer does not program the event device |
//! | `cancel` | a cancel that waits looks at one base |
//! | `deferred` | the expiry thread is woken when something expired |
//! | `phase` | refills of bandwidth groups, together or apart |
//!
//! # To add a study
//!
//! Write a file with a function of the type [`Runner`] and a `pub const OFFER`, and add that to
//! the list in `offer.rs`. Measure with [`crate::measure`], which knows how to interleave before
//! and after. What does not exist is not offered.

pub mod cancel;
mod cell;
pub mod clock;
pub mod deferred;
mod error;
mod fit;
mod offer;
pub mod phase;
pub mod plot;
pub(crate) mod published;
pub mod rearm;
pub mod schedule;
mod sensitivity;
mod sim;
mod sim_answers;
mod sim_plots;
mod wanted;

pub use cell::{Band, Cell, Claim, Figure, Role, Scale};
pub use error::StudyError;
pub use fit::fitted;
pub use offer::{OFFERS, Offer, Runner};
pub use plot::Plot;
pub use sensitivity::{Sensitivity, sensitivity};
pub use wanted::{claim, wanted};

use serde::Serialize;
use std::path::PathBuf;

/// What a study was asked to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Where to measure.
    pub world: World,
    /// How long to take.
    pub effort: Effort,
    /// The points of a curve: numbers of CPUs or bases. `None` for the study's own choice.
    pub cpus: Option<Vec<u32>>,
    /// Where randomness starts.
    pub seed: u64,
    /// Show how far predicted cells move with what was assumed; simulated studies only.
    pub sensitivity: bool,
    /// What else simulated studies can be asked.
    pub sim: SimOptions,
}

impl Request {
    /// The thread's own cells, and nothing besides.
    pub fn new(world: World, effort: Effort, seed: u64) -> Request {
        let sim = SimOptions::default();
        Request { world, effort, cpus: None, seed, sensitivity: false, sim }
    }
}

/// What simulated studies can be asked, and no others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SimOptions {
    /// The machine: a name or a file. `None` for those of the thread.
    pub machine: Option<String>,
    /// Where to write a timeline of a short stretch.
    pub timeline: Option<PathBuf>,
}

/// Where a study measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// The simulated machine.
    Sim,
    /// The machine at hand.
    Live,
}

impl World {
    /// As the command line and the JSON name it.
    pub const fn name(self) -> &'static str {
        match self {
            World::Sim => "sim",
            World::Live => "live",
        }
    }
}

/// How long a study may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// About a second: shows that it works.
    Quick,
    /// Some twenty seconds: fewer repetitions of the same.
    Brief,
    /// Up to a minute: figures that hold.
    #[default]
    Normal,
    /// As long as the original took.
    Full,
}

impl Effort {
    /// The value for this effort.
    pub fn pick<T>(self, quick: T, normal: T, full: T) -> T {
        match self {
            Effort::Quick => quick,
            Effort::Brief | Effort::Normal => normal,
            Effort::Full => full,
        }
    }

    /// How many turns to take with this effort.
    pub fn turns(self, quick: usize, normal: usize, full: usize) -> usize {
        match self {
            Effort::Brief => normal.div_ceil(2),
            _ => self.pick(quick, normal, full),
        }
    }

    /// As the command line and the JSON name it.
    pub const fn name(self) -> &'static str {
        match self {
            Effort::Quick => "quick",
            Effort::Brief => "brief",
            Effort::Normal => "normal",
            Effort::Full => "full",
        }
    }
}

/// What came of a study. Serialises to the JSON that is documented in `docs/book/src/studies.md`.
#[derive(Clone, Debug, Serialize)]
pub struct Study {
    /// Its name.
    pub study: &'static str,
    /// Where it was measured.
    pub world: World,
    /// On what.
    pub machine: String,
    /// Where randomness started.
    pub seed: u64,
    /// The figures.
    pub cells: Vec<Cell>,
    /// What the published report left open, and what this run says about it.
    pub answers: Vec<Answer>,
    /// How it was measured, and what disturbed it.
    pub notes: Vec<String>,
    /// Figures in forms that show the point.
    pub plots: Vec<Plot>,
    /// What people are shown beside the cells; the same figures in another form.
    #[serde(skip)]
    pub exhibits: Vec<Exhibit>,
}

/// An open question of the thread, and the evidence.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The question.
    pub question: String,
    /// What this run says.
    pub answer: String,
}

/// Figures in a table of the study's own, such as the published one.
#[derive(Clone, Debug)]
pub struct Exhibit {
    /// What it shows.
    pub title: String,
    /// How.
    pub form: Form,
}

/// The form of an [`Exhibit`].
#[derive(Clone, Debug)]
pub enum Form {
    /// A table; its first column is text, the others are numbers.
    Table {
        /// The columns' names.
        header: Vec<String>,
        /// As many cells each as there are columns.
        rows: Vec<Vec<String>>,
    },
}

impl Study {
    /// A study of this request without figures yet.
    pub fn new(study: &'static str, request: &Request, machine: impl Into<String>) -> Study {
        Study {
            study,
            world: request.world,
            machine: machine.into(),
            seed: request.seed,
            cells: Vec::new(),
            answers: Vec::new(),
            notes: Vec::new(),
            plots: Vec::new(),
            exhibits: Vec::new(),
        }
    }

    /// The cell of this name.
    pub fn cell(&self, id: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.id == id)
    }

    /// The cells that are not in the band where they should be.
    pub fn outside(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.inside == Some(false))
    }

    /// Adds what this run says about a question.
    pub fn answer(&mut self, question: impl Into<String>, answer: impl Into<String>) {
        self.answers.push(Answer { question: question.into(), answer: answer.into() });
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
    /// A switch that does nothing: both sides are as after. No cell may keep its verdict.
    #[must_use]
    pub const fn broken(self) -> Sides<T> {
        Sides { before: self.after, after: self.after }
    }
}
