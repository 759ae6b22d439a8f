//! The page's first table and picture: frequent operations, and what each takes with every peer.

use crate::report::{Table, number};
use serde::Deserialize;
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Deserialize)]
struct Tables {
    tables: Vec<Table>,
}

pub fn read(paths: &[PathBuf]) -> Result<Vec<Table>, String> {
    let mut all = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let Tables { tables } = serde_json::from_str(&text)
            .map_err(|error| format!("{} is not a report: {error}", path.display()))?;
        all.extend(tables);
    }
    Ok(all)
}

/// A frequent operation, a row of the table: its title, and the case and column of its figures.
type Operation = (&'static str, &'static str, &'static str);

const OPERATIONS: &[Operation] = &[
    ("push a timeout out, 100,000 pending", "W2", "100k"),
    ("push a timeout out, 1,000,000 pending", "W2", "1M"),
    ("arm a timeout and cancel it, 100,000 pending", "W1", "100k"),
    ("the same, by two threads at once", "W4", "ns per pair"),
    ("fire one timer of very many", "W3", "ns per timer"),
    ("a future that sleeps: made, polled, dropped", "W7", "1 threads"),
    ("the same, by two threads at once", "W7", "2 threads"),
    ("take a permit of a rate limiter", "W11", "taken"),
    ("the same, two threads, one limiter", "W11", "taken by 2 threads"),
];

const IN_PICTURE: usize = 5;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// Ours, for one thread.
    OneThread,
    /// Ours, for any thread.
    AnyThread,
    OneThreadFromC,
    AnyThreadFromC,
    Tokio,
    Other,
}

/// The rows that are shown: their names in the cases, their owners, and their names here.
const CONTENDERS: &[(&[&str], Owner, &str)] = &[
    (
        &["**LocalTimers**", "**LocalTimers**, one for each thread"],
        Owner::OneThread,
        "Tickless LocalTimers, one thread",
    ),
    (
        &["**Timeout**, `start_from(now, d)`", "**Timeout**, by hand"],
        Owner::AnyThread,
        "Tickless Timeout, any thread",
    ),
    (&["**LocalTimers** from C"], Owner::OneThreadFromC, "Tickless LocalTimers, from C"),
    (
        &["**Timeout** from C, `start_from(now, d)`"],
        Owner::AnyThreadFromC,
        "Tickless Timeout, from C",
    ),
    (&["**Sleep**, `future::sleep(d)`"], Owner::AnyThread, "Tickless Sleep"),
    (&["**Limiter**, `try_acquire(1)`"], Owner::AnyThread, "Tickless Limiter"),
    (
        &["tokio `Sleep`, current thread", "tokio `Sleep`, 2 workers", "tokio `sleep`, 2 workers"],
        Owner::Tokio,
        "tokio",
    ),
    (&["std BinaryHeap, lazy deletion", "std BinaryHeap in a mutex"], Owner::Other, "binary heap"),
    (&["std BTreeMap", "std BTreeMap in a mutex"], Owner::Other, "BTreeMap"),
    (&["tokio-util `DelayQueue`"], Owner::Other, "tokio-util DelayQueue"),
    (&["hierarchical_hash_wheel_timer"], Owner::Other, "hierarchical_hash_wheel_timer"),
    (&["nexus-timer `Wheel`"], Owner::Other, "nexus-timer"),
    (&["bitwheel, with failover"], Owner::Other, "bitwheel"),
    (&["async-io `Timer`"], Owner::Other, "async-io"),
    (&["libev (C)"], Owner::Other, "libev (C)"),
    (&["libevent (C)"], Owner::Other, "libevent (C)"),
    (&["Boost.Asio `steady_timer` (C++)"], Owner::Other, "Boost.Asio (C++)"),
    (&["DPDK `rte_timer` (C)"], Owner::Other, "DPDK rte_timer (C)"),
    (&["Go `AfterFunc`"], Owner::Other, "Go"),
    (&["Netty `HashedWheelTimer` (Java)"], Owner::Other, "Netty (Java)"),
    (&["Agrona `DeadlineTimerWheel` (Java)"], Owner::Other, "Agrona (Java)"),
    (&["governor, `check()`"], Owner::Other, "governor"),
    (&["leaky-bucket, `try_acquire(1)`"], Owner::Other, "leaky-bucket"),
];

#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    pub name: &'static str,
    pub whose: Owner,
    pub ns: f64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    pub title: &'static str,
    pub bars: Vec<Bar>,
}

pub fn panels(results: &[Table]) -> Vec<Panel> {
    let panels = OPERATIONS[..IN_PICTURE].iter().map(|operation| {
        let mut bars = bars(results, operation);
        bars.sort_by(|one, other| one.ns.total_cmp(&other.ns));
        Panel { title: operation.0, bars }
    });
    panels.filter(|panel| !panel.bars.is_empty()).collect()
}

