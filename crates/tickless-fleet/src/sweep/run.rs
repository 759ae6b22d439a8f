//! Performs what is missing of a campaign, on all CPUs.

use super::{Folder, Session, Shard, SweepError};
use crate::perform::perform;
use crate::row::Outcome;
use rayon::ThreadPool;
use rayon::iter::{ParallelBridge, ParallelIterator};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use tickless_lab::progress::Progress;

/// Whether cells that failed before are performed again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Retry {
    /// A failed cell is done: its error is its result.
    #[default]
    No,
    /// They are performed again.
    Failed,
}

/// What a run has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// Cells that were done before.
    pub before: u64,
    /// Cells performed now, those that failed included.
    pub performed: u64,
    /// Cells that failed now.
    pub failed: u64,
    /// Cells left, since the run was stopped.
    pub left: u64,
}

/// Results are written this often, and at the end.
const EVERY: Duration = Duration::from_secs(1);
/// And whenever there are so many, so that none of them takes much memory.
const PART_MAX: usize = 10_000;

/// Performs what is missing of a shard, each cell on one thread of the pool. `stop` ends it early:
/// cells under way are finished and everything is written.
///
/// # Errors
///
/// [`SweepError::Locked`] while another process works on the same cells; what cannot be written,
/// such as on a full disk. What was written before stays.
pub fn run(
    folder: &Folder,
    shard: Shard,
    retry: Retry,
    pool: &ThreadPool,
    stop: &AtomicBool,
    progress: &dyn Progress,
) -> Result<Done, SweepError> {
    let session = Session::begin(folder, shard, retry)?;
    let missing = session.missing().count() as u64;
    progress.begin("cells", usize::try_from(missing).unwrap_or(usize::MAX));
    let mut done = Done { before: session.total() - missing, ..Done::default() };
    // Room for a few: workers wait for the disk rather than fill the memory.
    let (to_writer, from_workers) = sync_channel(1_024);
    let is_over = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let work = || {
            let cells = session
                .missing()
                .take_while(|_| !stop.load(Ordering::Relaxed) && !is_over.load(Ordering::Relaxed));
            pool.install(|| {
                cells.par_bridge().for_each_with(to_writer, |to_writer, (key, cell)| {
                    // Nobody listens once the disk is full.
                    let _ = to_writer.send(perform(folder.plan(), &cell, key));
                });
            });
        };
        scope.spawn(work);
        let written = write(&session, &from_workers, &mut done, progress);
        is_over.store(true, Ordering::Relaxed);
        drop(from_workers);
        written
    });
    done.left = missing - done.performed;
    written.map(|()| done)
}

fn write(
    session: &Session<&Folder>,
    from_workers: &Receiver<Outcome>,
    done: &mut Done,
    progress: &dyn Progress,
) -> Result<(), SweepError> {
    let mut waiting = Vec::new();
    let mut since = Instant::now();
    loop {
        let next = from_workers.recv_timeout(EVERY);
        let is_end = matches!(next, Err(RecvTimeoutError::Disconnected));
        if let Ok(outcome) = next {
            done.performed += 1;
            done.failed += u64::from(outcome.error.is_some());
            waiting.push(outcome);
            progress.step();
        }
        if is_end || waiting.len() >= PART_MAX || since.elapsed() >= EVERY {
            session.add(&waiting)?;
            waiting.clear();
            since = Instant::now();
        }
        if is_end {
            return Ok(());
        }
    }
}
