//! Cgroups with a CPU quota, whose refills by the kernel are near to each other or far apart.
//!
//! The kernel refills a group's quota once in every period. It chooses the phase, which is the time
//! of the refills in the period, when the group is created, and keeps it. So the study creates
//! several groups, observes when each is refilled, and uses the nearest and the farthest pair. It
//! removes all groups at the end, also after Ctrl-C. If a run was killed, the next run removes its
//! groups.

use super::work::now_ns;
use crate::error::LabError;
use crate::interrupt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

/// The usual mount point of the CPU controller in version 1 of cgroups.
const CONTROLLER: &str = "/sys/fs/cgroup/cpu";

const PREFIX: &str = "tickless-study-";

/// All groups that this process has created, including removed ones.
static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
    /// When in the period the group's quota is refilled; `None` if that time was not found.
    pub(super) phase_ns: Option<u64>,
}

/// Creates groups with a CPU quota, and finds each one's phase: when in a period it is refilled.
pub(super) fn make(count: usize, quota: Duration, period: Duration) -> Result<Vec<Cgroup>, String> {
    let controller = Path::new(CONTROLLER);
    if !controller.join("cpu.cfs_quota_us").exists() {
        return Err(format!("there is no version 1 cpu controller at {CONTROLLER}"));
    }
    remove_leftovers(controller);
    interrupt::clean_by(remove_mine);
    let make = |number| {
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let path = controller.join(name);
        let refused = |error: io::Error| format!("{} was refused: {error}", path.display());
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        fs::create_dir(&path).map_err(refused)?;
        made.push(path.clone());
        drop(made);
        let mut group = Cgroup { path: path.clone(), phase_ns: None };
        group.write("cpu.cfs_period_us", period.as_micros()).map_err(refused)?;
        // Use a small quota during the observation, so that the group uses it up and is throttled
        // in every period, even if other load leaves it little CPU time.
        group.write("cpu.cfs_quota_us", quota.as_micros() / 10).map_err(refused)?;
        group.phase_ns = group.find_phase(period);
        group.write("cpu.cfs_quota_us", quota.as_micros()).map_err(refused)?;
        Ok(group)
    };
    (0..count).map(make).collect()
}

pub(super) fn apart(one: u64, other: u64, period: Duration) -> u64 {
    let (apart, period) = (one.abs_diff(other), period.as_nanos() as u64);
    apart.min(period - apart)
}

impl Cgroup {
    pub(super) fn enter(&self) -> Result<(), LabError> {
        const REFUSED: &str = "a thread could not enter its cgroup; run it outside of containers, \
                               or not as root, which leaves cgroups out";
        // Zero means the thread that writes it.
        self.write("tasks", 0).map_err(LabError::system(REFUSED))
    }

    fn write(&self, file: &str, value: impl ToString) -> io::Result<()> {
        fs::write(self.path.join(file), value.to_string())
    }

    /// Finds the phase of the group's refills: uses CPU time in the group for eight periods, and
    /// records when it continues after a pause. Other load causes pauses too, so at least three of
    /// these times must agree.
    fn find_phase(&self, period: Duration) -> Option<u64> {
        let period_ns = period.as_nanos() as u64;
        let resumed: Vec<u64> = std::thread::scope(|scope| {
            let burn = scope.spawn(|| {
                self.enter().ok()?;
                let mut resumed = Vec::new();
                let (begun, mut last) = (now_ns(), now_ns());
                while last - begun < 8 * period_ns {
                    let now = now_ns();
                    if now - last > period_ns / 3 {
                        resumed.push(now % period_ns);
                    }
                    last = now;
                }
                Some(resumed)
            });
            burn.join().ok().flatten()
        })?;
        let near = |&&one: &&u64| {
            resumed.iter().filter(|&&other| apart(one, other, period) < period_ns / 50).count()
        };
        // Take the time that agrees with the most other times: a throttled thread continues at each
        // refill, but other pauses end at any time.
        resumed.iter().max_by_key(near).filter(|one| near(one) >= 3).copied()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        remove_after(&self.path, || ());
    }
}

/// Tries to remove the group for at most a second, and calls `before` before each try.
fn remove_after(group: &Path, before: impl Fn()) {
    // A thread that has just ended can still be in the group for a moment.
    for _ in 0..1000 {
        before();
        if fs::remove_dir(group).is_ok() || !group.exists() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

fn remove_mine() {
    let root = Path::new(CONTROLLER).join("cgroup.procs");
    // Moves this process to the root group before each try: a thread that has just started can
    // enter the group in between.
    let leave = || drop(fs::write(&root, std::process::id().to_string()));
    let made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.iter().for_each(|group| remove_after(group, leave));
    // Keep the lock for ever, so that no group is created before the program ends.
    std::mem::forget(made);
}

/// Removes the groups of processes that have ended without removing their groups.
fn remove_leftovers(controller: &Path) {
    let entries = fs::read_dir(controller).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    for name in names {
        let Some(owner) = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()) else {
            continue;
        };
        if !Path::new("/proc").join(owner).exists() {
            let _ = fs::remove_dir(controller.join(&name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_apart_around_the_period() {
        let period = Duration::from_nanos(100);
        assert_eq!([apart(10, 20, period), apart(95, 5, period)], [10, 10]);
        assert_eq!([apart(0, 50, period), apart(7, 7, period)], [50, 0]);
    }
}
