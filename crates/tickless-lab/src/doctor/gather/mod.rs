//! Gathering what checks need, and nothing else.
//!
//! Counting and recording go on during the same time, while this process sleeps. What makes work
//! of its own, reading clocks and sleeping threads, comes after it.
//!
//! | file | gathers |
//! |---|---|
//! | `clock` | the clock source, and what reading a clock takes |
//! | `counted` | interrupts, softirqs and CPU time that the kernel counts |
//! | `log` | the kernel's messages |
//! | `quotas` | CPU quotas of cgroups, version 1 and 2 |
//! | `recorded` | a recording of its timers |
//! | `sleeps` | threads that sleep |

pub mod clock;
pub mod counted;
pub mod log;
pub mod quotas;
mod recorded;
mod sleeps;

use super::checks::{Check, Need};
use super::facts::{Facts, Seen};
use crate::measure::{cpus, disturbance, wait};
use crate::progress::Progress;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How to gather.
#[derive(Clone, Debug)]
pub struct GatherOptions {
    /// How long the machine is watched.
    pub duration: Duration,
    /// This program's file, which runs again as the watcher of the recording; `None` for no
    /// watcher.
    pub program: Option<PathBuf>,
}

/// Gathers what these checks need. Takes the duration, and up to two seconds more.
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
        facts.quotas = quotas::find();
    }
    if needs(Need::Slack) {
        facts.slack_ns = slack();
    }
    progress.step();
    if needs(Need::Sleeps) {
        facts.sleeps = sleeps::measure(look.duration);
    }
    progress.step();
    facts
}

#[expect(clippy::fn_params_excessive_bools, reason = "one caller, which has just asked")]
fn watch(is_counted: bool, is_recorded: bool, look: &GatherOptions, facts: &mut Facts) {
    let recording = is_recorded.then(|| recorded::begin(look));
    let before = is_counted.then(counted::Snapshot::take);
    wait(look.duration);
    if let Some(before) = before {
        facts.counted = counted::between(before, counted::Snapshot::take());
    }
    if let Some(recording) = recording {
        facts.recorded = recording.and_then(recorded::end);
    }
}

fn slack() -> Seen<u64> {
    let text = text(Path::new("/proc/self/timerslack_ns"))?;
    text.trim().parse().map_err(|_| format!("/proc/self/timerslack_ns is no number: {text:?}"))
}

/// A file's text, or why not and what to do.
fn text(path: &Path) -> Seen<String> {
    fs::read_to_string(path).map_err(|error| refusal(path, &error))
}

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
