//! Histograms side by side, in a terminal.

use super::Tally;
use crate::output::WIDTH;

/// Upper ends of bins in nanoseconds, each included in its bin; above the last there is one more.
pub struct Bins(Vec<u64>);

impl Bins {
    /// 1, 2, 5, 10, ... us: what fits whatever came out.
    pub fn logarithmic() -> Bins {
        let decades = (0..7).map(|decade| 1_000 * 10u64.pow(decade));
        Bins(decades.flat_map(|ns| [ns, 2 * ns, 5 * ns]).collect())
    }

    /// So many microseconds in at most twenty equal bins.
    pub fn linear(most_us: u64) -> Bins {
        const BINS: u64 = 20;
        let width_us = most_us.div_ceil(BINS).max(1);
        Bins((1..=most_us.div_ceil(width_us)).map(|bin| bin * width_us * 1_000).collect())
    }

    /// The upper ends, in microseconds.
    pub fn ends_us(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|end| end / 1_000)
    }

    /// How many wakeups are in each bin, and above all.
    pub fn counts(&self, tally: &Tally) -> Vec<u64> {
        let mut counts = vec![0; self.0.len() + 1];
        for value in tally.lateness.iter_recorded() {
            let lowest = tally.lateness.lowest_equivalent(value.value_iterated_to());
            let bin = self.0.partition_point(|&end| end < lowest);
            counts[bin] += value.count_since_last_iteration();
        }
        counts
    }
}

/// A column of bars for each tally, in these bins.
pub fn plot(tallies: &[(&str, &Tally)], bins: &Bins) -> Vec<String> {
    let all: Vec<Vec<u64>> = tallies.iter().map(|(_, tally)| bins.counts(tally)).collect();
    let names = tallies.iter().map(|(name, _)| *name);
    let ways: Vec<(&str, &[u64])> = names.zip(all.iter().map(Vec::as_slice)).collect();
    bars_beside(&bins.ends_us().collect::<Vec<u64>>(), &ways)
}

/// A column of bars for each way, a line for each bin from the first that is used to the last.
/// Bars are relative to the way's fullest bin; a dot is less than a bar can show.
pub fn bars_beside(ends_us: &[u64], ways: &[(&str, &[u64])]) -> Vec<String> {
    const LABEL: usize = 13;
    let is_used = |&bin: &usize| ways.iter().any(|(_, counts)| counts[bin] > 0);
    let used = (0..=ends_us.len()).filter(is_used);
    let Some((first, last)) = used.clone().min().zip(used.max()) else { return Vec::new() };
    let width = (WIDTH - LABEL) / ways.len().max(1);
    let most = |counts: &[u64]| counts.iter().copied().max().unwrap_or(0).max(1);
    let heads = ways.iter().map(|(name, _)| format!("{name:<width$}"));
    let mut lines = vec![format!("{:>11}  {}", "us", heads.collect::<String>())];
    for bin in first..=last {
        let label = match ends_us.get(bin) {
            Some(end) => format!("<= {end}"),
            None => format!("> {}", ends_us.last().unwrap_or(&0)),
        };
        let bars = ways.iter().map(|(_, counts)| bar(counts[bin], most(counts), width - 2));
        let bars: String = bars.map(|bar| format!("{bar:<width$}")).collect();
        lines.push(format!("{label:>11}  {bars}"));
    }
    lines.iter().map(|line| line.trim_end().to_string()).collect()
}

fn bar(count: u64, most: u64, width: usize) -> String {
    let length = (count as f64 / most as f64 * width as f64).round() as usize;
    if count > 0 && length == 0 { ".".to_string() } else { "#".repeat(length) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickless::Ns;

    fn tally(late_us: &[u64]) -> Tally {
        let mut tally = Tally::default();
        late_us.iter().for_each(|&us| tally.record(Ns(us * 1_000), Ns(0)));
        tally
    }

    /// Goal: every wakeup is in its bin, the ends included, and what is above all has a line.
    #[test]
    fn bins_hold_everything() {
        let tally = tally(&[0, 1, 2, 10, 11, 30_000_000]);
        assert_eq!(Bins::linear(20).counts(&tally).iter().sum::<u64>(), 6);
        assert_eq!(Bins::linear(20).counts(&tally)[0], 2);
        assert_eq!(Bins::linear(20).counts(&tally)[10], 1);
        assert_eq!(Bins::linear(20).counts(&tally)[20], 1);
        assert_eq!(Bins::logarithmic().counts(&tally).iter().sum::<u64>(), 6);
    }

    #[test]
    fn plots_are_as_wide_as_a_terminal() {
        let (one, other) = (tally(&[3; 1_000]), tally(&[3, 70]));
        let lines = plot(&[("one", &one), ("other", &other)], &Bins::logarithmic());
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:#?}");
        assert_eq!(lines.len(), 1 + 5, "{lines:#?}");
        assert!(lines[1].matches('#').count() > 40 && lines[5].ends_with('#'), "{lines:#?}");
        assert!(plot(&[("none", &Tally::default())], &Bins::linear(10)).is_empty());
        assert_eq!(bar(1, 1_000, 20), ".");
    }
}
