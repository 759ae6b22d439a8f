//! Where events are missing, nothing is derived from what was known before.

use crate::support::{HEADER, history, line, line_of, parsed, replay, sched_switch};
use tickless_core::time::Ns;
use tickless_trace::Trace;
use tickless_trace::late::{Selection, explain};
use tickless_trace::quota::{Request, predict};

const LOST: &str = "CPU:0 [LOST 5000 EVENTS]\n";

fn refused(text: &str) -> String {
    Trace::parse("t.txt", text.as_bytes()).unwrap_err().to_string()
}

/// Two histories with `between` between them, the second one two seconds later.
fn around(between: &str) -> String {
    let before =
        history("1000 start A 2000; 2001 interrupt A; 3000 start A 4000; 3500 start B 9000");
    let after = history("2004001 interrupt A; 2005000 start A 2006000; 2006001 interrupt A");
    format!("{HEADER}{before}{between}{after}")
}

#[test]
fn no_lateness_is_measured_across_a_gap() {
    let whole = replay(&around(""));
    assert!(whole.trace.recorded.queue_lateness_ns.unwrap().max > 1_900_000_000);
    assert_eq!(whole.trace.seen_percent, 100.0);
    for between in [LOST, "CPU:0 [5000 EVENTS DROPPED]\n", "# tracer: nop\n"] {
        let summary = replay(&around(between));
        let late = summary.trace.recorded.queue_lateness_ns.unwrap();
        assert!(late.max < 10_000, "{between}: {late:?}");
        assert!(summary.trace.seen_percent < 1.0, "{between}: {}", summary.trace.seen_percent);
        let eager = &summary.policies[0];
        assert!(eager.queue_lateness_ns.unwrap().max < 10_000, "{between}: {eager:?}");
    }
}

/// The gap of one CPU leaves what is known of the others.
#[test]
fn a_gap_is_of_one_cpu() {
    let other = "CPU:1 [LOST 5 EVENTS]\n";
    let text = around(other) + &history("2007000 start@1 C 2008000");
    let late = replay(&text).trace.recorded.queue_lateness_ns.unwrap();
    assert!(late.max > 1_900_000_000);
    let trace = parsed(&text);
    let gap = trace.gaps[0];
    assert_eq!((gap.cpu.0, gap.from, gap.to), (1, Ns::from_us(1_000), Ns::from_us(2_007_000)));
    assert!((trace.seen_percent() - 50.0).abs() < 0.1, "{}", trace.seen_percent());
}

#[test]
fn a_sleep_with_a_gap_is_not_explained() {
    let arm =
        "hrtimer_start: hrtimer=0a function=hrtimer_wakeup expires=2000000 softexpires=2000000";
    let woken = [
        (2_000_000, "local_timer_entry: vector=236"),
        (2_000_001, "hrtimer_expire_entry: hrtimer=0a function=hrtimer_wakeup now=2000001000"),
        (2_000_002, "sched_wakeup: comm=sleeper pid=77 prio=120 target_cpu=000"),
        (2_000_003, "local_timer_exit: vector=236"),
    ];
    let woken: String = woken.map(|(at, it)| line_of("<idle>-0", at, 0, "d.h1.", it)).concat();
    let text = |lost: &str| {
        let arms = line_of("sleeper-77", 1_000, 0, "d..1.", arm);
        let runs = line_of("<idle>-0", 2_000_009, 0, "d..2.", &sched_switch(0, 77));
        format!("{HEADER}{arms}{lost}{woken}{runs}")
    };
    let late = |text: &str| explain(&parsed(text), Ns(200_000), &Selection::default());
    assert_eq!((late(&text("")).late, late(&text("")).sleeps), (1, 1));
    let with_gap = late(&text(LOST));
    assert_eq!((with_gap.late, with_gap.sleeps, with_gap.causes.len()), (0, 0, 0));
    assert!(with_gap.seen_percent < 1.0);
}

#[test]
fn a_gap_is_no_cpu_time() {
    let at = |at, task: &str, event: &str| line_of(task, at, 0, "d..2.", event);
    let wake = "sched_wakeup: comm=a pid=7 prio=120 target_cpu=000";
    let text = |lost: &str| {
        let begins = at(1_000, "<idle>-0", wake) + &at(1_001, "<idle>-0", &sched_switch(0, 7));
        let timer = at(1_020, "a-7", "timer_cancel: timer=01");
        let works = at(2_001_000, "a-7", "timer_cancel: timer=01");
        let ends = at(2_001_020, "a-7", &sched_switch(7, 0));
        format!("{HEADER}{begins}{timer}{lost}{works}{ends}")
    };
    let selection = Selection { pid: Some(7), ..Selection::default() };
    let request = Request { selection, ..Request::default() };
    let used = |text: &str| predict(&parsed(text), &request).unwrap().cpu_seconds;
    assert!((used(&text("")) - 2.000_019).abs() < 1e-6);
    assert!((used(&text(LOST)) - 0.000_039).abs() < 1e-6, "{}", used(&text(LOST)));
}

