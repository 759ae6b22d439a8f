//! Plots as data, for a terminal, JSON and the report's page.
//!
//! A plot belongs to a simulated or a live study. If both studies have a plot with the same name,
//! the page draws the two plots on the same axes.

use crate::latency::{Bins, Tally};
use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub struct Plot {
    pub id: &'static str,
    pub title: String,
    #[serde(flatten)]
    pub shape: Shape,
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "form", rename_all = "lowercase")]
pub enum Shape {
    Curve {
        x: Axis,
        y: Axis,
        lines: Vec<Series>,
    },
    Bars {
        unit: &'static str,
        bars: Vec<Bar>,
    },
    Histogram {
        unit: &'static str,
        /// The inclusive upper end of each bin. One more bin counts everything above the last end.
        ends: Vec<f64>,
        ways: Vec<Counts>,
    },
    Strip {
        period_ms: f64,
        lanes: Vec<Lane>,
    },
}

#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    pub label: String,
    pub scale: Scale,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    Linear,
    Log,
}

/// Whether a variant runs without the study's mechanism (before) or with it (after). This
/// determines the variant's colour in all plots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Before,
    After,
    /// A third variant, shown for comparison with the replaced behaviour and the mechanism.
    Beside,
}

#[derive(Clone, Debug, Serialize)]
pub struct Series {
    pub name: String,
    pub side: Side,
    /// Tells lines of one colour apart.
    #[serde(skip)]
    pub pattern: usize,
    /// The results as pairs of x and y, by increasing x.
    pub points: Vec<[f64; 2]>,
    /// The published figures, from other machines.
    pub published: Vec<[f64; 2]>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    pub name: String,
    pub side: Side,
    pub value: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Counts {
    pub name: String,
    pub side: Side,
    pub counts: Vec<u64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Lane {
    pub name: String,
    pub side: Side,
    pub refill_ms: f64,
    /// One entry for each of the equal parts of the period: the share of the periods in which the
    /// group ran in that part.
    pub runs: Vec<f64>,
}

impl Lane {
    /// Makes the row of a group in a plot of one period: all `windows` in which the group ran are
    /// laid over one another, each at its time since the beginning of its period. Windows are in
    /// nanoseconds and must not overlap. `origin_ns` is the beginning of any period, and
    /// `refill_ns` any time at which the group's quota was refilled, which the row marks.
    pub fn folded(
        name: String,
        side: Side,
        windows: &[(u64, u64)],
        [origin_ns, refill_ns]: [u64; 2],
        period_ns: u64,
    ) -> Lane {
        const PARTS: u64 = 50;
        let part_ns = (period_ns / PARTS).max(1);
        let place = |at: u64| (at + period_ns - origin_ns % period_ns) % period_ns;
        let mut ran_ns = vec![0.0; PARTS as usize];
        for &(begin, end) in windows {
            let mut at = begin;
            while at < end {
                // End each step where the next part of the period begins, because a window can
                // cross several parts.
                let until = (at + part_ns - place(at) % part_ns).min(end);
                ran_ns[(place(at) / part_ns % PARTS) as usize] += (until - at) as f64;
                at = until;
            }
        }
        let span = windows.last().map_or(0, |last| last.1) - windows.first().map_or(0, |w| w.0);
        let each = (span.max(period_ns) as f64 / PARTS as f64).max(1.0);
        let runs = ran_ns.into_iter().map(|ran| (ran / each).min(1.0)).collect();
        Lane { name, side, refill_ms: place(refill_ns) as f64 / 1e6, runs }
    }
}

/// Sorts windows of time, each with begin and end, and joins those that overlap.
pub fn merged(mut windows: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    windows.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (begin, end) in windows {
        match merged.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((begin, end)),
        }
    }
    merged
}

impl Axis {
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear }
    }

    pub fn log(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Log }
    }
}

impl Series {
    pub fn new(name: impl Into<String>, side: Side, points: Vec<[f64; 2]>) -> Series {
        Series { name: name.into(), side, pattern: 0, points, published: Vec::new() }
    }
}

impl Plot {
    pub fn new(id: &'static str, title: impl Into<String>, shape: Shape) -> Plot {
        Plot { id, title: title.into(), shape }
    }

    /// Makes a plot of how many wakeups were how late, for each of the compared variants.
    pub fn of_lateness(
        id: &'static str,
        title: impl Into<String>,
        ways: &[(&str, Side, &Tally)],
    ) -> Plot {
        let bins = Bins::logarithmic();
        let of = |&(name, side, tally): &(&str, Side, &Tally)| Counts {
            name: name.to_string(),
            side,
            counts: bins.counts(tally),
        };
        let ends = bins.ends_us().map(|end| end as f64).collect();
        let ways = ways.iter().map(of).collect();
        Plot::new(id, title, Shape::Histogram { unit: "us", ends, ways })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_touch_become_one() {
        assert_eq!(merged(vec![(20, 30), (0, 5), (3, 10), (30, 40)]), [(0, 10), (20, 40)]);
    }

    #[test]
    fn windows_are_folded_onto_a_period() {
        let windows = [(1_000, 1_050), (1_100, 1_150)];
        let folded = |windows: &[(u64, u64)], places| {
            Lane::folded(String::new(), Side::After, windows, places, 100)
        };
        let lane = folded(&windows, [0, 30]);
        assert!(lane.runs[..25].iter().all(|&share| share == 1.0), "{lane:?}");
        assert!(lane.runs[25..].iter().all(|&share| share == 0.0), "{lane:?}");
        assert_eq!(lane.refill_ms, 30e-6);
        let later = folded(&windows, [51, 30]);
        assert!(later.runs[0] == 0.0 && later.runs[26] == 1.0, "{later:?}");
        assert_eq!(later.refill_ms, 79e-6);
        assert!(folded(&[], [0, 0]).runs.iter().all(|&share| share == 0.0));
    }
}
