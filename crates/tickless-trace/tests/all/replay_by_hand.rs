//! Traces of a few lines, with the right answer worked out by hand.
//!
//! Conventions: `A`, `B` are hrtimers (`a`, `b` in the text), `w(300)` a device write for 300,
//! times in microseconds; answers in the order eager, lazy, restart-aware.

use crate::support::{
    Text, fired, hrtimer_start, inferred_writes, replay, replay_with, spurious, text_without,
    wakeups, writes,
};
use tickless_trace::read::Trace;
use tickless_trace::replay::{Inference, PolicyResult, ReplayPolicy, summarise};

const A: &str = "00000000000000aa";
const B: &str = "00000000000000bb";

/// B at 300: w(300). A at 200: w(200). A moved to 250 while it is the first:
/// eager removes it, w(300), and adds it, w(250); restart-aware writes w(250) at once; lazy writes
/// nothing, has a spurious wakeup at 200, and only then w(250).
#[test]
fn restart_of_the_first_timer_to_later() {
    let text = Text::new().start(10, 0, B, 300).start(20, 0, A, 200).restart(30, 0, A, 250);
    let summary = replay(&text.end(210));
    assert_eq!(writes(&summary), [4, 3, 3]);
    assert_eq!((wakeups(&summary), spurious(&summary)), ([0, 1, 0], [0, 1, 0]));
    assert_eq!(fired(&summary), [0, 0, 0]);
}

/// The history of `restart_of_the_first_timer_to_later` until just before A was due: lazy has saved
/// a write so far.
#[test]
fn lazy_saves_a_write_until_the_stale_event() {
    let text = Text::new().start(10, 0, B, 300).start(20, 0, A, 200).restart(30, 0, A, 250);
    let summary = replay(&text.end(199));
    assert_eq!(writes(&summary), [4, 2, 3]);
    assert_eq!(wakeups(&summary), [0, 0, 0]);
}

/// B at 300: w(300). A at 200: w(200). A cancelled: eager and restart-aware w(300); lazy
/// nothing, a spurious wakeup at 200, then w(300).
#[test]
fn cancel_of_the_first_timer() {
    let text = Text::new().start(10, 0, B, 300).start(20, 0, A, 200).cancel(30, 0, A);
    let summary = replay(&text.end(210));
    assert_eq!(writes(&summary), [3, 3, 3]);
    assert_eq!((wakeups(&summary), spurious(&summary)), ([0, 1, 0], [0, 1, 0]));
}

/// A at 200 on CPU 0: w(200). Cancelled on CPU 1, which cannot reach CPU 0's device: no write,
/// and a spurious wakeup at 200, after which there is nothing to write.
#[test]
fn removal_on_another_cpu_writes_nothing() {
    let text = Text::new().start(20, 0, A, 200).cancel(30, 1, A).end(210);
    let summary = replay(&text);
    assert_eq!(writes(&summary), [1, 1, 1]);
    assert_eq!((wakeups(&summary), spurious(&summary)), ([1, 1, 1], [1, 1, 1]));
}

/// A at 100: w(100). The interrupt fires it, and its callback asks for 200: one write at the end,
/// w(200), under every policy. The kernel wrote as often.
fn callback_restart() -> Text {
    (Text::new().start(10, 0, A, 100).write(11, 0).enter(101, 0).expire(102, 0, A))
        .returned(103, 0, A)
        .start_in_handler(104, 0, A, 200)
        .write(105, 0)
        .leave(106, 0)
}

#[test]
fn callback_restart_inside_an_interrupt() {
    let summary = replay(&callback_restart().end(150));
    assert_eq!(writes(&summary), [2, 2, 2]);
    assert_eq!((wakeups(&summary), spurious(&summary)), ([1, 1, 1], [0, 0, 0]));
    assert_eq!(fired(&summary), [1, 1, 1]);
    let agreement = summary.agreement.unwrap();
    assert_eq!((agreement.recorded, agreement.replayed, agreement.inside), (2, 2, true));
    // The handler's current time was 102, and A was due at 100.
    assert_eq!(summary.policies[0].queue_lateness_ns.unwrap().max / 10, 200);
    assert_eq!(summary.trace.recorded.queue_lateness_ns, summary.policies[0].queue_lateness_ns);
}

