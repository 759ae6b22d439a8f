//! Draws several histograms side by side, as text for a terminal.

use crate::output::width;

/// Returns the lines of a plot. Each element of `ways` is a name and a histogram, and becomes a
/// column of bars. There is a line for each bin, from the first to the last bin with a count in any
/// column. The fullest bin of a histogram has the longest bar; a dot stands for a count that is too
/// small for a bar.
pub fn bars_beside(ends_us: &[u64], ways: &[(&str, &[u64])]) -> Vec<String> {
    const LABEL: usize = 13;
    let is_used = |&bin: &usize| ways.iter().any(|(_, counts)| counts[bin] > 0);
    let used = (0..=ends_us.len()).filter(is_used);
    let Some((first, last)) = used.clone().min().zip(used.max()) else { return Vec::new() };
    let width = (width() - LABEL) / ways.len().max(1);
    let most = |counts: &[u64]| counts.iter().copied().max().unwrap_or(0).max(1);
    // Cut off the ends of long names: names differ at their beginnings.
    let head = |name: &str| name.chars().take(width.saturating_sub(1)).collect::<String>();
    let heads = ways.iter().map(|(name, _)| format!("{:<width$}", head(name)));
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

    #[test]
    fn each_histogram_has_a_column_of_bars() {
        let names = ["clock_nanosleep", "timerfd", "hrtimer", "hrtimer_spin", "hrtimer_auto"];
        let lines = bars_beside(&[1, 2], &names.map(|name| (name, &[1_000, 1, 0][..])));
        let columns = |line: &str| line.split_whitespace().count();
        assert_eq!((lines.len(), columns(&lines[0])), (3, 1 + names.len()), "{lines:#?}");
        assert!(lines.iter().all(|line| line.len() <= width()), "{lines:#?}");
        assert!(lines[1].ends_with("####") && lines[2].ends_with(" ."), "{lines:#?}");
        assert!(bars_beside(&[1], &[("none", &[0, 0])]).is_empty());
    }
}
