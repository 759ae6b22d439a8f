//! `tickless::LocalTimers`: one thread, one wheel, no lock.

use super::{Steps, Table};
use std::time::Duration;
use tickless::LocalTimers;
use tickless::local::{Clock, Key};
use tickless::time::Instant;

const START: Instant = Instant::from_secs(1);

/// The number of events that many loops ask `epoll_wait` for.
pub const BATCH: usize = 64;

/// How a [`Local`] uses its timers.
pub const PLAIN: u8 = 0;
/// Each pair inserts its timer and removes it.
pub const THROWAWAY: u8 = 1;
/// Takes the keys of due timers, without a callback.
pub const KEYS: u8 = 2;

pub struct Local<const USE: u8> {
    timers: LocalTimers<u64>,
    keys: Vec<Key>,
    spare: Key,
    due: Vec<Key>,
}

impl<const USE: u8> Default for Local<USE> {
    fn default() -> Self {
        let mut timers = LocalTimers::new(Clock::manual(START));
        let spare = timers.insert(0).expect("room for one");
        Local { timers, keys: Vec::new(), spare, due: Vec::new() }
    }
}

impl<const USE: u8> Table for Local<USE> {
    fn add(&mut self, after: Duration) {
        let key = self.timers.insert(0).expect("room for one more");
        self.timers.start(key, after).expect("just inserted");
        self.keys.push(key);
    }

    fn pair(&mut self, after: Duration) {
        if USE == THROWAWAY {
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

impl<const USE: u8> Steps for Local<USE> {
    fn arm_all(&mut self, after: &[Duration]) {
        self.due.reserve(after.len());
        after.iter().for_each(|&after| self.add(after));
    }

    fn advance(&mut self, ms: u64) -> u64 {
        let now = START + Duration::from_millis(ms);
        if USE == KEYS {
            self.timers.advance_into(now, &mut self.due);
            return self.due.drain(..).count() as u64;
        }
        let mut fired = 0;
        self.timers.advance(now, |timers, key| {
            // The value is in the timer's own cache line, as a user's would be.
            if let Some(value) = timers.get_mut(key) {
                *value += 1;
                fired += *value;
            }
        });
        fired
    }
}
