//! Arming and cancelling many timers: their records are asked for ahead of the work.

use super::LocalTimers;
use super::key::Key;
use crate::time::Instant;

/// How many timers ahead a batch asks for records.
const FETCHED_AHEAD: usize = 12;

impl<T> LocalTimers<T> {
    /// Arms many timers, or arms them anew, each for its deadline: as many times
    /// [`start_at`](Self::start_at), but the misses of one overlap with the work on those before
    /// it. Returns how many there were: keys of timers that have been removed are passed over.
    pub fn start_many(&mut self, armings: &[(Key, Instant)]) -> usize {
        let mut armed = 0;
        for (at, &(key, deadline)) in armings.iter().enumerate() {
            if let Some((ahead, _)) = armings.get(at + FETCHED_AHEAD) {
                self.coarse.records.prefetch(ahead.coarse().index);
            }
            armed += usize::from(self.start_at(key, deadline).is_ok());
        }
        armed
    }

    /// Cancels many timers: as many times [`cancel`](Self::cancel), but the misses of one overlap
    /// with the work on those before it. Returns how many were pending.
    pub fn cancel_many(&mut self, keys: &[Key]) -> usize {
        let mut pending = 0;
        for (at, &key) in keys.iter().enumerate() {
            if let Some(ahead) = keys.get(at + FETCHED_AHEAD) {
                self.coarse.records.prefetch(ahead.coarse().index);
            }
            pending += usize::from(self.cancel(key) == Ok(true));
        }
        pending
    }
}
