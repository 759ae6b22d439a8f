//! `tickless::LocalTimers`: one thread, one wheel, no lock.

use super::{Expire, STEPS, STEPS_MS, Table};
use crate::sample::Stopwatch;
use std::time::Duration;
use tickless::LocalTimers;
use tickless::local::Key;
use tickless::time::Instant;

pub const NAME: &str = "**LocalTimers**";

/// Two threads with a set of their own each share nothing at all.
pub const NAME_EACH: &str = "**LocalTimers**, one for each thread";

/// When local time begins.
pub(super) const START: Instant = Instant::from_secs(1);

pub struct Local {
    pub(super) timers: LocalTimers<u64>,
    pub(super) keys: Vec<Key>,
    spare: Key,
}

impl Table for Local {
    const NAME: &'static str = NAME;

    fn new() -> Local {
        let mut timers = LocalTimers::new(START);
        let spare = timers.insert(0).expect("room for one");
        Local { timers, keys: Vec::new(), spare }
    }

    fn add(&mut self, after: Duration) {
        let key = self.timers.insert(0).expect("room for one more");
        self.timers.start(key, after).expect("just inserted");
        self.keys.push(key);
    }

    fn pair(&mut self, after: Duration) {
        let armed = self.timers.start(self.spare, after);
        let cancelled = self.timers.cancel(self.spare);
        debug_assert_eq!((armed, cancelled), (Ok(()), Ok(true)));
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        let armed = self.timers.start(self.keys[timer], after);
        debug_assert_eq!(armed, Ok(()));
    }

    fn pending(&mut self) -> usize {
        self.timers.pending()
    }

    fn handle_bytes() -> usize {
        size_of::<Key>()
    }
}

/// The same, but each pair inserts its timer and removes it.
pub struct Throwaway(Local);

impl Table for Throwaway {
    const NAME: &'static str = "**LocalTimers**, timer inserted and removed";

    fn new() -> Throwaway {
        Throwaway(Local::new())
    }

    fn add(&mut self, after: Duration) {
        self.0.add(after);
    }

    fn pair(&mut self, after: Duration) {
        let key = self.0.timers.insert(0).expect("room for one more");
        self.0.timers.start(key, after).expect("just inserted");
        let value = self.0.timers.remove(key);
        debug_assert_eq!(value, Some(0));
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        self.0.push_out(timer, after);
    }

    fn pending(&mut self) -> usize {
        Table::pending(&mut self.0)
    }

    fn handle_bytes() -> usize {
        Local::handle_bytes()
    }
}

pub const EXPIRE: Expire = Expire { name: NAME, how: STEPS, run: expire };

fn expire(after: &[Duration]) -> (u64, Duration) {
    let mut table = Local::new();
    after.iter().for_each(|&after| table.add(after));
    let mut fired = 0;
    let watch = Stopwatch::start();
    for ms in 1..=STEPS_MS {
        table.timers.advance(START + Duration::from_millis(ms), |timers, key| {
            // The value lies in the timer's own cache line, as a user's would.
            if let Some(value) = timers.value(key) {
                *value += 1;
                fired += *value;
            }
        });
    }
    (fired, watch.elapsed())
}
