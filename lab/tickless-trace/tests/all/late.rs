//! Planted causes of late sleeps, which must be found.

use crate::support::{HEADER, line_of, parsed, random, sched_switch};
use tickless_core::time::Ns;
use tickless_trace::Trace;
use tickless_trace::late::{Folded, Late, SeenWakeup, Selection, explain, explain_wakeup};

struct Plant {
    lines: Vec<(u64, String)>,
    /// What the recorder wrote behind the events.
    remarks: &'static str,
    /// Where the next sleep begins, and the state of the random numbers.
    at: u64,
    state: u64,
}

const SLEEPER: u32 = 77;
const WOKEN: &str = "sched_wakeup: comm=sleeper pid=77 prio=120 target_cpu=000";

impl Plant {
    fn new(seed: u64) -> Plant {
        Plant { lines: Vec::new(), remarks: "", at: 1_000_000, state: seed.wrapping_add(1) }
    }

    fn chance(&mut self, from: u64, to: u64) -> u64 {
        from + random(&mut self.state) % (to - from)
    }

    fn line(&mut self, at: u64, task: &str, cpu: u16, flags: &str, event: &str) {
        self.lines.push((at, line_of(task, at, cpu, flags, event)));
    }

    fn switch(&mut self, at: u64, from: &str, to: &str) {
        let [left, next] = [from, to].map(|task| task.rsplit_once('-').unwrap().1);
        self.line(at, from, 0, "d..2.", &sched_switch(left, next));
    }

    /// The thread arms its timer for `due`, with `slack`, and `next` runs.
    fn sleep(&mut self, due: u64, slack: u64, next: &str) {
        let at = self.at;
        let (soft, hard) = (due * 1_000, (due + slack) * 1_000);
        let event = format!(
            "hrtimer_start: hrtimer=0a function=hrtimer_wakeup expires={hard} softexpires={soft} \
             mode=ABS was_armed=0"
        );
        self.line(at, "sleeper-77", 0, "d..1.", &event);
        self.line(at + 1, "sleeper-77", 0, "d..1.", "write_msr: 6e0, value 1");
        self.switch(at + 2, "sleeper-77", next);
        if next.ends_with("-0") {
            self.line(at + 3, "<idle>-0", 0, "d..1.", "cpu_idle: state=1 cpu_id=0");
        }
    }

    fn fire(&mut self, at: u64, in_task: &str) {
        if in_task.ends_with("-0") {
            self.line(at, in_task, 0, "d..1.", "cpu_idle: state=4294967295 cpu_id=0");
        }
        self.line(at, in_task, 0, "d.h1.", "local_timer_entry: vector=236");
        let now = at * 1_000;
        let event = format!("hrtimer_expire_entry: hrtimer=0a function=hrtimer_wakeup now={now}");
        self.line(at + 2, in_task, 0, "d.h1.", &event);
        self.line(at + 3, in_task, 0, "d.h2.", WOKEN);
        self.line(at + 4, in_task, 0, "d.h1.", "hrtimer_expire_exit: hrtimer=0a");
        self.line(at + 5, in_task, 0, "d.h1.", "local_timer_exit: vector=236");
    }

    fn runs(&mut self, at: u64, after: &str) {
        self.switch(at, after, "sleeper-77");
        self.at = at + 50;
    }

    fn well(&mut self) {
        let (due, late) = (self.at + self.chance(500, 3_000), self.chance(1, 20));
        self.sleep(due, 0, IDLE);
        self.fire(due + late, IDLE);
        self.runs(due + late + 10, IDLE);
    }

    /// Adds a sleep that ends about `late` microseconds after its deadline, because of this cause.
    fn late_sleep(&mut self, cause: &str, late: u64) {
        let due = self.at + 1_000;
        // The slack; what runs until then; when the interrupt comes, and when the thread runs.
        let (slack, task, fires, runs) = match cause {
            SPINNER => (0, "spin-99", 3, late),
            SOFTIRQ => (0, "other-5", 3, late),
            INTERRUPTS_OFF => (0, "driver-6", late, late + 10),
            SLACK => (late, IDLE, late + 4, late + 12),
            QUOTA => (0, IDLE, 3, late),
            LOST_EVENT => (0, IDLE, late, late + 10),
            _ => return self.far_wheel_timer(late),
        };
        self.sleep(due, slack, task);
        if cause == SOFTIRQ {
            self.line(due - 20, task, 0, "..s1.", "softirq_entry: vec=3 [action=NET_RX]");
        }
        self.fire(due + fires, task);
        if cause == SOFTIRQ {
            self.line(due + late - 5, task, 0, "..s1.", "softirq_exit: vec=3 [action=NET_RX]");
        }
        if cause == QUOTA {
            self.refill(due + late - 20, task);
        }
        self.runs(due + runs, task);
    }