/// The history of `callback_restart` without `local_timer_*`, without flags, without the callback's
/// end, and without all of these.
#[test]
fn interrupts_are_found_without_their_records() {
    let whole = callback_restart().start(120, 0, B, 140).cancel(130, 0, B).end(150);
    let want = replay(&whole);
    // In addition to the two: w(140) for B, and its removal w(200); under lazy, a spurious wakeup
    // at 140, then w(200).
    assert_eq!((writes(&want), wakeups(&want)), ([4, 4, 4], [1, 2, 1]));
    let without = |word: &str, text: &str| text_without(text, word);
    let bare = |text: &str| text.replace("d.h1.", "").replace("d.h2.", "").replace("d..1.", "");
    for text in [
        without("local_timer_", &whole),
        without("local_timer_exit", &whole),
        bare(&whole),
        bare(&without("local_timer_", &whole)),
        bare(&without("local_timer_exit", &whole)),
        without("hrtimer_expire_exit", &without("local_timer_", &whole)),
        bare(&without("hrtimer_expire_exit", &without("local_timer_", &whole))),
    ] {
        let summary = replay(&text);
        assert_eq!(
            (writes(&summary), wakeups(&summary)),
            (writes(&want), wakeups(&want)),
            "{text}"
        );
        assert_eq!(fired(&summary), [1, 1, 1], "{text}");
    }
}

/// Kernels before 7.0 print a cancel before each expiry, and in place of `was_armed=1`.
#[test]
fn removals_of_older_kernels_are_no_cancels() {
    let text = (Text::new().start(10, 0, B, 300).start(20, 0, A, 200))
        .cancel(30, 0, A)
        .line(30, 0, "d..1.", &hrtimer_start(A, 250, ""))
        .enter(251, 0)
        .line(252, 0, "d.h1.", &format!("hrtimer_cancel: hrtimer={A}"))
        .expire(252, 0, A)
        .returned(253, 0, A)
        .leave(254, 0)
        .end(260);
    let summary = replay(&text);
    // As in `restart_of_the_first_timer_to_later`, then w(300) at the end of the interrupt.
    assert_eq!(writes(&summary), [5, 4, 4]);
    let queue = summary.operations.queue;
    assert_eq!((queue.start, queue.restart, queue.cancel, queue.expire), (3, 1, 0, 1));
    assert_eq!((summary.unknown_cancels, summary.inferred_operations), (0, 0));
}

/// A cancel before the set-up of another timer at this address is no part of the start that
/// follows at once.
#[test]
fn a_reused_address_is_another_timer() {
    let setup = format!("hrtimer_init: hrtimer={A} clockid=CLOCK_MONOTONIC mode=ABS");
    let text = (Text::new().start(20, 0, A, 200).cancel(30, 0, A))
        .line(31, 0, ".....", &setup)
        .line(32, 0, "d..1.", &hrtimer_start(A, 300, ""))
        .end(40);
    let summary = replay(&text);
    assert_eq!((summary.operations.queue.restart, summary.operations.queue.cancel), (0, 1));
    // w(200); the removal of the only timer stops the device with a write, except under lazy;
    // w(300), except under lazy, whose device is still armed for 200.
    assert_eq!(writes(&summary), [3, 1, 3]);
}

