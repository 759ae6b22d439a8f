//! Moves the current clock: the virtual clock that the thread has entered, or that of the runtime.

use crate::tokio_runtime;
use std::time::Duration;

/// Stops the clock of this thread: the virtual clock that it has entered, or else that of the tokio
/// runtime that it is in, which stops tokio's own timers, too. Pending timers keep their deadlines.
///
/// For the clock of a runtime, this requires the feature `tokio-test-util`. After a call of
/// `tokio::time::pause` instead, pending timers stop only when the next timer is created or armed.
///
/// # Panics
///
/// If the thread has no such clock, or the clock is already stopped, or the runtime has several
/// threads, as in tokio.
#[track_caller]
pub fn pause() {
    match tokio_runtime::entered() {
        Some(time) => {
            assert!(!time.is_paused(), "time is already frozen");
            time.pause();
        }
        None => runtime::pause(),
    }
}

/// Makes the clock of this thread, the one that [`pause`] stops, run with real time.
///
/// # Panics
///
/// If the thread has no such clock, or the clock is already running, as in tokio.
#[track_caller]
pub fn resume() {
    match tokio_runtime::entered() {
        Some(time) => {
            assert!(time.is_paused(), "time is not frozen");
            time.resume();
        }
        None => runtime::resume(),
    }
}

/// Advances the clock of this thread, the one that [`pause`] stops, by `duration`. Then lets the
/// tasks run whose timers have come due.
///
/// # Panics
///
/// If the thread has no such clock, or the clock runs with real time, as in tokio.
pub async fn advance(duration: Duration) {
    match tokio_runtime::entered() {
        Some(time) => {
            assert!(time.is_paused(), "time is not frozen");
            time.advance(duration);
        }
        None => runtime::advance(duration).await,
    }
    tokio::task::yield_now().await;
}

#[cfg(feature = "tokio-test-util")]
mod runtime {
    use crate::tokio_runtime;
    use std::time::Duration;

    #[track_caller]
    pub(super) fn pause() {
        tokio::time::pause();
        tokio_runtime::clock_was_paused();
    }

    #[track_caller]
    pub(super) fn resume() {
        tokio::time::resume();
    }

    pub(super) async fn advance(duration: Duration) {
        // No yield is needed here: tokio's function ends with one, during which the task that
        // drives these timers runs.
        tokio::time::advance(duration).await;
    }
}

#[cfg(not(feature = "tokio-test-util"))]
#[expect(
    clippy::panic,
    reason = "these functions have tokio's signatures, and panic where they do"
)]
mod runtime {
    use std::time::Duration;

    const REASON: &str = "this thread is on no virtual clock; to move the clock of a tokio \
                          runtime, enable the feature `tokio-test-util` of tickless";

    #[track_caller]
    pub(super) fn pause() {
        panic!("{REASON}");
    }

    #[track_caller]
    pub(super) fn resume() {
        panic!("{REASON}");
    }

    pub(super) async fn advance(_: Duration) {
        panic!("{REASON}");
    }
}
