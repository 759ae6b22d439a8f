//! The data that was gathered about a machine, for the checks to judge. The code here reads nothing
//! from the machine, so tests can make up any machine.

use std::collections::{BTreeMap, BTreeSet};
use tickless_trace::cgroup::Counters;
use tickless_trace::read::Trace;
use tickless_trace::replay::{Agreement, Inference, ReplayPolicy, Summary, summarise};

/// A gathered value, or a text: why it could not be gathered, and what the user can do about that.
pub type Seen<T> = Result<T, String>;

#[derive(Debug)]
pub struct Facts {
    pub cpus: usize,
    /// A warning, if so much other work runs on the machine that measured times are disturbed.
    pub busy: Option<String>,
    pub clock_source: Seen<ClockSource>,
    pub clock_read: Seen<ReadCost>,
    pub log: Seen<Vec<String>>,
    pub counted: Seen<Counted>,
    pub recorded: Seen<RecordedTimers>,
    pub quotas: Seen<Vec<Quota>>,
    /// The timer slack in ns: how late the kernel is allowed to wake a thread.
    pub slack_ns: Seen<u64>,
    pub sleeps: Seen<Sleeps>,
    pub governors: Seen<Vec<Governor>>,
    /// How often CPUs entered each state while the doctor looked.
    pub idle_states: Seen<Vec<IdleState>>,
    pub rt_limit: Seen<RtLimit>,
    /// The interrupts of devices while the doctor looked, and for how many seconds that was.
    pub interrupts: Seen<(Vec<Interrupt>, f64)>,
}

impl Facts {
    /// Returns facts in which each measurement is missing, with `why` as the reason.
    pub fn unseen(cpus: usize, why: &str) -> Facts {
        let why = || why.to_string();
        Facts {
            cpus,
            busy: None,
            clock_source: Err(why()),
            clock_read: Err(why()),
            log: Err(why()),
            counted: Err(why()),
            recorded: Err(why()),
            quotas: Err(why()),
            slack_ns: Err(why()),
            sleeps: Err(why()),
            governors: Err(why()),
            idle_states: Err(why()),
            rt_limit: Err(why()),
            interrupts: Err(why()),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ClockSource {
    pub current: String,
    pub available: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
pub struct ReadCost {
    /// The time of one clock read if a single thread reads: the median over short batches of reads.
    pub alone_ns: f64,
    /// The time of one read of the clock if one thread on each CPU reads, all at once. It is the
    /// median over the threads; the time of each thread is the upper quartile of its batches.
    pub together_ns: f64,
    pub threads: usize,
}

#[derive(Clone, Debug)]
pub struct Counted {
    pub seconds: f64,
    pub hz: Option<u32>,
    pub idle_ticks: IdleTicks,
    pub cpus: Vec<CpuCounts>,
}

/// What happens to the kernel's tick while a CPU is idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleTicks {
    Stop,
    Continue,
    Unknown,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct CpuCounts {
    pub timer_interrupts: u64,
    pub timer_softirqs: u64,
    /// The number of softirqs that ran callbacks of high-resolution timers. Most callbacks run in
    /// the timer interrupt; only timers that were created for softirq context use a softirq.
    pub hrtimer_softirqs: u64,
    /// The CPU's total time, in the kernel's units of CPU accounting (usually 10 ms).
    pub time: u64,
    /// The part of `time` in which the CPU was idle, including waits for a disk.
    pub idle: u64,
    pub softirq: u64,
    /// The part of `time` in which the hypervisor ran something else.
    pub steal: u64,
}

impl CpuCounts {
    pub fn idle_share(&self) -> f64 {
        self.idle as f64 / (self.time as f64).max(1.0)
    }
}

#[derive(Debug)]
pub struct RecordedTimers {
    pub trace: Trace,
    /// The results of a replay, in which this library's timer code performs the recorded
    /// operations: counts of the operations and of the work that they cause.
    pub summary: Summary,
    /// Names of threads by id. Threads that had ended before the recording was read are missing.
    pub threads: BTreeMap<u32, String>,
    /// Those of them that belong to programs in Go.
    pub go: BTreeSet<u32>,
}

impl RecordedTimers {
    /// Replays the recording under each policy for the timer device. Takes some us for each event.
    pub fn new(trace: Trace, threads: BTreeMap<u32, String>) -> RecordedTimers {
        let policies = [&ReplayPolicy::DEFAULT[..], &[Agreement::policy_of(&trace)]].concat();
        let summary = summarise(&trace, &policies, Inference::On);
        RecordedTimers { trace, summary, threads, go: BTreeSet::new() }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quota {
    pub group: String,
    pub quota_us: u64,
    pub period_us: u64,
    /// Since the group was made.
    pub counters: Counters,
    /// While the doctor looked.
    pub during: Counters,
}

/// CPUs with the same driver and governor of their frequency.
#[derive(Clone, Debug)]
pub struct Governor {
    pub driver: String,
    pub governor: String,
    pub cpus: usize,
}

/// An idle state of the CPUs.
#[derive(Clone, Debug)]
pub struct IdleState {
    pub name: String,
    /// How long it takes to leave the state at most, as the processor's maker or firmware says.
    pub exit_us: u64,
    pub entered: u64,
}

/// How much of each period all real-time threads of a CPU may run together; negative: no limit.
#[derive(Clone, Copy, Debug)]
pub struct RtLimit {
    pub runtime_us: i64,
    pub period_us: i64,
}

#[derive(Clone, Debug)]
pub struct Interrupt {
    pub number: u32,
    pub name: String,
    /// For each CPU in the order of `/proc/interrupts`.
    pub counts: Vec<u64>,
    /// The CPUs that may handle it, as the kernel writes it: `0-3,8`.
    pub allowed: String,
}

#[derive(Clone, Copy, Debug)]
pub struct Sleeps {
    pub interval_us: u64,
    pub wakeups: u64,
    /// Deadlines that the thread missed: it had not woken by the next deadline.
    pub missed: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}
