//! The full check of a wheel's invariants. It is available in release builds, too.

use super::place::WheelPlace;
use super::{BUCKETS, DUE, LANES, OVERDUE, SLOTS, Wheel};
use crate::time::Ns;

/// A broken invariant, found by [`Wheel::check`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WheelFault {
    /// A bucket's bit does not match whether its list is empty.
    Occupied {
        /// The bucket.
        bucket: usize,
    },
    /// A timer is on a list other than the one that its node names.
    Misplaced {
        /// The list it was found on.
        list: usize,
        /// The time at which the timer is due according to its node.
        due: Ns,
    },
    /// A bucket's stored count differs from the number of its timers that are not deferrable.
    Count {
        /// The bucket.
        bucket: usize,
        /// The stored count.
        counted: u32,
        /// The actual number.
        found: u32,
    },
    /// The number of pending timers is wrong.
    Length {
        /// The sum of the stored counts.
        counted: usize,
        /// The actual number.
        found: usize,
    },
    /// The stored lower bound of when the next bucket comes due is too late.
    LateMark {
        /// The bound, in ticks.
        bound: u64,
        /// The earliest bucket, in ticks.
        found: u64,
    },
}

impl Wheel {
    /// Compares all lists with the stored bits and counts. Returns the first difference. O(n).
    pub fn check(&self) -> Result<(), WheelFault> {
        let mut counts = [0u32; BUCKETS];
        let (mut due_live, mut len) = (0, 0);
        let mut fault = None;
        for list in 0..=OVERDUE {
            if list < DUE {
                let bucket = list / LANES;
                let lanes = self.buckets[bucket].lanes;
                let is_empty = self.buckets[bucket].is_empty();
                let occupied = self.levels[bucket / SLOTS].occupied >> (bucket % SLOTS) & 1 == 1;
                if self.lists.is_empty(list) == (lanes >> (list % LANES) & 1 == 1)
                    || occupied == is_empty
                {
                    return Err(WheelFault::Occupied { bucket });
                }
            }
            for node in self.lists.nodes(list) {
                len += 1;
                let place = WheelPlace::of(node);
                let due = place.expiry() <= self.clk;
                let at_home = if due { list >= DUE } else { list / LANES == place.bucket() };
                if !at_home {
                    let due = self.tick.start(place.expiry());
                    fault = Some(WheelFault::Misplaced { list, due });
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
            if count != self.buckets[bucket].count || live != (count > 0) {
                return Err(WheelFault::Count {
                    bucket,
                    counted: self.buckets[bucket].count,
                    found: count,
                });
            }
        }
        if len != self.len() || due_live != self.due_live {
            return Err(WheelFault::Length { counted: self.len(), found: len });
        }
        let marked = self.earliest(|level| level.occupied).min(self.earliest(|level| level.live));
        if self.next_mark > marked {
            return Err(WheelFault::LateMark { bound: self.next_mark, found: marked });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Lists, WheelRef};
    use crate::queues::wheel::Wakes;
    use crate::time::Tick;

    /// Goal: the check can fail. Method: a timer is taken off its list without the wheel.
    #[test]
    fn a_missing_timer_is_reported() {
        let mut wheel = Wheel::new(Tick::MILLISECOND, Ns::ZERO);
        let nodes = [0, 1].map(|_| WheelRef::forever());
        for node in nodes {
            wheel.arm(node, Ns::from_ms(10), Wakes::Yes);
        }
        let mut others = Lists::<1>::new();
        others.unlink(nodes[0]);
        let fault = wheel.check();
        assert_eq!(fault, Err(WheelFault::Count { bucket: 10, counted: 2, found: 1 }));
        others.unlink(nodes[1]);
        assert_eq!(wheel.check(), Err(WheelFault::Occupied { bucket: 10 }));
    }
}
