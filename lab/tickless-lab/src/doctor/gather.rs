//! Gathers the data that the chosen checks need, and nothing else.
//!
//! The kernel's counters and the recording of timer events cover the same time, during which this
//! process only sleeps. Reading clocks and measuring how exactly threads sleep cause load
//! themselves, so they follow after that time and do not appear in the counts.

pub mod clock;
pub mod counted;
pub mod log;

use super::checks::{Check, Need};
use super::facts::{Facts, Quota, RecordedTimers, Seen, Sleeps};
use crate::latency::{Plan, Sleeper};
use crate::measure::{cpus, disturbance, wait};
use crate::progress::Progress;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};
use tickless_trace::cgroup::{self, Cgroup, Limit};
use tickless_trace::read::{Event, Trace};
use tickless_trace::record::{EXTRA_FOR_DOCTOR, Options, RecordError, Recording, Tracefs};

#[derive(Clone, Debug)]
pub struct GatherOptions {
    pub duration: Duration,
    /// The executable of this program. It is started once more as a watcher: a process that cleans
    /// up the recording if this process dies. With `None` there is no watcher.
    pub program: Option<PathBuf>,
}

/// Gathers the data that these checks need. This takes `look.duration`, and up to two seconds more.
pub fn gather(checks: &[&Check], look: &GatherOptions, progress: &dyn Progress) -> Facts {
    let needs = |need: Need| checks.iter().any(|check| check.needs.contains(&need));
    let mut facts = Facts::unseen(cpus().len(), "not looked at");
    facts.busy = disturbance();
    let is_watched = needs(Need::Counted) || needs(Need::Recorded);
    progress.begin("looking", 1 + 3);
    if is_watched {
        watch(needs(Need::Counted), needs(Need::Recorded), look, &mut facts);
    }
    progress.step();
    if needs(Need::ClockSource) {
        facts.clock_source = clock::source();
    }
    if needs(Need::ClockRead) {
        facts.clock_read = clock::read_cost(&cpus(), &clock::monotonic);
    }
    progress.step();
    if needs(Need::Log) {
        facts.log = log::read(Path::new("/dev/kmsg"));
    }
    if needs(Need::Quotas) {
        facts.quotas = quotas();
    }
    if needs(Need::Slack) {
        facts.slack_ns = slack();
    }
    progress.step();
    if needs(Need::Sleeps) {
        facts.sleeps = sleeps(look.duration);
    }
    progress.step();
    facts
}

/// Waits for the requested duration. In that time counts events or records them, as requested.
#[expect(clippy::fn_params_excessive_bools, reason = "one caller, which has just asked")]
fn watch(is_counted: bool, is_recorded: bool, look: &GatherOptions, facts: &mut Facts) {
    let recording = is_recorded.then(|| begin_recording(look));
    let before = is_counted.then(counted::Snapshot::take);
    wait(look.duration);
    if let Some(before) = before {
        facts.counted = counted::between(before, counted::Snapshot::take());
    }
    if let Some(recording) = recording {
        facts.recorded = recording.and_then(end_recording);
    }
}

/// Lists the cgroups that have a CPU quota, with the kernel's counters of their throttling.
fn quotas() -> Seen<Vec<Quota>> {
    let roots = cgroup::hierarchies().map_err(|error| error.to_string())?;
    let groups = roots.iter().flat_map(|root| Cgroup::below(root));
    let quota = |group: Cgroup| {
        let Limit { quota_us, period_us, .. } = group.limit()?;
        let counters = group.counters().unwrap_or_default();
        Some(Quota { group: group.path, quota_us, period_us, counters })
    };
    Ok(groups.filter_map(quota).collect())
}

fn slack() -> Seen<u64> {
    let text = text(Path::new("/proc/self/timerslack_ns"))?;
    text.trim().parse().map_err(|_| format!("/proc/self/timerslack_ns is no number: {text:?}"))
}

fn text(path: &Path) -> Seen<String> {
    fs::read_to_string(path).map_err(|error| refusal(path, &error))
}

/// Describes why a file could not be read, and what to do about it.
fn refusal(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{path} is closed to this user; look as root (sudo)")
        }
        io::ErrorKind::NotFound => format!("this system has no {path}"),
        _ => format!("{path} cannot be read ({error})"),
    }
}

/// Starts to record timer events. If the system refuses, returns the reason as text.
fn begin_recording(look: &GatherOptions) -> Seen<Recording> {
    let begin = || -> Result<Recording, RecordError> {
        let tracefs = Tracefs::find()?;
        // Some checks need more kinds of events. Record those that the kernel has.
        let mut more = tracefs.having(&EXTRA_FOR_DOCTOR);
        // What the slice timer of Linux 7.1 and later costs is found from who waits for a CPU.
        if !tracefs.having(&["timer:hrtimer_rearm"]).is_empty() {
            more.extend(tracefs.having(&["sched:sched_switch"]));
        }
        let options = Options { more, ..Options::default() };
        let recording = Recording::prepare(tracefs, &options, look.program.as_deref())?;
        recording.start()?;
        Ok(recording)
    };
    begin().map_err(|error| error.to_string())
}

fn end_recording(recording: Recording) -> Seen<RecordedTimers> {
    let text = recording.stop().and_then(|()| recording.text("tickless doctor"));
    let text = text.map_err(|error| error.to_string())?;
    let trace = Trace::parse("what was recorded", text).map_err(|error| error.to_string())?;
    let threads = names(&trace);
    Ok(RecordedTimers::new(trace, threads))
}

/// Returns the names of the woken threads by thread id. The system still has the names of threads
/// that have not ended yet.
fn names(trace: &Trace) -> BTreeMap<u32, String> {
    let mut names = BTreeMap::new();
    for record in trace.records.iter() {
        let Event::SchedWakeup { pid, .. } = record.event else { continue };
        names.entry(pid).or_insert_with(|| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim().chars().filter(|c| !c.is_control()).collect::<String>()
        });
    }
    names.retain(|_, name| !name.is_empty());
    names
}

const INTERVAL_US: u64 = 1_000;

/// The longest time for which to measure how exactly a thread sleeps. In a second it wakes a
/// thousand times, which is enough for a verdict.
const DURATION_MAX: Duration = Duration::from_secs(1);

/// Measures how late a thread wakes that sleeps until one deadline after another.
fn sleeps(duration: Duration) -> Seen<Sleeps> {
    let plan = Plan {
        interval: Duration::from_micros(INTERVAL_US),
        threads: vec![None],
        slack_ns: 1,
        duration: Some(duration.min(DURATION_MAX)),
        ..Plan::default()
    };
    let slice = Sleeper::ClockNanosleep.measure(&plan).map_err(|error| error.to_string())?;
    let tally = slice.tally;
    if tally.lateness.is_empty() {
        return Err("too short to sleep even once; look for longer (-D)".to_string());
    }
    Ok(Sleeps {
        interval_us: INTERVAL_US,
        wakeups: tally.lateness.len(),
        missed: tally.missed,
        p99_ns: tally.lateness.value_at_quantile(0.99),
        max_ns: tally.lateness.max(),
    })
}