    fn refill(&mut self, at: u64, task: &str) {
        let event = "hrtimer_expire_entry: hrtimer=0b function=sched_cfs_period_timer now=1";
        self.line(at, task, 0, "d.h1.", event);
        self.line(at + 5, task, 0, "d.h1.", "hrtimer_expire_exit: hrtimer=0b");
    }

    fn far_wheel_timer(&mut self, late: u64) {
        // Late by less than an eighth of the duration; jiffies of 4 ms.
        let (at, tick) = (self.at, 4_000);
        let jiffy = |at: u64| 4_294_000_000 + at / tick;
        let (now, expires) = (jiffy(at), jiffy(at + late * 9));
        let timer = "timer=0c function=process_timeout";
        let timeout = expires - now;
        let event =
            format!("timer_start: {timer} expires={expires} [timeout={timeout}] cpu=0 flags=");
        self.line(at, "sleeper-77", 0, "d..1.", &event);
        self.switch(at + 2, "sleeper-77", IDLE);
        let fires = (at + late * 10) / tick * tick;
        let now = jiffy(fires);
        let event = format!("timer_expire_entry: {timer} now={now} baseclk={now}");
        self.line(fires, IDLE, 0, "..s1.", &event);
        self.line(fires + 1, IDLE, 0, "d.s2.", WOKEN);
        self.line(fires + 2, IDLE, 0, "..s1.", "timer_expire_exit: timer=0c");
        self.runs(fires + 9, IDLE);
    }

    fn explained(self) -> Late {
        explain(&self.trace(), Ns(200_000), &Selection::default())
    }

    fn trace(mut self) -> Trace {
        self.lines.sort_by_key(|(at, _)| *at);
        let lines: String = self.lines.into_iter().map(|(_, line)| line).collect();
        parsed(&(HEADER.to_string() + &lines + self.remarks))
    }
}

const IDLE: &str = "<idle>-0";

const SPINNER: &str = "thread spin-99 (nice 0) kept the CPU";
const SOFTIRQ: &str = "softirq NET_RX kept the CPU";
const INTERRUPTS_OFF: &str = "interrupts off in driver-6";
const SLACK: &str = "timer slack: the sleeper allowed it";
const QUOTA: &str = "CPU limit: the group had used up its quota";
const LOST_EVENT: &str = "the timer device's event was lost";
const FAR_TIMER: &str = "timer wheel: far deadlines are rounded up";

const CAUSES: [&str; 7] = [SPINNER, SOFTIRQ, INTERRUPTS_OFF, SLACK, QUOTA, LOST_EVENT, FAR_TIMER];

#[test]
fn planted_causes_are_named_first() {
    for cause in CAUSES {
        for seed in 0..20 {
            let mut planted = Plant::new(seed);
            let (mut wells, mut lates) = (0, 0);
            for _ in 0..30 {
                if planted.chance(0, 3) == 0 {
                    let late = planted.chance(12_000, 40_000);
                    planted.late_sleep(cause, late);
                    lates += 1;
                } else {
                    planted.well();
                    wells += 1;
                }
            }
            let late = planted.explained();
            let first = late.causes.first().map(|share| share.cause.as_str());
            assert_eq!(first, Some(cause), "seed {seed}: {late:#?}");
            assert!(late.causes[0].percent > 90.0, "{late:#?}");
            assert_eq!((late.sleeps, late.late), (wells + lates, lates), "{cause}: {late:#?}");
            for worst in &late.worst {
                assert_eq!((worst.thread.as_str(), worst.pid, worst.cpu), ("sleeper", SLEEPER, 0));
                let hops = worst.hops.iter().map(|hop| hop.ns);
                assert_eq!(hops.sum::<u64>(), worst.late_ns, "{cause}: {worst:?}");
            }
        }
    }
}

#[test]
fn missing_events_are_reported() {
    let text = "# tracer: nop\n a-1 [000] d.h1.  1.000001: hrtimer_cancel: hrtimer=01\n";
    let late = explain(&parsed(text), Ns(0), &Selection::default());
    assert_eq!((late.sleeps, late.late, late.causes.len()), (0, 0, 0));
    assert_eq!(late.missing.len(), 5, "{:?}", late.missing);
    assert!(late.missing[0].starts_with("no sched_switch: "), "{:?}", late.missing);
}

