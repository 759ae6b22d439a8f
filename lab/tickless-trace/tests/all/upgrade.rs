//! What an upgrade to Linux 7.2 would have done to a recording.

use crate::support::{HEADER, address, hrtimer_start, line, line_of, parsed, replay};
use crate::support::{sample_text, sched_switch};
use tickless_trace::replay::{Inference, upgraded};

/// Writes, wakeups and spurious wakeups with the slice timer on, and with it off.
fn counts(text: &str) -> [[u64; 3]; 2] {
    let results = upgraded(&parsed(text), Inference::On).unwrap();
    let [on, off] = &results[..] else { panic!("{results:?}") };
    assert!(on.slice_timer && !off.slice_timer);
    [on, off].map(|it| [it.device_writes, it.wakeups, it.spurious_wakeups])
}

/// Task 1 runs, and `steps` are (time, event) of CPU 0 after B is armed for 9000 us: w(9000).
fn history(steps: &[(u64, &str)]) -> String {
    let start = line(1, 0, "d..1.", &hrtimer_start(&address("B"), 9_000, " was_armed=0"));
    let event = |step: &str| match step.split_once(' ') {
        Some(("wakes", pid)) => format!("sched_wakeup: comm=a pid={pid} prio=120 target_cpu=000"),
        Some((from, to)) => match from.strip_suffix('R') {
            Some(from) => sched_switch(from, to).replace("prev_state=S", "prev_state=R"),
            None => sched_switch(from, to),
        },
        None => "tick_stop: success=1 dependency=NONE".to_string(),
    };
    let task = |step: &str| match step.split_once(' ') {
        Some((from, _)) if from != "wakes" => format!("a-{}", from.trim_end_matches('R')),
        _ => "a-1".to_string(),
    };
    let lines = steps.iter().map(|(at, step)| line_of(&task(step), *at, 0, "d..2.", &event(step)));
    HEADER.to_string() + &start + &lines.collect::<String>()
}

/// Goal: while another task waits, a switch starts the slice timer, for 0.7 ms on one CPU.
#[test]
fn a_switch_starts_the_slice_timer_if_a_task_waits() {
    // w(9000). At 500 task 2 begins: w(1200). It blocks at 510, and task 1 goes on alone: the timer
    // stays, and fires at 1200: w(9000).
    let alone = [(5, "0 1"), (10, "wakes 2"), (500, "1R 2"), (510, "2 1"), (1500, "end")];
    assert_eq!(counts(&history(&alone)), [[3, 1, 0], [1, 0, 0]]);
    // Nobody waits: task 1 blocks before task 2 begins.
    let handed_over = [(10, "1 0"), (12, "wakes 2"), (20, "0 2"), (1500, "end")];
    assert_eq!(counts(&history(&handed_over)), [[1, 0, 0]; 2]);
    // Both run on: a slice ends at 720 and 1420, each with a write for the next.
    let both = [(10, "wakes 2"), (20, "1R 2"), (1500, "end")];
    assert_eq!(counts(&history(&both)), [[4, 2, 0], [1, 0, 0]]);
    // Task 2 has run longer than task 1 when it blocks, so it stays in the queue: the timer moves
    // to 1300, and fires for nothing at 720.
    let delayed = [(10, "wakes 2"), (20, "1R 2"), (600, "2 1"), (1200, "end")];
    assert_eq!(counts(&history(&delayed)), [[3, 1, 1], [1, 0, 0]]);
}

/// A timer that is armed for a time that has passed is not queued. On 6.12: w(5) and an interrupt.
#[test]
fn a_timer_that_is_armed_in_the_past_is_not_queued() {
    let wakes = "sched_wakeup: comm=a pid=2 prio=120 target_cpu=000";
    let text = [
        HEADER,
        &line(5, 0, "d..2.", &sched_switch(1, 2)),
        &line(6, 0, "d..2.", wakes),
        &crate::support::history("10 start A 5; 11 interrupt A; 50 end"),
    ]
    .concat();
    assert_eq!(replay(&text).policies[2].device_writes, 1);
    assert_eq!(counts(&text), [[0; 3]; 2]);
}

/// Goal: recordings of 6.12 predict what 7.2 does with the same load, and a recording of 7.2 from
/// which its slice timer is left out predicts itself.
#[test]
fn recordings_of_6_12_predict_those_of_7_2() {
    let now = ["6.12-hack1x5", "6.12-ping00", "7.2-tool-late"]
        .map(|name| (name, counts(&sample_text(&format!("kernels/{name}")))));
    // Recorded on 7.2 with the timer on: 1261 writes, 861 interrupts, 379 of them for nothing; 257,
    // 245, 155; and 1317, 1017, 255. With it off, the first two: 224, 223, 0 and 100, 95, 0.
    let want = [
        ("6.12-hack1x5", [[1174, 952, 415], [193, 192, 0]]),
        ("6.12-ping00", [[289, 257, 123], [93, 88, 0]]),
        ("7.2-tool-late", [[1191, 1003, 252], [624, 608, 0]]),
    ];
    assert_eq!(now, want, "now:\n{now:?}");
    assert!(upgraded(&parsed(sample_text("idle")), Inference::On).is_none());
}
