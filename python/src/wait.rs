//! Long calls: the interpreter's lock is free meanwhile, Ctrl-C is heeded, and a callback is told
//! how far they are.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tickless_lab::progress::Progress;

/// How soon Ctrl-C is noticed.
const LOOKS: Duration = Duration::from_millis(50);

/// Does something on another thread while this one waits, looks for signals, and calls `look`.
/// After Ctrl-C the work is told to stop by the flag and nobody waits for it, unless it
/// `finishes`.
pub fn wait<T: Send + 'static>(
    py: Python<'_>,
    finishes: Finishes,
    mut look: impl FnMut(Python<'_>) -> PyResult<()>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let (done, is_done) = channel();
    // Only one thread looks, but the compiler cannot know.
    let is_done = Mutex::new(is_done);
    let theirs = Arc::clone(&stop);
    let worker = thread::spawn(move || {
        // Nobody listens after Ctrl-C.
        let _ = done.send(work(&theirs));
    });
    loop {
        let next = py
            .detach(|| is_done.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOKS));
        match next {
            Ok(result) => {
                look(py)?;
                return Ok(result);
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(crate::errors::error("the work came to a stop; its message is above"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(interrupt) = py.check_signals().and_then(|()| look(py)) {
            stop.store(true, Ordering::Relaxed);
            if finishes == Finishes::Yes {
                py.detach(|| worker.join().ok());
            }
            return Err(interrupt);
        }
    }
}

/// Whether the work is waited for after Ctrl-C, since it writes what it has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finishes {
    Yes,
    No,
}

/// How many steps of how many are done. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Steps(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    done: AtomicU64,
    of: AtomicU64,
}

impl Steps {
    /// What [`wait`] is to call: `progress`, if there is one, with the steps that are done, and of
    /// how many.
    pub fn tell(
        &self,
        progress: Option<Py<PyAny>>,
    ) -> impl FnMut(Python<'_>) -> PyResult<()> + use<> {
        let counted = Arc::clone(&self.0);
        move |py| match &progress {
            Some(progress) => {
                let [done, of] = [&counted.done, &counted.of].map(|it| it.load(Ordering::Relaxed));
                progress.call1(py, (done, of)).map(drop)
            }
            None => Ok(()),
        }
    }

    /// How many are done.
    pub fn done(&self) -> u64 {
        self.0.done.load(Ordering::Relaxed)
    }
}

impl Progress for Steps {
    fn begin(&self, _: &'static str, steps: usize) {
        self.0.of.fetch_add(steps as u64, Ordering::Relaxed);
    }

    fn step(&self) {
        self.0.done.fetch_add(1, Ordering::Relaxed);
    }

    fn done(&self, _: &str) {}
}
