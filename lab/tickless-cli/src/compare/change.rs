//! Computes the changes between two result files. A figure is one measured or computed number.
//!
//! Where both files have the values of all turns, a rank test decides whether a figure moved. Where
//! they have only the ranges of the turns, a figure moved if its two values are farther apart than
//! the two ranges are wide together: that misses moves, but claims none that is not there.

use super::rank::{by_chance, by_chance_least};
use super::results::{Figure, Results};
use serde::Serialize;
use std::cmp::Ordering;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    /// The figure did not move, or by too little to be told from chance.
    Same,
    Grew,
    Shrank,
    /// The figure differs, but it was measured too few times to judge that.
    Unknown,
}

/// The largest share of pairs without any change in which a figure is said to have moved.
const FALSE_ALARMS_MAX: f64 = 0.01;

/// Figures of turns whose ratio is less than this did not move, however sure the difference is:
/// what else runs on a machine makes two runs a minute apart differ by up to a fifth.
const MOVED_MIN_RATIO: f64 = 1.25;

/// Beside so many times more threads of others, and half a thread, nothing is judged.
const OTHERS_RATIO_MAX: f64 = 1.25;

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
    /// How likely the turns differ so much by chance; `None` if not both results have their values.
    pub(super) by_chance: Option<f64>,
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
    /// What could not be judged, and how to measure so that it can.
    pub(super) notes: Vec<String>,
    #[serde(skip)]
    pub(super) shows_all: bool,
}

impl Change {
    /// Compares a figure of two results. The verdict is that on their ranges; [`judge_turns`]
    /// judges the turns of all figures.
    fn of(name: &str, unit: &str, a: &Figure, b: &Figure) -> Change {
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
        let has_turns = !a.turns.is_empty() && !b.turns.is_empty();
        let by_chance = has_turns.then(|| by_chance(&a.turns, &b.turns));
        let (figure, unit) = (name.to_string(), unit.to_string());
        Change { figure, unit, a: a.clone(), b: b.clone(), percent, by_chance, verdict }
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
        Some(Change::of(name, unit, one, other))
    });
    let mut changes: Vec<Change> = both.collect();
    let mut notes: Vec<String> = judge_turns(&mut changes).into_iter().collect();
    for (name, of) in names.into_iter().zip([a, b]) {
        if of.kind == "latency" && of.turn_intervals.is_none() {
            notes.push(format!(
                "{name} is from an earlier version and has only the range of its turns: record it \
                 again (tickless latency --format json) to judge smaller moves, and missed and max"
            ));
        }
    }
    let others = a.other_threads.zip(b.other_threads);
    let is_unlike = |(a, b): &(f64, f64)| a.max(*b) > OTHERS_RATIO_MAX * a.min(*b) + 0.5;
    if let Some((a, b)) = others.filter(is_unlike) {
        changes.iter_mut().for_each(|change| change.verdict = Verdict::Unknown);
        notes.push(format!(
            "{a:.1} threads of other programs ran or waited for a CPU in the first, {b:.1} in the \
             second: what moved may be due to that. Measure both beside the same work"
        ));
    }
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
        notes,
        shows_all: false,
    }
}

