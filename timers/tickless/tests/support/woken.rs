//! A waker that counts, and one that calls a closure.

#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Counts its wakeups.
#[derive(Default)]
pub struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Woken {
    /// Returns the number of wakeups.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Returns a counter of wakeups, and its waker.
pub fn woken() -> (Arc<Woken>, Waker) {
    let woken = Arc::new(Woken::default());
    (Arc::clone(&woken), Waker::from(woken))
}

struct Calls<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// Returns a waker that calls a closure.
pub fn calls(wake: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Calls(wake)))
}

/// Polls a future once.
pub fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}
