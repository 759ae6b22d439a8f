//! `tickless report`: all studies, simulated and live, on one page.
//!
//! A study compares a timer mechanism with the behaviour that it replaced. The page is
//! self-contained: it loads no script, font or picture, and its content policy forbids that.
//! `report.json` next to it has the same figures for programs (`docs/book/src/report.md`).
//!
//! # Ground rules
//!
//! - Each figure is marked with its origin: published (measured by others), calibrated (a parameter
//!   was fitted to it), implied (a formula gives it), predicted (by the simulation) or live.
//! - A study that fails does not affect the others: the page shows the error and what to do.
//! - Files are written completely or not at all.

pub mod draw;
pub mod files;
mod page;
mod run;
mod section;
pub mod sheet;
mod table;
mod verdict;

pub use page::page;
pub use run::{Done, Facts, Part, Plan, make};
pub use verdict::Verdict;

use serde::Serialize;

/// The whole report. Serialises to the JSON that `docs/book/src/report.md` documents.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of the JSON's form. A version with a greater number has more keys.
    pub schema: u32,
    pub version: &'static str,
    pub date: String,
    pub seconds: f64,
    pub effort: &'static str,
    pub seed: u64,
    pub machine: Facts,
    pub verdicts: Vec<Verdict>,
    pub studies: Vec<Done>,
}

impl Report {
    /// Returns the study, the kind of result (simulated or live) and the error of each failed part.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
        self.studies.iter().flat_map(|done| {
            let parts = [("simulated", &done.sim), ("live", &done.live)];
            parts.into_iter().filter_map(|(world, part)| {
                Some((done.study, world, part.as_ref()?.error.as_deref()?))
            })
        })
    }
}
