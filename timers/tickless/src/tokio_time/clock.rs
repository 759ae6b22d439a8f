//! Moves the current clock: the virtual clock that the thread has entered, or that of the runtime.

use crate::tokio_runtime;
use std::time::Duration;

/// Stops the clock of the tokio runtime that this thread is in, which stops tokio's own timers,
/// too. Pending timers keep their deadlines. After a call of `tokio::time::pause` instead, they
/// stop only when the next timer is created or armed.
///
/// # Panics
///
/// If the thread is in no runtime, or in one of several threads, or if the clock is already
/// stopped, as in tokio. A virtual clock that the thread has entered counts as stopped.
#[track_caller]
pub fn pause() {
    assert!(tokio_runtime::entered().is_none(), "time is already frozen");
    tokio::time::pause();
    tokio_runtime::checked(); // The timers of the runtime notice the pause now.
}

/// Lets the clock that [`pause`] has stopped run with real time again.
///
/// # Panics
///
/// If the thread is in no runtime, or has entered a virtual clock, or the runtime's clock is
/// already running, as in tokio.
#[track_caller]
pub fn resume() {
    assert!(tokio_runtime::entered().is_none(), "a virtual clock never runs with real time");
    tokio::time::resume();
}

/// Advances the clock of this thread by `duration`: the virtual clock that it has entered, or else
/// that of its runtime. Then lets the tasks run whose timers have come due.
///
/// # Panics
///
/// If the thread has no such clock, or the clock runs with real time, as in tokio.
pub async fn advance(duration: Duration) {
    match tokio_runtime::entered() {
        Some(time) => time.advance(duration),
        None => {
            tokio_runtime::checked();
            // Ends with a yield, during which the runtime fires both kinds of timers.
            return tokio::time::advance(duration).await;
        }
    }
    // Lets the tasks run that this task has woken.
    tokio::task::yield_now().await;
}
