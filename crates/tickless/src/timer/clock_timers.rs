//! The timers of a set that are on clocks of their own, and who tells of steps.

use crate::platform::watch::ClockWatch;
#[cfg(linux_platform)]
use crate::platform::watcher::Watcher;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A timer that wants to know of steps.
pub(crate) trait OnStep: Send + Sync {
    /// Its clock was set, or the system was suspended.
    fn put_anew(&self);
}

/// All timers of a set that are on clocks of their own.
#[derive(Default)]
pub(crate) struct ClockTimers {
    list: Mutex<List>,
    pub(crate) watch: Arc<ClockWatch>,
    /// Ends the watching thread, if there is one.
    #[cfg(linux_platform)]
    watcher: Mutex<Option<Arc<Watcher>>>,
}

#[derive(Default)]
struct List {
    next_id: u64,
    timers: BTreeMap<u64, Arc<dyn OnStep>>,
}

impl ClockTimers {
    /// Adds one. Returns its number in the list.
    pub(crate) fn add(&self, timer: Arc<dyn OnStep>) -> u64 {
        let mut list = locked(&self.list);
        list.next_id += 1;
        let id = list.next_id;
        list.timers.insert(id, timer);
        id
    }

    /// Takes one off the list. What is returned is to be dropped, now that the lock is free.
    pub(crate) fn remove(&self, id: u64) -> Option<Arc<dyn OnStep>> {
        locked(&self.list).timers.remove(&id)
    }

    /// A clock was set, or the system was suspended: puts every deadline where it belongs now.
    pub(super) fn stepped(&self) {
        self.watch.count_step();
        for timer in locked(&self.list).timers.values() {
            timer.put_anew();
        }
    }

    /// This one waits for steps, in a thread.
    #[cfg(linux_platform)]
    pub(crate) fn watched_by(&self, watcher: Arc<Watcher>) {
        *locked(&self.watcher) = Some(watcher);
    }

    /// Ends the thread that waits for steps, if there is one.
    pub(super) fn end_watching(&self) {
        #[cfg(linux_platform)]
        if let Some(watcher) = locked(&self.watcher).take() {
            watcher.end();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
