//! Helpers that the simulated runs of all studies share.
//!
//! A study runs on the machine of its published report, whose figures it tries to reproduce. With
//! `--machine` it runs on another machine. `--cpus` asks for a curve over the number of CPUs
//! instead of the published figures, and `--sensitivity` for how much the predicted figures change
//! with each assumed parameter.

use crate::error::LabError;
use crate::machines;
use crate::progress::Progress;
use crate::studies::cell::Cell;
use crate::studies::fit::{Sensitivity, sensitivity};
use crate::studies::request::Request;
use crate::studies::result::{Exhibit, StudyResult};
use std::io;
use tickless_machine::size::exactly;
use tickless_machine::spec::Spec;

/// Returns the machine that the user requested, or otherwise the machine named `usual`. It is an
/// error if the machine's file lacks a parameter in `needs`.
pub fn machine(request: &Request, usual: &str, needs: &[&str]) -> Result<Spec, LabError> {
    let mut spec = machines::find(request.machine.as_deref().unwrap_or(usual))?;
    spec.require(needs).map_err(|error| LabError::Request { what: error.to_string() })?;
    spec.seed = request.seed;
    Ok(spec)
}

/// Begins the result of a simulated study. `specs` are its machines.
pub fn begin(
    name: &'static str,
    request: &Request,
    progress: &dyn Progress,
    specs: &[&Spec],
) -> StudyResult {
    progress.begin("simulating", 1);
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    StudyResult::new(name, request, names.join("; "))
}

/// Converts the error of a simulation, which fails only if it cannot allocate its CPUs' stacks.
pub fn no_memory(error: io::Error) -> LabError {
    LabError::system("memory for the simulated CPUs' stacks; use fewer CPUs")(error)
}

/// Adds simulated figures to the result. If the user chose a machine with `--machine`, the
/// published figures and the verdicts are removed, because they are for the report's machine.
pub fn add(
    result: &mut StudyResult,
    request: &Request,
    cells: io::Result<Vec<Cell>>,
) -> Result<(), LabError> {
    let cells = cells.map_err(no_memory)?;
    if request.machine.is_some() {
        result.cells.extend(cells.into_iter().map(Cell::unpublished));
    } else {
        result.cells.extend(cells);
    }
    Ok(())
}

/// Returns the numbers of CPUs that were requested for the curve, if any. It is an error if no
/// machine like this one has one of them.
pub fn points(request: &Request, like: &Spec) -> Result<Option<Vec<u16>>, LabError> {
    let Some(cpus) = &request.cpus else { return Ok(None) };
    let point = |&cpus: &u32| {
        let count = u16::try_from(cpus).unwrap_or(u16::MAX);
        let is_possible = exactly(like, count).map(|_| count);
        is_possible.map_err(|error| LabError::Request { what: error.to_string() })
    };
    cpus.iter().map(point).collect::<Result<_, _>>().map(Some)
}

pub fn reject_cpus(request: &Request, study: &str) -> Result<(), LabError> {
    request.reject_cpus(format!("study {study} --sim has no curve over CPUs; leave --cpus out"))
}

/// Adds a table with the effects of the machine's assumed parameters on the predicted figures, if
/// it was requested. `refit` fits the calibrated parameters again after each change.
pub fn add_sensitivity(
    result: &mut StudyResult,
    request: &Request,
    spec: &Spec,
    refit: impl Fn(&Spec) -> io::Result<Spec> + Sync,
    cells: impl Fn(&Spec) -> io::Result<Vec<Cell>> + Sync,
) {
    const ROWS_MAX: usize = 30;
    if !request.sensitivity {
        return;
    }
    let row = |one: &Sensitivity| {
        let number = |value: f64| format!("{value:.3}");
        vec![
            one.key.clone(),
            one.cell.clone(),
            number(one.at_low),
            number(one.value),
            number(one.at_high),
            format!("{:.0} %", 100.0 * one.moves()),
        ]
    };
    // A machine that the user chose was not fitted to published figures, so nothing is refitted.
    let is_fitted = request.machine.is_none();
    let refit = |spec: &Spec| match is_fitted {
        true => refit(spec).unwrap_or_else(|_| spec.clone()),
        false => spec.clone(),
    };
    let effects = sensitivity(spec, refit, |spec| cells(spec).unwrap_or_default());
    let title = format!(
        "What assumed numbers of {} do to cells that are not calibrated, over the ranges in {}; \
         fitted numbers are set again at each end",
        spec.name, spec.file
    );
    let header = vec!["number", "cell", "at low", "as it is", "at high", "moves"];
    let rows = effects.iter().take(ROWS_MAX).map(row).collect();
    result.exhibits.push(Exhibit { title, header, rows });
}