#[test]
fn lateness_counts_from_the_arming() {
    let mut planted = Plant::new(7);
    let armed = planted.at;
    planted.sleep(1_000, 0, "<idle>-0");
    planted.fire(armed + 300, "<idle>-0");
    planted.runs(armed + 310, "<idle>-0");
    let late = planted.explained();
    assert_eq!((late.late, late.worst[0].late_ns), (1, 310_000));
}

/// Goal: one wakeup is explained from its deadline until its thread read the clock, by its last
/// sleep; also if the thread woke in time and lost its CPU while it spun.
#[test]
fn one_wakeup_is_explained() {
    let mut planted = Plant::new(5);
    planted.well();
    planted.late_sleep(SPINNER, 20_000);
    let ran = planted.at - 50;
    planted.switch(ran + 100, "sleeper-77", "other-5");
    planted.switch(ran + 9_100, "other-5", "sleeper-77");
    let trace = planted.trace();
    let wakeup = |deadline, seen| {
        let wakeup = SeenWakeup { thread: SLEEPER, deadline: Ns(deadline), seen: Ns(seen) };
        explain_wakeup(&trace, wakeup)
    };
    let (due, end) = ((ran - 20_000) * 1_000, (ran + 10) * 1_000);
    let late = wakeup(due, end).unwrap();
    assert_eq!((late.due_ns, late.late_ns), (due, 20_010_000));
    assert_eq!(late.hops.iter().map(|hop| hop.ns).sum::<u64>(), late.late_ns, "{late:?}");
    let causes: Vec<&str> = late.hops.iter().map(|hop| hop.cause.as_str()).collect();
    assert!(causes.contains(&SPINNER), "{late:?}");
    let last = late.hops.last().unwrap();
    assert_eq!((last.hop, last.cause.as_str()), ("after", "the thread itself"));
    // It woke before its deadline.
    let late = wakeup((ran + 90) * 1_000, (ran + 9_110) * 1_000).unwrap();
    assert_eq!(late.hops.len(), 1, "{late:?}");
    assert_eq!((late.hops[0].hop, late.hops[0].ns), ("after", 9_020_000));
    assert_eq!(late.hops[0].cause, "thread other-5 (nice 0) kept the CPU");
    // A thread without a sleep in the trace.
    let nobody = SeenWakeup { thread: 4_711, deadline: Ns(due), seen: Ns(end) };
    assert_eq!(explain_wakeup(&trace, nobody), None);
}

/// Goal: a thread that stood still for its group's quota beside other threads is named as that. It
/// is not if no quota was refilled, or if another thread of its process ran until then.
#[test]
fn a_used_up_quota_is_found_on_busy_cpus() {
    let cause = |remarks, is_refilled: bool, others: [&str; 2]| {
        let mut planted = Plant::new(1);
        planted.remarks = remarks;
        let due = planted.at + 1_000;
        planted.sleep(due, 0, others[0]);
        planted.fire(due + 3, others[0]);
        for turn in 1..=10 {
            let [to, from] = [turn, turn + 1].map(|turn| others[turn as usize % 2]);
            planted.switch(due + 4_000 * turn, from, to);
        }
        if is_refilled {
            planted.refill(due + 45_000, others[0]);
        }
        planted.runs(due + 48_000, others[0]);
        planted.explained().causes[0].cause.clone()
    };
    let (process, limited) = ("# process 77 78: web\n", "# cpu limit: 77 78\n");
    for remarks in [process, limited] {
        assert_eq!(cause(remarks, true, ["other-5", "other-6"]), QUOTA);
        assert!(cause(remarks, false, ["other-5", "other-6"]).ends_with("kept the CPU"));
    }
    assert!(cause(process, true, ["other-5", "sibling-78"]).ends_with("kept the CPU"));
    // A thread of the group runs at the refill; or the thread's group never reached a limit.
    assert!(cause(limited, true, ["sibling-78", "other-5"]).ends_with("kept the CPU"));
    assert!(cause("# cpu limit: 9\n", true, ["other-5", "other-6"]).ends_with("kept the CPU"));
}

/// Since Linux 6.18, a thread whose group has no quota left runs for some microseconds first. A
/// thread that is woken again was not stopped, but slept.
#[test]
fn a_thread_that_is_stopped_at_once_has_not_run() {
    for (wakes, want) in [(false, Some(QUOTA)), (true, None)] {
        let mut planted = Plant::new(1);
        planted.remarks = "# cpu limit: 77 78\n";
        let due = planted.at + 1_000;
        planted.sleep(due, 0, "other-5");
        planted.fire(due + 3, "other-5");
        planted.runs(due + 10, "other-5");
        planted.switch(due + 20, "sleeper-77", "other-5");
        planted.refill(due + 45_000, "other-5");
        if wakes {
            planted.line(due + 45_100, "other-5", 0, "d.h1.", WOKEN);
        }
        planted.runs(due + 52_000, "other-5");
        let late = planted.explained();
        assert_eq!(late.sleeps, 1, "{late:?}");
        assert_eq!(late.causes.first().map(|share| share.cause.as_str()), want);
        let of_worst = late.worst.iter().map(|it| it.hops.iter().map(|hop| hop.ns).sum::<u64>());
        assert!(of_worst.zip(&late.worst).all(|(sum, worst)| sum == worst.late_ns), "{late:?}");
    }
}

