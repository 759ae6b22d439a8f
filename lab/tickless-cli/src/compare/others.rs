//! Reads the histograms of other latency tools: cyclictest (`--json`, and the text of `-h`), and
//! `rtla timerlat hist`.
//!
//! A histogram has an end. Of the samples above it only the number is known, so a quantile among
//! them is left out.

use super::results::{Figure, Found};
use serde_json::Value;
use std::collections::BTreeMap;

/// What one thread, or one CPU's interrupt or thread, measured.
#[derive(Debug, Default)]
struct Series {
    /// How many samples each bucket has, by the bucket's beginning.
    buckets: BTreeMap<u64, u64>,
    samples: u64,
    min: Option<f64>,
    avg: Option<f64>,
    max: Option<f64>,
}

impl Series {
    /// Returns the figures, all times in ns. `unit` is the number of ns in the file's unit.
    fn figures(&self, name: &str, unit: f64) -> Found {
        let ns = |value: Option<f64>| value.map(|value| Figure::once(value * unit));
        let counted: u64 = self.buckets.values().sum();
        let above = self.samples.saturating_sub(counted);
        let figures = [
            ("min", "ns", ns(self.min)),
            ("avg", "ns", ns(self.avg)),
            ("p50", "ns", ns(self.quantile(500))),
            ("p99", "ns", ns(self.quantile(990))),
            ("p999", "ns", ns(self.quantile(999))),
            ("max", "ns", ns(self.max)),
            ("above_the_histogram", "samples", Some(Figure::once(above as f64))),
        ];
        let figure = |(key, unit, figure): (&str, &str, Option<Figure>)| {
            Some((format!("{name}.{key}"), unit.to_string(), figure?))
        };
        figures.into_iter().filter_map(figure).collect()
    }

    /// Returns a quantile in parts of a thousand; `None` if it is above the histogram.
    fn quantile(&self, per_mille: u64) -> Option<f64> {
        let rank = (self.samples * per_mille).div_ceil(1_000).max(1);
        let mut seen = 0;
        let mut buckets = self.buckets.iter();
        let found = buckets.find(|&(_, count)| {
            seen += count;
            seen >= rank
        });
        found.map(|(&value, _)| value as f64)
    }
}

/// Reads the JSON of cyclictest; `None` if it is of another program.
pub(super) fn cyclictest_json(document: &Value) -> Option<Found> {
    let threads = document.get("thread")?.as_object()?;
    document.get("resolution_in_ns")?;
    // In ns if cyclictest was asked for ns, in us otherwise.
    let unit = if document["resolution_in_ns"] == 1 { 1.0 } else { 1_000.0 };
    let mut found = Found::new();
    for (name, thread) in threads {
        let buckets = thread["histogram"].as_object().into_iter().flatten();
        let bucket =
            |(value, count): (&String, &Value)| Some((value.parse().ok()?, count.as_u64()?));
        let series = Series {
            buckets: buckets.filter_map(bucket).collect(),
            samples: thread["cycles"].as_u64()?,
            min: thread["min"].as_f64(),
            avg: thread["avg"].as_f64(),
            max: thread["max"].as_f64(),
        };
        found.extend(series.figures(&format!("thread {name}"), unit));
    }
    Some(found)
}

/// Reads a text: the name of its program, and its figures, or why they cannot be told. `None` if
/// it is of another program.
pub(super) fn text(text: &str) -> Option<(&'static str, Result<Found, &'static str>)> {
    if text.contains("# RTLA timerlat histogram") {
        return Some(("rtla timerlat", Ok(timerlat(text)?)));
    }
    text.contains("\n# Histogram").then(|| Some(("cyclictest", cyclictest(text)?)))?
}

fn numbers(text: &str) -> Option<Vec<f64>> {
    text.split_whitespace().map(|word| word.parse().ok()).collect()
}

/// Reads the text of `cyclictest -h`: lines of a latency and a count for each thread, then lines
/// such as `# Min Latencies: 00045 00017`. With `-H`, a last column has the sums of all threads.
fn cyclictest(text: &str) -> Option<Result<Found, &'static str>> {
    let lines = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    let rows: Vec<Vec<f64>> = lines.map(numbers).collect::<Option<_>>()?;
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(numbers)
    };
    let total = of("# Total")?;
    let [min, avg, max] = ["# Min Latencies", "# Avg Latencies", "# Max Latencies"].map(of);
    // The times are in us, or with `-N` in ns, which the text does not say. No wakeup takes less
    // than 500 ns, and few threads are late by 1 ms on average.
    let mut both = min.iter().flatten().zip(avg.iter().flatten());
    if both.any(|(min, avg)| *min >= 500.0 && *avg >= 1_000.0) {
        return Some(Err(
            "this may be in us, or in ns (-N): cyclictest's text does not say which. \
                         Give what it writes with --json",
        ));
    }
    let overflows = of("# Histogram Overflows")?;
    let series = |thread: usize| {
        let at = |of: &Option<Vec<f64>>| of.as_ref().and_then(|of| of.get(thread).copied());
        let bucket = |row: &Vec<f64>| Some((row[0] as u64, *row.get(thread + 1)? as u64));
        Series {
            buckets: rows.iter().filter_map(bucket).collect(),
            samples: (total[thread] + overflows.get(thread).copied().unwrap_or(0.0)) as u64,
            min: at(&min),
            avg: at(&avg),
            max: at(&max),
        }
    };
    let threads = min.as_ref()?.len();
    let name = |it| if it < threads { format!("thread {it}") } else { "all threads".to_string() };
    Some(Ok((0..total.len()).flat_map(|it| series(it).figures(&name(it), 1_000.0)).collect()))
}

/// Reads the text of `rtla timerlat hist`: a table with columns such as `Usr-001`, whose first
/// rows are buckets. Buckets without samples are left out.
fn timerlat(text: &str) -> Option<Found> {
    let unit = if text.contains("(ns)") { 1.0 } else { 1_000.0 };
    let mut lines = text.lines().skip_while(|line| !line.starts_with("Index"));
    let columns: Vec<&str> = lines.next()?.split_whitespace().skip(1).collect();
    let mut series: Vec<Series> = columns.iter().map(|_| Series::default()).collect();
    // After this line comes the sum of all CPUs.
    for line in lines.take_while(|line| !line.starts_with("ALL:")) {
        let (key, values) = line.split_once(char::is_whitespace)?;
        for (series, value) in series.iter_mut().zip(values.split_whitespace()) {
            // Without samples, there is a dash in place of a number.
            let value: Option<f64> = value.parse().ok();
            match key {
                "over:" => {}
                "count:" => series.samples = value? as u64,
                "min:" => series.min = value,
                "avg:" => series.avg = value,
                "max:" => series.max = value,
                bucket => {
                    series.buckets.insert(bucket.parse().ok()?, value? as u64);
                }
            }
        }
    }
    Some(columns.iter().zip(&series).flat_map(|(name, it)| it.figures(name, unit)).collect())
}
