//! Histories of a few steps, with the right answer worked out by hand.
//!
//! Conventions: A and B are hrtimers, `w(300)` a device write for 300, times in microseconds;
//! answers in the order eager, lazy, restart-aware.

use crate::support::{
    HEADER, address, fired, history, hrtimer_start, line, parsed, replay, replay_history,
    replay_with, spurious, text_without, wakeups, writes,
};
use tickless_trace::replay::{Inference, PolicyResult, ReplayPolicy, Summary, summarise};

fn counts(summary: &Summary) -> [[u64; 3]; 4] {
    [writes(summary), wakeups(summary), spurious(summary), fired(summary)]
}

/// B at 300: w(300). A at 200: w(200). A moved to 250 while it is the first:
/// eager removes it, w(300), and adds it, w(250); restart-aware writes w(250) at once; lazy writes
/// nothing, has a spurious wakeup at 200, and only then w(250). Until then it has saved a write.
#[test]
fn restart_of_the_first_timer_to_later() {
    let steps = "10 start B 300; 20 start A 200; 30 restart A 250";
    let summary = replay_history(&format!("{steps}; 210 end"));
    assert_eq!(counts(&summary), [[4, 3, 3], [0, 1, 0], [0, 1, 0], [0; 3]]);
    let before = replay_history(&format!("{steps}; 199 end"));
    assert_eq!(counts(&before), [[4, 2, 3], [0; 3], [0; 3], [0; 3]]);
}

#[test]
fn short_histories_have_the_counts_worked_out_by_hand() {
    for (steps, want) in [
        // Cancel of the first timer: w(300); w(200); eager and restart-aware w(300); lazy nothing,
        // a spurious wakeup at 200, then w(300).
        (
            "10 start B 300; 20 start A 200; 30 cancel A; 210 end",
            [[3, 3, 3], [0, 1, 0], [0, 1, 0], [0; 3]],
        ),
        // CPU 1 cancels A, and cannot reach CPU 0's device: w(200), and a spurious wakeup at 200,
        // after which there is nothing to write.
        ("20 start A 200; 30 cancel@1 A; 210 end", [[1; 3], [1; 3], [1; 3], [0; 3]]),
        // A device is due at the time of a cancel, which is first, as in the kernel: w(100); stop,
        // or a spurious wakeup under lazy; w(130). B fires at 130, after the last operation.
        (
            "10 start A 100; 100 cancel A; 120 start B 130; 150 end",
            [[3, 2, 3], [1, 2, 1], [0, 1, 0], [1; 3]],
        ),
        // The timer was on the CPU on which it expired: CPU 0 has no event for it.
        ("10 start A 100; 101 interrupt@1 A; 150 end", [[1; 3], [1; 3], [0; 3], [1; 3]]),
    ] {
        assert_eq!(counts(&replay_history(steps)), want, "{steps}");
    }
}

/// A at 100: w(100). The interrupt fires it, and its callback asks for 200: one write at the end,
/// w(200), under every policy. The kernel wrote as often.
const CALLBACK_RESTART: &str = "10 start A 100; 11 write; 101 enter; 102 expire A; \
                                103 returned A; 104 rearm A 200; 105 write; 106 leave";

#[test]
fn callback_restart_inside_an_interrupt() {
    let summary = replay_history(&format!("{CALLBACK_RESTART}; 150 end"));
    assert_eq!(counts(&summary), [[2; 3], [1; 3], [0; 3], [1; 3]]);
    let agreement = summary.agreement.unwrap();
    assert_eq!((agreement.recorded, agreement.replayed, agreement.inside), (2, 2, true));
    // The handler's current time was 102, and A was due at 100.
    assert_eq!(summary.policies[0].queue_lateness_ns.unwrap().max / 10, 200);
    assert_eq!(summary.trace.recorded.queue_lateness_ns, summary.policies[0].queue_lateness_ns);
}