#[test]
fn an_unrecorded_idle_thread_gives_no_cause() {
    let unknown = "unknown: nothing was recorded of CPU 0's idle thread";
    for (cpu, cause) in [("0", unknown), ("x", LOST_EVENT)] {
        let remarks = format!("# idle thread not recorded: CPU {cpu}\n");
        let mut planted = Plant { remarks: remarks.leak(), ..Plant::new(1) };
        planted.late_sleep(LOST_EVENT, 20_000);
        let trace = planted.trace();
        assert_eq!(
            (trace.messages().count(), trace.problems.damage().count()),
            (usize::from(cpu == "0"), 0)
        );
        let late = explain(&trace, Ns(200_000), &Selection::default());
        assert_eq!(late.causes[0].cause, cause);
    }
}

#[test]
fn sleeps_are_selected_and_folded() {
    let explained = |remarks, cause, selection: Selection| {
        let mut planted = Plant::new(1);
        planted.remarks = remarks;
        planted.late_sleep(cause, 20_000);
        let Late { sleeps, late, folded, .. } = explain(&planted.trace(), Ns(200_000), &selection);
        (sleeps, late, folded)
    };
    let text = |text: &str| Some(text.to_string());
    let none = Folded::default();
    let process = "# process 70 77: nginx: worker\n";
    for (selection, is_selected) in [
        (Selection { process: text("nginx"), ..Selection::default() }, true),
        (Selection { process: text("sleeper"), ..Selection::default() }, false),
        (Selection { thread: text("sleep"), pid: Some(70), ..Selection::default() }, true),
        (Selection { thread: text("other"), ..Selection::default() }, false),
        (Selection { pid: Some(77), ..Selection::default() }, true),
        (Selection { pid: Some(7), ..Selection::default() }, false),
    ] {
        let count = u64::from(is_selected);
        assert_eq!(explained(process, SPINNER, selection), (count, count, none));
    }
    let folds = Selection { folds: true, ..Selection::default() };
    let kernel = "# kernel threads: 2 77\n";
    let folded = Folded { kernel_threads: 1, wheel: 0 };
    assert_eq!(explained(kernel, SPINNER, folds.clone()), (1, 0, folded));
    let asked = Selection { pid: Some(77), ..folds.clone() };
    assert_eq!(explained(kernel, SPINNER, asked), (1, 1, none));
    assert_eq!(explained("", FAR_TIMER, folds), (1, 0, Folded { kernel_threads: 0, wheel: 1 }));
    assert_eq!(explained("", FAR_TIMER, Selection::default()), (1, 1, none));
}

/// Computes from the text of a trace, without its reader, how often and how long the threads waited
/// to run, as `runqlat` does.
fn waits_by_text(text: &str) -> (u64, u64) {
    let number = |text: &str| text.split(' ').next().unwrap().parse::<u64>().unwrap();
    let after = |line: &str, key: &str| line.split_once(key).map(|(_, rest)| number(rest));
    // When each thread became ready; 0 while it runs.
    let mut ready: std::collections::HashMap<u64, u64> = std::collections::HashMap::new();
    let (mut count, mut ns) = (0, 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (before, event) = line.split_once(": ").unwrap();
        let (seconds, micros) = before.rsplit_once(' ').unwrap().1.split_once('.').unwrap();
        let at = number(seconds) * 1_000_000 + number(micros);
        if event.starts_with("sched_wakeup") {
            ready.entry(after(event, " pid=").unwrap()).or_insert(at);
        }
        if event.starts_with("sched_switch") {
            let previous = after(event, " prev_pid=").unwrap();
            match event.contains("prev_state=R") {
                true => ready.insert(previous, at),
                false => ready.remove(&previous),
            };
            let next = after(event, "next_pid=").unwrap();
            if let Some(since @ 1..) = ready.insert(next, 0)
                && next != 0
            {
                count += 1;
                ns += (at - since) * 1_000;
            }
        }
    }
    (count, ns)
}

