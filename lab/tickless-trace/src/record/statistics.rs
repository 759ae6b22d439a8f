//! How many events a recording kept and dropped.

use crate::read::counter;
use std::fs;
use std::path::Path;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    pub kept: u64,
    /// Events that were overwritten by later ones, or for which there was no room.
    pub dropped: u64,
}

impl Statistics {
    /// Reads `per_cpu/cpu*/stats` of an instance.
    pub(super) fn of(instance: &Path) -> Statistics {
        let mut sum = Statistics::default();
        let cpus = fs::read_dir(instance.join("per_cpu")).into_iter().flatten().flatten();
        for cpu in cpus {
            sum.add(&fs::read_to_string(cpu.path().join("stats")).unwrap_or_default());
        }
        sum
    }

    /// Returns how many times larger the buffers must be to hold all events: a power of two.
    pub fn times_larger(&self) -> u64 {
        let all = self.kept + self.dropped;
        all.div_ceil(self.kept.max(1)).max(2).next_power_of_two()
    }

    /// Returns how many events a CPU had no room for, which therefore came after all others.
    pub(super) fn dropped_at_end(cpu: &Path) -> u64 {
        counter(&fs::read_to_string(cpu.join("stats")).unwrap_or_default(), "dropped events")
    }

    fn add(&mut self, text: &str) {
        let number = |key: &str| counter(text, key);
        self.kept += number("entries");
        let lost = ["overrun", "commit overrun", "dropped events"];
        self.dropped += lost.map(number).iter().sum::<u64>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_losses_are_counted() {
        let text = "entries: 100\noverrun: 20\ncommit overrun: 3\nbytes: 4096\n\
                    oldest event ts:   1.5\nnow ts: 2.5\ndropped events: 4\nread events: 9\n";
        let mut sum = Statistics::default();
        sum.add("");
        assert_eq!(sum, Statistics::default());
        sum.add(text);
        assert_eq!((sum.kept, sum.dropped), (100, 27));
        sum.add("entries: 5\noverrun: 1\n");
        assert_eq!((sum.kept, sum.dropped), (105, 28));
    }

    #[test]
    fn times_larger_is_a_power_of_two() {
        let of = |kept, dropped| Statistics { kept, dropped };
        assert_eq!(of(100, 1).times_larger(), 2);
        assert_eq!(of(100, 250).times_larger(), 4);
        assert_eq!(of(0, 10).times_larger(), 16);
    }
}
