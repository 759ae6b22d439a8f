//! `tickless::local::FixedTimeouts`: all timeouts have one duration, whatever the case asks for.

use super::Table;
use std::time::Duration;
use tickless::local::{Class, Clock, FixedKey, FixedTimeouts};
use tickless::time::Instant;

const AFTER: Duration = Duration::from_secs(3600);
/// The time between pushes, as in the case of equal timeouts.
const STEP: Duration = Duration::from_micros(100);

pub struct Fixed {
    timeouts: FixedTimeouts<u64>,
    class: Class,
    keys: Vec<FixedKey>,
    spare: FixedKey,
    now: Instant,
}

impl Default for Fixed {
    fn default() -> Fixed {
        let now = Instant::from_secs(1);
        let mut timeouts = FixedTimeouts::new(Clock::manual(now));
        let class = timeouts.add_class(AFTER).expect("room for one");
        let spare = timeouts.insert(class, 0).expect("room for one");
        Fixed { timeouts, class, keys: Vec::new(), spare, now }
    }
}

impl Table for Fixed {
    fn add(&mut self, _: Duration) {
        let key = self.timeouts.insert(self.class, 0).expect("room for one more");
        self.timeouts.start(key).expect("just inserted");
        self.keys.push(key);
    }

    fn pair(&mut self, _: Duration) {
        let armed = self.timeouts.start(self.spare);
        let cancelled = self.timeouts.cancel(self.spare);
        debug_assert_eq!((armed, cancelled), (Ok(()), Ok(true)));
    }

    fn push_out(&mut self, timer: usize, _: Duration) {
        let armed = self.timeouts.start(self.keys[timer]);
        debug_assert_eq!(armed, Ok(()));
    }

    fn pending(&mut self) -> usize {
        self.timeouts.pending()
    }

    fn push_all_out(&mut self, plan: &[(u32, Duration)]) {
        // A loop advances the time once a batch.
        for batch in plan.chunks(64) {
            self.now += STEP * 64;
            let fired = self.timeouts.advance(self.now, |_, _| ());
            debug_assert_eq!(fired, 0);
            batch.iter().for_each(|&(timer, after)| self.push_out(timer as usize, after));
        }
    }
}
