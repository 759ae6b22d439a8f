//! Gathers the data that the chosen checks need, and nothing else.
//!
//! The kernel's counters and the recording of timer events cover the same time, during which this
//! process only sleeps. Reading clocks and measuring how exactly threads sleep cause load
//! themselves, so they follow after that time and do not appear in the counts.

pub mod clock;
pub mod counted;
pub mod log;
mod machine;

use super::checks::{Check, Need};
use super::facts::{Facts, Quota, RecordedTimers, Seen, Sleeps};
use crate::latency::{Plan, Sleeper};
use crate::measure::{cpus, disturbance, wait};
use crate::progress::Progress;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};
use tickless_trace::cgroup::{self, Cgroup, Counters, Limit};
use tickless_trace::read::{Event, Record};
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
    progress.begin("looking", 1 + 3);
    watch(&needs, look, &mut facts);
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
    if needs(Need::Governors) {
        facts.governors = machine::governors();
    }
    if needs(Need::RtLimit) {
        facts.rt_limit = machine::rt_limit();
    }
    if needs(Need::Slack) {
        facts.slack_ns = machine::number(Path::new("/proc/self/timerslack_ns"));
    }
    progress.step();
    if needs(Need::Sleeps) {
        facts.sleeps = sleeps(look.duration);
    }
    progress.step();
    facts
}

/// Waits for the duration if a check needs that, and counts or records events meanwhile.
fn watch(needs: &dyn Fn(Need) -> bool, look: &GatherOptions, facts: &mut Facts) {
    const WATCHED: [Need; 5] =
        [Need::Counted, Need::Recorded, Need::Quotas, Need::IdleStates, Need::Interrupts];
    if !WATCHED.into_iter().any(needs) {
        return;
    }
    let recording = needs(Need::Recorded).then(|| begin_recording(look));
    let begun = Instant::now();
    let before = needs(Need::Counted).then(counted::Snapshot::take);
    let quotas_before = needs(Need::Quotas).then(quotas);
    let states = needs(Need::IdleStates).then(machine::idle_states);
    let interrupts = needs(Need::Interrupts).then(machine::interrupts);
    wait(look.duration);
    if let Some(before) = before {
        facts.counted = counted::between(before, counted::Snapshot::take());
    }
    if let Some(before) = quotas_before {
        facts.quotas = before.and_then(|before| Ok(throttled_since(&before, quotas()?)));
    }
    if let Some(before) = states {
        facts.idle_states = machine::entered(before, machine::idle_states());
    }
    if let Some(before) = interrupts {
        let came = machine::came(before, machine::interrupts());
        facts.interrupts = came.map(|came| (came, begun.elapsed().as_secs_f64()));
    }
    if let Some(recording) = recording {
        facts.recorded = recording.and_then(end_recording);
    }
}

fn quotas() -> Seen<Vec<Quota>> {
    let roots = cgroup::hierarchies().map_err(|error| error.to_string())?;
    let groups = roots.iter().flat_map(|root| Cgroup::below(root));
    let quota = |group: Cgroup| {
        let Limit { quota_us, period_us, .. } = group.limit()?;
        let counters = group.counters().unwrap_or_default();
        Some(Quota { group: group.path, quota_us, period_us, counters, during: counters })
    };
    Ok(groups.filter_map(quota).collect())
}

/// Fills in what happened since `before`. Of a group that was made since, that is everything.
fn throttled_since(before: &[Quota], mut quotas: Vec<Quota>) -> Vec<Quota> {
    for quota in &mut quotas {
        let known = before.iter().find(|known| known.group == quota.group);
        let known = known.map_or_else(Counters::default, |known| known.counters);
        quota.during = quota.counters.since(known);
    }
    quotas
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
    let trace = || recording.trace("what was recorded", "tickless doctor");
    let trace = recording.stop().and_then(|()| trace()).map_err(|error| error.to_string())?;
    let woken = |record: &Record| match record.event {
        Event::SchedWakeup { pid, .. } => Some(pid),
        _ => None,
    };
    let mut threads: BTreeSet<u32> = trace.records.iter().filter_map(woken).collect();
    let mut recorded = RecordedTimers::new(trace, BTreeMap::new());
    threads.extend(recorded.summary.overlap.iter().flat_map(|overlap| &overlap.armed_by));
    let named = threads.into_iter().map(|thread| (thread, name(thread)));
    recorded.threads = named.filter(|(_, name)| !name.is_empty()).collect();
    recorded.go = recorded.threads.keys().copied().filter(|&thread| is_go(thread)).collect();
    Ok(recorded)
}

/// Returns the name of a thread; nothing if it has ended.
fn name(thread: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default();
    name.trim().chars().filter(|c| !c.is_control()).collect()
}

fn is_go(thread: u32) -> bool {
    let mut page = Vec::new();
    let exe = fs::File::open(format!("/proc/{thread}/exe"));
    exe.and_then(|exe| exe.take(4_096).read_to_end(&mut page)).is_ok() && has_go_note(&page)
}

/// Returns whether the first page of a program has the note that Go's linker puts there: the
/// program's build ID, with the type 4 and the name "Go".
fn has_go_note(page: &[u8]) -> bool {
    page.windows(8).any(|at| at == b"\x04\0\0\0Go\0\0")
}

const INTERVAL_US: u64 = 1_000;

/// The longest time for which to measure how exactly a thread sleeps. In a second it wakes a
/// thousand times, which is enough for a verdict.
const DURATION_MAX: Duration = Duration::from_secs(1);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_in_go_are_known_by_their_note() {
        // Sizes of the name and the build ID, the type, the name: as Go 1.26 writes it.
        let note = b"\x7fELF...\x04\0\0\0\x53\0\0\0\x04\0\0\0Go\0\0vH_BVRzyG9";
        let of_gnu = b"\x7fELF...\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0Go\0\0";
        assert!(has_go_note(note) && !has_go_note(of_gnu) && !is_go(std::process::id()));
    }
}
