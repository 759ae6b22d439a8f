//! How late timers fired, by family.

use super::family::Family;
use hdrhistogram::Histogram;
use serde::Serialize;
use tickless_core::time::Ns;

/// Lateness of everything that fired, in two histograms.
#[derive(Clone, Debug)]
pub(super) struct Lateness {
    wheel: Histogram<u64>,
    queue: Histogram<u64>,
}

/// Some quantiles, in nanoseconds, to three digits; the maximum is exact to 0.1 %.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: u64,
    /// One in a hundred is later.
    pub p99: u64,
    /// The latest.
    pub max: u64,
}

impl Lateness {
    pub(super) fn new() -> Lateness {
        Lateness { wheel: histogram(), queue: histogram() }
    }

    pub(super) fn record(&mut self, family: Family, late: Ns) {
        match family {
            Family::Wheel => self.wheel.saturating_record(late.0),
            Family::Queue => self.queue.saturating_record(late.0),
        }
    }

    /// Of one family; `None` if nothing of it fired.
    pub(super) fn of(&self, family: Family) -> Option<Quantiles> {
        match family {
            Family::Wheel => quantiles(&self.wheel),
            Family::Queue => quantiles(&self.queue),
        }
    }

    /// Of both families; `None` if nothing fired.
    pub(super) fn of_all(&self) -> Option<Quantiles> {
        let mut all = self.wheel.clone();
        // Both have the same bounds, so this cannot fail.
        let _ = all.add(&self.queue);
        quantiles(&all)
    }
}

fn quantiles(histogram: &Histogram<u64>) -> Option<Quantiles> {
    (!histogram.is_empty()).then(|| Quantiles {
        p50: histogram.value_at_quantile(0.5),
        p99: histogram.value_at_quantile(0.99),
        max: histogram.max(),
    })
}

/// From 1 ns to 18 minutes, to three digits.
fn histogram() -> Histogram<u64> {
    const HIGHEST: u64 = 1 << 40;
    Histogram::new_with_max(HIGHEST, 3).unwrap_or_else(|_| unreachable!("valid bounds"))
}