/// One address, two families: two timers.
#[test]
fn an_address_of_the_other_family_is_another_timer() {
    let wheel = format!("timer_start: timer={A} function=g expires=1001 [timeout=1] cpu=0 flags=");
    let text = Text::new().start(20, 0, A, 200).line(30, 0, "d..1.", &wheel).cancel(40, 0, A);
    let summary = replay(&text.end(50));
    assert_eq!((summary.operations.wheel.start, summary.operations.wheel.restart), (1, 0));
    // The wheel's timer causes no write: w(200), and that of the cancel except under lazy.
    assert_eq!(writes(&summary), [2, 1, 2]);
}

/// A device is due at the time of a cancel: the cancel is first, as in the kernel. Events that are
/// due after the last operation are delivered until the trace's end.
#[test]
fn an_operation_precedes_an_event_of_equal_time() {
    let text = Text::new().start(10, 0, A, 100).cancel(100, 0, A).start(120, 0, B, 130);
    let summary = replay(&text.end(150));
    // w(100); stop, or a spurious wakeup under lazy; w(130); B fires at 130.
    assert_eq!(writes(&summary), [3, 2, 3]);
    assert_eq!((wakeups(&summary), spurious(&summary)), ([1, 2, 1], [0, 1, 0]));
    assert_eq!(fired(&summary), [1, 1, 1]);
}

/// A is armed for a past time: it fires at once, at 100, not at 50. The trace has three such
/// starts, so it fires three times.
#[test]
fn a_past_deadline_fires_once_and_at_once() {
    let text = Text::new().start(100, 0, A, 50).start(100, 0, A, 50).start(110, 0, B, 10).end(120);
    let summary = replay(&text);
    // The second start in that microsecond restarts A.
    assert_eq!((fired(&summary), wakeups(&summary)), ([2, 2, 2], [2, 2, 2]));
    assert_eq!(summary.policies[2].early, 0);
    // 110 - 10.
    assert_eq!(summary.policies[2].queue_lateness_ns.unwrap().max / 1_000, 100);
}

/// An interrupt that was late for B would have been as late for a device that was due before: one
/// event. An interrupt on time is an event in addition.
#[test]
fn a_late_interrupt_is_also_the_stale_event_before_it() {
    let replayed = |at: u64| {
        let text = Text::new().start(10, 0, B, 150).start(20, 0, A, 100).cancel(30, 0, A);
        replay(&text.interrupt(at, 0, B).end(at + 100))
    };
    // Lazy's device is due at 100, 50 before B is.
    assert_eq!(wakeups(&replayed(155)), [1, 2, 1]);
    assert_eq!(wakeups(&replayed(250)), [1, 1, 1]);
    assert_eq!(fired(&replayed(250)), [1, 1, 1]);
}

/// A and B were armed before the recording: A expires, so it is assumed to have been pending; B is
/// cancelled, so its expiry remains unknown.
#[test]
fn timers_that_were_pending_at_the_start() {
    let summary = replay(&Text::new().cancel(10, 0, B).interrupt(100, 0, A).end(150));
    assert_eq!((summary.pending_at_start, summary.unknown_cancels), (1, 1));
    assert_eq!((writes(&summary), wakeups(&summary)), ([0, 0, 0], [1, 1, 1]));
    assert_eq!((fired(&summary), spurious(&summary)), ([1, 1, 1], [0, 0, 0]));
    // A guessed expiry has no lateness.
    assert_eq!(summary.policies[0].queue_lateness_ns, None);
    assert_eq!(summary.trace.recorded.queue_lateness_ns, None);
}

/// A expires twice and was started once: its second start has no record. Without inference
/// nothing fires the second time.
#[test]
fn an_idle_timer_that_expires_was_started() {
    let text = Text::new().start(10, 0, A, 100).interrupt(100, 0, A).interrupt(200, 0, A).end(250);
    let (on, off) = (replay(&text), replay_with(&text, Inference::Off));
    assert_eq!((on.inferred_operations, off.inferred_operations), (1, 0));
    assert_eq!((fired(&on), spurious(&on)), ([2, 2, 2], [0, 0, 0]));
    assert_eq!((fired(&off), spurious(&off)), ([1, 1, 1], [1, 1, 1]));
    // w(100). The write of the start without a record is not counted.
    assert_eq!((writes(&on), writes(&off)), ([1, 1, 1], [1, 1, 1]));
    assert!(on.inference && !off.inference);
}

