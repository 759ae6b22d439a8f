//! Arming and cancelling many timers, with prefetched records.

use super::LocalTimers;
use super::key::Key;
use crate::link::PREFETCH_DISTANCE;
use crate::time::Instant;

impl<T> LocalTimers<T> {
    /// Arms many timers, each for its deadline. Returns how many were armed: keys of removed timers
    /// are skipped.
    ///
    /// The result is that of calling [`start_at`](Self::start_at) for each, but the cache misses of
    /// later timers overlap with the work on earlier ones.
    pub fn start_many(&mut self, armings: &[(Key, Instant)]) -> usize {
        let mut armed = 0;
        for (at, &(key, deadline)) in armings.iter().enumerate() {
            if let Some((ahead, _)) = armings.get(at + PREFETCH_DISTANCE) {
                self.coarse.records.prefetch(ahead.coarse().index);
            }
            armed += usize::from(self.start_at(key, deadline).is_ok());
        }
        armed
    }

    /// Cancels many timers. Prefetches their records as [`start_many`](Self::start_many) does.
    /// Returns how many were pending.
    pub fn cancel_many(&mut self, keys: &[Key]) -> usize {
        let mut pending = 0;
        for (at, &key) in keys.iter().enumerate() {
            if let Some(ahead) = keys.get(at + PREFETCH_DISTANCE) {
                self.coarse.records.prefetch(ahead.coarse().index);
            }
            pending += usize::from(self.cancel(key) == Ok(true));
        }
        pending
    }
}
