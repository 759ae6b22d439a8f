//! The timers of a set on clocks that can be set, and the thread that watches these clocks.

use crate::events;
use crate::platform::locked::locked;
use crate::platform::watch::ClockWatch;
#[cfg(linux_platform)]
use crate::platform::watcher::Watcher;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A timer whose deadline depends on a clock that can be set.
pub(crate) trait OnStep: Send + Sync {
    /// Converts the deadline to the clock of the set again, after the timer's own clock was set.
    fn convert_deadline(&self);
}

#[derive(Default)]
pub(crate) struct ClockTimers {
    list: Mutex<List>,
    pub(crate) watch: Arc<ClockWatch>,
    #[cfg(linux_platform)]
    watcher: Mutex<Option<Arc<Watcher>>>,
}

#[derive(Default)]
struct List {
    next_id: u64,
    timers: BTreeMap<u64, Arc<dyn OnStep>>,
}

impl ClockTimers {
    pub(crate) fn add(&self, timer: Arc<dyn OnStep>) -> u64 {
        let mut list = locked(&self.list);
        list.next_id += 1;
        let id = list.next_id;
        list.timers.insert(id, timer);
        id
    }

    /// Takes a timer off the list and returns it. The caller drops it after the list is unlocked.
    pub(crate) fn remove(&self, id: u64) -> Option<Arc<dyn OnStep>> {
        locked(&self.list).timers.remove(&id)
    }

    /// Converts the deadlines of all timers in the list again, after a clock was set.
    pub(super) fn stepped(&self) {
        self.watch.count_step();
        events::after(|| {
            for timer in locked(&self.list).timers.values() {
                timer.convert_deadline();
            }
        });
    }

    #[cfg(linux_platform)]
    pub(crate) fn watched_by(&self, watcher: Arc<Watcher>) {
        *locked(&self.watcher) = Some(watcher);
    }

    pub(super) fn end_watching(&self) {
        #[cfg(linux_platform)]
        if let Some(watcher) = locked(&self.watcher).take() {
            watcher.end();
        }
    }
}
