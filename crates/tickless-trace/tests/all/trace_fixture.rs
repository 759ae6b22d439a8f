//! Reads a committed recording, and compares it with simple counting.

use crate::support::{sample_path, sample_text};
use std::collections::HashMap;
use tickless_core::time::Ns;
use tickless_trace::read::{Cause, Context, Event, EventKind, Format, Jiffy, Trace};

fn nginx() -> Trace {
    Trace::read(&sample_path("nginx")).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_event_is_read_as_its_kind() {
    let text = sample_text("nginx");
    let mut counted: HashMap<&str, usize> = HashMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(": ").nth(1).unwrap();
        *counted.entry(name).or_default() += 1;
    }
    let trace = nginx();
    for &kind in EventKind::ALL {
        let want = counted.remove(kind.name()).unwrap_or(0);
        assert_eq!(trace.count(kind), want, "{}", kind.name());
    }
    assert!(counted.is_empty(), "not read: {counted:?}");
    assert_eq!((trace.lines, trace.records.len(), trace.skipped_lines), (130_000, 129_986, 0));
}

#[test]
fn the_header_and_the_clocks_are_found() {
    let trace = nginx();
    assert_eq!((trace.header.format, trace.cpus), (Format::Ftrace, 2));
    assert_eq!(trace.header.kernel.as_deref(), Some("6.18.44-fc-v595"));
    assert_eq!(trace.header.clock.as_deref(), Some("mono"));
    let hz = trace.hz.unwrap();
    assert_eq!((hz.value, hz.tick()), (250, Ns(4_000_000)));
    assert_eq!(trace.monotonic.unwrap().ns, 0);
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
    let text = sample_text("nginx").replace("HZ=250", "");
    let without = Trace::parse("no HZ", text.as_bytes()).unwrap();
    assert_eq!((without.hz, without.jiffies), (trace.hz, trace.jiffies));
}

#[test]
fn contexts_and_clocks_fit_the_events() {
    let trace = nginx();
    let clock = trace.jiffies.unwrap();
    for record in &trace.records {
        match record.event {
            Event::HrtimerExpireEntry { now, .. } => {
                assert_eq!(record.context.in_hard_irq(), Some(true));
                // Line times are cut to a microsecond.
                assert!(record.time.0 + 1_000 > now.0 && record.time.since(now) < Ns::from_us(100));
            }
            Event::TimerExpireEntry { now, .. } => {
                assert_eq!(record.context, Context::SoftIrq);
                assert!(clock.time(now) <= record.time);
            }
            Event::TimerStart { now, .. } => {
                // Jiffies are read at most one interrupt late while the tick runs.
                assert!(clock.time(now) <= record.time, "line {}", record.line);
                assert!(record.time.since(clock.time(now)) < Ns::from_us(4_100));
            }
            _ => {}
        }
    }
}
