//! The options of a study.

use crate::effort::Effort;
use crate::error::LabError;
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

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    #[default]
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