/// A pending timer that an interrupt did not fire was restarted: it must not fire at its old
/// expiry. Lazy has a spurious wakeup there, as after any restart; the write of the other policies
/// is not counted.
#[test]
fn a_timer_that_an_interrupt_passed_over_was_restarted() {
    let text = Text::new().start(10, 0, A, 100).start(11, 0, B, 200);
    let text = text.interrupt(200, 0, B).interrupt(300, 0, A).end(350);
    let (on, off) = (replay(&text), replay_with(&text, Inference::Off));
    assert_eq!((on.inferred_operations, off.inferred_operations), (1, 0));
    assert_eq!((wakeups(&on), spurious(&on)), ([2, 3, 2], [0, 1, 0]));
    // w(100); w(200) in lazy's own event alone; w(300) at the end of the first interrupt.
    assert_eq!((writes(&on), inferred_writes(&on)), ([2, 3, 2], [1, 0, 1]));
    // Otherwise A fires at 100, in an event of its own, and the interrupt at 300 is spurious.
    assert_eq!((wakeups(&off), spurious(&off)), ([3, 3, 3], [1, 1, 1]));
}

/// Three timers that an interrupt did not pass over: a soft timer, whose callback runs after its
/// interrupt; a timer that was armed for the past after the interrupt; a timer on another CPU.
#[test]
fn no_restart_is_inferred_for_other_timers() {
    let setup = format!("hrtimer_setup: hrtimer={A} clockid=CLOCK_MONOTONIC mode=ABS|SOFT");
    let expire = format!("hrtimer_expire_entry: hrtimer={A} function=f now=101000");
    let soft = (Text::new().line(5, 0, ".....", &setup).start(10, 0, A, 100).enter(101, 0))
        .leave(102, 0)
        .line(103, 0, "..s1.", &expire)
        .end(150);
    let past = Text::new().start(10, 0, B, 100).interrupt(101, 0, B).start(105, 0, A, 90);
    let past = past.restart(106, 0, A, 200).end(150);
    let elsewhere = (Text::new().start(10, 0, A, 100).start(11, 0, B, 101))
        .interrupt(102, 0, B)
        .interrupt(106, 1, A)
        .end(150);
    for text in [soft, past, elsewhere] {
        let summary = replay(&text);
        assert_eq!(summary.inferred_operations, 0, "{text}");
        assert!(wakeups(&summary)[2] <= 2, "{text}");
    }
}

/// The timer was on the CPU on which it expired: CPU 0 has no event for it.
#[test]
fn a_timer_is_on_the_cpu_where_it_expires() {
    let summary = replay(&Text::new().start(10, 0, A, 100).interrupt(101, 1, A).end(150));
    assert_eq!((wakeups(&summary), spurious(&summary)), ([1, 1, 1], [0, 0, 0]));
    assert_eq!(fired(&summary), [1, 1, 1]);
}

/// An interrupt whose end was lost ends where its CPU is seen outside: B's start is a task's.
#[test]
fn an_interrupt_without_end_ends_with_its_context() {
    let text = (callback_restart().start(120, 0, B, 140).end(150)).replace("local_timer_exit", "x");
    let summary = replay(&text);
    assert_eq!(writes(&summary), [3 + 1; 3]);
    assert_eq!(fired(&summary), [2, 2, 2]);
}

