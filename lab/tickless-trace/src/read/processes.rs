//! Which process and which control group each thread of a trace belongs to. `tickless record`
//! writes this after the events, in lines such as `# process 70 71 72: nginx`,
//! `# kernel threads: 2 3`, `# steal ns: 5000 0`, and [`Recorded`] groups.

use crate::cgroup::{Counters, Recorded};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::fs;
use tickless_core::time::Ns;

const PROCESS: &str = "# process ";
const KERNEL: &str = "# kernel threads: ";
/// Says that a group which used up its quota has a line: threads in no such group had no limit.
pub(crate) const LIMITS_KNOWN: &str = "# cpu limits are recorded";
/// What the hypervisor took of each CPU while it was recorded.
const STEAL: &str = "# steal ns:";

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Processes {
    of_thread: HashMap<u32, u32>,
    names: HashMap<u32, Box<str>>,
    /// The kernel's threads.
    pub(crate) kernel: HashSet<u32>,
    /// For each thread whose control group used up its quota, the group's index in `limits`.
    limited: HashMap<u32, usize>,
    /// The groups that used up their quota.
    pub(crate) limits: Vec<Limited>,
    /// Whether the trace shows which threads have a limit of CPU time.
    pub(crate) knows_limits: bool,
    /// How much time the hypervisor took of all CPUs; `None` if that was not recorded.
    pub(crate) steal: Option<Ns>,
    /// The control groups that the recorder followed for `tickless quota`.
    pub(crate) groups: Vec<Recorded>,
}

/// A control group that used up its quota of CPU time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Limited {
    pub(crate) path: Box<str>,
    /// What the kernel counted while it was recorded.
    pub(crate) counters: Counters,
}

impl Limited {
    /// Returns whether the group used up its quota in at least a tenth of its periods. If it did so
    /// more seldom, waits for other reasons cannot be told from it.
    pub(crate) fn is_often(&self) -> bool {
        self.counters.throttled.saturating_mul(10) >= self.counters.periods
    }
}

impl Processes {
    /// Returns the number of a thread's process; the thread's own number if the process is unknown.
    pub fn of(&self, thread: u32) -> u32 {
        self.of_thread.get(&thread).copied().unwrap_or(thread)
    }

    /// Returns the name of a process that existed when the recording ended.
    pub fn name(&self, process: u32) -> Option<&str> {
        self.names.get(&process).map(|name| &**name)
    }

    /// Returns the control group of a thread, if it used up its quota of CPU time.
    pub(crate) fn limited_group(&self, thread: u32) -> Option<&Limited> {
        self.limited.get(&thread).map(|group| &self.limits[*group])
    }

    /// Returns the threads that the recorder has listed.
    pub(crate) fn threads(&self) -> impl Iterator<Item = u32> {
        self.of_thread.keys().chain(&self.kernel).copied()
    }

    /// Adds a group that used up its quota. A thread in two such groups counts for the one that did
    /// so more often.
    fn limit(&mut self, group: Limited, threads: impl IntoIterator<Item = u32>) {
        self.knows_limits = true;
        let index = self.limits.len();
        for thread in threads {
            let known = self.limited.get(&thread).map(|known| self.limits[*known].counters);
            if known.is_none_or(|known| known.throttled < group.counters.throttled) {
                self.limited.insert(thread, index);
            }
        }
        self.limits.push(group);
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
        if line.trim_end() == LIMITS_KNOWN {
            self.knows_limits = true;
            return true;
        }
        if let Some(steal) = line.strip_prefix(STEAL) {
            let all = steal.split_whitespace().filter_map(|ns| ns.parse::<u64>().ok());
            self.steal = Some(Ns(all.fold(0, u64::saturating_add)));
            return true;
        }
        if let Some(group) = Recorded::parse(line) {
            if let Some(counters @ Counters { throttled: 1.., .. }) = group.counters {
                let limited = Limited { path: group.path.as_str().into(), counters };
                self.limit(limited, group.threads.iter().copied());
            }
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

/// Returns lines about the processes and the kernel's threads. Leaves out a process that ends while
/// it is read.
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
        } else if !threads.is_empty() {
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
    text
}

/// How much time the hypervisor has taken of each CPU since the machine has started.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Steal(Vec<u64>);

impl Steal {
    pub(crate) fn now() -> Steal {
        Steal::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Parses `/proc/stat`: `cpu0 USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST`, each in
    /// 1/100 s (the kernel's USER_HZ).
    fn parse(stat: &str) -> Steal {
        const NS: u64 = 10_000_000;
        let of = |line: &str| {
            let mut words = line.strip_prefix("cpu")?.split_whitespace();
            words.next()?.parse::<u16>().ok()?;
            words.nth(7)?.parse::<u64>().ok()
        };
        // The first line, with the sum, has a space behind `cpu`.
        let lines = stat.lines().filter(|line| !line.starts_with("cpu "));
        Steal(lines.filter_map(of).map(|ticks| ticks.saturating_mul(NS)).collect())
    }

    /// Returns the line of a trace about the time from `before` until now; `None` if a CPU came or
    /// went.
    pub(crate) fn line_since(&self, before: &Steal) -> Option<String> {
        let is_same = self.0.len() == before.0.len() && !self.0.is_empty();
        let taken = self.0.iter().zip(&before.0).map(|(now, before)| now.saturating_sub(*before));
        is_same.then(|| taken.fold(STEAL.to_string(), |line, ns| format!("{line} {ns}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_read_again() {
        let mine = std::process::id();
        let mut processes = Processes::default();
        let lines = "# process 70 71 72: a: b\n# kernel threads: 2 3\n";
        assert!(lines.lines().all(|line| processes.read(line.as_bytes())));
        assert_eq!([70, 71, 72, 2, 9].map(|thread| processes.of(thread)), [70, 70, 70, 2, 9]);
        assert_eq!((processes.name(70), processes.name(71)), (Some("a: b"), None));
        assert!(
            !["# process x", "# kernel 6.1", "# process : a"]
                .iter()
                .any(|line| processes.read(line.as_bytes()))
        );
        let stat = |steal| Steal::parse(&format!("cpu  9 9\ncpu0 1 2 3 4 5 6 7 {steal} 0 0\n"));
        assert_eq!(stat(9).line_since(&stat(4)).unwrap(), "# steal ns: 50000000");
        assert_eq!(stat(9).line_since(&Steal::default()), None);
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || told.recv());
        let mut now = Processes::default();
        assert!(running().lines().all(|line| now.read(line.as_bytes())));
        let threads = now.of_thread.values().filter(|process| **process == mine).count();
        assert!(threads > 1 && now.name(mine).is_some(), "{now:?}");
        assert!(!now.kernel.contains(&mine));
        drop(tell);
        assert!(other.join().unwrap().is_err());
    }
}
