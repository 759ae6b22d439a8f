//! W5: the lateness of timers, and its cost in CPU time.
//!
//! Each timer is armed again when it fires, for another 1 to 10 ms, at random. The callback
//! measures its lateness with `Instant::now`, against a deadline that was computed from
//! `Instant::now` when the timer was armed.

use super::Choice;
use crate::effort::Effort;
use crate::latency::Latencies;
use crate::peers::sleepers;
use crate::report::{Column, Table};
use crate::sample::in_turn_unpinned;

const COLUMNS: &[Column<Latencies>] = &[
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
    let peers = sleepers().into_iter().filter(|(name, _)| choice.wants(name)).collect();
    let rows = in_turn_unpinned(peers, repetitions, |name, sleeper| {
        let outcome = sleeper(count, run);
        assert!(outcome.fired_per_s > 0.0, "{name}: nothing fired");
        assert!(outcome.early == 0 || !name.starts_with("**"), "{name}: never early (W1)");
        outcome
    });
    table.put_all(COLUMNS, &rows);
    vec![table]
}
