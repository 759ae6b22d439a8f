//! W5: how late timers fire, and what being on time costs.
//!
//! So many timers, each armed again when it fires for another 1 to 10 ms, at random. Lateness is
//! measured by the callback with `Instant::now`, against a deadline that was computed from
//! `Instant::now` when the timer was armed.

use super::Choice;
use crate::affinity;
use crate::effort::Effort;
use crate::latency::Latencies;
use crate::peers::sleepers;
use crate::report::{Cell, Table};
use crate::sample::Figure;

/// A column: its name, its unit, and which part of the outcome it shows.
type Column = (&'static str, &'static str, fn(&Latencies) -> f64);

const COLUMNS: &[Column] = &[
    ("p50", "us", |l| l.p50_us),
    ("p99", "us", |l| l.p99_us),
    ("max", "us", |l| l.max_us),
    ("CPU", "%", |l| l.cpu_percent),
    ("wakeups", "/s", |l| l.wakeups_per_s),
    ("fired", "/s", |l| l.fired_per_s),
    ("early", "", |l| l.early as f64),
];

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let (count, run, repetitions) = effort.lateness;
    let title = format!(
        "lateness of {count} timers of 1 to 10 ms, re-armed on expiry, {} s",
        run.as_secs_f64()
    );
    let about = "CPU time of the whole process; 100% is one CPU. Wakeups are voluntary context \
                 switches.";
    let mut table = Table::new("W5", &title, about);
    let columns: Vec<usize> = COLUMNS.iter().map(|(name, ..)| table.column(name)).collect();
    let peers: Vec<_> = sleepers().into_iter().filter(|peer| choice.wants(peer.name)).collect();
    let mut outcomes: Vec<Vec<Latencies>> = peers.iter().map(|_| Vec::new()).collect();
    affinity::unpin();
    for _ in 0..repetitions {
        for (peer, outcomes) in peers.iter().zip(&mut outcomes) {
            let outcome = (peer.run)(count, run);
            assert!(outcome.fired > 0, "{}: nothing fired", peer.name);
            if peer.name.starts_with("**") {
                assert_eq!(outcome.early, 0, "{}: never early (W1)", peer.name);
            }
            outcomes.push(outcome);
        }
    }
    affinity::pin(0);
    for (peer, outcomes) in peers.iter().zip(&outcomes) {
        for (&column, &(_, unit, part)) in columns.iter().zip(COLUMNS) {
            let figure = Figure::of(outcomes.iter().map(part).collect());
            table.put(peer.name, column, figure.map(|figure| Cell { figure, unit }));
        }
    }
    vec![table]
}
