//! Plots as data, for a terminal, JSON and the report's page.
//!
//! A plot belongs to a study of one world. Where the simulated and the live study have plots of
//! the same name, the page draws them on the same axes.

use crate::latency::{Bins, Tally};
use serde::Serialize;

/// Figures in a form that shows the point.
#[derive(Clone, Debug, Serialize)]
pub struct Plot {
    /// Its name, the same in both worlds.
    pub id: &'static str,
    /// What it shows.
    pub title: String,
    /// How.
    #[serde(flatten)]
    pub shape: Shape,
    /// Whether a table shows these figures already.
    #[serde(skip)]
    pub in_exhibit: bool,
}

/// The form of a [`Plot`].
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "form", rename_all = "lowercase")]
pub enum Shape {
    /// Lines over numbers, such as a cost over the number of CPUs.
    Curve {
        /// What is varied.
        x: Axis,
        /// What comes of it.
        y: Axis,
        /// The ways that are compared.
        lines: Vec<Line>,
    },
    /// One figure for each way.
    Bars {
        /// What they are counted in.
        unit: &'static str,
        /// The ways that are compared.
        bars: Vec<Bar>,
    },
    /// How often something took how long, one histogram for each way.
    Histogram {
        /// What the ends are counted in.
        unit: &'static str,
        /// The upper end of each bin, included in it; above the last there is one more.
        ends: Vec<f64>,
        /// The ways that are compared.
        ways: Vec<Counts>,
    },
    /// What runs when in a period that repeats.
    Strip {
        /// How long the period is, in milliseconds.
        period_ms: f64,
        /// The groups that run.
        lanes: Vec<Lane>,
    },
}

/// An axis.
#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    /// What it counts, with the unit.
    pub label: String,
    /// How its figures are laid out.
    pub scale: Scale,
}

/// How an axis lays out its figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Evenly, from 0.
    Linear,
    /// By their logarithms.
    Log,
}

/// Which side of a mechanism's switch a way is on. Each has one colour everywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The behaviour that was replaced.
    Before,
    /// The mechanism.
    After,
    /// Something to compare both with.
    Beside,
}

/// One way in a curve.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The way.
    pub name: String,
    /// Which side it is on.
    pub side: Side,
    /// What came out, by rising x.
    pub points: Vec<[f64; 2]>,
    /// What was published, of other machines.
    pub published: Vec<[f64; 2]>,
}

/// One way among bars.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    /// The way.
    pub name: String,
    /// Which side it is on.
    pub side: Side,
    /// What came out.
    pub value: f64,
}

/// One way in a histogram.
#[derive(Clone, Debug, Serialize)]
pub struct Counts {
    /// The way.
    pub name: String,
    /// Which side it is on.
    pub side: Side,
    /// How many are in each bin, and above all.
    pub counts: Vec<u64>,
}

/// One group in a strip.
#[derive(Clone, Debug, Serialize)]
pub struct Lane {
    /// The name of the group.
    pub name: String,
    /// Which side it is on.
    pub side: Side,
    /// When in the period it is refilled, in milliseconds.
    pub refill_ms: f64,
    /// In which share of the periods it ran, for equal parts of the period.
    pub runs: Vec<f64>,
}

impl Lane {
    /// Of windows in nanoseconds, which do not touch, on a period that begins at `origin_ns`.
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
                // Up to where the next part begins.
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

/// Windows that touch become one.
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
    /// From 0 on, evenly.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear }
    }

    /// By logarithms.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Log }
    }
}

impl Line {
    /// A line of what came out, nothing of which was published.
    pub fn new(name: impl Into<String>, side: Side, points: Vec<[f64; 2]>) -> Line {
        Line { name: name.into(), side, points, published: Vec::new() }
    }
}

impl Plot {
    /// One whose figures no table shows.
    pub fn new(id: &'static str, title: impl Into<String>, shape: Shape) -> Plot {
        Plot { id, title: title.into(), shape, in_exhibit: false }
    }

    /// One whose figures a table shows as well.
    #[must_use]
    pub fn in_exhibit(self) -> Plot {
        Plot { in_exhibit: true, ..self }
    }

    /// How late wakeups were, each way by itself.
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
        Plot::new(
            id,
            title,
            Shape::Histogram { unit: "us", ends, ways: ways.iter().map(of).collect() },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_touch_become_one() {
        assert_eq!(merged(vec![(20, 30), (0, 5), (3, 10), (30, 40)]), [(0, 10), (20, 40)]);
    }

    /// Goal: what ran when is seen on the circle of its period, from wherever that begins.
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

    /// Goal: programs get the same figures, named by their form.
    #[test]
    fn json_has_the_form_beside_the_name() {
        let mut tally = Tally::default();
        tally.record(
            tickless::time::Instant::from_nanos(3_000),
            tickless::time::Instant::from_nanos(0),
        );
        let plot = Plot::of_lateness("late", "Late", &[("before", Side::Before, &tally)]);
        let json = serde_json::to_value(&plot).unwrap();
        assert_eq!((&json["id"], &json["form"]), (&"late".into(), &"histogram".into()));
        let counts = json["ways"][0]["counts"].as_array().unwrap();
        assert_eq!(counts.len(), json["ends"].as_array().unwrap().len() + 1);
        assert_eq!(counts.iter().map(|count| count.as_u64().unwrap()).sum::<u64>(), 1);
    }
}
