//! Histograms side by side, in a terminal.

use crate::bars::bars_beside;
use tickless_lab::latency::{Bins, Tally};

/// A column of bars for each tally, in these bins.
pub fn plot(tallies: &[(&str, &Tally)], bins: &Bins) -> Vec<String> {
    let all: Vec<Vec<u64>> = tallies.iter().map(|(_, tally)| bins.counts(tally)).collect();
    let names = tallies.iter().map(|(name, _)| *name);
    let ways: Vec<(&str, &[u64])> = names.zip(all.iter().map(Vec::as_slice)).collect();
    bars_beside(&bins.ends_us().collect::<Vec<u64>>(), &ways)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::WIDTH_MAX;
    use tickless_core::time::Instant;

    fn tally(late_us: &[u64]) -> Tally {
        let mut tally = Tally::default();
        late_us.iter().for_each(|&us| tally.record(Instant::from_nanos(us * 1_000), Instant::ZERO));
        tally
    }

    #[test]
    fn plots_are_as_wide_as_a_terminal() {
        let (one, other) = (tally(&[3; 1_000]), tally(&[3, 70]));
        let lines = plot(&[("one", &one), ("other", &other)], &Bins::logarithmic());
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH_MAX), "{lines:#?}");
        assert_eq!(lines.len(), 1 + 5, "{lines:#?}");
        assert!(lines[1].matches('#').count() > 40 && lines[5].ends_with('#'), "{lines:#?}");
        assert!(plot(&[("none", &Tally::default())], &Bins::linear(10)).is_empty());
    }
}
