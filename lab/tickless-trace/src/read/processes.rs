//! Which process each thread of a trace belongs to. `tickless record` writes this after the events,
//! in lines such as `# process 70 71 72: nginx`, `# kernel threads: 2 3` and `# cpu limit: 70 71`.
//! The last one lists the threads of a control group that often used up its quota of CPU time.

use crate::cgroup::{Cgroup, Counters, Recorded, hierarchies};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

const PROCESS: &str = "# process ";
const KERNEL: &str = "# kernel threads: ";
const LIMITED: &str = "# cpu limit: ";

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Processes {
    of_thread: HashMap<u32, u32>,
    names: HashMap<u32, Box<str>>,
    kernel: HashSet<u32>,
    /// The number of the control group of each thread whose group often used up its quota.
    limited: HashMap<u32, usize>,
    limits: usize,
    groups: Vec<Recorded>,
}

impl Processes {
    /// Returns the number of a thread's process; the thread's own number if the process is unknown.
    pub fn of(&self, thread: u32) -> u32 {
        self.of_thread.get(&thread).copied().unwrap_or(thread)
    }

    /// Returns the name of a process with several threads.
    pub fn name(&self, process: u32) -> Option<&str> {
        self.names.get(&process).map(|name| &**name)
    }

    /// Returns whether the trace shows which threads have a limit of CPU time.
    pub fn has_limits(&self) -> bool {
        self.limits > 0
    }

    /// Returns the control group whose limit of CPU time a thread often reached.
    pub fn limited_group(&self, thread: u32) -> Option<usize> {
        self.limited.get(&thread).copied()
    }

    /// Returns the control groups that the recorder followed for `tickless quota`.
    pub fn groups(&self) -> &[Recorded] {
        &self.groups
    }

    pub fn is_kernel(&self, thread: u32) -> bool {
        self.kernel.contains(&thread)
    }

    /// Reads a line. Returns whether it describes processes, as those of [`running`] do, or a
    /// group.
    pub(super) fn read(&mut self, line: &[u8]) -> bool {
        let Ok(line) = std::str::from_utf8(line) else { return false };
        let numbers = |text: &str| -> Vec<u32> {
            text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
        };
        if let Some(threads) = line.strip_prefix(KERNEL) {
            self.kernel.extend(numbers(threads));
            return true;
        }
        if let Some(threads) = line.strip_prefix(LIMITED) {
            self.limits += 1;
            let group = self.limits;
            self.limited.extend(numbers(threads).into_iter().map(|thread| (thread, group)));
            return true;
        }
        if let Some(group) = Recorded::parse(line) {
            self.groups.push(group);
            return true;
        }
        let process = line.strip_prefix(PROCESS).and_then(|rest| rest.split_once(": "));
        let Some((threads, name)) = process else { return false };
        let threads = numbers(threads);
        let Some(&process) = threads.first() else { return false };
        self.names.insert(process, super::fields::printable(name.trim_end().as_bytes()).into());
        self.of_thread.extend(threads.into_iter().map(|thread| (thread, process)));
        true
    }
}

/// Returns lines about the processes with several threads, the kernel's threads, and the control
/// groups that often reach their CPU limits. Leaves out a process that ends while it is read.
pub(crate) fn running() -> String {
    const KERNEL_THREAD: u32 = 0x0020_0000;
    let numbers = |folder: &str| -> Vec<u32> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    };
    let (mut text, mut kernel) = (String::new(), String::new());
    for process in numbers("/proc") {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name, in brackets, can contain brackets. The flags are the seventh word behind it.
        let Some((name, words)) = stat.rsplit_once(") ") else { continue };
        let flags: u32 = words.split(' ').nth(6).and_then(|word| word.parse().ok()).unwrap_or(0);
        let threads = numbers(&format!("/proc/{process}/task"));
        // Writing to a string cannot fail.
        if flags & KERNEL_THREAD != 0 {
            let _ = write!(kernel, " {process}");
        } else if threads.len() > 1 {
            let _ = write!(text, "{PROCESS}{process}");
            threads.iter().filter(|&&thread| thread != process).for_each(|thread| {
                let _ = write!(text, " {thread}");
            });
            let name = name.split_once(" (").map_or("", |(_, name)| name);
            let _ = writeln!(text, ": {}", name.replace(char::is_control, " "));
        }
    }
    if !kernel.is_empty() {
        let _ = writeln!(text, "{KERNEL}{}", kernel.trim_start());
    }
    hierarchies().unwrap_or_default().iter().for_each(|root| limits(root, &mut text));
    text
}

/// Adds a line for each control group below a mount point that used up its quota in at least a
/// tenth of its periods. A group inside such a group gets no line of its own.
fn limits(root: &Path, text: &mut String) {
    let mut found: Vec<String> = Vec::new();
    for group in Cgroup::below(root) {
        let Counters { periods, throttled, .. } = group.counters().unwrap_or_default();
        let is_inside = found.iter().any(|outer| group.path.starts_with(outer));
        if periods == 0 || throttled * 10 < periods || is_inside {
            continue;
        }
        found.push(format!("{}/", group.path.trim_end_matches('/')));
        let threads: Vec<String> = group.threads().iter().map(u32::to_string).collect();
        if !threads.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{LIMITED}{}", threads.join(" "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_read_again() {
        let mine = std::process::id();
        let mut processes = Processes::default();
        assert!(!processes.has_limits());
        let lines = "# process 70 71 72: a: b\n# kernel threads: 2 3\n# cpu limit: 71 72\n";
        assert!(lines.lines().all(|line| processes.read(line.as_bytes())));
        assert_eq!([70, 71, 72, 2, 9].map(|thread| processes.of(thread)), [70, 70, 70, 2, 9]);
        assert_eq!((processes.name(70), processes.name(71)), (Some("a: b"), None));
        assert_eq!([2, 3, 70].map(|thread| processes.is_kernel(thread)), [true, true, false]);
        assert!(
            !["# process x", "# kernel 6.1", "# process : a"]
                .iter()
                .any(|line| processes.read(line.as_bytes()))
        );
        let groups = [70, 71, 72].map(|thread| processes.limited_group(thread));
        assert_eq!((groups, processes.has_limits()), ([None, Some(1), Some(1)], true));
        let folder = tempfile::tempdir().unwrap();
        let (root, stat) = (folder.path(), folder.path().join("pod/cpu.stat"));
        let inner = root.join("pod/inner");
        fs::create_dir_all(&inner).unwrap();
        fs::write(&stat, "nr_periods 50\nnr_throttled 40\nthrottled_usec 1").unwrap();
        fs::write(inner.join("cgroup.threads"), "8\n9\n").unwrap();
        let mut text = String::new();
        limits(root, &mut text);
        fs::write(&stat, "nr_periods 50\nnr_throttled 4\nthrottled_usec 1").unwrap();
        limits(root, &mut text);
        assert_eq!(text, "# cpu limit: 8 9\n");
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || told.recv());
        let mut now = Processes::default();
        assert!(running().lines().all(|line| now.read(line.as_bytes())));
        let threads = now.of_thread.values().filter(|process| **process == mine).count();
        assert!(threads > 1 && now.name(mine).is_some(), "{now:?}");
        assert!(!now.is_kernel(mine));
        drop(tell);
        assert!(other.join().unwrap().is_err());
    }
}
