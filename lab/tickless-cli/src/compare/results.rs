//! Reads figures (measured or computed numbers) and their ranges over repeated measurements from
//! the JSON files that this program prints.

use super::others;
use crate::command::Failure;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use tickless_lab::measure::Spread;

/// A figure: the median, the smallest and the greatest value. All are equal after one measurement.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Figure {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// Whether two different values of this figure show a change: it is a count or a simulated
    /// figure, which the same input always gives, or it has at least [`REPETITIONS_MIN`]
    /// repetitions.
    #[serde(skip)]
    pub(super) is_certain: bool,
    /// The values of all turns, if they are known.
    #[serde(skip)]
    pub(super) turns: Vec<f64>,
}

/// With fewer repetitions, the spread of a figure says too little. If two groups of four values
/// come from one distribution, the two groups do not overlap in one case of 35.
const REPETITIONS_MIN: u64 = 4;

impl Figure {
    pub(super) fn exact(value: f64) -> Figure {
        Figure { value, low: value, high: value, is_certain: true, turns: Vec::new() }
    }

    pub(super) fn once(value: f64) -> Figure {
        Figure { is_certain: false, ..Figure::exact(value) }
    }

    fn of_turns(turns: Vec<f64>) -> Figure {
        let Spread { median: value, low, high, .. } = Spread::of(turns.iter().copied());
        Figure { value, low, high, is_certain: true, turns }
    }
}

#[derive(Debug)]
pub(super) struct Results {
    pub(super) kind: &'static str,
    pub(super) figures: BTreeMap<String, (String, Figure)>,
    /// How many intervals a turn of the first sleeper has, usually: one that is held up at its end
    /// has more.
    pub(super) turn_intervals: Option<f64>,
    /// How many threads of others ran or waited for a CPU, on average.
    pub(super) other_threads: Option<f64>,
}

impl Results {
    pub(super) fn read(path: &Path) -> Result<Results, Failure> {
        let file = path.display();
        let text = tickless_lab::input::read(path).map_err(|error| {
            Failure::new(format_args!("{file}: cannot be read ({error}). Check its name"))
        })?;
        if text.trim_ascii().is_empty() {
            return Err(Failure::new(format_args!(
                "{file}: the file is empty: the run that should have written it failed"
            )));
        }
        if let Some((kind, found)) = std::str::from_utf8(&text).ok().and_then(others::text) {
            let found = found.map_err(|why| Failure::new(format_args!("{file}: {why}")))?;
            return Ok(Results::new(kind, found));
        }
        let document: Value = serde_json::from_slice(&text).map_err(|error| {
            Failure::new(format_args!(
                "{file}: not JSON ({error}). Give report.json, what `--format json` prints, or \
                 what cyclictest -h or rtla timerlat hist print"
            ))
        })?;
        Results::of(&document).ok_or_else(|| {
            Failure::new(format_args!(
                "{file}: no results that can be compared. Give report.json, or what study, \
                 latency or replay print with --format json"
            ))
        })
    }

    /// Finds out which command has written a document, and reads its figures.
    pub(super) fn of(document: &Value) -> Option<Results> {
        let has = |key: &str| document.get(key).is_some();
        let (kind, found) = if has("studies") {
            ("report", report(document))
        } else if has("cells") {
            ("study", study(document, ""))
        } else if has("policies") {
            ("replay", replay(document))
        } else if document.get(0).is_some_and(|one| one.get("by_turn").is_some()) {
            ("latency", latency(document))
        } else {
            ("cyclictest", others::cyclictest_json(document)?)
        };
        let intervals = |turn: &Value| Some(turn["samples"].as_f64()? + turn["missed"].as_f64()?);
        let turn_intervals = median(elements(&document[0]["by_turn"]).filter_map(intervals));
        let others = elements(document).filter_map(|it| it["other_threads"].as_f64());
        let other_threads = median(others);
        Some(Results { turn_intervals, other_threads, ..Results::new(kind, found) })
    }