/// `CALLBACK_RESTART` without `local_timer_*`, flags, the callback's end, and all of these.
#[test]
fn interrupts_are_found_without_their_records() {
    let whole = format!("{CALLBACK_RESTART}; 120 start B 140; 130 cancel B; 150 end");
    let whole = HEADER.to_string() + &history(&whole);
    // In addition to the two: w(140) for B, and its removal w(200); under lazy, a spurious wakeup
    // at 140, then w(200).
    let want = [[4, 4, 4], [1, 2, 1], [0, 1, 0], [1, 1, 1]];
    let without =
        |words: &[&str]| words.iter().fold(whole.clone(), |text, word| text_without(&text, word));
    for text in [
        whole.clone(),
        without(&["local_timer_"]),
        without(&["local_timer_exit"]),
        without(&["hrtimer_expire_exit", "local_timer_"]),
    ] {
        let bare = ["d.h1.", "d.h2.", "d..1."].iter().fold(text.clone(), |t, f| t.replace(f, ""));
        assert_eq!(counts(&replay(&text)), want, "{text}");
        assert_eq!(counts(&replay(&bare)), want, "{bare}");
    }
}

/// Kernels before 7.0 print a cancel before each expiry, and in place of `was_armed=1`.
#[test]
fn removals_of_older_kernels_are_no_cancels() {
    let a = address("A");
    let text = [
        HEADER,
        &history("10 start B 300; 20 start A 200; 30 cancel A"),
        &line(30, 0, "d..1.", &hrtimer_start(&a, 250, "")),
        &history("251 enter"),
        &line(252, 0, "d.h1.", &format!("hrtimer_cancel: hrtimer={a}")),
        &history("252 expire A; 253 returned A; 254 leave; 260 end"),
    ];
    let summary = replay(&text.concat());
    // As in `restart_of_the_first_timer_to_later`, then w(300) at the end of the interrupt.
    assert_eq!(writes(&summary), [5, 4, 4]);
    let queue = summary.operations.queue;
    assert_eq!((queue.start, queue.restart, queue.cancel, queue.expire), (3, 1, 0, 1));
    assert_eq!((summary.unknown_cancels, summary.inferred_operations), (0, 0));
}

/// A cancel before the set-up of another timer at this address is no part of the start that
/// follows at once. One address in two families is two timers.
#[test]
fn a_reused_address_is_another_timer() {
    let a = address("A");
    let setup = format!("hrtimer_init: hrtimer={a} clockid=CLOCK_MONOTONIC mode=ABS");
    let text = [
        HEADER,
        &history("20 start A 200; 30 cancel A"),
        &line(31, 0, ".....", &setup),
        &line(32, 0, "d..1.", &hrtimer_start(&a, 300, "")),
        &history("40 end"),
    ];
    let summary = replay(&text.concat());
    assert_eq!((summary.operations.queue.restart, summary.operations.queue.cancel), (0, 1));
    // w(200); the removal of the only timer stops the device with a write, except under lazy;
    // w(300), except under lazy, whose device is still armed for 200.
    assert_eq!(writes(&summary), [3, 1, 3]);

    let wheel = format!("timer_start: timer={a} function=g expires=1001 [timeout=1] cpu=0 flags=");
    let wheel = line(30, 0, "d..1.", &wheel);
    let steps = [HEADER, &history("20 start A 200"), &wheel, &history("40 cancel A; 50 end")];
    let summary = replay(&steps.concat());
    assert_eq!((summary.operations.wheel.start, summary.operations.wheel.restart), (1, 0));
    // The wheel's timer causes no write: w(200), and that of the cancel except under lazy.
    assert_eq!(writes(&summary), [2, 1, 2]);
}

/// A is armed for a past time: it fires at 100, not at 50. The second start then restarts A.
#[test]
fn a_past_deadline_fires_once_and_at_once() {
    let summary = replay_history("100 start A 50; 100 start A 50; 110 start B 10; 120 end");
    assert_eq!((fired(&summary), wakeups(&summary)), ([2; 3], [2; 3]));
    assert_eq!(summary.policies[2].early, 0);
    // 110 - 10.
    assert_eq!(summary.policies[2].queue_lateness_ns.unwrap().max / 1_000, 100);
}

