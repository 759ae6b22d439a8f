//! The text of each tool is read as the same events.

use crate::support::{parsed, recorded, sample_text};
use std::collections::HashMap;
use tickless_core::time::{CpuId, Ns};
use tickless_trace::read::{
    Cause, ClockId, Context, Event, EventKind, Jiffy, Record, TimerAddr, Trace,
};
use tickless_trace::replay::{Inference, ReplayPolicy, summarise};

fn first(trace: &Trace, kind: EventKind) -> Record {
    *trace.records.iter().find(|record| record.event.kind() == kind).unwrap()
}

#[test]
fn trace_cmd_prints_flags_and_its_own_scheduler_text() {
    let trace = recorded("trace-cmd.txt");
    assert_eq!((trace.header.names_tool, trace.cpus), (true, 2));
    assert_eq!(trace.records.len(), 19);
    assert_eq!((trace.dropped_events, trace.skipped_lines), (3, 0));

    let expired = first(&trace, EventKind::HrtimerExpireEntry);
    assert_eq!((expired.cpu, expired.context), (CpuId(0), Context::HardIrq));
    assert_eq!(expired.context.in_hard_irq(), Some(true));
    assert_eq!(expired.time, Ns(3_028_536_010_000));
    let function = trace.names.find("tick_nohz_handler").unwrap();
    let timer = TimerAddr(0xffff_8a01_3bc1_fca0);
    let now = Ns(3_028_536_009_822);
    assert_eq!(expired.event, Event::HrtimerExpireEntry { timer, now, function });

    let woken = first(&trace, EventKind::SchedWakeup).event;
    assert_eq!(woken, Event::SchedWakeup { pid: 15, target: CpuId(1) });
    let switch = first(&trace, EventKind::SchedSwitch).event;
    assert_eq!(
        switch,
        Event::SchedSwitch { next_pid: 15, still_runs: Some(true), next_priority: Some(120) }
    );
    assert_eq!(first(&trace, EventKind::TimerCancel).context, Context::SoftIrq);
    let messages: Vec<String> = trace.messages().collect();
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(messages[0].contains(":16: 3 events were dropped"), "{messages:?}");
    assert!(messages[1].contains("without mode and was_armed"), "{messages:?}");
    assert!(messages[2].contains(".txt: the tick rate is unknown"), "{messages:?}");
}

#[test]
fn trace_cmd_2_has_no_flags_and_older_names() {
    let trace = recorded("trace-cmd-2.txt");
    assert_eq!((trace.header.names_tool, trace.cpus), (true, 2));
    assert_eq!(trace.records.len(), 8);
    let known = [Cause::JiffiesNotPlaced, Cause::ModesLeftOut];
    assert!(trace.problems.iter().all(|problem| known.contains(&problem.cause)));

    let setup = first(&trace, EventKind::HrtimerSetup);
    assert_eq!((setup.context, setup.context.in_hard_irq()), (Context::NotRecorded, None));
    let Event::HrtimerSetup { clock: ClockId::Monotonic, mode, .. } = setup.event else { panic!() };
    assert!(mode.is_relative());
    let start = first(&trace, EventKind::HrtimerStart).event;
    assert!(matches!(start, Event::HrtimerStart { was_armed: None, .. }), "{start:?}");
    let start = first(&trace, EventKind::TimerStart).event;
    let Event::TimerStart { is_deferrable, base, now, .. } = start else { panic!() };
    assert_eq!((is_deferrable, base, now), (false, CpuId(0), Jiffy(4_295_649_396)));
    // The trace clock is 18 s ahead of CLOCK_MONOTONIC here, less what printing took.
    assert_eq!(trace.monotonic_ahead_ns, Some(18_000_000_178));
}

/// The stack under an event, a thread's number behind its process's, and lost events.
#[test]
fn what_perf_prints_between_events_is_read() {
    let trace = recorded("perf.txt");
    assert_eq!((trace.records.len(), trace.dropped_events, trace.skipped_lines), (15, 4, 0));
    assert_eq!(first(&trace, EventKind::HrtimerStart).time, Ns(3_028_536_013_000));
}

fn ftrace(lines: &[impl AsRef<str>]) -> Trace {
    let lines = lines.iter().map(|line| format!("{}\n", line.as_ref()));
    parsed("# tracer: nop\n".to_string() + &lines.collect::<String>())
}

