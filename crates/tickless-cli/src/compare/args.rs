//! The command line of `tickless compare`.

use super::change::{Comparison, compare};
use super::page;
use super::results::{Kind, Results, ResultsError};
use crate::output::Format;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// What follows `tickless compare`.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// Results: report.json, or what study, latency, replay or top print with --format json
    a: PathBuf,
    /// Results of the same kind, to compare with them
    b: PathBuf,
    /// Fail if a figure got worse by more than this, outside of both spreads
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_above: Option<f64>,
    /// Also write a page; both must be reports
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show also what did not move
    #[arg(long)]
    all: bool,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse();
    let usable = number.ok().filter(|percent: &f64| percent.is_finite() && *percent >= 0.0);
    usable.ok_or_else(|| format!("{text:?} is no percentage; write 10%"))
}

/// Why nothing can be compared.
#[derive(Debug)]
pub enum CompareError {
    /// A file has no results.
    Results(ResultsError),
    /// The files are of two kinds.
    Kinds(&'static str, &'static str),
    /// A page was asked for, of something else than reports.
    NoReports(&'static str),
    /// The page cannot be written.
    Page(PathBuf, io::Error),
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompareError::Results(error) => error.fmt(f),
            CompareError::Kinds(a, b) => {
                write!(f, "one is of {a}, the other of {b}. Give two results of one kind")
            }
            CompareError::NoReports(kind) => {
                write!(f, "--html compares reports, and these are of {kind}. Leave it out")
            }
            CompareError::Page(path, error) => {
                write!(f, "{}: cannot be written ({error}). Name another file", path.display())
            }
        }
    }
}

impl CompareArgs {
    /// Compares the files, and writes the page if one was asked for.
    ///
    /// # Errors
    /// When there is nothing to compare, or the page cannot be written.
    pub fn run(&self) -> Result<Comparison, CompareError> {
        let a = Results::read(&self.a).map_err(CompareError::Results)?;
        let b = Results::read(&self.b).map_err(CompareError::Results)?;
        if a.kind != b.kind {
            return Err(CompareError::Kinds(a.kind.name(), b.kind.name()));
        }
        let names = [&self.a, &self.b].map(|path| path.display().to_string());
        let comparison = compare([&names[0], &names[1]], &a, &b);
        if let Some(path) = &self.html {
            if a.kind != Kind::Report {
                return Err(CompareError::NoReports(a.kind.name()));
            }
            let page = page::page(&comparison);
            std::fs::write(path, page).map_err(|error| CompareError::Page(path.clone(), error))?;
        }
        Ok(comparison)
    }

    /// The figures that got worse by too much.
    pub fn worse<'a>(&self, comparison: &'a Comparison) -> Vec<&'a str> {
        let Some(percent) = self.fail_above else { return Vec::new() };
        let worse = comparison.changes.iter().filter(|change| change.is_worse_by(percent));
        worse.map(|change| change.figure.as_str()).collect()
    }

    /// What is shown of figures that did not move.
    pub fn shown(&self) -> super::show::Shown {
        match self.all {
            true => super::show::Shown::All,
            false => super::show::Shown::Moved,
        }
    }
}
