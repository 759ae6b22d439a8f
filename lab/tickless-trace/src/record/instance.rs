//! A recorder's own trace buffers in tracefs (an instance), and instances that dead recorders left.
//!
//! An instance is named `tickless-PID-START-N` after its recorder: the number of its process; when
//! that process was started (in ticks since boot), because numbers are used again; and how many
//! instances it made before. Any recorder is allowed to remove an instance whose process is gone.

use crate::record::error::RecordError;
use crate::record::tracefs::Tracefs;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "tickless";

/// A tracefs instance (trace buffers of its own). Dropping it removes the instance from tracefs.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) path: PathBuf,
}

impl Instance {
    /// Creates a tracing instance with a name of its own, which does not record yet.
    pub(super) fn make(tracefs: &Tracefs) -> Result<Instance, RecordError> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}{}", own_prefix(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = tracefs.root.join("instances").join(&name);
        fs::create_dir(&path).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => RecordError::NotPermitted,
            _ => RecordError::Instance(error),
        })?;
        let instance = Instance { path };
        instance.set("tracing_on", "0")?;
        Ok(instance)
    }

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
        // If the instance cannot be removed now, the next recorder tries again.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Removes the instances of recorders that are gone, and returns their names.
pub(super) fn remove_leftovers(tracefs: &Tracefs) -> Vec<String> {
    let is_removed =
        |name: &String| fs::remove_dir(tracefs.root.join("instances").join(name)).is_ok();
    let is_leftover = |name: &String| {
        recorder(name).is_some_and(|(pid, start)| start_time(pid).is_none_or(|now| now != start))
    };
    names(tracefs).filter(is_leftover).filter(is_removed).collect()
}

/// Returns the prefix that the names of all instances of this process have.
pub(super) fn own_prefix() -> String {
    let pid = std::process::id();
    format!("{PREFIX}-{pid}-{}-", start_time(pid).unwrap_or(0))
}

pub(super) fn is_left(tracefs: &Tracefs, prefix: &str) -> bool {
    names(tracefs).any(|name| name.starts_with(prefix))
}

fn names(tracefs: &Tracefs) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(tracefs.root.join("instances")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// Returns the process number and start time in a recorder's instance name; `None` for other names.
fn recorder(name: &str) -> Option<(u32, u64)> {
    let mut words = name.split('-');
    let is_ours = words.next() == Some(PREFIX);
    let (pid, start) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    is_ours.then_some((pid, start))
}

fn start_time(pid: u32) -> Option<u64> {
    start_of(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Returns when a process started, from its `stat` file; `None` if the process has ended.
fn start_of(stat: &str) -> Option<u64> {
    // The process's name, in brackets, can itself contain brackets and spaces, so search for the
    // last bracket. The start time is the twentieth word behind it.
    let (_, words) = stat.rsplit_once(") ")?;
    let mut words = words.split(' ');
    // A zombie counts as ended, though its parent has not waited for it.
    let is_dead = words.next().is_none_or(|state| matches!(state, "Z" | "X" | "x"));
    words.nth(18).filter(|_| !is_dead)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_processes_have_a_start_time() {
        let mine = start_time(std::process::id());
        assert!(mine.is_some_and(|start| start > 0), "{mine:?}");
        // Larger than any process number can be.
        assert_eq!(start_time(u32::MAX), None);
        let stat = |state| format!("7 (a) b) {state} 1{} 4711 0", " 0".repeat(17));
        assert_eq!(start_of(&stat("S")), Some(4_711));
        assert_eq!(start_of(&stat("Z")), None, "dead, whether or not its parent has waited");
    }
}
