//! Makes a report: gathers the facts of the machine, runs the studies and judges the results.

use super::run::{Plan, run};
use super::{Facts, Report, Verdict, facts};
use crate::progress::Progress;
use std::time::Instant;

/// Runs the planned studies and makes the report. `bar` makes the progress display for the study of
/// a given name.
pub fn make(plan: &Plan, bar: &dyn Fn(&'static str) -> Box<dyn Progress>) -> Report {
    let (begun, date, machine) = (Instant::now(), facts::date(), Facts::here());
    let studies = run(plan, bar);
    let verdict = |done| Verdict::of(done, machine.cpus);
    Report {
        schema: 1,
        version: env!("CARGO_PKG_VERSION"),
        date,
        seconds: begun.elapsed().as_secs_f64(),
        effort: plan.effort.name(),
        seed: plan.seed,
        verdicts: studies.iter().filter_map(verdict).collect(),
        machine,
        studies,
    }
}
