//! A clock that runs with real time until it is paused.

use super::{VirtualTime, World};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest sleep of the thread that drives a running clock: it does not learn of timers that
/// are armed meanwhile.
const NAP: Duration = Duration::from_millis(1);

/// The thread that drives a running clock.
#[derive(Debug, Default)]
pub(super) struct Runner(Mutex<Option<JoinHandle<()>>>);

impl VirtualTime {
    /// Lets the clock run with real time. Timers fire up to a millisecond late, on a thread that
    /// this starts. The clock may still be moved by hand; it does not move by itself when
    /// everything waits.
    ///
    /// Does nothing if the clock is already running. If the system refuses the thread, the clock
    /// runs, but timers fire only when it is next moved.
    pub fn resume(&self) {
        let _moving = self.begin_moving();
        if self.world.clock.runs() {
            return;
        }
        self.world.clock.run();
        let world = Arc::downgrade(&self.world);
        let thread = std::thread::Builder::new().name("tickless/virtual".into());
        *self.world.runner.thread() = thread.spawn(|| run(world)).ok();
    }

    /// Stops the clock. Waits until a running callback is over; inside a callback it does not wait.
    pub fn pause(&self) {
        self.world.clock.stop();
        let thread = self.world.runner.thread().take();
        if let Some(thread) = thread
            && !self.moves_here()
        {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }

    /// Returns `true` if the clock stands still, as it does at first.
    pub fn is_paused(&self) -> bool {
        !self.world.clock.runs()
    }
}

impl Runner {
    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drives a clock until it is paused, or has no handles any more.
fn run(world: Weak<World>) {
    loop {
        let Some(world) = world.upgrade() else { return };
        let time = VirtualTime { world };
        if time.is_paused() {
            return;
        }
        time.advance_to(time.now());
        let next = time.next_event().map_or(NAP, |next| next - time.now());
        drop(time);
        std::thread::park_timeout(next.min(NAP));
    }
}
