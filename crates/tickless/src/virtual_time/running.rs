//! A clock that runs with real time until it is paused.

use super::{VirtualTime, World};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest that the thread sleeps which drives a running clock: it is not told of what is
/// armed meanwhile.
const NAP: Duration = Duration::from_millis(1);

/// Who drives a clock that runs.
#[derive(Debug, Default)]
pub(super) struct Runner(Mutex<Option<JoinHandle<()>>>);

impl VirtualTime {
    /// From now on the clock runs with real time, and what comes due fires, up to a millisecond
    /// late, on a thread that this starts. It may be moved by hand all the same; it does not
    /// move by itself because everybody waits.
    ///
    /// Does nothing if the clock runs already. Should the system refuse the thread, the clock
    /// runs, and what comes due fires when it is next moved.
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

    /// From now on the clock stands still. Waits until a callback that is running is over;
    /// inside a callback nothing waits.
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

    /// Does the clock stand still, as it does in the beginning?
    pub fn is_paused(&self) -> bool {
        !self.world.clock.runs()
    }
}

impl Runner {
    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drives a clock until it is paused, or nobody has it any more.
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
