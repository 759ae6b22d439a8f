//! `tickless::LocalTimers`: one thread, one wheel, no lock.

use super::{Steps, Table};
use std::time::Duration;
use tickless::LocalTimers;
use tickless::local::Key;
use tickless::time::Instant;

/// The beginning of local time.
pub(super) const START: Instant = Instant::from_secs(1);

/// With `THROWAWAY`, each pair inserts its timer and removes it.
pub struct Local<const THROWAWAY: bool = false> {
    pub(super) timers: LocalTimers<u64>,
    pub(super) keys: Vec<Key>,
    spare: Key,
}

impl<const THROWAWAY: bool> Default for Local<THROWAWAY> {
    fn default() -> Self {
        let mut timers = LocalTimers::new(START);
        let spare = timers.insert(0).expect("room for one");
        Local { timers, keys: Vec::new(), spare }
    }
}

impl<const THROWAWAY: bool> Table for Local<THROWAWAY> {
    fn add(&mut self, after: Duration) {
        let key = self.timers.insert(0).expect("room for one more");
        self.timers.start(key, after).expect("just inserted");
        self.keys.push(key);
    }

    fn pair(&mut self, after: Duration) {
        if THROWAWAY {
            let key = self.timers.insert(0).expect("room for one more");
            self.timers.start(key, after).expect("just inserted");
            let value = self.timers.remove(key);
            debug_assert_eq!(value, Some(0));
        } else {
            let armed = self.timers.start(self.spare, after);
            let cancelled = self.timers.cancel(self.spare);
            debug_assert_eq!((armed, cancelled), (Ok(()), Ok(true)));
        }
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        let armed = self.timers.start(self.keys[timer], after);
        debug_assert_eq!(armed, Ok(()));
    }

    fn pending(&mut self) -> usize {
        self.timers.pending()
    }
}

impl Steps for Local {
    fn advance(&mut self, ms: u64) -> u64 {
        let mut fired = 0;
        self.timers.advance(START + Duration::from_millis(ms), |timers, key| {
            // The value is in the timer's own cache line, as a user's would be.
            if let Some(value) = timers.get_mut(key) {
                *value += 1;
                fired += *value;
            }
        });
        fired
    }
}
