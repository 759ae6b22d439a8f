//! What `tickless doctor` makes of machines: healthy ones, and ones with each pathology planted.
//! Typed and recorded, so that it runs anywhere; `doctor_live` plants them in this machine.

use std::collections::{BTreeMap, BTreeSet};
use tickless::clock::Counter;

use crate::support::{HEADER, history, line, sample_text, text_without};
use tickless_lab::doctor::facts::{
    ClockSource, Counted, CpuCounts, Facts, Governor, IdleState, IdleTicks, Interrupt, Quota,
    ReadCost, RecordedTimers, RtLimit, Sleeps,
};
use tickless_lab::doctor::gather::clock::read_cost;
use tickless_lab::doctor::{Finding, Verdict, judge};
use tickless_lab::measure::cpus;
use tickless_lab::studies::checks;
use tickless_lab::studies::clock::device::{self, Emulated};
use tickless_trace::cgroup::Counters;
use tickless_trace::read::Trace;

fn recorded(text: &str) -> Result<RecordedTimers, String> {
    let trace = Trace::parse("t", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    Ok(RecordedTimers::new(trace, BTreeMap::from([(7, "waker".to_string())])))
}

/// What the counters of two CPUs like this one grow by in five seconds.
fn counted(cpu: CpuCounts, idle_ticks: IdleTicks) -> Result<Counted, String> {
    Ok(Counted { seconds: 5.0, hz: Some(250), idle_ticks, cpus: vec![cpu; 2] })
}

fn read(alone_ns: f64, together_ns: f64, threads: usize) -> Result<ReadCost, String> {
    Ok(ReadCost { alone_ns, together_ns, threads })
}

/// A thousand deadlines a millisecond apart, of which so many were missed.
fn sleeps(missed: u64) -> Result<Sleeps, String> {
    let (p99_ns, max_ns) = (180_000, 1_100_000);
    Ok(Sleeps { interval_us: 1_000, wakeups: 1_000 - missed, missed, p99_ns, max_ns })
}

fn clock_source(names: &[&str]) -> Result<ClockSource, String> {
    let available: Vec<String> = names.iter().map(ToString::to_string).collect();
    Ok(ClockSource { current: available[0].clone(), available })
}

fn log(more: &str) -> Result<Vec<String>, String> {
    Ok(HEALTHY_LOG.lines().chain(more.lines()).map(str::to_string).collect())
}

/// An idle virtual machine with two CPUs: the one of traces/idle.
fn healthy() -> Facts {
    let idle = CpuCounts {
        timer_interrupts: 281,
        timer_softirqs: 24,
        time: 500,
        idle: 497,
        ..CpuCounts::default()
    };
    Facts {
        cpus: 2,
        busy: None,
        clock_source: clock_source(&["tsc", "kvm-clock"]),
        clock_read: read(37.7, 70.1, 2),
        log: log(""),
        counted: counted(idle, IdleTicks::Stop),
        recorded: recorded(&sample_text("idle")),
        quotas: Ok(Vec::new()),
        slack_ns: Ok(50_000),
        sleeps: sleeps(1),
        governors: governors("powersave", "intel_pstate"),
        idle_states: idle_states(133),
        rt_limit: Ok(RtLimit { runtime_us: 950_000, period_us: 1_000_000 }),
        interrupts: Ok((vec![interrupt([900, 10])], 5.0)),
    }
}

fn governors(governor: &str, driver: &str) -> Result<Vec<Governor>, String> {
    let (governor, driver) = (governor.to_string(), driver.to_string());
    Ok(vec![Governor { driver, governor, cpus: 2 }])
}

/// A state with this exit latency that CPUs entered, and a deep one that they did not.
fn idle_states(exit_us: u64) -> Result<Vec<IdleState>, String> {
    let state = |name: &str, exit_us, entered| IdleState { name: name.into(), exit_us, entered };
    Ok(vec![state("C6", exit_us, 4_000), state("C99", 99_000, 0)])
}

fn interrupt(counts: [u64; 2]) -> Interrupt {
    let (name, allowed) = ("virtio0-input".to_string(), "0-1".to_string());
    Interrupt { number: 29, name, counts: counts.to_vec(), allowed }
}

/// Goal: what makes threads late besides timers is judged from what was gathered, from good to bad;
/// each finding names what it looked at.
#[test]
fn what_else_makes_threads_late_is_found() {
    use Verdict::{Bad, Ok as Good, Warn};
    let check = |name: &str, facts: Facts, want: Verdict, says: &str| {
        let finding = finding(name, &facts);
        assert_eq!(finding.verdict, want, "{finding:?}");
        assert!(finding.how.contains(says), "{says}: {finding:?}");
    };
    for (steal, want) in [(0, Good), (9, Good), (10, Warn), (49, Warn), (50, Bad)] {
        let counted = counted(CpuCounts { steal, ..BUSY }, IdleTicks::Stop);
        check("steal", Facts { counted, ..healthy() }, want, "over 5.0 s");
    }
    for (governor, driver, want) in [
        ("powersave", "intel_pstate", Good),
        ("schedutil", "intel_cpufreq", Good),
        ("performance", "acpi-cpufreq", Good),
        ("userspace", "acpi-cpufreq", Warn),
        ("powersave", "acpi-cpufreq", Bad),
    ] {
        let facts = Facts { governors: governors(governor, driver), ..healthy() };
        check("cpu-governor", facts, want, &format!("{governor} on 2 CPUs (driver {driver})"));
    }
    for (exit_us, want) in [(2, Good), (890, Good), (1_000, Warn), (10_000, Bad)] {
        let facts = Facts { idle_states: idle_states(exit_us), ..healthy() };
        check("idle-states", facts, want, &format!("C6 ({exit_us} us to leave) 4000 times"));
    }
    let rt = |runtime_us, more: &str| {
        let rt_limit = Ok(RtLimit { runtime_us, period_us: 1_000_000 });
        Facts { rt_limit, log: log(more), ..healthy() }
    };
    check("rt-throttling", rt(950_000, ""), Good, "95 % of each");
    check("rt-throttling", rt(-1, ""), Good, "no limit is set");
    let stopped = "sched: RT throttling activated";
    check("rt-throttling", rt(950_000, stopped), Warn, "1 messages");
    check("rt-throttling", rt(100_000, ""), Bad, "10 % of each");
    let blind = Facts { log: Err("closed".to_string()), ..healthy() };
    check("rt-throttling", blind, Verdict::Unknown, "closed");
    for (counts, want) in [
        ([40_000, 0], Good),
        ([60_000, 0], Warn),
        ([60_000, 50_000], Good),
        ([900_000, 100_000], Bad),
    ] {
        let facts = Facts { interrupts: Ok((vec![interrupt(counts)], 5.0)), ..healthy() };
        check("irq-affinity", facts, want, "virtio0-input (interrupt 29, allowed on CPUs 0-1)");
    }
    let mut one = interrupt([900_000, 0]);
    one.counts.pop();
    let one = Facts { interrupts: Ok((vec![one], 5.0)), ..healthy() };
    check("irq-affinity", one, Verdict::Unknown, "one CPU");
}

const BUSY: CpuCounts = CpuCounts {
    timer_interrupts: 1_250,
    timer_softirqs: 100,
    hrtimer_softirqs: 0,
    time: 500,
    idle: 0,
    softirq: 10,
    steal: 0,
};

const HEALTHY_LOG: &str = "\
clocksource: kvm-clock: mask: 0xffffffffffffffff max_cycles: 0x1cd42e4dffb
tsc: Detected 2300.000 MHz processor
TSC deadline timer available
TSC synchronization [CPU#0 -> CPU#1]: passed
clocksource: Switched to clocksource kvm-clock
clocksource: Switched to clocksource tsc";

/// The healthy machine, with this recording.
fn with_sample(name: &str) -> Facts {
    Facts { recorded: recorded(&sample_text(name)), ..healthy() }
}

fn finding(name: &str, facts: &Facts) -> Finding {
    let check = checks().into_iter().find(|check| check.name == name).unwrap();
    let finding = check.judge(facts);
    // Whatever comes out: no line without how it was obtained, no complaint without advice.
    let texts = [&finding.how, finding.unit, check.text("about")];
    assert!(texts.iter().all(|text| !text.is_empty()), "{finding:?}");
    assert_eq!(finding.verdict > Verdict::Unknown, !finding.advice.is_empty(), "{finding:?}");
    assert_eq!(finding.verdict == Verdict::Unknown, finding.figure.is_none(), "{finding:?}");
    finding
}

fn verdict(name: &str, facts: &Facts) -> Verdict {
    finding(name, facts).verdict
}

/// Goal: a healthy idle machine has no complaint, and what was planted in one place is in no other.
#[test]
fn a_healthy_machine_is_silent() {
    let checks = checks();
    let findings = judge(&checks, &healthy());
    assert_eq!(findings.len(), checks.len());
    for finding in findings {
        assert!(finding.check.is_ascii() && !finding.check.contains('_'), "{}", finding.check);
        // The recording of traces/idle is without wakeups.
        let want = if finding.check == "tick-wakers" { Verdict::Unknown } else { Verdict::Ok };
        assert_eq!(finding.verdict, want, "{finding:?}");
    }
    // As busy as a machine can be, with ticks on all CPUs.
    let counted = counted(BUSY, IdleTicks::Stop);
    let busy = Facts { counted, ..with_sample("pipe-one-cpu") };
    for check in checks {
        assert!(verdict(check.name, &busy) <= Verdict::Unknown, "{:?}", check.judge(&busy));
    }
}

#[test]
fn what_is_not_seen_is_unknown() {
    let facts = Facts::unseen(4, "a reason to be told");
    for check in checks() {
        let finding = finding(check.name, &facts);
        assert_eq!(finding.verdict, Verdict::Unknown, "{finding:?}");
        assert!(finding.how.contains("a reason to be told"), "{finding:?}");
    }
}

#[test]
fn a_slow_counter_is_found() {
    let mut facts = healthy();
    // A read takes much longer than the own work of the readers between two reads.
    let device = Emulated::with_read_ns(device::clock().unwrap(), 10_000);
    let device = || device.read();
    facts.clock_read = read_cost(&cpus(), &device);
    let source = finding("clock-source", &facts);
    assert_eq!(source.verdict, Verdict::Bad, "{source:?}");
    assert!(source.figure >= Some(1_000.0), "{source:?}");
    if cpus().len() > 1 {
        // Where other work takes CPUs away, readers meet less often than they would, and a read
        // alone takes longer. The least time of such a read is the right one.
        let mut least_ns = f64::INFINITY;
        let meets = |_| {
            facts.clock_read = read_cost(&cpus(), &device).map(|cost| {
                least_ns = least_ns.min(cost.alone_ns);
                ReadCost { alone_ns: least_ns, ..cost }
            });
            finding("clock-contention", &facts).figure >= Some(1.5)
        };
        assert!((0..50).any(meets), "{:?}", facts.clock_read);
    }
    for (alone_ns, together_ns, threads, want) in [
        (30.0, 31.0, 4, Verdict::Ok),
        (20.0, 150.0, 64, Verdict::Ok),
        (600.0, 1_200.0, 4, Verdict::Ok),
        (300.0, 620.0, 2, Verdict::Warn),
        (600.0, 2_500.0, 64, Verdict::Warn),
        (1_000.0, 2_000.0, 2, Verdict::Bad),
        (1_000.0, 480_000.0, 480, Verdict::Bad),
    ] {
        facts.clock_read = read(alone_ns, together_ns, threads);
        assert_eq!(verdict("clock-contention", &facts), want, "{alone_ns}, {together_ns}");
    }
    let hpet = Facts { clock_source: clock_source(&["hpet"]), ..healthy() };
    assert_eq!(verdict("clock-source", &hpet), Verdict::Bad, "by its name");
    let calls = Facts { clock_read: read(320.0, 320.0, 2), ..healthy() };
    assert_eq!(verdict("clock-source", &calls), Verdict::Warn, "a system call for each read");
}

/// Goal: a clock that was given up is bad, a doubt is a warning, and a passed check is neither.
#[test]
fn watchdog_messages_are_found() {
    for (line, want) in [
        (
            "clocksource: timekeeping watchdog on CPU3: Marking clocksource 'tsc' as unstable \
             because the skew is too large:",
            Verdict::Bad,
        ),
        ("tsc: Marking TSC unstable due to clocksource watchdog", Verdict::Bad),
        ("TSC found unstable after boot, most likely due to broken BIOS.", Verdict::Bad),
        (
            "clocksource: timekeeping watchdog on CPU1: hpet wd-wd read-back delay of 64000ns",
            Verdict::Warn,
        ),
        ("clocksource: Long readout interval, skipping watchdog check: 1", Verdict::Warn),
        ("TSC synchronization [CPU#0 -> CPU#2]: passed", Verdict::Ok),
        ("usb 1-1: new device", Verdict::Ok),
    ] {
        let finding = finding("clock-watchdog", &Facts { log: log(line), ..healthy() });
        assert_eq!(finding.verdict, want, "{line}");
        assert_eq!(finding.figure, Some(if want == Verdict::Ok { 0.0 } else { 1.0 }), "{line}");
        assert_eq!(finding.how.contains(line), want != Verdict::Ok, "{}", finding.how);
    }
}

/// Goal: device writes for removals are found in a recording: worth a look on the recorded HTTP
/// server, bad where a workload does nothing else.
#[test]
fn an_eager_policy_is_found() {
    let mut facts = with_sample("nginx");
    let nginx = finding("rearm-removals", &facts);
    assert_eq!(nginx.verdict, Verdict::Warn, "{nginx:?}");
    assert!(nginx.figure > Some(30.0) && nginx.figure < Some(50.0), "{nginx:?}");
    assert_eq!(verdict("rearm-writes", &facts), Verdict::Ok);

    facts.recorded = recorded(&eager_trace(4_000, 24));
    let eager = finding("rearm-removals", &facts);
    assert_eq!(eager.verdict, Verdict::Bad, "{eager:?}");
    let writes = finding("rearm-writes", &facts);
    assert_eq!(writes.verdict, Verdict::Bad, "{writes:?}");
    assert!(writes.figure > Some(10.0), "{writes:?}");

    // Most of what little is written.
    facts.recorded = recorded(&eager_trace(100_000, 4));
    let few = finding("rearm-removals", &facts);
    assert!(few.verdict == Verdict::Ok && few.figure > Some(30.0), "{few:?}");
}

/// A tick every so often, and after each so many waits with a timeout of 1.5 ms, 100 us apart.
fn eager_trace(tick_us: u64, waits: u64) -> String {
    let mut text = HEADER.to_string();
    for tick in 0..50 {
        let (at, next) = (1_000 + tick_us * tick, 1_000 + tick_us * (tick + 1));
        text += &history(&format!(
            "{at} enter; {at} expire A; {at} returned A; {at} rearm A {next}; {at} write; \
             {at} leave"
        ));
        for wait in 0..waits {
            let (from, to) = (at + 50 + 100 * wait, at + 60 + 100 * wait);
            let due = from + 1_500;
            text +=
                &history(&format!("{from} start B {due}; {from} write; {to} cancel B; {to} write"));
        }
    }
    text + &history(&format!("{} end", 2_000 + 50 * tick_us))
}

#[test]
fn cancels_are_found_by_their_rate() {
    let nginx = finding("timer-cancels", &with_sample("nginx"));
    assert_eq!(nginx.verdict, Verdict::Warn, "{nginx:?}");
    assert!(nginx.figure > Some(90.0), "{nginx:?}");
    assert_eq!(verdict("timer-cancels", &with_sample("pipe-two-cpus")), Verdict::Ok);
}

/// Goal: idle CPUs that tick, or that something wakes, are found; busy ones are not taken for idle.
#[test]
fn ticks_of_idle_cpus_are_found() {
    let with = |per_s: u64, idle: u64, idle_ticks: IdleTicks| {
        let cpu = CpuCounts { timer_interrupts: 5 * per_s, time: 500, idle, ..Default::default() };
        verdict("idle-ticks", &Facts { counted: counted(cpu, idle_ticks), ..healthy() })
    };
    use IdleTicks::{Continue, Stop, Unknown};
    assert_eq!(with(56, 500, Stop), Verdict::Ok);
    assert_eq!(with(250, 500, Unknown), Verdict::Bad, "the tick");
    assert_eq!(with(100, 500, Continue), Verdict::Bad, "a slow tick");
    assert_eq!(with(250, 500, Stop), Verdict::Warn, "something else");
    assert_eq!(with(200, 500, Unknown), Verdict::Warn, "something else");
    assert_eq!(with(2_000, 490, Stop), Verdict::Bad);
    assert_eq!(with(250, 400, Stop), Verdict::Unknown, "no CPU is idle");
}

#[test]
fn softirqs_of_every_tick_are_found() {
    let of = |timer_softirqs, softirq| CpuCounts { timer_softirqs, softirq, ..BUSY };
    for (cpu, check, want) in [
        (of(1_240, 10), "expiry-wakes", Verdict::Bad),
        // That takes no time yet.
        (of(1_240, 10), "timer-softirq", Verdict::Ok),
        (of(9_000, 200), "timer-softirq", Verdict::Bad),
        // Packets, not timers.
        (of(100, 200), "timer-softirq", Verdict::Ok),
    ] {
        let facts = Facts { counted: counted(cpu, IdleTicks::Stop), ..healthy() };
        assert_eq!(verdict(check, &facts), want, "{check}, {cpu:?}");
    }
}

/// So many wakeups a second of thread 7 by a timer's callback, and as many of thread 8 by others.
fn wakers(per_s: u64) -> String {
    let mut text = HEADER.to_string();
    for turn in 0..per_s {
        let at = 1_000 + turn * 1_000_000 / per_s;
        let wake = |pid: u32| format!("sched_wakeup: comm=w pid={pid} prio=120 target_cpu=000");
        text += &history(&format!("{at} start A {}; {at} enter; {at} expire A", at + 60));
        text += &line(at, 0, "d.h1.", &wake(7));
        text += &history(&format!("{at} returned A; {at} leave"));
        text += &line(at + 5, 0, "d..1.", &wake(8));
    }
    text + &history("1001000 end")
}

/// Goal: a thread that every tick wakes is found and named; one that threads wake as often is not.
#[test]
fn a_thread_that_every_tick_wakes_is_found() {
    let mut facts = healthy();
    for (per_s, want) in [(100, Verdict::Ok), (250, Verdict::Warn), (1_000, Verdict::Bad)] {
        facts.recorded = recorded(&wakers(per_s));
        let finding = finding("tick-wakers", &facts);
        assert_eq!(finding.verdict, want, "{finding:?}");
        assert_eq!(finding.figure, Some(if want == Verdict::Ok { 0.0 } else { 1.0 }));
        assert!(finding.how.contains("waker (7)") && !finding.how.contains("(8)"), "{finding:?}");
    }
    // Go's runtime sleeps so shortly by itself.
    let go = |recorded| RecordedTimers { go: BTreeSet::from([7]), ..recorded };
    facts.recorded = recorded(&wakers(1_000)).map(go);
    let finding = finding("tick-wakers", &facts);
    assert_eq!((finding.verdict, finding.figure), (Verdict::Ok, Some(0.0)), "{finding:?}");
    assert!(finding.how.contains("without 1000 short sleeps"), "{finding:?}");
}

/// Goal: two groups that are refilled together are found in the recording of two that were; as
/// many that are refilled apart are not; without a recording nothing is claimed.
#[test]
fn aligned_quota_groups_are_found() {
    let mut facts = with_sample("two-groups-aligned");
    facts.quotas = Ok(vec![quota("/one", 0, 0), quota("/other", 0, 0)]);
    let aligned = finding("quota-phases", &facts);
    assert_eq!((aligned.verdict, aligned.figure), (Verdict::Bad, Some(100.0)), "{aligned:?}");
    assert!(aligned.how.contains("2 share a period of 100 ms"), "{aligned:?}");
    assert!(aligned.how.contains("phases: 55.5 ms, 55.7 ms"), "{aligned:?}");
    assert_eq!(verdict("aligned-timers", &facts), Verdict::Ok, "told once");

    facts.recorded = recorded(&periodic("sched_cfs_period_timer", 50_000));
    assert_eq!(verdict("quota-phases", &facts), Verdict::Ok, "half a period apart");
    facts.recorded = Err("only root may record".to_string());
    assert_eq!(verdict("quota-phases", &facts), Verdict::Unknown);
    let other = Quota { period_us: 90_000, ..quota("/other", 0, 0) };
    facts.quotas = Ok(vec![quota("/one", 0, 0), other]);
    assert_eq!(verdict("quota-phases", &facts), Verdict::Ok, "no period is shared");
}

/// Two timers of 100 ms with this function, so many microseconds apart, ten times.
fn periodic(function: &str, apart_us: u64) -> String {
    let mut text = HEADER.to_string();
    for turn in 0..10 {
        for (timer, offset) in [("A", 0), ("B", apart_us)] {
            let at = 200_000 + 100_000 * turn + offset;
            let next = at + 100_000;
            text += &history(&format!(
                "{at} enter; {at} expire {timer}; {at} returned {timer}; \
                 {at} rearm {timer} {next}; {at} leave"
            ));
        }
    }
    text += &history("2000000 end");
    text.replace("function=f ", &format!("function={function} "))
}

/// A group that has used its quota up in `before` periods, and lately in so many of 35.
fn quota(group: &str, before: u64, lately: u64) -> Quota {
    let during =
        Counters { periods: 35, throttled: lately, stood_ns: 7_000_000_000, used_ns: None };
    let counters = Counters { periods: 1_000, throttled: before + lately, ..Counters::default() };
    Quota { group: group.to_string(), quota_us: 25_000, period_us: 100_000, counters, during }
}

/// Goal: throttled groups are named, the most throttled first, with what to do.
#[test]
fn throttled_groups_are_found() {
    let mut facts = healthy();
    facts.quotas = Ok(vec![quota("/none", 0, 0), quota("/once", 600, 0), quota("/some", 0, 1)]);
    let it = finding("quota-throttled", &facts);
    assert_eq!(it.verdict, Verdict::Ok, "{it:?}");
    assert!(it.how.contains("/once (25.0 ms in 100 ms) in 0 of 35 periods"), "{it:?}");
    facts.quotas = Ok(vec![quota("/none", 0, 0), quota("/once", 600, 0), quota("/now", 0, 35)]);
    let it = finding("quota-throttled", &facts);
    assert_eq!((it.verdict, it.figure), (Verdict::Bad, Some(100.0)), "{it:?}");
    let now = "/now (25.0 ms in 100 ms) in 35 of 35 periods while it looked, CPUs stood still for \
               7.0 s; since it was made in 3.50 % of 1000 periods";
    assert!(it.how.starts_with(now) && !it.how.contains("/none"), "{it:?}");
    assert!(it.advice.contains("--cgroup /now"), "{it:?}");
}

/// Goal: any other timers that keep meeting are found, but for those that the kernel has on purpose
/// for each CPU.
#[test]
fn aligned_timers_are_found() {
    let mut facts = healthy();
    for (function, apart_us, want) in [
        ("hrtimer_wakeup", 100, Verdict::Bad),
        ("hrtimer_wakeup", 40_000, Verdict::Ok),
        ("tick_nohz_handler", 0, Verdict::Ok),
    ] {
        let text = periodic(function, apart_us);
        facts.recorded = recorded(&text);
        let aligned = finding("aligned-timers", &facts);
        assert_eq!(aligned.verdict, want, "{function} {apart_us}: {aligned:?}");
        assert_eq!(verdict("quota-phases", &facts), Verdict::Ok);
        if want == Verdict::Bad {
            assert!(aligned.how.ends_with("by whom was not seen"), "{aligned:?}");
            // The first armings are a program's.
            let armed = HEADER.to_string() + &history("9 start A 10; 9 start B 10");
            facts.recorded = recorded(&text.replacen(HEADER, &armed, 1));
            let named = finding("aligned-timers", &facts).how;
            assert!(named.contains("armed by "), "{named}");
        }
    }
}

#[test]
fn inexact_sleeps_are_found() {
    let mut facts = healthy();
    let (ok, warn, bad) = (Verdict::Ok, Verdict::Warn, Verdict::Bad);
    for (slack_ns, want) in [(1, ok), (50_000, ok), (60_000, warn), (4_000_000, bad)] {
        facts.slack_ns = Ok(slack_ns);
        assert_eq!(verdict("timer-slack", &facts), want, "{slack_ns}");
    }
    for (missed, want) in [(5, ok), (50, warn), (300, bad)] {
        facts.sleeps = sleeps(missed);
        assert_eq!(verdict("missed-deadlines", &facts), want, "{missed}");
    }
}

/// Goal: a recording that lacks what a figure needs is told from one where there is nothing.
#[test]
fn a_poor_recording_is_no_clean_bill() {
    let mut facts = healthy();
    facts.recorded = recorded(&text_without(&sample_text("pipe-one-cpu"), "write_msr"));
    assert_eq!(verdict("rearm-writes", &facts), Verdict::Unknown);
}

/// Goal: Linux 7.1's writes are seen and its own policy is named, and what its slice timer costs.
#[test]
fn a_recording_of_linux_7_2_is_judged_by_its_own_policy() {
    let facts = with_sample("kernels/7.2-tool-rec");
    let how = |name: &str, facts: &Facts| finding(name, facts).how;
    let writes = how("rearm-writes", &facts);
    assert!(writes.contains("1501 device writes and 1148 timer interrupts"), "{writes}");
    let slices = finding("slice-timer", &facts);
    assert_eq!(slices.verdict, Verdict::Unknown, "{slices:?}");
    assert!(slices.how.contains("takes sched:sched_switch"), "{slices:?}");
    let removals = how("rearm-removals", &facts);
    assert!(removals.contains("1514 writes with the kernel's policy (linux-7.1)"), "{removals}");
    let slices = how("slice-timer", &with_sample("kernels/7.2-tool-late"));
    assert!(slices.contains("without it 624 writes and 608 interrupts"), "{slices}");
    let unarmed = with_sample("kernels/7.2-ping00-other");
    assert!(how("slice-timer", &unarmed).contains("was not armed"));
    assert!(how("slice-timer", &healthy()).contains("before Linux 7.1"));
}

/// Goal: a machine that is on call is always busy: what was measured there is judged, and says so.
#[test]
fn a_busy_machine_is_judged_as_it_is() {
    let mut facts = healthy();
    facts.sleeps = sleeps(500);
    facts.busy = Some("the machine was busy: load average 9 on 2 CPUs".to_string());
    let missed = finding("missed-deadlines", &facts);
    assert_eq!((missed.verdict, missed.figure), (Verdict::Bad, Some(50.0)));
    assert!(missed.how.ends_with("Then the machine was busy: load average 9 on 2 CPUs"));
    assert!(!finding("timer-slack", &facts).how.contains("busy"), "it is no time");
    facts.sleeps = sleeps(1);
    assert_eq!(verdict("missed-deadlines", &facts), Verdict::Ok);
}
