//! Runs a virtual clock with real time until it is paused.

use super::{Inner, VirtualTime};
use crate::platform::locked::locked;
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the thread that fires the timers sleeps at most: arming an earlier timer does not wake
/// it.
const NAP: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(super) struct Runner(Mutex<Option<JoinHandle<()>>>);

impl VirtualTime {
    /// Makes the clock run with real time. This call starts a thread that fires the timers, up to a
    /// millisecond late. If the system refuses the thread, timers fire only when the program next
    /// advances the clock. The clock no longer advances automatically when every thread waits.
    pub fn resume(&self) {
        let _moving = self.begin_moving();
        if self.inner.clock.runs() {
            return;
        }
        self.inner.clock.run();
        let inner = Arc::downgrade(&self.inner);
        let thread = std::thread::Builder::new().name("tickless/virtual".into());
        *locked(&self.inner.runner.0) = thread.spawn(|| run(inner)).ok();
    }

    /// Stops the clock. Waits until the thread that [`resume`](VirtualTime::resume) started has
    /// ended, and so for a callback that runs on that thread. Inside a callback it does not wait.
    pub fn pause(&self) {
        self.refuse_in_child();
        self.inner.clock.stop();
        let thread = locked(&self.inner.runner.0).take();
        if let Some(thread) = thread.filter(|_| !self.moves_here()) {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }

    /// Returns `true` if the clock does not run with real time, which is its initial state.
    pub fn is_paused(&self) -> bool {
        !self.inner.clock.runs()
    }
}

/// Fires timers until the clock is paused, or the last `VirtualTime` of the clock is dropped.
fn run(inner: Weak<Inner>) {
    loop {
        let Some(inner) = inner.upgrade() else { return };
        let time = VirtualTime { inner };
        if time.is_paused() {
            return;
        }
        time.advance_to(time.now());
        let next = time.next_event().map_or(NAP, |next| next - time.now());
        drop(time);
        std::thread::park_timeout(next.min(NAP));
    }
}