    fn new(kind: &'static str, found: Found) -> Results {
        let figures = found.into_iter().map(|(name, unit, figure)| (name, (unit, figure)));
        Results { kind, figures: figures.collect(), turn_intervals: None, other_threads: None }
    }
}

pub(super) type Found = Vec<(String, String, Figure)>;

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or("?").to_string()
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn report(document: &Value) -> Found {
    let of = |done: &Value| -> Found {
        let worlds = ["sim", "live"].into_iter();
        let name = text(done, "study");
        let found =
            worlds.flat_map(|world| study(&done[world]["result"], &format!("{name}.{world}.")));
        found.collect()
    };
    elements(&document["studies"]).flat_map(of).collect()
}

/// Reads the figures of a study. A live figure is only certain if it was measured several times.
fn study(result: &Value, prefix: &str) -> Found {
    let cell = |cell: &Value| {
        let number = |key: &str| cell[key].as_f64();
        let (value, low, high) = (number("value")?, number("low")?, number("high")?);
        let name = format!("{prefix}{}", text(cell, "id"));
        let is_repeated = cell["repetitions"].as_u64() >= Some(REPETITIONS_MIN);
        let is_certain = is_repeated || cell["role"] != "live";
        let figure = Figure { low, high, is_certain, ..Figure::exact(value) };
        Some((name, text(cell, "unit"), figure))
    };
    elements(&result["cells"]).filter_map(cell).collect()
}

fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    Some(Spread::of(values).median).filter(|it| it.is_finite())
}

/// Returns the figures of `latency`, each with the values of its turns.
fn latency(document: &Value) -> Found {
    const FIGURES: [(&str, &str); 8] = [
        ("min", "ns"),
        ("avg", "ns"),
        ("p50", "ns"),
        ("p99", "ns"),
        ("p999", "ns"),
        ("max", "ns"),
        ("missed", "intervals"),
        ("cpu_percent", "%"),
    ];
    let of = |sleeper: &Value| -> Found {
        let name = text(sleeper, "sleeper");
        let figure = |(key, unit): (&str, &str)| {
            let turns = elements(&sleeper["by_turn"]);
            let turns: Vec<f64> = turns.filter_map(|turn| turn[key].as_f64()).collect();
            let figure = (!turns.is_empty()).then(|| Figure::of_turns(turns))?;
            Some((format!("{name}.{key}"), unit.to_string(), figure))
        };
        FIGURES.into_iter().filter_map(figure).collect()
    };
    elements(document).flat_map(of).collect()
}

/// Returns the figures of `replay`. Counts are divided by the duration of the trace, so that traces
/// of different lengths can be compared. The lateness of a few timers of a trace is uncertain.
fn replay(document: &Value) -> Found {
    const COUNTS: [&str; 3] = ["device_writes", "wakeups", "spurious_wakeups"];
    const LATENESS: [&str; 3] = ["p50", "p99", "max"];
    let seconds = document["trace"]["seconds"].as_f64().filter(|seconds| *seconds > 0.0);
    let rate = |count: &Value| Some(Figure::exact(count.as_f64()? / seconds?));
    let mut found = Found::new();
    for policy in elements(&document["policies"]) {
        let name = text(policy, "policy");
        for key in COUNTS {
            let figure = rate(&policy[key]);
            found.extend(figure.map(|figure| (format!("{name}.{key}"), "/s".into(), figure)));
        }
        for key in LATENESS {
            let figure = policy["lateness_ns"][key].as_f64();
            let figure = figure.map(if key == "p50" { Figure::exact } else { Figure::once });
            let name = format!("{name}.lateness.{key}");
            found.extend(figure.map(|figure| (name, "ns".into(), figure)));
        }
    }
    for key in ["device_writes", "timer_interrupts", "expirations"] {
        let figure = rate(&document["trace"]["recorded"][key]);
        found.extend(figure.map(|figure| (format!("recorded.{key}"), "/s".into(), figure)));
    }
    found
}
