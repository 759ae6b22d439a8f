//! How late timers fired, by family (wheel or queue), exact to three significant digits.

use crate::read::Family;
use hdrhistogram::Histogram;
use serde::Serialize;
use tickless_core::time::Ns;

#[derive(Clone, Debug)]
pub(super) struct Lateness([Histogram<u64>; 2]);

/// Some quantiles, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Quantiles {
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

impl Default for Lateness {
    fn default() -> Lateness {
        /// 18 minutes.
        const HIGHEST_NS: u64 = 1 << 40;
        Lateness([(); 2].map(|()| {
            Histogram::new_with_max(HIGHEST_NS, 3).unwrap_or_else(|_| unreachable!("valid bounds"))
        }))
    }
}

impl Lateness {
    pub(super) fn record(&mut self, family: Family, late: Ns) {
        self.0[family as usize].saturating_record(late.0);
    }

    pub(super) fn of(&self, family: Family) -> Option<Quantiles> {
        quantiles(&self.0[family as usize])
    }

    /// Returns the quantiles of the lateness of all timers, wheel and queue; `None` if none fired.
    pub(super) fn of_all(&self) -> Option<Quantiles> {
        let [wheel, queue] = &self.0;
        let mut all = wheel.clone();
        // Both histograms have the same bounds, so this cannot fail.
        let _ = all.add(queue);
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
