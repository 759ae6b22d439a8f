//! Compares the counts of recorded traces with their events.

use std::collections::HashSet;
use std::io::Cursor;
use std::path::PathBuf;
use tickless_core::time::Ns;
use tickless_top::snapshot::{Counts, Family, Snapshot};
use tickless_top::tally::{Clocks, Tally};
use tickless_trace::Trace;
use tickless_trace::read::{Event, EventKind, Record};

const TICK: Ns = Ns(4_000_000);

fn count(trace: &Trace) -> Snapshot {
    let mut tally = Tally::new(Clocks { tick: TICK, realtime_ahead: Ns(0) });
    for record in trace.records.iter() {
        tally.count(&record, &trace.names, &mut |pid| pid);
    }
    let mut name = |pid: u32| match trace.tasks.get(&pid) {
        Some(name) if pid != 0 => name.to_string(),
        _ => "kernel".to_string(),
    };
    tally.snapshot(trace.records.last().unwrap().time, &trace.names, &mut name)
}

fn sum(snapshot: &Snapshot) -> Counts {
    snapshot.rows.iter().fold(Counts::default(), |sum, row| sum.plus(&row.counts))
}

#[test]
fn rows_add_up_to_the_trace() {
    for name in ["idle", "nginx", "pipe-one-cpu", "pipe-two-cpus", "two-groups-aligned"] {
        let path = format!("{}/../../traces/{name}.txt.gz", env!("CARGO_MANIFEST_DIR"));
        let trace = Trace::read(&PathBuf::from(path)).unwrap();
        let snapshot = count(&trace);
        let all = sum(&snapshot);
        let of = |kinds: &[EventKind]| kinds.iter().map(|kind| trace.count(*kind) as u64).sum();
        let arms: u64 = of(&[EventKind::TimerStart, EventKind::HrtimerStart]);
        let expiries: u64 = of(&[EventKind::TimerExpireEntry, EventKind::HrtimerExpireEntry]);
        let writes = trace.records.iter().filter(|one| one.event.is_device_write()).count() as u64;
        assert_eq!((all.arms, all.expiries), (arms, expiries), "{name}");
        // Cancels of timers that were armed before the trace began are in no row.
        assert_eq!(all.cancels, cancels_of_known(&trace), "{name}");
        assert!(all.device_writes <= writes && all.device_writes * 10 >= writes * 9, "{name}");
        assert!(all.idle_wakeups <= trace.count(EventKind::LocalTimerEntry) as u64, "{name}");
        assert_eq!(all.distances.counts.iter().sum::<u64>(), arms, "{name}");
        assert!(snapshot.rows.iter().all(|row| row.function != "?" || row.pid == 0), "{name}");
    }
}

fn cancels_of_known(trace: &Trace) -> u64 {
    let mut known = HashSet::new();
    let is_known = |record: &Record| match record.event {
        Event::TimerStart { timer, .. } | Event::HrtimerStart { timer, .. } => {
            known.insert(timer);
            false
        }
        Event::TimerCancel { timer } | Event::HrtimerCancel { timer } => known.contains(&timer),
        _ => false,
    };
    trace.records.iter().filter(is_known).count() as u64
}

fn trace(lines: &[impl AsRef<str>]) -> Trace {
    let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
    let text = format!("# tracer: nop\n# clock=mono HZ=250\n {}\n", lines.join("\n "));
    Trace::parse("t", Cursor::new(text)).unwrap()
}

fn start(task: &str, us: u64) -> String {
    let expires = 1_004_000_000 + us * 1_000;
    format!(
        "{task} 1.{us:06}: hrtimer_start: hrtimer=01 function=fa expires={expires} \
         softexpires={expires} mode=ABS"
    )
}

fn start_wheel(task: &str, us: u64, function: &str) -> String {
    format!(
        "{task} 1.{us:06}: timer_start: timer=02 function={function} expires=108 [timeout=8] \
         cpu=0 idx=0 flags="
    )
}

fn line(task: &str, us: u64, event: &str) -> String {
    format!("{task} 1.{us:06}: {event}")
}

fn row(snapshot: &Snapshot, process: &str) -> (Family, Counts) {
    let row = snapshot.rows.iter().find(|row| row.process == process);
    row.map_or((Family::Both, Counts::default()), |row| (row.family, row.counts))
}

#[test]
fn rules_hold() {
    const A: &str = "a-7 [000] d..1.";
    const IRQ: &str = "<idle>-0 [001] d.h1.";
    let snapshot = count(&trace(&[
        // A process arms, and rearms: the cancel between is part of that.
        start(A, 1),
        line(A, 2, "hrtimer_cancel: hrtimer=01"),
        start(A, 3),
        line(A, 4, "write_msr: 6e0, value 1"),
        // Another process cancels it, on another CPU.
        line("b-8 [001] d..1.", 5, "hrtimer_cancel: hrtimer=01"),
        // In an interrupt it is armed for the process that armed it last.
        start("b-8 [000] d.h1.", 6),
        // A timer that an interrupt armed first belongs to the kernel.
        start_wheel("b-8 [001] d.h1.", 7, "fk"),
        // The first timer that expires wakes an idle CPU; the second does not.
        line(IRQ, 4_007, "local_timer_entry: vector=236"),
        line(IRQ, 4_008, "hrtimer_cancel: hrtimer=01"),
        line(IRQ, 4_009, "hrtimer_expire_entry: hrtimer=01 function=fa now=1004007000"),
        line(IRQ, 4_010, "hrtimer_expire_entry: hrtimer=09 function=fb now=1004007000"),
        line(IRQ, 4_011, "write_msr: 6e0, value 1"),
    ]));
    let (family, a) = row(&snapshot, "a");
    assert_eq!(family, Family::Queue);
    assert_eq!((a.arms, a.rearms, a.expiries, a.idle_wakeups), (3, 1, 1, 1));
    // Of three cancels one was part of a rearming, and one of the expiry.
    assert_eq!((a.cancels, a.cancelled()), (3, 1));
    assert_eq!(a.device_writes, 1);
    assert_eq!(a.distances.typical_ns(), Some(4_000_000));
    let (family, kernel) = row(&snapshot, "kernel");
    assert_eq!((family, kernel.arms), (Family::Wheel, 1));
    assert_eq!(kernel.distances.typical_ns(), Some(8 * TICK.0));
    assert_eq!(row(&snapshot, "b").1, Counts::default());
}

#[test]
fn a_coarse_timer_in_the_tick_wakes_the_cpu() {
    const IRQ: &str = "<idle>-0 [000] d.h1.";
    const SOFT: &str = "<idle>-0 [000] d.s1.";
    let tick = "hrtimer_expire_entry: hrtimer=05 function=tick_nohz_handler now=1032001000";
    let lines = [
        start_wheel("a-7 [000] d..1.", 1, "fw"),
        line(IRQ, 32_001, "local_timer_entry: vector=236"),
        line(IRQ, 32_002, tick),
        line(IRQ, 32_003, "local_timer_exit: vector=236"),
        line(SOFT, 32_004, "timer_cancel: timer=02"),
        line(SOFT, 32_005, "timer_expire_entry: timer=02 function=fw now=108 baseclk=108"),
    ];
    let woken = count(&trace(&lines));
    assert_eq!(row(&woken, "a").1.idle_wakeups, 1, "{:?}", woken.rows);
    assert_eq!(row(&woken, "kernel").1.idle_wakeups, 0);
    let alone = count(&trace(&lines[..4]));
    assert_eq!(row(&alone, "kernel").1.idle_wakeups, 1);
}
