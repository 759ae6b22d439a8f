//! The full check of a wheel's invariants. It is available in release builds, too.

use super::place::WheelPlace;
use super::{BUCKETS, DUE, LANES, SLOTS, Wheel};
use crate::invariant::BrokenInvariant;

impl Wheel {
    /// Compares all lists with the stored bits and counts. Returns the first difference. O(n).
    pub fn check(&self) -> Result<(), BrokenInvariant> {
        let mut counts = [0u32; BUCKETS];
        let (mut due_live, mut len) = (0, 0);
        let mut fault = None;
        let unequal = BrokenInvariant("timer wheel: a bit does not match its list");
        for (number, bucket) in self.buckets().iter().enumerate() {
            let is_occupied = self.levels[number / SLOTS].occupied >> (number % SLOTS) & 1 == 1;
            if is_occupied == bucket.is_empty() {
                return Err(unequal);
            }
        }
        // Timers of a list without a bit are missing from `len` below.
        for list in self.lists_in_use() {
            if list < DUE && self.lists.is_empty(list) {
                return Err(unequal);
            }
            for node in self.lists.nodes(list) {
                len += 1;
                let place = WheelPlace::of(node);
                let due = place.expiry() <= self.clk;
                let at_home = if due { list >= DUE } else { list / LANES == place.bucket() };
                if !at_home {
                    fault = Some(BrokenInvariant("timer wheel: a timer is on a wrong list"));
                }
                match (place.is_deferrable(), due) {
                    (true, _) => {}
                    (false, true) => due_live += 1,
                    (false, false) => counts[place.bucket()] += 1,
                }
            }
        }
        if let Some(fault) = fault {
            return Err(fault);
        }
        for (bucket, &count) in counts.iter().enumerate() {
            let live = self.levels[bucket / SLOTS].live >> (bucket % SLOTS) & 1 == 1;
            if count != self.buckets()[bucket].count || live != (count > 0) {
                return Err(BrokenInvariant("timer wheel: a count of a bucket is wrong"));
            }
        }
        if len != self.len() || due_live != self.due_live {
            return Err(BrokenInvariant("timer wheel: the number of timers is wrong"));
        }
        let marked = self.earliest(|level| level.occupied).min(self.earliest(|level| level.live));
        if self.next_mark > marked {
            return Err(BrokenInvariant("timer wheel: the stored next bucket is late"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Lists, WheelRef};
    use crate::queues::wheel::Wakes;
    use crate::time::{Ns, Tick};

    /// Goal: the check finds a fault. Method: a timer is taken off its list, but not by the wheel.
    #[test]
    fn a_missing_timer_is_reported() {
        let mut wheel = Wheel::new(Tick::MILLISECOND, Ns::ZERO);
        let nodes = [0, 1].map(|_| WheelRef::forever());
        for node in nodes {
            wheel.arm(node, Ns::from_ms(10), Wakes::Yes);
        }
        let mut others = Lists::<1>::new(());
        others.unlink(nodes[0]);
        assert!(wheel.check().is_err_and(|broken| broken.0.contains("count")));
        others.unlink(nodes[1]);
        assert!(wheel.check().is_err_and(|broken| broken.0.contains("bit")));
    }
}