/// CLOCK_REALTIME is half a century ahead of the trace's clock. A is due at 200 of ours.
#[test]
fn timers_on_another_clock() {
    const AHEAD_US: u64 = 1_780_000_000_000_000;
    let setup = |mode| format!("hrtimer_setup: hrtimer={A} clockid=CLOCK_REALTIME mode={mode}");
    let now_ns = (AHEAD_US + 201) * 1_000;
    let absolute = (Text::new().line(5, 0, ".....", &setup("ABS")))
        .start(10, 0, A, AHEAD_US + 200)
        .start(11, 0, B, 300)
        .enter(201, 0)
        .expire_at(201, 0, A, now_ns)
        .returned(202, 0, A)
        .leave(203, 0)
        .interrupt(301, 0, B);
    let without_setup = absolute.text_without("hrtimer_setup");
    for text in [absolute.end(350), without_setup] {
        let summary = replay(&text);
        // w(200); w(300) at the end of the interrupt.
        assert_eq!((writes(&summary), wakeups(&summary)), ([2, 2, 2], [2, 2, 2]), "{text}");
        assert_eq!((fired(&summary), spurious(&summary)), ([2, 2, 2], [0, 0, 0]), "{text}");
        assert!(summary.policies[0].queue_lateness_ns.unwrap().max < 3_000, "{text}");
    }
    // A relative timer is on CLOCK_MONOTONIC.
    let relative = Text::new().line(5, 0, ".....", &setup("REL")).start(10, 0, A, 100).end(150);
    assert_eq!(fired(&replay(&relative)), [1, 1, 1]);
    // The clock's offset is unknown: left out, and reported.
    let unknown = Text::new().line(5, 0, ".....", &setup("ABS")).start(10, 0, A, AHEAD_US + 50);
    let summary = replay(&unknown.cancel(20, 0, A).end(150));
    assert_eq!((summary.unplaced_starts, summary.notes.len()), (1, 2));
    assert_eq!(writes(&summary), [0, 0, 0]);
}

/// HZ is 250: a jiffy is 4000. At 401500, in jiffy 1100 (which began at 400000), a timer is
/// armed for 2 jiffies from now, 409500. It fires with the first interrupt after that on a
/// jiffy, 412000, as in the kernel; not with the one at 408000.
#[test]
fn the_wheel_fires_with_the_jiffy_of_the_kernel() {
    let tick = |text: Text, at: u64| {
        (text.enter(at + 5, 0).line(
            at + 6,
            0,
            "d.h1.",
            &format!(
                "hrtimer_expire_entry: hrtimer={B} function=tick_nohz_handler now={}006000",
                at / 1000
            ),
        ))
        .returned(at + 7, 0, B)
        .line(at + 8, 0, "d.h2.", &tick_start(at + 4_000))
        .leave(at + 9, 0)
    };
    let start =
        format!("timer_start: timer={A} function=g expires=1102 [timeout=2] cpu=0 idx=1 flags=");
    let expire = format!("timer_expire_entry: timer={A} function=g now=1103 baseclk=1103");
    let text = Text::new().line(390_000, 0, "d..1.", &tick_start(400_000));
    let text = tick(text, 400_000).line(401_500, 0, "d..1.", &start);
    let text = tick(tick(tick(text, 404_000), 408_000), 412_000);
    let text = (text.line(412_020, 0, "d.s1.", &format!("timer_cancel: timer={A}")))
        .line(412_021, 0, "..s1.", &expire)
        .end(413_000);
    let summary = replay(&text);
    assert_eq!((fired(&summary), wakeups(&summary)), ([5, 5, 5], [4, 4, 4]));
    assert_eq!(summary.operations.wheel.cancel, 0);
    // 412006 - 409500 in the interrupt, 412021 - 409500 in the kernel's softirq.
    assert_eq!(summary.policies[0].wheel_lateness_ns.unwrap().max / 10_000, 250);
    assert_eq!(summary.trace.recorded.wheel_lateness_ns.unwrap().max / 10_000, 252);
    // Without hrtimers and interrupts in the trace, the wheel has a device of its own.
    let wheel_only: String = text
        .lines()
        .filter(|l| l.starts_with('#') || l.contains(": timer_"))
        .fold(String::new(), |text, line| text + line + "\n");
    let summary = replay(&format!("{wheel_only} a-1 [000] .....  0.420000: timer_init: timer=c\n"));
    assert_eq!((fired(&summary), wakeups(&summary)), ([1, 1, 1], [1, 1, 1]));
    assert_eq!(summary.notes.len(), 2);
}

