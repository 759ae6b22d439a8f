//! Computes the cells of a campaign in parallel, and writes their rows into one CSV file.
//!
//! While `FILE` is computed, each finished cell is appended to `FILE.partial`, in the order in
//! which cells finish. A run that ends early leaves that file, and the next run computes only the
//! cells that are not in it. The rows of `FILE` are in the order of the campaign's cells, so it is
//! the same, byte for byte, in whatever order and in how many runs the cells were computed.

mod partial;

use crate::campaign::{Cell, Key, Plan, VERSION};
use crate::perform::perform;
use crate::row::Row;
use partial::Partial;
use rayon::ThreadPool;
use rayon::iter::{IntoParallelIterator, ParallelBridge, ParallelIterator};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tickless_lab::progress::Progress;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// Cells that an earlier run has left in the partial file.
    pub before: u64,
    pub performed: u64,
    pub failed: u64,
    pub left: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    #[error("{path}: {error}; what was done before stays")]
    File { path: PathBuf, error: io::Error },
    #[error("{0}: there is such a file, which is not replaced; remove it, or name another file")]
    Exists(PathBuf),
    #[error("{0}: another process writes it; wait for that, or name another file")]
    Locked(PathBuf),
    #[error("{path}:{line}: {what}; remove the file, and run again")]
    Damaged { path: PathBuf, line: usize, what: String },
    #[error(
        "{0}: it has cells of another campaign or of another version; remove it, or name another \
         file"
    )]
    OtherCampaign(PathBuf),
}

/// Computes the cells of a plan, each on one thread of the pool, and writes their rows to `to`. If
/// `stop` is set, the run finishes the cells that have begun, and leaves the others to the next
/// run.
pub fn run(
    plan: &Plan,
    to: &Path,
    pool: &ThreadPool,
    stop: &AtomicBool,
    progress: &dyn Progress,
) -> Result<Done, SweepError> {
    if to.exists() {
        return Err(SweepError::Exists(to.to_path_buf()));
    }
    let (partial, known) = Partial::open(to)?;
    let missing = || keyed(plan).filter(|(key, _)| !known.contains(key));
    let (all, lacking) = (keyed(plan).count(), missing().count());
    if all - lacking != known.len() {
        return Err(SweepError::OtherCampaign(partial.path));
    }
    progress.begin("cells", lacking);
    let before = Done { before: known.len() as u64, ..Done::default() };
    let written = Mutex::new((partial, before));
    let one = |(key, cell): (Key, Cell)| {
        let outcome = perform(plan, &cell, key);
        let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
        let (partial, done) = &mut *written;
        partial.add(&outcome)?;
        done.performed += 1;
        done.failed += u64::from(outcome.error.is_some());
        progress.step();
        Ok(())
    };
    let cells = missing().take_while(|_| !stop.load(Ordering::Relaxed));
    pool.install(|| cells.par_bridge().try_for_each(one))?;
    let (partial, mut done) = written.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.left = lacking as u64 - done.performed;
    if done.left == 0 {
        partial.finish(to, keyed(plan))?;
    }
    Ok(done)
}

/// Computes the cells of a plan as [`run`] does, but returns their rows. If `stop` is set, those of
/// cells that have not begun are missing.
pub fn rows(
    plan: &Plan,
    pool: &ThreadPool,
    stop: &AtomicBool,
    progress: &dyn Progress,
) -> Vec<Row> {
    let cells: Vec<(Key, Cell)> = keyed(plan).collect();
    progress.begin("cells", cells.len());
    let one = |(key, cell): (Key, Cell)| {
        if stop.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let rows = perform(plan, &cell, key).rows(&cell, VERSION).collect();
        progress.step();
        rows
    };
    pool.install(|| cells.into_par_iter().flat_map_iter(one).collect())
}

fn keyed(plan: &Plan) -> impl Iterator<Item = (Key, Cell)> + Send + '_ {
    plan.cells().map(|cell| (cell.key(VERSION), cell))
}
