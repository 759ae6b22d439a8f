//! The counters of a machine, their faults, and which one is the best.
//!
//! No counter is read here: the list stores only ratings and faults. A counter that was found bad
//! stays bad, because the fault may return.

use crate::clock::counter::Counter;
use crate::clock::segment::SourceId;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// Why a counter must not be used any more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// The counter stood still while other counters continued.
    Frozen,
    /// It went back.
    Backwards,
    /// The counter ran too fast or jumped ahead: it advanced by this much more than the reference
    /// counter.
    Fast(Duration),
    /// The counter ran too slowly: it advanced by this much less than the reference counter.
    Slow(Duration),
    /// Two CPUs read different values from the counter; they differ by this many counts.
    Skewed(u64),
    /// The provider of the counter withdrew it: its device went away, or the system stopped using
    /// it.
    Withdrawn,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Frozen => write!(f, "stood still while others continued"),
            Fault::Backwards => write!(f, "went back"),
            Fault::Fast(by) => write!(f, "ran {by:?} ahead between two readings"),
            Fault::Slow(by) => write!(f, "fell {by:?} behind between two readings"),
            Fault::Skewed(by) => write!(f, "differs by {by} counts between CPUs"),
            Fault::Withdrawn => write!(f, "was withdrawn by its provider"),
        }
    }
}

/// A counter's rating and its fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Standing {
    rating: u16,
    fault: Option<Fault>,
}

/// All counters of a machine, at most 256.
#[derive(Clone, Debug)]
pub struct Sources {
    standings: Vec<Standing>,
}

impl Sources {
    /// Makes a list of these counters, in this order; a 257th and later ones are ignored.
    pub fn new<C: Counter>(counters: &[C]) -> Sources {
        let standing = |counter: &C| Standing { rating: counter.rating(), fault: None };
        Sources { standings: counters.iter().take(256).map(standing).collect() }
    }

    /// Returns the counter with the highest rating and no fault; the first of several with the same
    /// rating.
    pub fn best(&self) -> Option<SourceId> {
        self.ids()
            .filter(|id| self.fault(*id).is_none())
            .reduce(|best, id| if self.rating(id) > self.rating(best) { id } else { best })
    }

    /// Returns the best counter other than `other`.
    pub fn best_besides(&self, other: SourceId) -> Option<SourceId> {
        let mut rest = self.clone();
        rest.blame(other, Fault::Withdrawn);
        rest.best()
    }

    /// Returns a counter's fault. A counter that does not exist counts as withdrawn.
    pub fn fault(&self, id: SourceId) -> Option<Fault> {
        self.standings.get(id.index()).map_or(Some(Fault::Withdrawn), |standing| standing.fault)
    }

    /// Records a counter's fault. A counter that has a fault already keeps that one.
    pub fn blame(&mut self, id: SourceId, fault: Fault) {
        if let Some(standing) = self.standings.get_mut(id.index()) {
            standing.fault.get_or_insert(fault);
        }
    }

    /// Returns all counters, good and bad.
    pub fn ids(&self) -> impl Iterator<Item = SourceId> + use<> {
        (0..self.standings.len()).map(|index| SourceId(index as u8))
    }

    fn rating(&self, id: SourceId) -> u16 {
        self.standings.get(id.index()).map_or(0, |standing| standing.rating)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(ratings: &[u16]) -> Sources {
        let standing = |rating: &u16| Standing { rating: *rating, fault: None };
        Sources { standings: ratings.iter().map(standing).collect() }
    }

    #[test]
    fn the_best_of_what_remains() {
        let mut sources = rated(&[250, 300, 110, 300]);
        let mut order = Vec::new();
        while let Some(best) = sources.best() {
            assert_eq!(sources.best_besides(best), {
                let mut rest = sources.clone();
                rest.blame(best, Fault::Frozen);
                rest.best()
            });
            order.push(best.0);
            sources.blame(best, Fault::Slow(Duration::from_nanos(u64::from(best.0))));
            sources.blame(best, Fault::Frozen);
            assert_eq!(
                sources.fault(best),
                Some(Fault::Slow(Duration::from_nanos(u64::from(best.0))))
            );
        }
        assert_eq!(order, [1, 3, 0, 2]);
        assert_eq!(sources.fault(SourceId(9)), Some(Fault::Withdrawn));
        assert_eq!(rated(&[]).best(), None);
    }
}