/// An interrupt that was late for B would have been as late for a device that was due before: one
/// event. An interrupt on time is an event in addition.
#[test]
fn a_late_interrupt_is_also_the_stale_event_before_it() {
    // Lazy's device is due at 100, 50 before B is.
    let steps = "10 start B 150; 20 start A 100; 30 cancel A";
    let on_time = replay_history(&format!("{steps}; 155 interrupt B; 255 end"));
    assert_eq!(wakeups(&on_time), [1, 2, 1]);
    let late = replay_history(&format!("{steps}; 250 interrupt B; 350 end"));
    assert_eq!((wakeups(&late), fired(&late)), ([1; 3], [1; 3]));
}

/// A and B were armed before the recording: A expires, so it is assumed to have been pending; B is
/// cancelled, so its expiry remains unknown.
#[test]
fn timers_that_were_pending_at_the_start() {
    let summary = replay_history("10 cancel B; 100 interrupt A; 150 end");
    assert_eq!((summary.pending_at_start, summary.unknown_cancels), (1, 1));
    assert_eq!(counts(&summary), [[0; 3], [1; 3], [0; 3], [1; 3]]);
    // A guessed expiry has no lateness.
    assert_eq!(summary.policies[0].queue_lateness_ns, None);
    assert_eq!(summary.trace.recorded.queue_lateness_ns, None);
}

/// Replays a history with inference and without. One operation must be inferred.
fn inferred(steps: &str) -> [Summary; 2] {
    let text = HEADER.to_string() + &history(steps);
    let found = [Inference::On, Inference::Off].map(|inference| replay_with(&text, inference));
    assert_eq!(found.each_ref().map(|summary| summary.inferred_operations), [1, 0]);
    assert_eq!(found.each_ref().map(|summary| summary.inference), [true, false]);
    found
}

/// A expires twice and was started once: its second start has no record. Only inference adds it.
#[test]
fn an_idle_timer_that_expires_was_started() {
    let [on, off] = inferred("10 start A 100; 100 interrupt A; 200 interrupt A; 250 end");
    // w(100). The write of the start without a record is not counted.
    assert_eq!(counts(&on), [[1; 3], [2; 3], [0; 3], [2; 3]]);
    assert_eq!(counts(&off), [[1; 3], [2; 3], [1; 3], [1; 3]]);
}

/// A pending timer that an interrupt did not fire was restarted: it must not fire at its old
/// expiry. Lazy has a spurious wakeup there, as after any restart; the write of the other policies
/// is not counted.
#[test]
fn a_timer_that_an_interrupt_passed_over_was_restarted() {
    let [on, off] =
        inferred("10 start A 100; 11 start B 200; 200 interrupt B; 300 interrupt A; 350 end");
    // w(100); w(200) in lazy's own event alone; w(300) at the end of the first interrupt.
    assert_eq!(counts(&on)[..3], [[2, 3, 2], [2, 3, 2], [0, 1, 0]]);
    assert_eq!(on.policies.iter().map(|one| one.inferred_writes).collect::<Vec<_>>(), [1, 0, 1]);
    // Otherwise A fires at 100, in an event of its own, and the interrupt at 300 is spurious.
    assert_eq!((wakeups(&off), spurious(&off)), ([3; 3], [1; 3]));
}

/// Three timers that an interrupt did not pass over: a soft timer, whose callback runs after its
/// interrupt; a timer that was armed for the past after the interrupt; a timer on another CPU.
#[test]
fn no_restart_is_inferred_for_other_timers() {
    let a = address("A");
    let setup = format!("hrtimer_setup: hrtimer={a} clockid=CLOCK_MONOTONIC mode=ABS|SOFT");
    let expire = format!("hrtimer_expire_entry: hrtimer={a} function=f now=101000");
    let soft = [
        line(5, 0, ".....", &setup),
        history("10 start A 100; 101 enter; 102 leave"),
        line(103, 0, "..s1.", &expire),
        history("150 end"),
    ];
    let past = "10 start B 100; 101 interrupt B; 105 start A 90; 106 restart A 200; 150 end";
    let elsewhere = "10 start A 100; 11 start B 101; 102 interrupt B; 106 interrupt@1 A; 150 end";
    for text in [soft.concat(), history(past), history(elsewhere)] {
        let summary = replay(&(HEADER.to_string() + &text));
        assert_eq!(summary.inferred_operations, 0, "{text}");
        assert!(wakeups(&summary)[2] <= 2, "{text}");
    }
}