fn bars(results: &[Table], &(_, case, column): &Operation) -> Vec<Bar> {
    let has_column =
        |table: &&Table| table.case == case && table.columns.iter().any(|name| name == column);
    let table = results.iter().find(has_column);
    let rows = table.into_iter().flat_map(|table| table.in_column(column));
    let bars = rows.filter_map(|(row, cell)| {
        let &(_, whose, name) = CONTENDERS.iter().find(|(rows, ..)| rows.contains(&row))?;
        Some(Bar { name, whose, ns: cell.figure.median })
    });
    bars.collect()
}

pub fn markdown(results: &[Table]) -> String {
    let mut text = String::from(
        "| ns | Tickless, one thread | Tickless, any thread | tokio | best of the others |\n\
         |---|--:|--:|--:|--:|\n",
    );
    for operation in OPERATIONS {
        let bars = bars(results, operation);
        if bars.is_empty() {
            continue;
        }
        let of = |whose| {
            let of_these = bars.iter().filter(|bar| bar.whose == whose);
            of_these.min_by(|one, other| one.ns.total_cmp(&other.ns))
        };
        let plain = |whose| of(whose).map_or_else(|| "-".into(), |bar| number(bar.ns));
        let best = of(Owner::Other)
            .map_or_else(|| "-".into(), |bar| format!("{} ({})", number(bar.ns), bar.name));
        let mut row = |title, one, any, tokio: &str, best: &str| {
            let (one, any) = (plain(one), plain(any));
            let _ = writeln!(text, "| {title} | {one} | {any} | {tokio} | {best} |");
        };
        row(operation.0, Owner::OneThread, Owner::AnyThread, &plain(Owner::Tokio), &best);
        if of(Owner::AnyThreadFromC).is_some() {
            row("the same, called from C", Owner::OneThreadFromC, Owner::AnyThreadFromC, "", "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{CASES, Choice};
    use crate::effort::Effort;
    use crate::sample::Figure;

    fn results() -> [Table; 1] {
        let mut table = Table::new("W2", "", "");
        let column = table.column("100k");
        for (row, median) in [
            ("**LocalTimers**", 13.4),
            ("**LocalTimers** from C", 14.1),
            ("**Timeout** from C, `start_from(now, d)`", 50.0),
            ("tokio `Sleep`, current thread", 184.0),
            ("libev (C)", 62.0),
            ("libevent (C)", 426.0),
            ("a variant", 1.0),
        ] {
            table.put(row, column, "ns", Figure::of(vec![median]));
        }
        table.put("DPDK `rte_timer` (C)", column, "ns", None);
        [table]
    }

    #[test]
    fn row_has_our_figures_and_the_best_of_the_others() {
        let text = markdown(&results());
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| push a timeout out, 100,000 pending | 13 | - | 184 | 62 (libev (C)) |",
                "| the same, called from C | 14 | 50 |  |  |",
            ]
        );
    }

    #[test]
    fn bars_are_sorted_and_exclude_variants() {
        let panels = panels(&results());
        let names: Vec<&str> = panels[0].bars.iter().map(|bar| bar.name).collect();
        assert_eq!(
            names,
            [
                "Tickless LocalTimers, one thread",
                "Tickless LocalTimers, from C",
                "Tickless Timeout, from C",
                "libev (C)",
                "tokio",
                "libevent (C)",
            ]
        );
    }

    /// Goal: a renamed row does not vanish from the page: every name here is a row of a case.
    #[test]
    fn every_contender_is_a_row_of_a_case() {
        let _alone = crate::tests::ONE_AT_A_TIME.lock();
        let choice = Choice::default();
        let ids: Vec<&str> = OPERATIONS.iter().map(|operation| operation.1).collect();
        let cases = CASES.iter().filter(|case| ids.contains(&case.0));
        let tables: Vec<_> = cases.flat_map(|case| case.2(&Effort::TINY, &choice)).collect();
        let foreign = crate::peers::foreign::PEERS.iter().map(|peer| peer.name);
        let rows: Vec<&str> =
            tables.iter().flat_map(|t| t.rows.iter().map(|r| &*r.name)).chain(foreign).collect();
        for (names, ..) in CONTENDERS {
            for name in *names {
                assert!(rows.contains(name), "no row is called {name}");
            }
        }
        for operation in OPERATIONS.iter().filter(|(_, _, column)| !column.ends_with(['k', 'M'])) {
            assert!(!bars(&tables, operation).is_empty(), "no column {}", operation.2);
        }
    }
}
