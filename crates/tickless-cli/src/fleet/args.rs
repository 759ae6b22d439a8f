//! The command line of `tickless fleet`.

use crate::output::Format;
use crate::progress::Bar;
use crate::traces::{self, NoFile};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tickless_fleet::fleet::{Fleet, fleet, page};

/// What follows `tickless fleet`.
#[derive(Debug, clap::Args)]
pub struct FleetArgs {
    /// The traces, one for each machine: files, or patterns such as 'traces/*.gz'
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Also write a page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Why there are no results.
#[derive(Debug)]
pub enum FleetError {
    /// A pattern that no file is like.
    NoFile(NoFile),
    /// The page cannot be written.
    Page(PathBuf, io::Error),
    /// Ctrl-C.
    Interrupted,
}

impl FleetArgs {
    /// Replays the traces, and writes the page if one was asked for.
    ///
    /// # Errors
    /// When a pattern names no file, or the page cannot be written.
    pub fn run(&self) -> Result<Fleet, FleetError> {
        let files = traces::expand(&self.traces).map_err(FleetError::NoFile)?;
        let stop = Arc::new(AtomicBool::new(false));
        let progress = Bar::on_terminal();
        progress.stop_on_interrupt(Arc::clone(&stop));
        let fleet = fleet(&files, &stop, &progress);
        progress.end();
        if stop.load(Ordering::Relaxed) {
            return Err(FleetError::Interrupted);
        }
        if let Some(file) = &self.html {
            page(&fleet)
                .and_then(|page| std::fs::write(file, page))
                .map_err(|error| FleetError::Page(file.clone(), error))?;
        }
        Ok(fleet)
    }
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FleetError::NoFile(error) => error.fmt(f),
            FleetError::Page(path, error) => {
                write!(f, "{}: cannot be written ({error}). Name another file", path.display())
            }
            FleetError::Interrupted => f.write_str("interrupted; nothing is written"),
        }
    }
}
