//! A recorder's own buffers in tracefs, and those that dead recorders left.
//!
//! An instance is named `tickless-PID-START-N` after its recorder: its process, when that was
//! started (in ticks since boot, so that a number that is used again is told apart), and how many
//! it made before. Who finds one whose process is gone may remove it.

use super::{RecordError, Tracefs};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "tickless";

/// An instance. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Instance {
    path: PathBuf,
}

impl Instance {
    /// Makes an instance that records nothing yet.
    pub(super) fn make(tracefs: &Tracefs) -> Result<Instance, RecordError> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}{}", names_of_mine(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = tracefs.root().join("instances").join(&name);
        fs::create_dir(&path).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => RecordError::NotPermitted,
            _ => RecordError::Instance { error },
        })?;
        let instance = Instance { path };
        instance.set("tracing_on", "0")?;
        Ok(instance)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a setting.
    pub(super) fn set(&self, file: &str, value: &str) -> Result<(), RecordError> {
        fs::write(self.path.join(file), value).map_err(|error| RecordError::Setting {
            file: file.to_string(),
            value: value.to_string(),
            error,
        })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // If it cannot be removed now, the next recorder will try again.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Removes the instances of recorders that are gone, and returns their names.
pub fn remove_leftovers(tracefs: &Tracefs) -> Vec<String> {
    let instances = tracefs.root().join("instances");
    let Ok(entries) = fs::read_dir(&instances) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let is_leftover = |name: &String| {
        recorder(name).is_some_and(|(pid, start)| start_time(pid).is_none_or(|now| now != start))
    };
    names.filter(is_leftover).filter(|name| fs::remove_dir(instances.join(name)).is_ok()).collect()
}

/// What the names of this process's instances begin with.
pub(super) fn names_of_mine() -> String {
    let pid = std::process::id();
    format!("{PREFIX}-{pid}-{}-", start_time(pid).unwrap_or(0))
}

/// Whether there is an instance whose name begins so.
pub(super) fn is_left(tracefs: &Tracefs, names: &str) -> bool {
    let entries = fs::read_dir(tracefs.root().join("instances")).into_iter().flatten().flatten();
    let mut found = entries.filter_map(|entry| entry.file_name().into_string().ok());
    found.any(|name| name.starts_with(names))
}

/// The process that an instance is named after, and when it was started.
fn recorder(name: &str) -> Option<(u32, u64)> {
    let mut words = name.split('-');
    let is_ours = words.next() == Some(PREFIX);
    let (pid, start) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    is_ours.then_some((pid, start))
}

/// When a process was started, in ticks since boot; none if there is no such process.
fn start_time(pid: u32) -> Option<u64> {
    start_of(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn start_of(stat: &str) -> Option<u64> {
    // The name, in brackets, may have anything in it. Behind it, this is the twentieth word.
    let (_, words) = stat.rsplit_once(") ")?;
    let mut words = words.split(' ');
    // Dead, and only not yet collected by whoever started it.
    let is_dead = words.next().is_none_or(|state| matches!(state, "Z" | "X" | "x"));
    words.nth(18).filter(|_| !is_dead)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whose_instance_it_is() {
        assert_eq!(recorder("tickless-12-345-0"), Some((12, 345)));
        for other in ["tickless", "tickless-", "tickless-x-1-0", "other-12-345-0", "tickless-12"] {
            assert_eq!(recorder(other), None, "{other}");
        }
    }

    #[test]
    fn processes_have_a_start() {
        let mine = start_time(std::process::id());
        assert!(mine.is_some_and(|start| start > 0), "{mine:?}");
        // Larger than any process number can be.
        assert_eq!(start_time(u32::MAX), None);
        let stat = |state| format!("7 (a) b) {state} 1{} 4711 0", " 0".repeat(17));
        assert_eq!(start_of(&stat("S")), Some(4_711));
        assert_eq!(start_of(&stat("Z")), None, "dead, whether or not its parent knows");
    }
}
