//! Tables between snapshots: differences, groups, order, periods. Pure.

use tickless_core::time::Ns;
use tickless_top::snapshot::{Counts, Family, Process, Row, Snapshot, Source, Vote};
use tickless_top::table::{By, Sort, Table, between};

fn row(pid: u32, process: &str, function: &str, family: Family, arms: u64, cancels: u64) -> Row {
    let mut counts = Counts { arms, cancels, expiries: arms - cancels, ..Counts::default() };
    (0..arms).for_each(|_| counts.distances.add(1_000_000));
    let (process, function) = (process.to_string(), function.to_string());
    Row { pid, process, function, family, counts }
}

fn source(row: usize, period: u64, last: u64) -> Source {
    let vote = Vote { period, votes: 9, hits: 9, distances: 10, last };
    Source { row, vote }
}

fn snapshots() -> (Snapshot, Snapshot) {
    let before = Snapshot {
        at: Ns(1_000_000_000),
        rows: vec![row(7, "web", "fa", Family::Queue, 10, 5)],
        sources: vec![source(0, 1_000_000, 500)],
        own_ns: 5,
        ..Snapshot::default()
    };
    let after = Snapshot {
        at: Ns(3_000_000_000),
        rows: vec![
            row(7, "web", "fa", Family::Queue, 110, 25),
            row(7, "web", "fb", Family::Wheel, 300, 300),
            row(9, "db", "fa", Family::Queue, 50, 0),
        ],
        sources: vec![
            source(0, 1_000_000, 5_000_500),
            // Close to the phase of the first, around the end of the period.
            source(2, 1_000_000, 3_999_500),
            source(2, 1_000_000, 7_500_000),
            source(2, 50_000_000, 50_000_000),
        ],
        processes: [(7, "web", 600_000_000), (8, "cruncher", 2_000_000_000)]
            .map(|(pid, name, cpu_ns)| {
                (pid, Process { name: name.to_string(), cpu_ns, switches: u64::from(pid) })
            })
            .into(),
        own_ns: 20_000_005,
        kernel_ns: Some(40_000_000),
        sees_wakeups: true,
        ..Snapshot::default()
    };
    (before, after)
}

#[test]
fn a_table_has_the_differences() {
    let (before, after) = snapshots();
    let mut table = between(&before, &after, By::Process);
    table.sort(Sort::Armed);
    assert_eq!(table.seconds, 2.0);
    assert_eq!((table.own_percent, table.kernel_percent), (1.0, Some(2.0)));
    let web = &table.rows[0];
    assert_eq!((web.pid, web.family, web.function.as_deref()), (7, Family::Both, None));
    assert_eq!((web.arms, web.cancels, web.main_function.as_str()), (400, 320, "fb"));
    assert_eq!((web.cancelled_percent, web.distance_ns), (Some(80.0), Some(1_000_000)));
    assert_eq!((web.wakes, web.device_writes), (Some(0), None), "what is not seen is none");
    assert_eq!(table.per_second(web.arms), 200.0);
    let total = table.total();
    assert_eq!(
        (total.arms, total.cancels, total.cancelled_percent),
        (450, 320, Some(32_000.0 / 450.0))
    );
    assert_eq!((total.wakes, total.device_writes), (Some(0), None));
    assert_eq!((total.cpu_ns, total.switches), (Some(2_600_000_000), Some(15)));
    let mut callbacks = between(&before, &after, By::Callback);
    callbacks.sort(Sort::Armed);
    let functions: Vec<_> = callbacks.rows.iter().map(|row| row.function.as_deref()).collect();
    assert_eq!(functions, [Some("fb"), Some("fa"), Some("fa")]);
    assert_eq!(callbacks.timer_events, table.timer_events);
}

#[test]
fn rows_are_sorted_and_filtered() {
    let (before, after) = snapshots();
    let mut table = between(&before, &after, By::Process);
    for (by, names) in [
        (Sort::Process, ["cruncher", "db", "web"]),
        (Sort::Gone, ["web", "db", "cruncher"]),
        (Sort::Fired, ["web", "db", "cruncher"]),
        (Sort::Ahead, ["web", "db", "cruncher"]),
        (Sort::Cpu, ["cruncher", "web", "db"]),
        (Sort::Switch, ["cruncher", "web", "db"]),
    ] {
        table.sort(by);
        assert!(table.rows.iter().map(|row| &row.process).eq(names), "{by:?}");
    }
    for (text, left) in [("we", 1), ("9", 1), ("fb", 1), ("none", 0), ("b", 2)] {
        let mut few = table.clone();
        few.filter(text);
        assert_eq!(few.rows.len(), left, "{text}");
    }
}

#[test]
fn timers_of_one_period_meet() {
    let (mut before, after) = snapshots();
    let table = between(&before, &after, By::Callback);
    let periods = |table: &Table, pid| -> Vec<(u64, u64, u64)> {
        let rows = table.rows.iter().filter(|row| row.pid == pid);
        rows.flat_map(|row| &row.periods)
            .map(|period| (period.period_ns, period.timers, period.meeting))
            .collect()
    };
    assert_eq!(periods(&table, 7), [(1_000_000, 1, 1)]);
    let web = table.rows.iter().find(|row| row.pid == 7 && !row.periods.is_empty()).unwrap();
    assert!(web.periods[0].with.iter().eq(["db (9)"]), "{web:?}");
    assert!(table.rows.iter().all(|row| row.cpu_ns.is_none()), "a callback has no time of its own");
    assert_eq!(periods(&table, 9), [(1_000_000, 2, 1), (50_000_000, 1, 0)]);
    before.sources = after.sources.clone();
    let still = between(&before, &after, By::Callback);
    assert!(still.rows.iter().all(|row| row.periods.is_empty()));
}
