//! The targets and the measured figures.
//!
//! The limits were set on a machine where an uncontended atomic add takes 3.6 ns. Each limit in ns
//! is judged twice: as it is, and as a multiple of that add, measured in the same run.

use crate::cases::clusters::{TOGETHER, VIRTUAL};
use crate::cases::idle::TICKLESS;
use crate::report::{Table, number};
use crate::sample::Figure;
use std::fmt::Write;

/// An atomic add on the machine that the limits were set on, ns.
const UNIT_NS: f64 = 3.6;

/// What is limited; the case, row and column of its figure; and the limit.
type Target = (&'static str, &'static str, &'static str, &'static str, f64);

const LOCAL: &str = "**LocalTimers**";
const SHARED: &str = "**Timeout**, `start_from(now, d)`";
const PRECISE: &str = "**HrTimer**, no slack";
const SLEEP: &str = "**Sleep**, `future::sleep(d)`";
const SLACK: &str = "**HrTimer**, 1 ms slack";

const TARGETS: &[Target] = &[
    ("arm + cancel, 1k pending", "W1", LOCAL, "1k", 9.0),
    ("arm + cancel, 100k pending", "W1", LOCAL, "100k", 9.0),
    ("arm + cancel, 1M pending", "W1", LOCAL, "1M", 9.0),
    ("arm + cancel, 1k pending", "W1", SHARED, "1k", 20.0),
    ("arm + cancel, 100k pending", "W1", SHARED, "100k", 20.0),
    ("arm + cancel, 1M pending", "W1", SHARED, "1M", 20.0),
    ("the same, 2 threads", "W4", SHARED, "ns per pair", 11.0),
    ("push out, 100k pending", "W2", LOCAL, "100k", 18.0),
    ("push out, 100k pending", "W2", SHARED, "100k", 30.0),
    ("push out, 1M pending", "W2", LOCAL, "1M", 30.0),
    ("push out, 1M pending", "W2", SHARED, "1M", 45.0),
    ("bulk expiry", "W3", LOCAL, "ns per timer", 20.0),
    ("bulk expiry", "W3", "**Timeout**, by hand", "ns per timer", 35.0),
    ("bulk expiry", "W3", "**Timeout**, by its driver", "ns per timer", 35.0),
    ("lateness, p50", "W5", PRECISE, "p50", 5.0),
    ("lateness, p99", "W5", PRECISE, "p99", 15.0),
    ("CPU of the same", "W5", PRECISE, "CPU", 28.0),
    ("CPU with slack", "W5", SLACK, "CPU", 5.0),
    ("memory", "W6", LOCAL, "heap", 64.0),
    ("memory", "W6", SHARED, "heap", 64.0),
    ("memory, and the value", "W6", LOCAL, "resident", 32.0),
    ("made, polled, dropped", "W7", SLEEP, "1 threads / tokio", 0.5),
    ("the same, 2 threads", "W7", SLEEP, "2 threads / tokio", 0.5),
    ("1 ms, p50", "W8", "**Sleep** on tokio, 2 workers", "p50", 30.0),
    ("1 ms, p50", "W8", "**Sleep** on async-io's `block_on`", "p50", 30.0),
    ("a call in a cluster, p99.99", "W14", TOGETHER, "p99.99 / apart", 2.0),
    ("a call in a cluster, longest", "W14", TOGETHER, "max / apart", 2.0),
    ("one deadline: slow calls", "W14 deadline", LOCAL, "slow calls", 0.0),
    ("one deadline: slow calls", "W14 deadline", VIRTUAL, "slow calls", 0.0),
    ("share of 100k idle timeouts", "W10", TICKLESS, "share, timed", 1.0),
];

/// Returns the table of the page; empty if no figure with a target was measured.
pub fn markdown(tables: &[Table], unit: Figure) -> String {
    let mut text = String::from(
        "\n### Targets, met and missed\n\n\
         | | | limit | measured | met | as a ratio: limit | measured | met |\n\
         |---|---|--:|--:|---|--:|--:|---|\n",
    );
    let title = text.len();
    let met = |measured, limit| if measured <= limit { "yes" } else { "**no**" };
    for &(what, case, row, column, limit) in TARGETS {
        let of_case = tables.iter().filter(|table| table.case == case);
        let mut cells = of_case.flat_map(|table| table.in_column(column));
        let Some((_, cell)) = cells.find(|(name, _)| *name == row) else { continue };
        let (measured, name) = (cell.figure.median, cell.unit);
        let (shown, is_met) = (number(measured), met(measured, limit));
        let _ = write!(
            text,
            "| {what} | {row} | {} {name} | {shown} {name} | {is_met} |",
            number(limit)
        );
        let (limit, measured) = (limit / UNIT_NS, measured / unit.median);
        let _ = match name {
            "ns" => {
                writeln!(text, " {limit:.1}x | {measured:.1}x | {} |", met(measured, limit))
            }
            _ => writeln!(text, " | | |"),
        };
    }
    if text.len() == title { String::new() } else { text }
}
