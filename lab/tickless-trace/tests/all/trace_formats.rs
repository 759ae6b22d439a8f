//! The text of each tool is read as the same events.

use crate::support::{parsed, recorded, sample_text};
use std::collections::HashMap;
use tickless_core::time::Ns;
use tickless_trace::read::{Cause, Event, EventKind, Jiffy, Record, Trace};
use tickless_trace::replay::{Inference, ReplayPolicy, summarise};

fn ftrace(lines: &[impl AsRef<str>]) -> Trace {
    let lines = lines.iter().map(|line| format!("{}\n", line.as_ref()));
    parsed("# tracer: nop\n".to_string() + &lines.collect::<String>())
}

fn wheel_start(ns: u64, now: u64) -> String {
    let (seconds, micros) = (ns / 1_000_000_000, ns % 1_000_000_000 / 1_000);
    let expires = now + 5;
    format!(
        " a-1 [000] .....  {seconds}.{micros:06}: timer_start: timer=00000000deadbeef \
         function=f expires={expires} [timeout=5]"
    )
}

#[test]
fn hz_is_found_from_the_wheel() {
    for hz in [100, 250, 300, 1000u64] {
        let tick = (1_000_000_000 + hz / 2) / hz;
        // A reading every 1.7 ms for a second, each jiffy read up to two ticks late.
        let readings = (0..600).map(|step| {
            let at = step * 1_700_000;
            wheel_start(50_000_000_000 + at, 4_295_000_000 + at / tick - step % 3 / 2)
        });
        let trace = ftrace(&readings.collect::<Vec<_>>());
        assert_eq!(u64::from(trace.hz.unwrap()), hz);
        let clock = trace.jiffies.unwrap();
        let begin = clock.time(Jiffy(4_295_000_000)).0;
        // Without tick events it may be one tick late, and `late_max` shows that.
        assert!((50_000_000_000..50_000_000_000 + tick).contains(&begin), "{hz} Hz: {begin}");
        assert_eq!(clock.late_max, Ns(tick));
        assert_eq!(clock.time(Jiffy(4_295_000_000 + hz)).0 - begin, tick * hz);
    }
}

#[test]
fn a_lone_reading_does_not_place_jiffies() {
    let mut lines: Vec<String> =
        (0..10).map(|step| wheel_start(50_000_000_000 + step * 4_000_000, 5_000 + step)).collect();
    let good = format!("# HZ=250\n{}\n", lines.join("\n"));
    lines.push(wheel_start(50_040_000_000, 900_000));
    let bad = format!("# HZ=250\n{}\n", lines.join("\n"));
    let placed = |text: &str| parsed(text).jiffies.unwrap();
    assert_eq!(placed(&good), placed(&bad));
    assert_eq!(placed(&good).time(Jiffy(5_001)), Ns(50_004_000_000));
}

#[test]
fn narrow_jiffies_wrap() {
    let line = |time: &str, expires: u64, timeout: i64| {
        format!(
            " a-1 [000] .....  {time}: timer_start: timer=c1234567 function=f \
             expires={expires} [timeout={timeout}]"
        )
    };
    let lines =
        [line("300.000000", 5, 10), line("300.050000", 100, 100), line("300.100000", 9, -1)];
    let trace = parsed(format!("# HZ=100\n# tracer: nop\n{}\n", lines.join("\n")));
    let Event::TimerStart { now, .. } = trace.records[0].event else { panic!() };
    assert_eq!(now, Jiffy(u64::from(u32::MAX) - 4));
    let clock = trace.jiffies.unwrap();
    assert_eq!(clock.time(Jiffy(5)).0 - clock.time(now).0, 100_000_000);
}

/// Goal: the text of current tools is read to the last line, and replays as it was recorded.
/// Method: `perf script --ns --header` of perf 6.1, and `trace-cmd report -t` of trace-cmd 3.1
/// with an instance, whose name it prints before each line; the latter beside ftrace's own text
/// of the same buffers.
#[test]
fn real_recordings_of_the_tools_replay() {
    let [perf, trace_cmd, ftrace] =
        ["perf-recorded.txt.gz", "trace-cmd-recorded.txt.gz", "ftrace-recorded.txt.gz"].map(
            |name| {
                let trace = recorded(name);
                assert_eq!((trace.header.names_tool, trace.cpus), (true, 4), "{name}");
                assert_eq!((trace.skipped_lines, trace.dropped_events), (0, 0), "{name}");
                let summary =
                    summarise(trace.clone(), &[ReplayPolicy::RestartAware], Inference::On);
                let agreement = summary.agreement.unwrap();
                assert!(agreement.inside && agreement.recorded > 40, "{name}: {agreement:?}");
                trace
            },
        );
    assert_eq!(perf.header.kernel.as_deref(), Some("6.18.44-fc-v657"));
    assert!(perf.records.len() > 300);
    let is_near = |(one, other): (&Record, &Record)| one.time.0.abs_diff(other.time.0) <= 500;
    let pairs = trace_cmd.records.iter().zip(ftrace.records.iter());
    assert!(pairs.clone().all(is_near), "one prints nanoseconds, the other microseconds");
    let kind = |record: &Record| (record.cpu, record.event.kind());
    assert!(pairs.clone().all(|(one, other)| kind(one) == kind(other)));
    assert_eq!(trace_cmd.records.len(), ftrace.records.len());
}

#[test]
fn every_event_is_read_as_its_kind() {
    let text = sample_text("nginx");
    let mut counted: HashMap<&str, usize> = HashMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(": ").nth(1).unwrap();
        *counted.entry(name).or_default() += 1;
    }
    let trace = parsed(&text);
    for &kind in EventKind::ALL {
        let want = counted.remove(kind.name()).unwrap_or(0);
        assert_eq!(trace.count(kind), want, "{}", kind.name());
    }
    assert!(counted.is_empty(), "not read: {counted:?}");
    assert_eq!((trace.records.len(), trace.skipped_lines), (129_986, 0));
}

#[test]
fn the_header_and_the_clocks_are_found() {
    let text = sample_text("nginx");
    let trace = parsed(&text);
    assert_eq!((trace.header.names_tool, trace.cpus), (true, 2));
    assert_eq!(trace.header.kernel.as_deref(), Some("6.18.44-fc-v595"));
    assert_eq!((trace.hz, trace.tick()), (Some(250), Some(Ns(4_000_000))));
    assert_eq!(trace.monotonic_ahead_ns, Some(0));
    // The first wheel timer was started 30 us after the tick of 3034.548 s, in this jiffy.
    let clock = trace.jiffies.unwrap();
    assert_eq!(clock.time(Jiffy(4_295_650_898)), Ns(3_034_548_000_000));
    assert_eq!(clock.late_max, Ns::ZERO);
    assert_eq!(trace.span(), Ns(331_505_000));
    let messages: Vec<String> = trace.messages().collect();
    assert_eq!(messages.len(), 1, "{messages:?}");
    let cause = Cause::FewerThanPromised { promised: 810_406, found: 129_986 };
    assert!(trace.problems.find(&cause).is_some());
    assert_eq!(trace.dropped_events, 0);
    // HZ and the time of jiffies are found without the header's line.
    let without = parsed(text.replace("HZ=250", ""));
    assert_eq!((without.hz, without.jiffies), (trace.hz, trace.jiffies));
}