fn tick_start(expiry_us: u64) -> String {
    hrtimer_start(B, expiry_us, " mode=ABS was_armed=0")
        .replace("function=f", "function=tick_nohz_handler")
}

/// A kernel before 5.15 has the eager policy.
#[test]
fn the_kernels_own_policy_is_compared() {
    let text = callback_restart().end(150);
    for (kernel, policy) in [
        ("7.1.0-rc1", "linux-7.1"),
        ("7.0.9", "restart-aware"),
        ("6.18.0", "restart-aware"),
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
fn additions<T>(text: &str, of: impl Fn(&PolicyResult) -> T) -> [T; 4] {
    let trace = Trace::parse("t", text.as_bytes()).unwrap();
    let summary = summarise(&trace, &ReplayPolicy::ALL, Inference::On);
    let names: Vec<&str> = summary.policies.iter().map(|result| result.policy).collect();
    assert_eq!(names, ReplayPolicy::ALL.map(ReplayPolicy::name));
    std::array::from_fn(|place| of(&summary.policies[2 + place]))
}

/// B at 900: w(900). The slice A at 200: w(200). Moved to 300 and 400 while it is the first:
/// w(300), w(400); a lazy timer has a spurious wakeup at 200, then w(400). Cancelled: w(900); a
/// lazy timer has a spurious wakeup at 400, then w(900).
#[test]
fn a_lazy_slice_timer_leaves_the_device_alone() {
    let text = Text::new()
        .start(10, 0, B, 900)
        .start(20, 0, A, 200)
        .restart(30, 0, A, 300)
        .restart(40, 0, A, 400)
        .cancel(350, 0, A)
        .end(500);
    let slice = text.replace(&format!("{A} function=f"), &format!("{A} function=hrtick"));
    let writes = |text: &str| additions(text, |result| result.device_writes);
    assert_eq!(writes(&text), [5, 5, 5, 5], "no timer of any other function is lazy");
    assert_eq!(writes(&slice), [5, 4, 5, 4]);
    let spurious = additions(&slice, |result| result.spurious_wakeups);
    assert_eq!(spurious, [0, 2, 0, 2]);
}

/// A at 100: w(100); B at 900. The interrupt fires A: its end writes w(900), and the start of A at
/// 400 by the next thread w(400). A deferred rearm is one write for both. A start long after the
/// interrupt is a write of its own: w(900), w(400).
#[test]
fn a_deferred_rearm_is_one_write() {
    let interrupt = || Text::new().start(10, 0, A, 100).start(15, 0, B, 900).interrupt(101, 0, A);
    let writes = |text: &str| additions(text, |result| result.device_writes);
    assert_eq!(writes(&interrupt().start(110, 0, A, 400).end(150)), [3, 3, 2, 2]);
    assert_eq!(writes(&interrupt().start(200, 0, A, 400).end(250)), [3, 3, 3, 3]);
    // A is not late.
    let fired = additions(&interrupt().start(110, 0, A, 400).end(450), |result| result.expirations);
    assert_eq!(fired, [2, 2, 2, 2]);
}

/// A deferred device is programmed before its next timer is due.
#[test]
fn a_deferred_device_is_not_late() {
    let text = Text::new().start(10, 0, A, 100).start(15, 0, B, 130).interrupt(101, 0, A).end(200);
    let late = additions(&text, |result| result.queue_lateness_ns.unwrap().max / 10);
    assert_eq!(late, [200; 4], "A by 2 us as recorded, B not at all");
    assert_eq!(additions(&text, |result| result.expirations), [2; 4]);
}
