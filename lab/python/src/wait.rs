//! Long calls: they release the interpreter's lock, end on Ctrl-C, and report their progress.

use crate::errors::error;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tickless_lab::progress::Progress;

/// The interval at which signals and progress are checked.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Does `work` on another thread. This thread checks for signals, and calls `progress` with the
/// number of steps done and of all steps. Ctrl-C, and an exception in `progress`, set the flag that
/// tells the work to stop, and the call returns at once.
pub fn run<T: Send + 'static, E: ToString + Send + 'static>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Steps, &AtomicBool) -> Result<T, E> + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let steps = Steps::default();
    let (to_caller, from_worker) = channel();
    // Only this thread receives, but `detach` requires that another one could.
    let from_worker = Mutex::new(from_worker);
    let (workers_stop, workers_steps) = (Arc::clone(&stop), steps.clone());
    thread::spawn(move || {
        // Fails if the caller has abandoned the work.
        let _ = to_caller.send(work(&workers_steps, &workers_stop));
    });
    let report = |py: Python<'_>| match &progress {
        Some(progress) => progress.call1(py, steps.counts()).map(drop),
        None => Ok(()),
    };
    loop {
        let next = py.detach(|| {
            from_worker.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(CHECK_EVERY)
        });
        match next {
            Ok(result) => {
                report(py)?;
                return result.map_err(error);
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(error("the work panicked; its message is above"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(interrupt) = py.check_signals().and_then(|()| report(py)) {
            stop.store(true, Ordering::Relaxed);
            return Err(interrupt);
        }
    }
}

/// The steps done, and all steps. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Steps(Arc<[AtomicU64; 2]>);

impl Steps {
    fn counts(&self) -> (u64, u64) {
        (self.0[0].load(Ordering::Relaxed), self.0[1].load(Ordering::Relaxed))
    }
}

impl Progress for Steps {
    fn begin(&self, _: &'static str, steps: usize) {
        self.0[1].fetch_add(steps as u64, Ordering::Relaxed);
    }

    fn step(&self) {
        self.0[0].fetch_add(1, Ordering::Relaxed);
    }

    fn done(&self, _: &str) {}
}
