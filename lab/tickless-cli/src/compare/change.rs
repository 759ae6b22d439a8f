//! Computes the changes between two result files. A figure is one measured or computed number. Its
//! spread is the range of repeated measurements. A figure counts as changed if its two values are
//! farther apart than the widths of its two spreads together.

use super::results::{Figure, Results};
use serde::Serialize;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Same,
    Grew,
    Shrank,
    /// The figure differs, but it was measured too few times to know its spread.
    Unknown,
}

/// Returns whether a larger value of a figure is worse: true for a cost, such as a time, a count of
/// operations, or a share of a CPU; false for an amount of work done, an evenness, or a distance;
/// `None` if neither a larger nor a smaller value is worse, such as for a ratio of two others.
fn is_cost(figure: &str, unit: &str) -> Option<bool> {
    match unit {
        "jobs/min" | "reads/s" | "least/most" => Some(false),
        "x" | "times" | "% points" | "of 20" | "% of samples" | "% of real time" => None,
        _ => Some(!figure.ends_with(".apart")),
    }
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Change {
    pub(super) figure: String,
    pub(super) unit: String,
    pub(super) a: Figure,
    pub(super) b: Figure,
    /// The change from the first value to the second; `None` if only the first is 0.
    pub(super) percent: Option<f64>,
    pub(super) verdict: Verdict,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    pub(super) kind: &'static str,
    pub(super) a: String,
    pub(super) b: String,
    pub(super) changes: Vec<Change>,
    pub(super) only_in_a: Vec<String>,
    pub(super) only_in_b: Vec<String>,
    #[serde(skip)]
    pub(super) shows_all: bool,
}

impl Change {
    /// Compares a figure of two results. A change counts if it exceeds the sum of both spreads.
    fn of(name: &str, unit: &str, a: Figure, b: Figure) -> Change {
        let verdict = match (b.value - a.value).abs() > (a.high - a.low) + (b.high - b.low) {
            false => Verdict::Same,
            true if !(a.is_certain && b.is_certain) => Verdict::Unknown,
            true if b.value > a.value => Verdict::Grew,
            true => Verdict::Shrank,
        };
        let percent = match a.value {
            0.0 if b.value == 0.0 => Some(0.0),
            0.0 => None,
            value => Some((b.value - value) / value.abs() * 1e2),
        };
        Change { figure: name.to_string(), unit: unit.to_string(), a, b, percent, verdict }
    }

    /// Returns the sort key: changed figures come first, the largest change before the others, then
    /// uncertain and then unchanged ones. A change from 0 to another value is the largest.
    fn rank(&self) -> (u8, f64) {
        let class = match self.verdict {
            Verdict::Grew | Verdict::Shrank => 0,
            Verdict::Unknown => 1,
            Verdict::Same => 2,
        };
        (class, -self.percent.map_or(f64::INFINITY, f64::abs))
    }

    pub(super) fn is_moved(&self) -> bool {
        matches!(self.verdict, Verdict::Grew | Verdict::Shrank)
    }

    /// Returns whether the change is for the worse; `None` without a change or a known direction.
    pub(super) fn is_worse(&self) -> Option<bool> {
        let grew = match self.verdict {
            Verdict::Same | Verdict::Unknown => return None,
            Verdict::Grew => true,
            Verdict::Shrank => false,
        };
        Some(grew == is_cost(&self.figure, &self.unit)?)
    }

    pub(super) fn is_worse_by(&self, percent: f64) -> bool {
        self.is_worse() == Some(true) && self.percent.is_none_or(|moved| moved.abs() > percent)
    }
}

/// Compares all figures of two results. The most important changes come first.
pub(super) fn compare(names: [&str; 2], a: &Results, b: &Results) -> Comparison {
    let both = a.figures.iter().filter_map(|(name, (unit, one))| {
        let (_, other) = b.figures.get(name)?;
        Some(Change::of(name, unit, *one, *other))
    });
    let mut changes: Vec<Change> = both.collect();
    let order = |change: &Change| change.rank();
    changes.sort_by(|a, b| order(a).0.cmp(&order(b).0).then(order(a).1.total_cmp(&order(b).1)));
    let only = |of: &Results, not: &Results| -> Vec<String> {
        of.figures.keys().filter(|name| !not.figures.contains_key(*name)).cloned().collect()
    };
    Comparison {
        kind: a.kind,
        a: names[0].to_string(),
        b: names[1].to_string(),
        changes,
        only_in_a: only(a, b),
        only_in_b: only(b, a),
        shows_all: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn figure([low, value, high]: [f64; 3]) -> Figure {
        Figure { value, low, high, is_certain: true }
    }

    #[test]
    fn a_figure_has_moved_if_it_is_farther_than_both_spreads() {
        let of = |a, b| Change::of("f", "ns", figure(a), figure(b));
        let (low, high) = ([96.0, 100.0, 102.0], [119.0, 125.0, 131.0]);
        let noise = of([90.0, 100.0, 110.0], high);
        assert_eq!((noise.verdict, noise.percent), (Verdict::Same, Some(25.0)));
        let (grown, shrunk) = (of(low, high), of(high, low));
        assert!(grown.is_worse_by(10.0) && !grown.is_worse_by(25.0));
        assert_eq!(shrunk.verdict, Verdict::Shrank);
        assert!(!noise.is_worse_by(10.0) && !shrunk.is_worse_by(0.0));
        let from_nothing = of([0.0; 3], [1.0; 3]);
        assert!(from_nothing.percent.is_none() && from_nothing.is_worse_by(1e9));
        let single = Figure { is_certain: false, ..figure(high) };
        let unsure = Change::of("f", "ns", figure(low), single);
        assert_eq!(unsure.verdict, Verdict::Unknown);
        assert!(!unsure.is_worse_by(0.0) && unsure.rank() > of(low, high).rank());
    }

    /// Goal: a live figure of few repetitions has no verdict. A simulated figure always has one.
    #[test]
    fn figures_with_few_repetitions_have_no_verdict() {
        let verdict = |role: &str, repetitions: u64| {
            let study = |value: f64| {
                let cell = json!({"id": "f", "unit": "ns", "role": role, "value": value,
                    "low": value, "high": value, "repetitions": repetitions});
                Results::of(&json!({"cells": [cell]})).unwrap()
            };
            compare(["a", "b"], &study(1.0), &study(9.0)).changes[0].verdict
        };
        assert_eq!(verdict("live", 3), Verdict::Unknown);
        assert_eq!(verdict("live", 4), Verdict::Grew);
        assert_eq!(verdict("predicted", 1), Verdict::Grew);
        let latency = |p50: u64, turns: u64| {
            let row = json!({"sleeper": "timerfd", "p50": p50, "max": p50, "turns": turns,
                "spread": {"p50": [p50 - 1, p50 + 1]}});
            Results::of(&json!([row])).unwrap()
        };
        let verdicts = |turns| {
            let changes = compare(["a", "b"], &latency(10, turns), &latency(90, turns)).changes;
            changes.iter().map(|it| (it.figure.clone(), it.verdict)).collect::<Vec<_>>()
        };
        let unknown = |name: &str| (name.to_string(), Verdict::Unknown);
        let grew = ("timerfd.p50".to_string(), Verdict::Grew);
        assert_eq!(verdicts(10), [grew, unknown("timerfd.max")]);
        assert_eq!(verdicts(2), [unknown("timerfd.max"), unknown("timerfd.p50")]);
    }

    #[test]
    fn less_work_is_worse_and_a_ratio_is_neither() {
        for (name, unit, [a, b], is_worse) in [
            ("clock.sim.480.tsc.jobs_per_min", "jobs/min", [10.0, 8.0], Some(true)),
            ("clock.live.1t.reads_per_s", "reads/s", [8.0, 10.0], Some(false)),
            ("phase.live.spread.apart", "ms", [8.0, 10.0], Some(false)),
            ("phase.live.spread.burst_p50", "ms", [8.0, 10.0], Some(true)),
            ("cancel.live.growth_2_to_512.after.warm", "x", [1.0, 2.0], None),
            ("lazy.wakeups", "/s", [2.0, 2.0], None),
        ] {
            let change = Change::of(name, unit, figure([a; 3]), figure([b; 3]));
            assert_eq!(change.is_worse(), is_worse, "{name}");
        }
    }

    #[test]
    fn rates_are_compared_and_a_figure_of_one_result_alone_is_listed() {
        let replay = |seconds: f64, writes: u64| {
            let policy = json!({"policy": "lazy", "device_writes": writes, "wakeups": writes,
                "spurious_wakeups": 0, "lateness_ns": {"p50": 1, "p99": 2, "max": 3}});
            let trace = json!({"seconds": seconds, "recorded": {"device_writes": writes}});
            Results::of(&json!({"trace": trace, "policies": [policy]})).unwrap()
        };
        let same = compare(["a", "b"], &replay(1.0, 10), &replay(2.0, 20));
        assert!(same.changes.iter().all(|change| change.percent == Some(0.0)), "{same:?}");
        let more = compare(["a", "b"], &replay(1.0, 10), &replay(1.0, 11));
        assert_eq!(more.changes[0].percent, Some(10.0));
        let of = |sleeper: &str| {
            Results::of(&json!([{"sleeper": sleeper, "p50": 7, "max": null}])).unwrap()
        };
        let comparison = compare(["a", "b"], &of("timerfd"), &of("hrtimer"));
        assert!(comparison.changes.is_empty());
        assert_eq!(comparison.only_in_a, ["timerfd.p50"]);
        assert_eq!(comparison.only_in_b, ["hrtimer.p50"]);
        assert!(Results::of(&json!({"else": 1})).is_none());
    }
}