/// Goal: waits to run are those that another program finds in the same text. A lost event in the
/// middle ends all waits.
#[test]
fn waits_are_those_of_the_text() {
    for name in ["pipe-two-cpus", "two-groups-aligned", "bursts"] {
        let text = crate::support::sample_text(name);
        let waits = explain(&parsed(&text), Ns(0), &Selection::default()).waits;
        assert_eq!((waits.waits, waits.ns), waits_by_text(&text), "{name}");
        assert_eq!(waits.causes.iter().map(|share| share.ns).sum::<u64>(), waits.ns, "{name}");
    }
}

/// Goal: each cause of a wait that is not that of a sleep, and no wait where a thread slept.
#[test]
fn waits_have_their_causes() {
    let explained = |remarks, priority: [u32; 2], lost: &str, migrates: bool| {
        let mut planted = Plant::new(1);
        planted.remarks = remarks;
        let switch = |from, to, state: &str, priority| {
            let comm = format!("prev_comm=a prev_pid={from} prev_prio=9 prev_state={state}");
            format!("sched_switch: {comm} ==> next_comm=b next_pid={to} next_prio={priority}")
        };
        let [mine, other] = priority;
        let events = [
            (100, "x-1", switch(1, 77, "S", mine)),
            (1_000, "sleeper-77", switch(77, 5, "R", other)),
            (5_000, "other-5", switch(5, 6, "R", other)),
            (9_000, "other-6", switch(6, 5, "R", other)),
            (30_000, "other-5", switch(5, 77, "S", mine)),
            (31_000, "sleeper-77", switch(77, 0, "S", 120)),
            (60_000, IDLE, "sched_wakeup: comm=a pid=77 prio=9 target_cpu=000".to_string()),
            (60_010, IDLE, switch(0, 77, "R", mine)),
        ];
        for (at, task, event) in events {
            planted.line(1_000_000 + at, task, 0, "d..2.", &event);
        }
        planted.refill(1_025_000, "other-5");
        if migrates {
            let event = "sched_migrate_task: comm=a pid=77 prio=120 orig_cpu=0 dest_cpu=1";
            planted.line(1_020_000, "other-5", 0, "d..2.", event);
        }
        planted.lines.sort_by_key(|(at, _)| *at);
        planted.lines.insert(3, (1_007_000, lost.to_string()));
        explain(&planted.trace(), Ns(200_000), &Selection { pid: Some(77), ..Selection::default() })
    };
    let known = "# cpu limits are recorded\n";
    let first = |late: &Late| late.waits.causes.first().map(|share| share.cause.clone());
    let late = explained(known, [120, 120], "", false);
    assert_eq!(first(&late).unwrap(), "thread other-5 (nice 0) kept the CPU");
    let waits = &late.waits;
    assert_eq!((waits.waits, waits.ns, waits.late, waits.late_ns), (2, 29_010_000, 1, 29_000_000));
    assert!(waits.worst[0].is_preempted, "{late:#?}");
    assert_eq!((late.woken_by[0].times, late.woken_by[0].ns), (1, 29_000_000), "{late:#?}");
    let late = explained(known, [49, 120], "", false);
    assert_eq!(first(&late).unwrap(), "real-time class throttled: thread other-5 ran instead");
    let late = explained(known, [120, 49], "", false);
    assert_eq!(first(&late).unwrap(), "thread other-5 (real-time priority 50) kept the CPU");
    let late = explained(known, [120, 120], "", true);
    assert_eq!(
        first(&late).unwrap(),
        "migration: the trace does not show when the thread was moved"
    );
    // Nothing is known across a gap; what comes after it is.
    let late = explained(known, [120, 120], "CPU:0 [LOST 3 EVENTS]\n", false);
    assert_eq!((late.waits.waits, late.waits.ns, late.woken_by.len()), (1, 10_000, 1));
    // The group is named, if the kernel's own figures allow it.
    for (periods, stood, want) in [
        (20, 29_000_000, "CPU limit: /pod had used up its quota"),
        (20, 9_000_000, "thread other-5 (nice 0) kept the CPU"),
        (400, 29_000_000, "thread other-5 (nice 0) kept the CPU"),
    ] {
        let remarks = format!(
            "# cgroup {{\"path\":\"/pod\",\"limit\":null,\"counters\":{{\"periods\":{periods},\
             \"throttled\":20,\"stood_ns\":{stood}}},\"threads\":[77]}}\n"
        );
        let late = explained(remarks.leak(), [120, 120], "", false);
        assert_eq!(first(&late).unwrap(), want, "{periods} {stood}");
        assert_eq!(late.notes.len(), usize::from(periods == 400), "{late:#?}");
    }
}
