//! Threads of ours, and waiting until one runs no callback any more.
//!
//! Whoever ends a thread waits until its last callback is over, but not for a waker (K2): that may
//! want a lock which the waiting thread has. So a thread that is about to wake says so, and whoever
//! waits for it lets it go then: it has been told to end, and does so after that.
//!
//! | ends it | the thread |
//! |---|---|
//! | says that it is to end | |
//! | `WAITED` on | `WAKING` on; if `WAITED`, wakes whoever waits |
//! | waits until `WAKING` or `ENDED` is on | runs wakers |
//! | | `WAKING` off; looks whether it is to end |
//!
//! All changes of the word are read-modify-writes, so that a thread which takes `WAKING` off after
//! it was waited for sees what was said before.

use crate::platform::wait;
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use tickless_core::time::Ns;

const WAKING: u32 = 1;
const ENDED: u32 = 2;
const WAITED: u32 = 4;

/// A thread of ours.
#[derive(Debug)]
pub struct Worker {
    thread: JoinHandle<()>,
    stage: Arc<Stage>,
}

#[derive(Debug, Default)]
struct Stage(AtomicU32);

thread_local! {
    /// This thread's stage, if it is one of ours. Has no destructor.
    static STAGE: Cell<*const Stage> = const { Cell::new(core::ptr::null()) };
}

impl Worker {
    /// Starts a thread.
    pub fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> io::Result<Worker> {
        let (stage, body) = staged(body);
        Ok(Worker { thread: Builder::new().name(name).spawn(body)?, stage })
    }

    /// The same, unnamed; panics if the system refuses, as `std::thread::spawn` does.
    pub fn start(body: impl FnOnce() + Send + 'static) -> Worker {
        let (stage, body) = staged(body);
        Worker { thread: std::thread::spawn(body), stage }
    }

    /// Waits until it has ended, or runs wakers; it has been told to end before.
    pub fn finish(self) {
        // AcqRel: a thread that changes the word after this sees that it is to end.
        let mut stage = self.stage.0.fetch_or(WAITED, Ordering::AcqRel) | WAITED;
        while stage & (WAKING | ENDED) == 0 {
            // Woken, interrupted, changed in between: each means look again.
            wait::wait(&self.stage.0, stage, Ns::NEVER);
            stage = self.stage.0.load(Ordering::Acquire);
        }
        if stage & ENDED != 0 {
            let _ = self.thread.join();
        }
    }
}

fn staged(body: impl FnOnce() + Send + 'static) -> (Arc<Stage>, impl FnOnce() + Send + 'static) {
    let stage = Arc::<Stage>::default();
    let own = Arc::clone(&stage);
    let body = move || {
        STAGE.set(Arc::as_ptr(&own));
        let _ended = Ended(own);
        body();
    };
    (stage, body)
}

impl Stage {
    fn set(&self, bit: u32) {
        // AcqRel: as in `finish`.
        if self.0.fetch_or(bit, Ordering::AcqRel) & WAITED != 0 {
            // Nobody to wake is not a failure.
            wait::wake_all(&self.0);
        }
    }
}

/// Says that a thread has ended, also by a panic.
struct Ended(Arc<Stage>);

impl Drop for Ended {
    fn drop(&mut self) {
        STAGE.set(core::ptr::null());
        self.0.set(ENDED);
    }
}

/// Runs wakers: until `body` has returned nobody waits for this thread.
pub fn while_it_wakes(body: impl FnOnce()) {
    struct Awake<'a>(&'a Stage);
    impl Drop for Awake<'_> {
        fn drop(&mut self) {
            self.0.0.fetch_and(!WAKING, Ordering::AcqRel);
        }
    }
    // SAFETY: `spawn` has put it there, and takes it away before it drops it.
    let stage = unsafe { STAGE.get().as_ref() };
    let _awake = stage.map(|stage| {
        stage.set(WAKING);
        Awake(stage)
    });
    body();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    /// Goal: whoever ends a thread waits for what it does, but not for what it wakes.
    #[test]
    fn its_wakers_are_not_waited_for() {
        for round in 0..if cfg!(miri) { 5 } else { 2_000 } {
            let lock = Arc::new(Mutex::new(()));
            let (wanted, work) = (Arc::clone(&lock), Arc::new(AtomicBool::new(false)));
            let (at_work, stop) = (Arc::clone(&work), Arc::new(AtomicBool::new(false)));
            let told = Arc::clone(&stop);
            let held = lock.lock();
            let worker = Worker::spawn("worker".into(), move || {
                while !told.load(Ordering::Acquire) {
                    at_work.store(true, Ordering::SeqCst);
                    (0..round % 50).for_each(|_| core::hint::spin_loop());
                    at_work.store(false, Ordering::SeqCst);
                    while_it_wakes(|| drop(wanted.lock()));
                }
            });
            let worker = worker.expect("a thread can be started");
            stop.store(true, Ordering::Release);
            worker.finish();
            assert!(!work.load(Ordering::SeqCst), "it is at work");
            drop(held);
            (0..round % 70).for_each(|_| core::hint::spin_loop());
            assert!(!work.load(Ordering::SeqCst), "it went on");
        }
    }
}
