//! The data that was gathered about a machine, for the checks to judge. The code here reads nothing
//! from the machine, so tests can make up any machine.

use std::collections::BTreeMap;
use tickless_trace::read::Trace;
use tickless_trace::replay::{Inference, ReplayPolicy, Summary, summarise};

/// A gathered value, or a text: the reason why it could not be gathered, and what the user can do
/// about that.
pub type Seen<T> = Result<T, String>;

/// All data that the checks judge. `gather` fills in only the values that the chosen checks need.
#[derive(Debug)]
pub struct Facts {
    /// The number of CPUs.
    pub cpus: usize,
    /// A warning, if so much other work runs on the machine that measured times are disturbed.
    pub busy: Option<String>,
    /// The kernel's clock source.
    pub clock_source: Seen<ClockSource>,
    /// The cost of reading the clock.
    pub clock_read: Seen<ReadCost>,
    /// The kernel's messages, from the oldest that is still in its log.
    pub log: Seen<Vec<String>>,
    /// How much the kernel's counters grew while the machine was watched.
    pub counted: Seen<Counted>,
    /// A recording of the kernel's timer events while the machine was watched.
    pub recorded: Seen<RecordedTimers>,
    /// The cgroups that have a CPU quota.
    pub quotas: Seen<Vec<Quota>>,
    /// The timer slack: how much later than requested the kernel may wake a thread, in ns.
    pub slack_ns: Seen<u64>,
    /// The lateness of sleeping threads.
    pub sleeps: Seen<Sleeps>,
}

impl Facts {
    /// Returns facts in which every value is missing, for the reason `why`.
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

/// The clock source that the kernel uses, and those that it could use.
#[derive(Clone, Debug)]
pub struct ClockSource {
    /// The name of the clock source in use.
    pub current: String,
    /// The names of all clock sources that the kernel offers, including the one in use.
    pub available: Vec<String>,
}

/// The cost of reading a clock, in ns.
#[derive(Clone, Copy, Debug)]
pub struct ReadCost {
    /// The time of a read by a single thread: the median over short batches of reads.
    pub alone_ns: f64,
    /// The time of a read while one thread on each CPU reads. Of each thread's batches of reads the
    /// upper quartile is taken, and of these quartiles the median.
    pub together_ns: f64,
    /// The number of threads that read at the same time.
    pub threads: usize,
}

/// How much the kernel's counters grew from one snapshot to the next.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The time between the snapshots.
    pub seconds: f64,
    /// The kernel's ticks in a second, if known.
    pub hz: Option<u32>,
    /// What happens to the tick while a CPU is idle.
    pub idle_ticks: IdleTicks,
    /// The counts of each CPU.
    pub cpus: Vec<CpuCounts>,
}

/// What happens to the kernel's tick while a CPU is idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleTicks {
    /// The tick stops.
    Stop,
    /// It continues.
    Continue,
    /// Unknown.
    Unknown,
}

/// The growth of the kernel's counters for one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuCounts {
    /// Timer interrupts.
    pub timer_interrupts: u64,
    /// Softirqs that run the timer wheel.
    pub timer_softirqs: u64,
    /// Softirqs for high-resolution timers that were set up to run their callbacks in a softirq.
    pub hrtimer_softirqs: u64,
    /// The CPU's total time, in the kernel's units of CPU accounting (usually 10 ms).
    pub time: u64,
    /// The part of `time` in which the CPU was idle, including waits for a disk.
    pub idle: u64,
    /// The part of `time` in softirqs.
    pub softirq: u64,
}

impl CpuCounts {
    /// Returns the idle part of the time, from 0 to 1.
    pub fn idle_share(&self) -> f64 {
        self.idle as f64 / (self.time as f64).max(1.0)
    }
}

/// A recording of timer events, with the names of threads that appear in it.
#[derive(Debug)]
pub struct RecordedTimers {
    /// The recorded events.
    pub trace: Trace,
    /// The results of a replay, in which this library's timer code performs the recorded
    /// operations: counts of the operations and of the work that they cause.
    pub summary: Summary,
    /// The names of threads by thread id. Threads that had ended before the recording was read are
    /// missing.
    pub threads: BTreeMap<u32, String>,
}

impl RecordedTimers {
    /// Replays the recording under each policy for programming the timer device. Takes some
    /// microseconds for each event.
    pub fn new(trace: Trace, threads: BTreeMap<u32, String>) -> RecordedTimers {
        let summary = summarise(&trace, &ReplayPolicy::DEFAULT, Inference::On);
        RecordedTimers { trace, summary, threads }
    }
}

/// A cgroup that has a CPU quota.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quota {
    /// The cgroup's path below the point where the cgroups are mounted.
    pub group: String,
    /// The CPU time that the cgroup may use in every period.
    pub quota_us: u64,
    /// The period, after which the quota is refilled.
    pub period_us: u64,
}

/// The wakeups of a thread that sleeps from each deadline to the next.
#[derive(Clone, Copy, Debug)]
pub struct Sleeps {
    /// The time from one deadline to the next.
    pub interval_us: u64,
    /// The number of wakeups.
    pub wakeups: u64,
    /// Deadlines that the thread missed: it had not woken by the next deadline.
    pub missed: u64,
    /// The 99th percentile of the lateness: 99 of 100 wakeups are no later than this.
    pub p99_ns: u64,
    /// The greatest lateness.
    pub max_ns: u64,
}
