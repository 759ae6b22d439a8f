//! Replays the committed recordings: every count, and the agreement with the kernel.

use crate::support::{
    SAMPLES, all, assert_documented, older_kernel, parsed, replay, replay_with, sample_text,
    text_without, wakeups, without_flags,
};
use tickless_trace::read::EventKind;
use tickless_trace::replay::{Inference, Summary, other_ticks};

/// One policy's counts: device writes, writes of inferred operations, wakeups, spurious, fired.
type Counts = [u64; 5];

/// The results of each sample under eager, lazy and restart-aware. A change here changes the tool's
/// output: explain it in the commit, then copy what the test prints.
#[rustfmt::skip]
const COUNTS: [(&str, [Counts; 3]); 5] = [
    ("idle", [[1043, 48, 563, 0, 658], [999, 12, 794, 231, 658], [1018, 37, 563, 0, 658]]),
    ("nginx", [[320, 0, 179, 0, 236], [192, 0, 185, 6, 236], [320, 0, 179, 0, 236]]),
    ("pipe-one-cpu", [[700, 91, 698, 0, 754], [782, 0, 781, 83, 754], [700, 82, 698, 0, 754]]),
    ("pipe-two-cpus", [[69, 0, 57, 0, 67], [61, 0, 59, 2, 67], [69, 0, 57, 0, 67]]),
    ("two-groups-aligned",
        [[1242, 39, 1150, 0, 1260], [1262, 1, 1224, 74, 1260], [1236, 32, 1150, 0, 1260]]),
];

fn counts(summary: &Summary) -> [Counts; 3] {
    all(summary, |result| {
        [
            result.device_writes,
            result.inferred_writes,
            result.wakeups,
            result.spurious_wakeups,
            result.expirations,
        ]
    })
}

fn off_percent(summary: &Summary) -> f64 {
    summary.agreement.as_ref().unwrap().off_percent
}

#[test]
fn counts_are_unchanged() {
    let now = SAMPLES.map(|name| {
        let (one, again) = (replay(&sample_text(name)), replay(&sample_text(name)));
        let json = |summary| serde_json::to_string(summary).unwrap();
        assert_eq!(json(&one), json(&again), "{name}");
        (name, counts(&one))
    });
    assert_eq!(now, COUNTS, "now:\n{now:?}");
}

#[test]
fn documented_agreement_is_current() {
    for name in SAMPLES {
        let text = sample_text(name);
        let (on, off) = (replay(&text), replay_with(&text, Inference::Off));
        let agreement = on.agreement.as_ref().unwrap();
        let (recorded, aware) = (&on.trace.recorded, &on.policies[2]);
        let row = format!(
            "| {name} | {} | {} | {} / {} | {} / {} | {} | {:+.1} | {:+.1} |",
            agreement.recorded,
            agreement.replayed,
            aware.wakeups,
            recorded.timer_interrupts.unwrap(),
            aware.expirations,
            recorded.expirations,
            on.inferred_operations,
            off_percent(&on),
            off_percent(&off),
        );
        assert_documented(&row);
        assert_eq!(all(&on, |result| result.early), [0; 3], "{name}");
        let [_, lazy, late] = all(&on, |result| result.queue_lateness_ns.unwrap());
        assert!(lazy.p99 <= late.p99, "{name}: lazy is later, {lazy:?}");
        let kernel = recorded.queue_lateness_ns.unwrap();
        assert_eq!((late.p99, late.max), (kernel.p99, kernel.max), "{name}");
    }
}

/// Goal: the two recorded groups are found, 0.11 ms apart (traces/README.md), which expire together
/// every time, and would be half a period apart if spread; other timers are not found.
#[test]
fn period_timers_that_expire_together_are_found() {
    let summary = replay(&sample_text("two-groups-aligned"));
    let found: Vec<&str> = summary.overlap.iter().map(|group| group.function.as_str()).collect();
    assert_eq!(found, ["tick_nohz_handler", "sched_cfs_period_timer"]);
    let groups = &summary.overlap[1];
    assert_eq!((groups.period_ns, groups.expirations, groups.together), (100_000_000, 62, 62));
    assert_eq!(groups.recorded.phases_ns, [55_536_148, 55_650_907]);
    assert_eq!((groups.recorded.gap_min_ns, groups.recorded.together_timers), (114_759, 2));
    assert_eq!((groups.spread.gap_min_ns, groups.spread.together_timers), (50_000_000, 0));
    // The ticks of two CPUs, mostly stopped, are not periodic.
    assert!(replay(&sample_text("idle")).overlap.is_empty());
}

/// Goal: records that other kernels and tools do not print change the result little. Method: remove
/// them from the samples; `off` may be this many percent.
#[test]
fn less_detailed_traces_change_results_little() {
    let no_interrupts = |text: &str| text_without(text, "local_timer_");
    type Poorer<'a> = (&'a str, f64, &'a dyn Fn(&str) -> String);
    let ways: [Poorer<'_>; 6] = [
        ("no interrupts", 0.1, &no_interrupts),
        ("no flags column", 0.1, &without_flags),
        ("neither", 0.1, &|text| without_flags(&no_interrupts(text))),
        ("no ends of interrupts", 0.1, &|text| text_without(text, "local_timer_exit")),
        ("no wheel", 0.1, &|text| text_without(text, ": timer_")),
        ("an older kernel", 4.5, &older_kernel),
    ];
    for name in SAMPLES {
        let text = sample_text(name);
        let want = replay(&text);
        for (way, off_max, poorer) in ways {
            let summary = replay(&poorer(&text));
            let off = off_percent(&summary);
            assert!(off.abs() <= off_max, "{name}, {way}: {off}");
            assert_eq!(wakeups(&summary), wakeups(&want), "{name}, {way}");
            assert_eq!(all(&summary, |result| result.early), [0; 3], "{name}, {way}");
        }
    }
}

#[test]
fn documented_ticks_are_current() {
    for name in SAMPLES {
        let trace = parsed(sample_text(name));
        let found = other_ticks(&trace, Inference::On, &[250, 1_000]).unwrap();
        for results in found.chunks(2) {
            assert!(results[0].wakeups <= results[1].wakeups, "{name}: {results:?}");
        }
        let cells = found.iter().map(|of| format!(" {} / {} |", of.device_writes, of.wakeups));
        let writes = trace.device_writes().count();
        let interrupts = trace.count(EventKind::LocalTimerEntry);
        let row = format!("| {name} | {writes} / {interrupts} |{}", cells.collect::<String>());
        assert_documented(&row);
    }
}
