//! One figure with what it was computed from: a row of the table that `tickless sweep` prints, and
//! of the tables in Python.
//!
//! All rows have the same columns. A column that does not apply is empty. `docs/book/src/json.md`
//! lists the columns with types and units.

use serde::Serialize;
use tickless_machine::spec::Spec;
use tickless_trace::replay::Summary;

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Row {
    pub version: String,
    pub study: Option<String>,
    pub machine: Option<String>,
    pub machine_hash: Option<String>,
    pub trace: Option<String>,
    pub cpus: Option<i64>,
    pub policy: Option<String>,
    pub clock: Option<String>,
    pub hz: Option<i64>,
    pub seed: Option<i64>,
    pub figure: Option<String>,
    pub unit: Option<String>,
    pub role: Option<String>,
    pub value: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub error: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figure {
    pub figure: String,
    pub policy: Option<String>,
    pub unit: String,
    /// The figure's origin: `calibrated` (a number of the machine was fitted to it), `implied` (a
    /// formula gives it), `predicted` (by simulation) or `live` (without a simulated machine).
    pub role: String,
    pub value: Option<f64>,
    /// The smallest and the greatest value of several runs, if they differ.
    pub spread: Option<[Option<f64>; 2]>,
}

impl Figure {
    /// Makes a figure from a single value. A value that is not finite is left empty.
    pub fn once(
        figure: impl Into<String>,
        unit: impl Into<String>,
        role: impl Into<String>,
        value: f64,
    ) -> Figure {
        let value = value.is_finite().then_some(value);
        let (figure, unit, role) = (figure.into(), unit.into(), role.into());
        Figure { figure, policy: None, unit, role, value, spread: None }
    }

    pub(crate) fn predicted(
        figure: impl Into<String>,
        unit: impl Into<String>,
        value: f64,
    ) -> Figure {
        Figure::once(figure, unit, "predicted", value)
    }

    #[must_use]
    pub fn under(mut self, policy: &str) -> Figure {
        self.policy = Some(policy.to_string());
        self
    }

    /// Returns the figures of a replayed trace, and what was recorded beside them.
    pub fn of_replay(summary: &Summary) -> Vec<Figure> {
        let live = |name: &str, unit: &str, value: f64| Figure::once(name, unit, "live", value);
        let trace = &summary.trace;
        let mut figures = vec![
            live("seconds", "s", trace.seconds),
            live("trace_cpus", "CPUs", trace.cpus.into()),
            live("armed", "timers", summary.operations.start as f64),
            live("cancelled_percent", "%", summary.cancelled_percent),
            live("inferred_operations", "operations", summary.inferred_operations as f64),
            live("skipped_lines", "lines", summary.skipped_lines as f64),
            live("dropped_events", "events", summary.dropped_events as f64),
        ];
        figures.extend(trace.hz.map(|hz| live("trace_hz", "1/s", hz.into())));
        let recorded = [
            ("device_writes", "writes", trace.recorded.device_writes),
            ("wakeups", "wakeups", trace.recorded.timer_interrupts),
            ("expirations", "timers", Some(trace.recorded.expirations)),
        ];
        figures.extend(recorded.into_iter().filter_map(|(name, unit, count)| {
            Some(live(name, unit, count? as f64).under("recorded"))
        }));
        for result in &summary.policies {
            let late = result.lateness_ns;
            let replayed = [
                ("device_writes", "writes", result.device_writes),
                ("inferred_writes", "writes", result.inferred_writes),
                ("wakeups", "wakeups", result.wakeups),
                ("expirations", "timers", result.expirations),
                ("spurious_wakeups", "wakeups", result.spurious_wakeups),
                ("early", "timers", result.early),
                ("lateness_p50", "ns", late.p50),
                ("lateness_p99", "ns", late.p99),
                ("lateness_max", "ns", late.max),
            ];
            figures.extend(replayed.into_iter().map(|(name, unit, value)| {
                Figure::predicted(name, unit, value as f64).under(result.policy)
            }));
        }
        figures
    }
}

impl Row {
    /// The columns of what was computed by this version on a simulated machine.
    pub fn on(machine: &Spec, cpus: u16, seed: u64) -> Row {
        Row {
            machine: Some(machine.name.clone()),
            machine_hash: Some(format!("{:016x}", machine.fingerprint())),
            cpus: Some(cpus.into()),
            seed: Some(i64::try_from(seed).unwrap_or(i64::MAX)),
            ..Row::of_version()
        }
    }

    pub fn of_version() -> Row {
        Row { version: VERSION.to_string(), ..Row::default() }
    }

    /// Returns a row with these columns for each figure, or one with the error.
    pub fn rows(&self, figures: Result<Vec<Figure>, String>) -> Vec<Row> {
        let row = |figure: Figure| {
            let [low, high] = figure.spread.unwrap_or([figure.value; 2]);
            Row {
                policy: figure.policy.or_else(|| self.policy.clone()),
                figure: Some(figure.figure),
                unit: Some(figure.unit),
                role: Some(figure.role),
                value: figure.value,
                low,
                high,
                ..self.clone()
            }
        };
        match figures {
            Ok(figures) => figures.into_iter().map(row).collect(),
            Err(error) => vec![Row { error: Some(error), ..self.clone() }],
        }
    }
}
