//! What a study is asked.

use serde::Serialize;
use std::path::PathBuf;

/// The options of a run.
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
    /// Options of simulated runs.
    pub sim: SimOptions,
}

impl Request {
    /// The cells of the published report, without options.
    pub fn new(world: World, effort: Effort, seed: u64) -> Request {
        let sim = SimOptions::default();
        Request { world, effort, cpus: None, seed, sensitivity: false, sim }
    }
}

/// The options of simulated runs alone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SimOptions {
    /// The machine: a name or a file. `None` for those of the published report.
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
    /// This machine.
    Live,
}

impl World {
    /// Its name on the command line and in JSON.
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

    /// Its name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Effort::Quick => "quick",
            Effort::Brief => "brief",
            Effort::Normal => "normal",
            Effort::Full => "full",
        }
    }
}
