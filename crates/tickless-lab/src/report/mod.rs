//! `tickless report`: all five studies, simulated and live, on one page.
//!
//! The page is self-contained: no script, no font, no picture from elsewhere, and a content policy
//! that forbids them. `report.json` beside it has the same figures for programs
//! (`docs/book/src/report.md`).
//!
//! # Ground rules
//!
//! - Each figure is marked as published, calibrated, implied, predicted or live.
//! - A study that fails does not affect the others: it is shown as failed, with what to do.
//! - Files are there whole or not at all.
//!
//! | file | what |
//! |---|---|
//! | `make` | a report from its beginning to its end |
//! | `run` | the simulated studies side by side, then the live ones one by one |
//! | `facts` | the machine at hand |
//! | `verdict` | each mechanism in one figure, before and after |
//! | `page`, `section`, `table` | the page |
//! | `sheet` | what all pages of this program have in common |
//! | `draw` | plots as inline SVG whose colours follow the page |
//! | `files` | writing files whole or not at all |
//! | `readme` | the picture and the table of the README, from simulated figures |

mod draw;
mod facts;
pub mod files;
mod make;
mod page;
pub mod readme;
mod run;
mod section;
pub mod sheet;
mod table;
mod verdict;

pub use facts::Facts;
pub use make::make;
pub use page::page;
pub use run::{Done, Part, Plan};
pub use verdict::Verdict;

use serde::Serialize;

/// The whole report. Serialises to the JSON that `docs/book/src/report.md` documents.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The form of this JSON; a greater number has more keys.
    pub schema: u32,
    /// Of the program.
    pub version: &'static str,
    /// When it began, in UTC.
    pub date: String,
    /// How long it took.
    pub seconds: f64,
    /// The requested effort.
    pub effort: &'static str,
    /// Where randomness started.
    pub seed: u64,
    /// Where it ran.
    pub machine: Facts,
    /// Each mechanism in a figure.
    pub verdicts: Vec<Verdict>,
    /// The studies, in the order of their seeds.
    pub studies: Vec<Done>,
}

impl Report {
    /// The parts that failed: which, and what to do.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
        self.studies.iter().flat_map(|done| {
            let parts = [("simulated", &done.sim), ("live", &done.live)];
            parts.into_iter().filter_map(|(world, part)| {
                Some((done.study, world, part.as_ref()?.error.as_deref()?))
            })
        })
    }
}