#[test]
fn a_silence_longer_than_any_timer_is_a_gap() {
    let steps = "1000 start A 2000; 2001 interrupt A; 3000 start A 4000; 50003000 interrupt A";
    let trace = parsed(HEADER.to_string() + &history(steps));
    assert_eq!(trace.gaps.len(), 1);
    // A timer was armed for that long.
    let steps = steps.replace("start A 4000", "start A 50002000");
    assert_eq!(parsed(HEADER.to_string() + &history(&steps)).gaps, []);
}

#[test]
fn what_cannot_be_true_is_refused() {
    let header = "# tracer: nop\n";
    let backwards = history("9000 start A 9500") + header + &history("1000 start A 1500");
    assert!(refused(&(header.to_string() + &backwards)).contains("another recording begins in"));
    // Starts of a form that is not read, and cancels that are.
    let start = " a-1 [000] d..1. 1.0: timer_start: timer=01 when=7\n";
    let cancel = " a-1 [000] d..1. 1.0: timer_cancel: timer=01\n";
    let forms = refused(&(header.to_string() + &start.repeat(20) + &cancel.repeat(20)));
    assert!(forms.contains("20 of 20 timer_start cannot be read"), "{forms}");
    let only_cancels = refused(&(header.to_string() + &cancel.repeat(20)));
    assert!(only_cancels.contains("of 20 cancels, 19 are of timers"), "{only_cancels}");
    let of = |source: &str| {
        format!("{source:>9}:           a-1 [000] d..1. 1.0: timer_cancel: timer=01\n")
    };
    let several = "cpus=2\n".to_string() + &of("one").repeat(9) + &of("two").repeat(9);
    assert!(
        refused(&several).contains("several instances or hosts, whose timers and CPUs are not")
    );
    // Jiffies printed as nanoseconds.
    let tick = |step: u64| {
        let (at, now) = (step, step * 4_000_000);
        let event = "hrtimer_expire_entry: hrtimer=01 function=tick_nohz_handler now=";
        format!(" a-1 [000] d.h1. 0.{at:09}: {event}{now}\n")
    };
    let unit = refused(&(header.to_string() + &(0..100).map(tick).collect::<String>()));
    assert!(unit.contains("its times are not in seconds. Record with the clock `mono`"), "{unit}");
    let latency = "# tracer: nop\n#\n# nop latency trace v1.1.5 on 6.12\n  a-1 0d..1. 3us : \
                   timer_cancel: timer=01\n";
    assert!(refused(latency).contains("without CPU, time and name"));
    let mut tar = vec![b'a'; 600];
    tar[257..262].copy_from_slice(b"ustar");
    let error = Trace::parse("t.txt", &tar[..]).unwrap_err().to_string();
    assert!(error.contains("a tar archive of several files"), "{error}");
}

#[test]
fn fields_that_a_program_prints_wrongly_are_not_used() {
    let start = "timer_start: timer=01 function=f expires=10 [timeout=5] cpu=0 flags=D|P|I";
    let deferrable = |header: &str| {
        let trace = parsed(header.to_string() + &line(1_000, 0, "d..1.", start));
        let is_it = format!("{:?}", trace.records[0].event).contains("is_deferrable: true");
        (is_it, trace.messages().any(|it| it.contains("Give the recording itself")))
    };
    assert_eq!(deferrable(HEADER), (true, false));
    assert_eq!(deferrable("cpus=1\n"), (false, true));
    let text = "cpus=1\n".to_string() + &history("1000 start A 2000");
    let plugin = text.replace(" mode=ABS was_armed=0", "");
    let told = |text: &str| parsed(text).messages().any(|it| it.contains("report -t -N"));
    assert_eq!((told(&text), told(&plugin)), (false, true));
}

#[test]
fn names_of_tasks_can_look_like_events() {
    let event = "sched_switch: a ==> b [1] :7 [120] S ==> c [2] ==> d:9 [120]";
    let woken = "sched_wakeup: a [1] CPU:003 b:8 [120] CPU:001";
    let cancel = line(1_000, 0, "d..1.", "timer_cancel: timer=01");
    let text = [event, woken].map(|event| line_of("x] [y-1", 2_000, 0, "d..2.", event)).concat();
    let trace = parsed(format!("cpus=2\n{cancel}{text}"));
    let events: Vec<String> = trace.records.iter().map(|it| format!("{:?}", it.event)).collect();
    let switch = "SchedSwitch { next_pid: 9, still_runs: Some(false), next_priority: Some(120) }";
    assert_eq!(events[1], switch);
    assert_eq!(events[2], "SchedWakeup { target: CpuId(1), pid: 8 }");
    assert_eq!(trace.tasks.get(&1).map(|name| &**name), Some("x] [y"));
}