/// An interrupt whose end was lost ends where its CPU is seen outside: B's start is a task's.
#[test]
fn an_interrupt_without_end_ends_with_its_context() {
    let text = history(&format!("{CALLBACK_RESTART}; 120 start B 140; 150 end"));
    let summary = replay(&(HEADER.to_string() + &text.replace("local_timer_exit", "x")));
    assert_eq!((writes(&summary), fired(&summary)), ([3 + 1; 3], [2; 3]));
}

/// CLOCK_REALTIME is half a century ahead of the trace's clock. A is due at 200 of ours.
#[test]
fn timers_on_another_clock() {
    const AHEAD_US: u64 = 1_780_000_000_000_000;
    let setup = |mode| {
        let event = "hrtimer_setup: hrtimer=00000000000000aa clockid=CLOCK_REALTIME mode=";
        HEADER.to_string() + &line(5, 0, ".....", &format!("{event}{mode}"))
    };
    let absolute = setup("ABS")
        + &history(&format!(
            "10 start A {}; 11 start B 300; 201 enter; 201 expire A {}; 202 returned A; \
             203 leave; 301 interrupt B; 350 end",
            AHEAD_US + 200,
            AHEAD_US + 201
        ));
    for text in [text_without(&absolute, "hrtimer_setup"), absolute] {
        let summary = replay(&text);
        // w(200); w(300) at the end of the interrupt.
        assert_eq!(counts(&summary), [[2; 3], [2; 3], [0; 3], [2; 3]], "{text}");
        assert!(summary.policies[0].queue_lateness_ns.unwrap().max < 3_000, "{text}");
    }
    // A relative timer is on CLOCK_MONOTONIC.
    let relative = setup("REL") + &history("10 start A 100; 150 end");
    assert_eq!(fired(&replay(&relative)), [1; 3]);
    // The clock's offset is unknown: left out, and reported.
    let unknown = history(&format!("10 start A {}; 20 cancel A; 150 end", AHEAD_US + 50));
    let summary = replay(&(setup("ABS") + &unknown));
    assert_eq!((summary.unplaced_starts, summary.notes.len()), (1, 2));
    assert_eq!(writes(&summary), [0; 3]);
}

/// HZ is 250: a jiffy is 4000. At 401500, in jiffy 1100 (which began at 400000), a timer is
/// armed for 2 jiffies from now, 409500. It fires with the first interrupt after that on a
/// jiffy, 412000, as in the kernel; not with the one at 408000.
#[test]
fn the_wheel_fires_with_the_jiffy_of_the_kernel() {
    let tick = |at: u64| {
        let steps = format!(
            "{} enter; {} expire B; {} returned B; {} rearm B {}; {} leave",
            at + 5,
            at + 6,
            at + 7,
            at + 8,
            at + 4_000,
            at + 9
        );
        history(&steps).replace("function=f", "function=tick_nohz_handler")
    };
    let start = "timer_start: timer=0a function=g expires=1102 [timeout=2] cpu=0 idx=1 flags=";
    let expire = "timer_expire_entry: timer=0a function=g now=1103 baseclk=1103";
    let text = [
        HEADER,
        &history("390000 start B 400000").replace("function=f", "function=tick_nohz_handler"),
        &tick(400_000),
        &line(401_500, 0, "d..1.", start),
        &[tick(404_000), tick(408_000), tick(412_000)].concat(),
        &line(412_020, 0, "d.s1.", "timer_cancel: timer=0a"),
        &line(412_021, 0, "..s1.", expire),
        &history("413000 end"),
    ]
    .concat();
    let summary = replay(&text);
    assert_eq!((fired(&summary), wakeups(&summary)), ([5; 3], [4; 3]));
    assert_eq!(summary.operations.wheel.cancel, 0);
    // 412006 - 409500 in the interrupt, 412021 - 409500 in the kernel's softirq.
    assert_eq!(summary.policies[0].wheel_lateness_ns.unwrap().max / 10_000, 250);
    assert_eq!(summary.trace.recorded.wheel_lateness_ns.unwrap().max / 10_000, 252);
    // Without hrtimers and interrupts in the trace, the wheel has a device of its own.
    let wheel_only = text_without(&text_without(&text, "hrtimer"), "local_timer_");
    let summary = replay(&(wheel_only + &line(420_000, 0, ".....", "timer_init: timer=c")));
    assert_eq!((fired(&summary), wakeups(&summary)), ([1; 3], [1; 3]));
    assert_eq!(summary.notes.len(), 2);
}

