//! The replay of one machine's trace, under the three policies `eager`, `lazy` and `restart-aware`.

use crate::simulate::catch;
use serde::Serialize;
use std::path::Path;
use tickless_core::time::Ns;
use tickless_trace::Trace;
use tickless_trace::replay::{Inference, ReplayPolicy, Summary, summarise};

/// Rates of a shorter trace are not those of its machine: it has hardly more than a tick.
const SPAN_MIN: Ns = Ns::from_ms(10);

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Machine {
    pub trace: String,
    pub figures: Option<Figures>,
    pub error: Option<String>,
    /// What is wrong with the trace, although it can be used.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
pub struct Figure {
    pub name: &'static str,
    pub unit: &'static str,
    pub about: &'static str,
    pub of: fn(&Figures) -> f64,
}

/// Declares [`Figures`], and [`FIGURES`] with the numbers that are compared between machines.
macro_rules! figures {
    ($($name:ident, $unit:literal, $about:literal;)*) => {
        /// The numbers that describe a machine's use of timers. Rates are for each CPU and second.
        #[derive(Clone, PartialEq, Debug, Default, Serialize)]
        pub struct Figures {
            pub cpus: u16,
            pub seconds: f64,
            $(pub $name: f64,)*
            pub arms_most: String,
            pub arms_most_percent: f64,
        }

        pub const FIGURES: &[Figure] = &[$(Figure {
            name: stringify!($name),
            unit: $unit,
            about: $about,
            of: |figures| figures.$name,
        }),*];
    };
}

figures! {
    device_writes_per_cpu_s, "writes/s", "device writes";
    wakeups_per_cpu_s, "wakeups/s", "wakeups";
    spurious_wakeups_per_cpu_s, "wakeups/s", "wakeups for nothing";
    eager_writes_per_cpu_s, "writes/s", "writes under eager";
    lazy_writes_per_cpu_s, "writes/s", "writes under lazy";
    restart_aware_writes_per_cpu_s, "writes/s", "writes under restart-aware";
    lazy_wakeups_per_cpu_s, "wakeups/s", "wakeups under lazy";
    armed_per_cpu_s, "timers/s", "armings";
    cancelled_percent, "%", "armings that did not fire";
}

impl Machine {
    /// Reads and replays a machine's trace. An error becomes a part of the result.
    pub(super) fn read(path: &Path) -> Machine {
        let trace = path.display().to_string();
        let mut notes = Vec::new();
        let read = || {
            let trace = Trace::read(path).map_err(|error| error.to_string())?;
            if let Some(damage) = trace.problems.damage().next() {
                return Err(format!("damaged: {}", damage.message(&trace.path)));
            }
            if trace.span() < SPAN_MIN {
                return Err(format!(
                    "{}: {} us are too short for rates. Record for a second or longer",
                    path.display(),
                    trace.span().0 / 1_000
                ));
            }
            notes.extend(trace.messages());
            let summary = summarise(&trace, &ReplayPolicy::DEFAULT, Inference::On);
            Figures::of(&summary).ok_or_else(|| format!("{}: no time passes in it", path.display()))
        };
        match catch(&format!("{trace}: the replay"), read) {
            Ok(figures) => Machine { trace, figures: Some(figures), error: None, notes },
            Err(error) => Machine::failed(trace, error),
        }
    }

    pub(super) fn failed(trace: String, error: String) -> Machine {
        // A table cell has only one line.
        let lines: Vec<&str> = error.lines().map(str::trim).collect();
        Machine { trace, figures: None, error: Some(lines.join("; ")), notes: Vec::new() }
    }
}

impl Figures {
    /// Computes the numbers from a replay under `eager`, `lazy` and `restart-aware`; `None` if one
    /// of these is missing or the trace's duration is zero.
    fn of(summary: &Summary) -> Option<Figures> {
        let of = |policy: ReplayPolicy| {
            summary.policies.iter().find(|result| result.policy == policy.name())
        };
        let [eager, lazy, aware] =
            [ReplayPolicy::Eager, ReplayPolicy::Lazy, ReplayPolicy::RestartAware].map(of);
        let (eager, lazy, aware) = (eager?, lazy?, aware?);
        let trace = &summary.trace;
        let time = f64::from(trace.cpus) * trace.seconds * trace.seen_percent / 100.0;
        if time <= 0.0 {
            return None;
        }
        let writes = trace.recorded.device_writes.unwrap_or(aware.device_writes);
        let wakeups = trace.recorded.timer_interrupts.unwrap_or(aware.wakeups);
        let rate = |count: u64| count as f64 / time;
        let armed = summary.operations.start;
        let most = summary.top_functions.first();
        let share = |starts: u64| 100.0 * starts as f64 / armed.max(1) as f64;
        Some(Figures {
            cpus: trace.cpus,
            seconds: trace.seconds,
            device_writes_per_cpu_s: rate(writes),
            wakeups_per_cpu_s: rate(wakeups),
            spurious_wakeups_per_cpu_s: rate(aware.spurious_wakeups),
            eager_writes_per_cpu_s: rate(eager.device_writes),
            lazy_writes_per_cpu_s: rate(lazy.device_writes),
            restart_aware_writes_per_cpu_s: rate(aware.device_writes),
            lazy_wakeups_per_cpu_s: rate(lazy.wakeups),
            armed_per_cpu_s: rate(armed),
            cancelled_percent: summary.cancelled_percent,
            arms_most: most.map(|most| most.function.clone()).unwrap_or_default(),
            arms_most_percent: most.map_or(0.0, |most| share(most.starts)),
        })
    }
}
