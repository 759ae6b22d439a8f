//! The order in which simulated CPUs act: the smallest clock first, then the smallest number.
//!
//! The CPUs are in a tournament tree. When a CPU's clock changes, only the matches on the path from
//! its leaf to the root are replayed: 9 for 512 CPUs, in a few cache lines. A binary heap with an
//! index by CPU costs about twice as much.

use crate::ps::Ps;

/// A tournament tree: the winner of every match. Each entry is one integer, a time in the upper
/// bits and the CPU's number in the lower ones, so that one comparison decides a match, ties
/// included. The bits that remain for the time are enough for hours ([`Order::range`]).
#[derive(Debug)]
pub(crate) struct Order {
    /// `matches[1]` is the final. Match `n` is between the winners of the matches `2n` and
    /// `2n + 1`. The entries of the CPUs start at index `leaves`.
    matches: Vec<u64>,
    leaves: usize,
    bits: u32,
}

impl Order {
    /// Makes a tournament tree: each inner entry is the earlier of the two below it.
    pub(crate) fn new(cpus: usize) -> Order {
        let leaves = cpus.next_power_of_two().max(2);
        let bits = leaves.trailing_zeros();
        let mut order = Order { matches: vec![u64::MAX; 2 * leaves], leaves, bits };
        for cpu in 0..leaves {
            order.set(cpu, Ps::NEVER);
        }
        order
    }

    /// Sets when a CPU acts next, and replays its matches up to the root.
    #[inline]
    pub(crate) fn set(&mut self, cpu: usize, key: Ps) {
        let key = if key == Ps::NEVER { u64::MAX >> self.bits } else { key.0.min(self.range().0) };
        let mut best = key << self.bits | cpu as u64;
        let mut at = self.leaves + cpu;
        self.matches[at] = best;
        while at > 1 {
            best = best.min(self.matches[at ^ 1]);
            at /= 2;
            self.matches[at] = best;
        }
    }

    /// The largest time that an entry can hold; later times are stored as this one. Ten hours with
    /// 512 CPUs, twice that with half as many.
    #[inline]
    pub(crate) fn range(&self) -> Ps {
        Ps((u64::MAX >> self.bits) - 1)
    }

    #[inline]
    pub(crate) fn first(&self) -> (usize, Ps) {
        let (key, cpu) = self.unpack(self.matches[1]);
        (cpu, key)
    }

    /// Returns the time until which a CPU acts before all others.
    #[inline]
    pub(crate) fn horizon(&self, cpu: usize) -> Ps {
        let mut best = u64::MAX;
        let mut at = self.leaves + cpu;
        while at > 1 {
            best = best.min(self.matches[at ^ 1]);
            at /= 2;
        }
        let (key, other) = self.unpack(best);
        before(key, cpu, other)
    }

    #[inline]
    fn unpack(&self, entry: u64) -> (Ps, usize) {
        let key = entry >> self.bits;
        let key = if key == u64::MAX >> self.bits { Ps::NEVER } else { Ps(key) };
        (key, (entry & (self.leaves as u64 - 1)) as usize)
    }
}

/// The CPU `other` acts at the time `key`. `cpu` acts before `other` as long as the clock of `cpu`
/// is less than the returned time. If both times are equal, the smaller CPU number acts first.
#[inline]
pub(crate) fn before(key: Ps, cpu: usize, other: usize) -> Ps {
    if cpu < other { key + Ps(1) } else { key }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Goal: the tournament tree finds the same CPU as a scan of all CPUs' times.
    #[test]
    fn agrees_with_a_scan() {
        for cpus in [1, 2, 3, 7, 32] {
            let mut order = Order::new(cpus);
            let mut keys = vec![Ps::NEVER; cpus];
            let mut random = Random::new(1);
            for _ in 0..2_000 {
                let (cpu, key) = (random.below(cpus as u64) as usize, Ps(random.below(16)));
                keys[cpu] = key;
                order.set(cpu, key);
                let first = (0..cpus).min_by_key(|&cpu| (keys[cpu], cpu)).unwrap();
                assert_eq!(order.first(), (first, keys[first]));
                let others = (0..cpus).filter(|&other| other != first);
                let horizon = others.map(|other| before(keys[other], first, other)).min();
                assert_eq!(order.horizon(first), horizon.unwrap_or(Ps::NEVER));
            }
        }
    }
}
