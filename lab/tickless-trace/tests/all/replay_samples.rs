//! Replays the committed recordings: every count, and the agreement with the kernel.

use crate::support::{
    SAMPLES, all, assert_documented, older_kernel, parsed, replay, replay_with, sample_text,
    text_without, wakeups, without_flags,
};
use tickless_trace::read::EventKind;
use tickless_trace::replay::{Inference, Summary, other_ticks};

fn off_percent(summary: &Summary) -> f64 {
    summary.agreement.as_ref().unwrap().off_percent
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
        let writes = trace.device_writes();
        let interrupts = trace.count(EventKind::LocalTimerEntry);
        let row = format!("| {name} | {writes} / {interrupts} |{}", cells.collect::<String>());
        assert_documented(&row);
    }
}