#[test]
fn ftrace_events_keep_every_field() {
    let trace = ftrace(&[
        " a-1 [001] dNs2.  3028.548041: timer_start: timer=000000005b8cee78 \
         function=blk_stat_timer_fn expires=4295649423 [timeout=25] bucket_expiry=4295649424 \
         cpu=0 idx=213 flags=D|I",
        " a-1 [001] d..1.  3028.548042: hrtimer_start: hrtimer=000000004cf015c6 function=f [mod] \
         expires=9223372036854775807 softexpires=7 mode=ABS|PINNED|HARD was_armed=1",
        " a-1 [001] ...2.  3028.548043: write_msr: 830, value fb",
        " a-1 [001] ...2.  3028.548044: write_msr: 6e0, value ffffffffffffffff #GP",
        " a-1 [001] d.h2.  3028.548045: itimer_expire: which=0 pid=10618 now=0",
        " a-1 [001] d..2.  3028.548046: hrtimer_rearm: next_event=7 deferred=1",
        " a-1 [001] d..2.  3028.548047: hrtimer_rearm: next_event=9223372036854775807 deferred=0",
    ]);
    let function = trace.names.find("blk_stat_timer_fn").unwrap();
    let start = Event::TimerStart {
        timer: TimerAddr(0x5b8c_ee78),
        expires: Jiffy(4_295_649_423),
        now: Jiffy(4_295_649_398),
        function,
        base: CpuId(0),
        is_deferrable: true,
    };
    assert_eq!(trace.records[0].event, start);
    let start = Event::HrtimerStart {
        timer: TimerAddr(0x4cf0_15c6),
        expires: Ns(i64::MAX as u64),
        soft_expires: Ns(7),
        function: trace.names.find("f").unwrap(),
        was_armed: Some(true),
    };
    assert_eq!(trace.records[1].event, start);
    assert_eq!(trace.records[2].event, Event::WriteMsr { register: 0x830, value: 0xfb });
    assert!(!trace.records[2].event.is_device_write() && trace.records[3].event.is_device_write());
    assert_eq!(trace.records[4].event, Event::ItimerExpire);
    let rearm = Event::HrtimerRearm { next: Ns(7), is_deferred: Some(true) };
    assert_eq!(trace.records[5].event, rearm);
    assert!(!trace.records[6].event.is_device_write(), "the device is shut down");
    let writes: Vec<Event> = trace.device_writes().map(|record| record.event).collect();
    assert_eq!(writes, [rearm], "where there is an event for every write, no register counts");
}

#[test]
fn unprinted_fields_have_defaults() {
    let trace = ftrace(&[
        " a-1 [001] d..1.  1.000001: hrtimer_start: hrtimer=1 function=f expires=7",
        " a-1 [001] ..s1.  1.000002: timer_expire_entry: timer=1 function=f now=9",
        " a-1 [001] d..1.  1.000003: timer_start: timer=1 function=f expires=9 [timeout=2]",
    ]);
    let [first, second, third] = [0, 1, 2].map(|place| trace.records[place].event);
    let Event::HrtimerStart { expires, soft_expires, was_armed, .. } = first else { panic!() };
    assert_eq!((expires, soft_expires, was_armed), (Ns(7), Ns(7), None));
    let Event::TimerExpireEntry { now, base_clock, .. } = second else { panic!() };
    assert_eq!((now, base_clock), (Jiffy(9), Jiffy(9)));
    let Event::TimerStart { base, is_deferrable, .. } = third else { panic!() };
    assert_eq!((base, is_deferrable), (CpuId(1), false));
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

/// Goal: a base without events of its own counts as a CPU. Otherwise replaying it would panic.
#[test]
fn every_base_is_among_the_cpus() {
    for event in [
        "timer_start: timer=1 function=f expires=7 [timeout=5] cpu=3",
        "sched_wakeup: comm=a pid=1 prio=120 target_cpu=003",
        "cpu_idle: state=1 cpu_id=3",
    ] {
        let event = format!(" a-1 [000] .....  1.000000: {event}");
        assert_eq!(ftrace(&[&*event, " a-1 [000] .....  1.0: timer_init: timer=1"]).cpus, 4);
    }
}

#[test]
fn a_short_trace_takes_hz_from_the_tick() {
    let trace = recorded("trace-cmd.txt");
    assert_eq!((trace.hz, trace.jiffies), (None, None));
    let line = |ns: u64| {
        format!(
            " a-1 [000] d.h1.  7.000000: hrtimer_start: hrtimer=00000000deadbeef \
             function=tick_sched_timer expires={ns}"
        )
    };
    let lines = [line(7_003_333_333), line(7_006_666_666), line(7_016_666_665)];
    let trace = ftrace(&lines);
    assert_eq!((trace.hz, trace.tick()), (Some(300), Some(Ns(3_333_333))));
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
