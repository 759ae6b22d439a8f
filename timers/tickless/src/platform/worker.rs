//! The library's threads, and a way to wait until one of them runs no more callbacks.
//!
//! A caller that ends a thread waits until its last callback has returned, but not for wakers (of
//! asynchronous tasks), which perhaps need a lock that the caller holds. So a thread sets the flag
//! `WAKING` before it runs wakers, and ends by itself after they have returned.
//!
//! | caller | thread |
//! |---|---|
//! | asks the thread to end | |
//! | sets `WAITED` | sets `WAKING`; if `WAITED` is set, wakes the caller |
//! | waits until `WAKING` or `ENDED` is set | runs wakers |
//! | | clears `WAKING`; checks whether it must end |
//!
//! The flags are bits of one word. So a thread that clears `WAKING` after the caller has set
//! `WAITED` also sees that it was asked to end.

use crate::platform::thread::Thread;
use crate::platform::wait;
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;
use std::sync::Arc;
use tickless_core::time::Ns;

/// The thread runs wakers.
const WAKING: u32 = 1;
/// The thread has ended.
const ENDED: u32 = 2;
const WAITED: u32 = 4;

#[derive(Debug)]
pub struct Worker {
    thread: Thread,
    stage: Arc<Stage>,
}

/// The flags of a thread, which the thread shares with its [`Worker`].
#[derive(Debug, Default)]
struct Stage(AtomicU32);

thread_local! {
    /// The flags of this thread; null on a thread that is not the library's. Has no destructor.
    static STAGE: Cell<*const Stage> = const { Cell::new(core::ptr::null()) };
}

impl Worker {
    pub fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> io::Result<Worker> {
        let (stage, body) = staged(body);
        Ok(Worker { thread: Thread::spawn(name, body)?, stage })
    }

    /// Returns whether this is called by the worker's body.
    pub fn is_this_thread(&self) -> bool {
        STAGE.get() == Arc::as_ptr(&self.stage)
    }

    /// Waits until the thread, which was asked to end before, has ended or is running wakers.
    pub fn finish(self) {
        // AcqRel: a thread that changes the word after this sees the request to end.
        let mut stage = self.stage.0.fetch_or(WAITED, Ordering::AcqRel) | WAITED;
        while stage & (WAKING | ENDED) == 0 {
            // `wait` can return early, so load the flags again.
            wait::wait(&self.stage.0, stage, Ns::NEVER);
            stage = self.stage.0.load(Ordering::Acquire);
        }
        if stage & ENDED != 0 {
            self.thread.join();
        }
    }
}

/// Wraps a thread's body, to set the flag `ENDED` of the thread when the body has ended.
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
    /// Sets a bit, and wakes the threads that wait for a change.
    fn set(&self, bit: u32) {
        // AcqRel: if this comes after the change by `finish`, this thread sees the request to end.
        if self.0.fetch_or(bit, Ordering::AcqRel) & WAITED != 0 {
            wait::wake_all(&self.0);
        }
    }
}

struct Ended(Arc<Stage>);

impl Drop for Ended {
    fn drop(&mut self) {
        STAGE.set(core::ptr::null());
        self.0.set(ENDED);
    }
}

/// Runs `body`, which calls wakers. A [`Worker::finish`] of this thread does not wait for `body`.
pub fn run_wakers(body: impl FnOnce()) {
    struct Awake<'a>(&'a Stage);
    impl Drop for Awake<'_> {
        fn drop(&mut self) {
            self.0.0.fetch_and(!WAKING, Ordering::AcqRel);
        }
    }
    // SAFETY: the pointer is null, or points to the flags, which this thread's body keeps alive.
    // `Ended` sets the pointer to null before the flags are dropped.
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

    /// Goal: `finish` waits for the thread's work, but not for its wakers (K2: a drop waits for no
    /// waker).
    #[test]
    fn finish_does_not_wait_for_wakers() {
        for round in 0..if cfg!(miri) { 5 } else { 2_000 } {
            let lock = Arc::new(Mutex::new(()));
            let (wanted, work) = (Arc::clone(&lock), Arc::new(AtomicBool::new(false)));
            let (at_work, stop) = (Arc::clone(&work), Arc::new(AtomicBool::new(false)));
            let must_stop = Arc::clone(&stop);
            let held = lock.lock();
            let worker = Worker::spawn("worker".into(), move || {
                while !must_stop.load(Ordering::Acquire) {
                    at_work.store(true, Ordering::SeqCst);
                    (0..round % 50).for_each(|_| core::hint::spin_loop());
                    at_work.store(false, Ordering::SeqCst);
                    run_wakers(|| drop(wanted.lock()));
                }
            });
            let worker = worker.expect("a thread can be started");
            stop.store(true, Ordering::Release);
            worker.finish();
            assert!(!work.load(Ordering::SeqCst), "the thread is working");
            drop(held);
            (0..round % 70).for_each(|_| core::hint::spin_loop());
            assert!(!work.load(Ordering::SeqCst), "the thread worked again");
        }
    }
}
