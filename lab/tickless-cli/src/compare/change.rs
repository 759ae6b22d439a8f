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
}
