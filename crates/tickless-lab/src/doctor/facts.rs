//! What was gathered about a machine. Nothing here reads the machine.

use std::collections::BTreeMap;
use tickless_trace::read::Trace;
use tickless_trace::replay::{Inference, ReplayPolicy, Summary, summarise};

/// A gathered value, or why it could not be gathered and what to do about it.
pub type Seen<T> = Result<T, String>;

/// Everything that checks judge. `gather` fills in what the chosen checks need.
#[derive(Debug)]
pub struct Facts {
    /// How many CPUs.
    pub cpus: usize,
    /// A warning about other work, if there was so much that it disturbs times.
    pub busy: Option<String>,
    /// The clock that the kernel uses.
    pub clock_source: Seen<ClockSource>,
    /// The cost of reading it.
    pub clock_read: Seen<ReadCost>,
    /// The kernel's messages, from the first that it still has.
    pub log: Seen<Vec<String>>,
    /// The kernel's counters over a while.
    pub counted: Seen<Counted>,
    /// A recording of its timers over the same time.
    pub recorded: Seen<RecordedTimers>,
    /// Groups with a quota.
    pub quotas: Seen<Vec<Quota>>,
    /// How much later than asked threads may be woken, in ns.
    pub slack_ns: Seen<u64>,
    /// The lateness of sleeping threads.
    pub sleeps: Seen<Sleeps>,
}

impl Facts {
    /// Returns facts without a value, for this reason.
    pub fn unseen(cpus: usize, why: &str) -> Facts {
        fn of<T>(why: &str) -> Seen<T> {
            Err(why.to_string())
        }
        Facts {
            cpus,
            busy: None,
            clock_source: of(why),
            clock_read: of(why),
            log: of(why),
            counted: of(why),
            recorded: of(why),
            quotas: of(why),
            slack_ns: of(why),
            sleeps: of(why),
        }
    }
}

/// The clock that the kernel uses, and those that it could.
#[derive(Clone, Debug)]
pub struct ClockSource {
    /// Its name.
    pub current: String,
    /// The others' and its own.
    pub available: Vec<String>,
}

/// The cost of reading a clock, in ns.
#[derive(Clone, Copy, Debug)]
pub struct ReadCost {
    /// A thread that is alone: the median of batches.
    pub alone_ns: f64,
    /// One thread on each CPU at the same time: the median of their upper quartiles.
    pub together_ns: f64,
    /// How many threads that were.
    pub threads: usize,
}

/// The kernel's counters, from one snapshot to the next.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The time between the snapshots.
    pub seconds: f64,
    /// The kernel's ticks in a second, if known.
    pub hz: Option<u32>,
    /// What happens to them while a CPU is idle.
    pub idle_ticks: IdleTicks,
    /// By CPU.
    pub cpus: Vec<CpuCounts>,
}

/// What happens to the kernel's tick while a CPU is idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleTicks {
    /// It stops.
    Stop,
    /// It continues.
    Continue,
    /// Unknown.
    Unknown,
}

/// What the kernel counted of one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuCounts {
    /// Timer interrupts.
    pub timer_interrupts: u64,
    /// Softirqs that run the wheel.
    pub timer_softirqs: u64,
    /// Softirqs that run high-resolution timers which asked for that.
    pub hrtimer_softirqs: u64,
    /// Time, in ticks of the statistics: all of it, idle, in softirqs.
    pub time: u64,
    /// Of these, idle, waiting for a disk included.
    pub idle: u64,
    /// Of these, in softirqs.
    pub softirq: u64,
}

impl CpuCounts {
    /// The share of idle time, from 0 to 1.
    pub fn idle_share(&self) -> f64 {
        self.idle as f64 / (self.time as f64).max(1.0)
    }
}

/// A recording, with the names of threads that are in it.
#[derive(Debug)]
pub struct RecordedTimers {
    /// What was recorded.
    pub trace: Trace,
    /// What a replay makes of it.
    pub summary: Summary,
    /// By number, of threads that were still there afterwards.
    pub threads: BTreeMap<u32, String>,
}

impl RecordedTimers {
    /// Replays it, under each policy. Some microseconds for each event.
    pub fn new(trace: Trace, threads: BTreeMap<u32, String>) -> RecordedTimers {
        let summary = summarise(&trace, &ReplayPolicy::DEFAULT, Inference::On);
        RecordedTimers { trace, summary, threads }
    }
}

/// A group with a quota.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quota {
    /// Its path below the controller.
    pub group: String,
    /// CPU time in every period.
    pub quota_us: u64,
    /// How often it is refilled.
    pub period_us: u64,
}

/// The wakeups of threads that sleep from deadline to deadline.
#[derive(Clone, Copy, Debug)]
pub struct Sleeps {
    /// From one deadline to the next.
    pub interval_us: u64,
    /// Wakeups.
    pub wakeups: u64,
    /// Deadlines without a wakeup before the next deadline.
    pub missed: u64,
    /// Late by no more than this in 99 of 100.
    pub p99_ns: u64,
    /// The most.
    pub max_ns: u64,
}