/// A kernel before 5.15 has the eager policy.
#[test]
fn the_kernels_own_policy_is_compared() {
    let text = HEADER.to_string() + &history(&format!("{CALLBACK_RESTART}; 150 end"));
    for (kernel, policy) in [
        ("7.1.0-rc1", "linux-7.1"),
        ("7.0.9", "restart-aware"),
        ("5.15.3-arch", "restart-aware"),
        ("5.14.21", "eager"),
        ("4.19", "eager"),
        ("unknown", "restart-aware"),
    ] {
        let summary = replay(&text.replace("6.18.0", kernel));
        assert_eq!(summary.agreement.unwrap().policy, policy, "{kernel}");
    }
}

/// Returns the results under restart-aware, each of Linux 7.1's additions alone, and both.
fn additions<T>(lines: &str, of: impl Fn(&PolicyResult) -> T) -> [T; 4] {
    let text = HEADER.to_string() + lines;
    let summary = summarise(parsed(&text), &ReplayPolicy::ALL, Inference::On);
    let names: Vec<&str> = summary.policies.iter().map(|result| result.policy).collect();
    assert_eq!(names, ReplayPolicy::ALL.map(ReplayPolicy::name));
    std::array::from_fn(|place| of(&summary.policies[2 + place]))
}

/// B at 900: w(900). The slice A at 200: w(200). Moved to 300 and 400 while it is the first:
/// w(300), w(400); a lazy timer has a spurious wakeup at 200, then w(400). Cancelled: w(900); a
/// lazy timer has a spurious wakeup at 400, then w(900).
#[test]
fn a_lazy_slice_timer_leaves_the_device_alone() {
    let text = history(
        "10 start B 900; 20 start A 200; 30 restart A 300; 40 restart A 400; 350 cancel A; 500 end",
    );
    let slice = text.replace("aa function=f", "aa function=hrtick");
    let writes = |text: &str| additions(text, |result| result.device_writes);
    assert_eq!(writes(&text), [5, 5, 5, 5], "no timer of any other function is lazy");
    assert_eq!(writes(&slice), [5, 4, 5, 4]);
    assert_eq!(additions(&slice, |result| result.spurious_wakeups), [0, 2, 0, 2]);
}

/// A at 100: w(100); B at 900. The interrupt fires A: its end writes w(900), and the start of A at
/// 400 w(400). A deferred rearm is one write for both, if the interrupt's end calls the scheduler,
/// which starts a slice: if the interrupt asks for it (`B`) in code that can be preempted (`.`). A
/// start by a task is a write of its own: w(900), w(400).
#[test]
fn a_deferred_rearm_is_one_write() {
    let after =
        |steps: &str| history(&format!("10 start A 100; 15 start B 900; 101 interrupt A; {steps}"));
    let writes = |text: &str| additions(text, |result| result.device_writes);
    let slice = |flags: &str| {
        let text = after("110 start A 400; 150 end").replace("aa function=f", "aa function=hrtick");
        let exit = "  0.000104: local_timer_exit";
        writes(&text.replace(&format!("d.h1.{exit}"), &format!("{flags}{exit}")))
    };
    assert_eq!(slice("dBh.."), [3, 3, 2, 2]);
    for flags in ["d.h..", "dBh1.", "dlh..", "dBH.."] {
        assert_eq!(slice(flags), [3, 3, 3, 3], "{flags}");
    }
    assert_eq!(writes(&after("110 start A 400; 150 end")), [3, 3, 3, 3]);
    let fired = additions(&after("110 start A 400; 450 end"), |result| result.expirations);
    assert_eq!(fired, [2; 4]);

    let next = history("10 start A 100; 15 start B 130; 101 interrupt A; 200 end");
    let late = additions(&next, |result| result.queue_lateness_ns.unwrap().max / 10);
    assert_eq!(late, [200; 4], "A by 2 us as recorded, B not at all");
    assert_eq!(additions(&next, |result| result.expirations), [2; 4]);
}
