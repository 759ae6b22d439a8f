//! The options of a study.

use crate::LabError;
use serde::Serialize;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    pub world: World,
    pub effort: Effort,
    /// The points of a curve: numbers of CPUs or timer bases. With `None` the study chooses them.
    pub cpus: Option<Vec<u32>>,
    pub seed: u64,
    /// Whether to show how much the predicted figures depend on those parameters of the simulated
    /// machine whose values are only assumed. Live studies ignore this.
    pub sensitivity: bool,
    /// The simulated machine: a name or a file. `None` for the machines of the published report.
    /// Live studies ignore this.
    pub machine: Option<String>,
}

impl Request {
    pub fn new(world: World, effort: Effort, seed: u64) -> Request {
        Request { world, effort, cpus: None, seed, sensitivity: false, machine: None }
    }

    pub fn reject_cpus(&self, what: impl Into<String>) -> Result<(), LabError> {
        match self.cpus {
            None => Ok(()),
            Some(_) => Err(LabError::Request { what: what.into() }),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    Sim,
    Live,
}

impl World {
    pub const fn name(self) -> &'static str {
        match self {
            World::Sim => "sim",
            World::Live => "live",
        }
    }

    /// Returns the word for results of this kind.
    pub const fn label(self) -> &'static str {
        match self {
            World::Sim => "simulated",
            World::Live => "live",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// The study takes about a second, which only shows that it works.
    Quick,
    /// The study takes about twenty seconds. It makes half as many repetitions as with `Normal`.
    Brief,
    /// The study takes up to a minute. Its figures are reliable.
    #[default]
    Normal,
    Full,
}

impl Effort {
    /// Returns one of the three arguments: the one for this effort. For `Brief`, returns `normal`.
    pub fn pick<T>(self, quick: T, normal: T, full: T) -> T {
        match self {
            Effort::Quick => quick,
            Effort::Brief | Effort::Normal => normal,
            Effort::Full => full,
        }
    }

    /// Returns the number of repetitions for this effort. `Brief` has half as many as `Normal`.
    pub fn turns(self, quick: usize, normal: usize, full: usize) -> usize {
        match self {
            Effort::Brief => normal.div_ceil(2),
            _ => self.pick(quick, normal, full),
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Effort::Quick => "quick",
            Effort::Brief => "brief",
            Effort::Normal => "normal",
            Effort::Full => "full",
        }
    }
}
