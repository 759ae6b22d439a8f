//! Gathers the data that the chosen checks need, and nothing else.
//!
//! The kernel's counts and the recording cover the same time, during which this process sleeps.
//! Reading clocks and running threads that sleep cause load themselves, so they follow after that
//! time and do not appear in the counts.
//!
//! | file | gathers |
//! |---|---|
//! | `clock` | the clock source, and the time that a read of the clock takes |
//! | `counted` | interrupts, softirqs and CPU time that the kernel counts |
//! | `log` | the kernel's messages |
//! | `quotas` | CPU quotas of cgroups, version 1 and 2 |
//! | `recorded` | a recording of the kernel's timer events |
//! | `sleeps` | the lateness of a sleeping thread |

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

#[derive(Clone, Debug)]
pub struct GatherOptions {
    pub duration: Duration,
    /// The executable of this program. It is started again as a watcher, which cleans up the
    /// recording if this process dies; `None` for no watcher.
    pub program: Option<PathBuf>,
}

/// Gathers the data that these checks need. Takes the duration in `look`, and up to two seconds
/// more.
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
