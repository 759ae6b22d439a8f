//! Replays with other ticks than the recorded ones.

use crate::support::{
    HEADER, SAMPLES, address, assert_documented, history, hrtimer_start, line_of, parsed,
    sample_text, text_without,
};
use tickless_trace::read::EventKind;
use tickless_trace::replay::{Inference, TickResult, other_ticks};

fn ticks(text: &str, rates: &[u32]) -> Vec<TickResult> {
    other_ticks(&parsed(text), Inference::On, rates).unwrap()
}

/// A CPU is busy with ticks at 4 and 8 ms, idle from 9 to 30.01 ms (timer A), with a tick at 32 ms.
fn half_idle() -> String {
    let tick = |text: String| text.replace("function=f", "function=tick_nohz_handler");
    let at_tick = |at: u64| {
        let (expired, next) = (at + 1, at + 3_999);
        tick(history(&format!(
            "{at} enter; {expired} expire E; {expired} returned E; {expired} rearm E {next}; \
             {expired} leave"
        )))
    };
    let stopped = hrtimer_start(&address("E"), 40_000, " mode=ABS was_armed=0");
    [
        HEADER.to_string(),
        tick(history("1 start E 4000")),
        at_tick(4_001),
        history("5000 start A 30000"),
        at_tick(8_001),
        tick(line_of("<idle>-0", 9_000, 0, "d..1.", &stopped)),
        history("30001 interrupt A").replace(" a-1 ", " <idle>-0 "),
        tick(history("30010 start E 32000")),
        at_tick(32_001),
        history("35000 end"),
    ]
    .concat()
}

/// At 250 Hz, ticks at 4 and 8 write for the next one; stopping writes for A, starting for 32, and
/// the tick at 32 for the next. A tick that is never stopped comes at 4, 8, ..., 32, each time with
/// a write, and A writes for the tick behind it.
///
/// At 1000 Hz, ticks at 1 to 8 and 31 to 34; or at 1 to 34, and A is due with the one at 30.
#[test]
fn ticks_have_the_costs_worked_out_by_hand() {
    let counts =
        |of: TickResult| (of.hz, of.stopped, [of.device_writes, of.wakeups, of.idle_wakeups]);
    let found: Vec<_> = ticks(&half_idle(), &[250, 1_000]).into_iter().map(counts).collect();
    let want = [
        (250, true, [5, 4, 1]),
        (250, false, [9, 9, 6]),
        (1_000, true, [14, 13, 1]),
        (1_000, false, [34, 34, 22]),
    ];
    assert_eq!(found, want);
}

/// Some kernels record nothing of an idle thread.
#[test]
fn a_silent_cpu_is_idle() {
    let silent = text_without(&half_idle(), "<idle>-0");
    let idle =
        |text: &str| -> Vec<u64> { ticks(text, &[250]).iter().map(|of| of.idle_wakeups).collect() };
    // A is not recorded as expired either, so it has an event of its own, at 30 ms.
    assert_eq!(idle(&silent), [1, 6]);
}

#[test]
fn documented_ticks_are_current() {
    for name in SAMPLES {
        let text = sample_text(name);
        let trace = parsed(&text);
        let found = ticks(&text, &[250, 1_000]);
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

/// A gap has no ticks, so that a long one takes no time.
#[test]
fn no_ticks_are_provided_in_a_gap() {
    let later = |by: u64| history(&format!("{} start B {}", by + 40_000, by + 41_000));
    let text = |by: u64| format!("{}# tracer: nop\n{}", half_idle(), later(by));
    let [near, far] = [1_000_000, 100_000_000_000].map(|by| ticks(&text(by), &[1_000]));
    for (near, far) in near.iter().zip(&far) {
        assert_eq!((near.wakeups, near.device_writes), (far.wakeups, far.device_writes));
        assert!(near.wakeups < 100, "{near:?}");
    }
}