/// Judges the figures whose turns are known. All of them together raise no more false alarms than
/// [`FALSE_ALARMS_MAX`]. Returns how many turns a verdict takes, if there are fewer.
fn judge_turns(changes: &mut [Change]) -> Option<String> {
    let figures = changes.iter().filter(|change| change.by_chance.is_some()).count();
    let share = FALSE_ALARMS_MAX / figures as f64;
    let mut least = None;
    for change in changes.iter_mut().filter(|change| change.by_chance.is_some()) {
        let is_small = change.by_chance <= Some(share);
        let turns = [&change.a, &change.b].map(|it| it.turns.len());
        let (a, b) = (change.a.value, change.b.value);
        let is_large = a.max(b) >= MOVED_MIN_RATIO * a.min(b);
        change.verdict = match b.total_cmp(&a) {
            Ordering::Greater if is_small && is_large => Verdict::Grew,
            Ordering::Less if is_small && is_large => Verdict::Shrank,
            Ordering::Equal => Verdict::Same,
            _ if by_chance_least(turns[0], turns[1]) > share => {
                least = least.max(Some(turns[0].min(turns[1])));
                Verdict::Unknown
            }
            _ => Verdict::Same,
        };
    }
    let needed = (1..).find(|&turns| by_chance_least(turns, turns) <= share)?;
    least.map(|turns| {
        format!(
            "{turns} turns are too few to judge {figures} figures; it takes {needed}, each of 200 \
             wakeups or more. Measure for longer (-D, -l), or fewer sleepers (--sleeper)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn figure([low, value, high]: [f64; 3]) -> Figure {
        Figure { low, high, ..Figure::exact(value) }
    }

    #[test]
    fn a_figure_has_moved_if_it_is_farther_than_both_spreads() {
        let of = |a, b| Change::of("f", "ns", &figure(a), &figure(b));
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
        let unsure = Change::of("f", "ns", &figure(low), &single);
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
    }

    /// Turns with this p50 in us, their p99 five times that, no missed interval, and this maximum.
    fn turns(p50_us: &[f64], max_us: f64) -> Results {
        let turn = |us: &f64| {
            json!({"p50": us * 1e3, "p99": us * 5e3, "max": max_us * 1e3,
                "samples": 200, "missed": 0})
        };
        let by_turn: Vec<_> = p50_us.iter().map(turn).collect();
        let row = json!({"sleeper": "timerfd", "turns": p50_us.len(), "by_turn": by_turn,
            "p50": 1, "p99": 1, "max": 1, "missed": 0});
        Results::of(&json!([row])).unwrap()
    }

    fn verdicts(comparison: &Comparison) -> BTreeMap<&str, Verdict> {
        let changes = comparison.changes.iter();
        changes.map(|it| (it.figure.strip_prefix("timerfd.").unwrap(), it.verdict)).collect()
    }

    const BEFORE: [f64; 10] = [10.0, 10.2, 9.8, 10.1, 9.9, 10.3, 9.7, 10.4, 9.6, 10.0];

    /// Goal: results that were measured for the same time are compared, also if a turn took longer.
    #[test]
    fn a_turn_that_was_held_up_does_not_make_turns_longer() {
        let turn = |samples: u64| json!({"samples": samples, "missed": 20});
        let by_turn = [180, 215, 180, 176].map(turn);
        let results = Results::of(&json!([{"sleeper": "timerfd", "by_turn": by_turn}])).unwrap();
        assert_eq!(results.turn_intervals, Some(200.0));
    }

    /// Goal: a turn that was disturbed, in either result, hides no shift; what is the same is not
    /// said to have moved; a maximum and missed intervals are judged, too.
    #[test]
    fn one_odd_turn_hides_no_shift() {
        let mut after = BEFORE.map(|us| us * 6.3);
        (after[3], after[7]) = (9.0, 900.0);
        let moved = compare(["a", "b"], &turns(&BEFORE, 90.0), &turns(&after, 400.0));
        let found = verdicts(&moved);
        assert!(["p50", "p99", "max"].iter().all(|key| found[key] == Verdict::Grew), "{moved:?}");
        assert_eq!(found["missed"], Verdict::Same);
        assert!(moved.changes[0].is_worse_by(300.0) && moved.notes.is_empty(), "{moved:?}");
        let mut odd = BEFORE;
        (odd[0], odd[9]) = (63.0, 50.0);
        let same = compare(["a", "b"], &turns(&BEFORE, 90.0), &turns(&odd, 90.0));
        assert!(verdicts(&same).values().all(|of| *of == Verdict::Same), "{same:?}");
    }

    /// Goal: at most 1 in 100 pairs without a change is said to have moved, and 95 in 100 shifts of
    /// 1.5 times are found. Method: both are drawn, always the same, from turns that were recorded.
    #[test]
    fn false_alarms_are_rare_and_shifts_are_found() {
        let recorded = include_str!("../../tests/data/latency-turns.json");
        let recorded: serde_json::Value = serde_json::from_str(recorded).unwrap();
        let mut state = 7_u64;
        let mut draw = |shifted: &str| {
            let mut sleepers = recorded.clone();
            for sleeper in sleepers.as_array_mut().unwrap() {
                let turns = sleeper["by_turn"].as_array().unwrap().clone();
                let one = |_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let mut turn = turns[(state >> 33) as usize % turns.len()].clone();
                    if let Some(ns) = turn[shifted].as_f64() {
                        turn[shifted] = json!(ns * 1.5);
                    }
                    turn
                };
                sleeper["by_turn"] = (0..20).map(one).collect();
            }
            Results::of(&sleepers).unwrap()
        };
        let moved = |a: &Results, b: &Results, key: &str| {
            let of = |change: &&Change| change.is_moved() && change.figure.ends_with(key);
            compare(["a", "b"], a, b).changes.iter().filter(of).count()
        };
        let alarms = (0..200).filter(|_| moved(&draw(""), &draw(""), "") > 0).count();
        assert!(alarms <= 2, "{alarms} of 200 pairs without a change");
        for key in ["p50", "p99"] {
            let found: usize = (0..100).map(|_| moved(&draw(""), &draw(key), key)).sum();
            assert!(found >= 2 * 95, "{key}: {found} of 200, in two sleepers");
        }
    }

    #[test]
    fn what_cannot_be_judged_says_how_to_measure_it() {
        let few = turns(&BEFORE[..3], 90.0);
        let more = turns(&BEFORE[..3].iter().map(|us| us * 9.0).collect::<Vec<_>>(), 900.0);
        let comparison = compare(["a", "b"], &few, &more);
        assert_eq!(verdicts(&comparison)["p50"], Verdict::Unknown);
        let note = "3 turns are too few to judge 4 figures; it takes 6";
        assert!(comparison.notes[0].starts_with(note), "{comparison:?}");
        let loaded = Results { other_threads: Some(9.0), ..turns(&BEFORE, 90.0) };
        let calm = Results { other_threads: Some(0.4), ..turns(&BEFORE[..9], 900.0) };
        let unlike = compare(["a", "b"], &calm, &loaded);
        assert_eq!(verdicts(&unlike)["max"], Verdict::Unknown);
        assert!(unlike.notes[0].contains("0.4 threads of other programs"), "{unlike:?}");
        let old = json!([{"sleeper": "timerfd", "p50": 10_000, "max": 90_000, "turns": 10,
            "spread": {"p50": [9_500, 10_500]}}]);
        let old = Results::of(&old).unwrap();
        let mixed = compare(["old.json", "b"], &old, &turns(&BEFORE.map(|us| us * 2.0), 9e3));
        let found = verdicts(&mixed);
        assert_eq!((found["p50"], found["max"]), (Verdict::Grew, Verdict::Unknown));
        assert!(mixed.notes[0].starts_with("old.json is from an earlier version"), "{mixed:?}");
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
            let change = Change::of(name, unit, &figure([a; 3]), &figure([b; 3]));
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
