//! Computes the cells of a campaign whose results are missing, in parallel on all CPUs.

use super::error::SweepError;
use super::folder::Folder;
use super::session::{Retry, Session};
use super::shard::Shard;
use crate::perform::perform;
use crate::row::Outcome;
use rayon::ThreadPool;
use rayon::iter::{ParallelBridge, ParallelIterator};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use tickless_lab::progress::Progress;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Done {
    pub before: u64,
    pub performed: u64,
    pub failed: u64,
    pub left: u64,
}

/// Results are collected for this long before they are written into a file.
const EVERY: Duration = Duration::from_secs(1);
/// If this many results are waiting, they are written at once, so that memory use stays bounded.
const PART_MAX: usize = 10_000;

/// Computes the missing cells of a shard (a share of the cells), each on one thread of the pool. If
/// `stop` is set, the run ends early: it finishes the cells that have begun, and writes results.
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
    // The channel is bounded: if the disk is slow, the workers wait instead of filling the memory.
    let (to_writer, from_workers) = sync_channel(1_024);
    let has_failed = AtomicBool::new(false);
    let is_stopped = || stop.load(Ordering::Relaxed) || has_failed.load(Ordering::Relaxed);
    let written = thread::scope(|scope| {
        let work = || {
            let cells = session.missing().take_while(|_| !is_stopped());
            pool.install(|| {
                cells.par_bridge().for_each_with(to_writer, |to_writer, (key, cell)| {
                    // Sending fails only if the writer thread has ended with an error, which `run`
                    // then returns.
                    let _ = to_writer.send(perform(folder.plan(), &cell, key));
                });
            });
        };
        scope.spawn(work);
        let written = write(&session, &from_workers, &mut done, progress);
        has_failed.store(written.is_err(), Ordering::Relaxed);
        drop(from_workers);
        written
    });
    done.left = missing - done.performed;
    written.map(|()| done)
}

/// Writes the results that the workers have computed, at intervals, until the workers have ended.
fn write(
    session: &Session<&Folder>,
    from_workers: &Receiver<Outcome>,
    done: &mut Done,
    progress: &dyn Progress,
) -> Result<(), SweepError> {
    let mut waiting = Vec::new();
    let mut written = Instant::now();
    loop {
        let next = from_workers.recv_timeout(EVERY);
        let is_end = matches!(next, Err(RecvTimeoutError::Disconnected));
        if let Ok(outcome) = next {
            done.performed += 1;
            done.failed += u64::from(outcome.error.is_some());
            waiting.push(outcome);
            progress.step();
        }
        if is_end || waiting.len() >= PART_MAX || written.elapsed() >= EVERY {
            session.add(&waiting)?;
            waiting.clear();
            written = Instant::now();
        }
        if is_end {
            return Ok(());
        }
    }
}
