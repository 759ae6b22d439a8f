//! Finds the process of a thread, and the name of a process. Reads `/proc` once for each.

use std::collections::HashMap;
use std::fs;

#[derive(Debug, Default)]
pub(super) struct Processes {
    of_thread: HashMap<u32, u32>,
    names: HashMap<u32, String>,
}

impl Processes {
    /// Returns the number of the process that a thread belongs to; the thread's own number if the
    /// thread has ended.
    pub(super) fn of_thread(&mut self, pid: u32) -> u32 {
        *self.of_thread.entry(pid).or_insert_with(|| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
            process.and_then(|process| process.trim().parse().ok()).unwrap_or(pid)
        })
    }

    /// Adds the new thread `pid`, which belongs to the process of thread `of`. If both numbers are
    /// equal, the thread is the first one of a new process.
    pub(super) fn begins(&mut self, pid: u32, of: u32) {
        let process = if of == pid { pid } else { self.of_thread(of) };
        self.of_thread.insert(pid, process);
        if of == pid {
            // The known name may be that of an earlier process with this number.
            self.names.remove(&pid);
        }
    }

    pub(super) fn name(
        &mut self,
        process: u32,
        ended: impl FnOnce(u32) -> Option<String>,
    ) -> String {
        if process == 0 {
            return "kernel".to_string();
        }
        let name = || {
            let name = fs::read_to_string(format!("/proc/{process}/comm")).ok();
            let name = name.map(|name| name.trim_end().to_string());
            name.or_else(|| ended(process)).unwrap_or_else(|| "?".to_string())
        };
        let name = self.names.entry(process).or_insert_with(name);
        // Processes choose their names. Control characters in a name could command the terminal.
        name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_belong_to_processes() {
        let mut processes = Processes::default();
        let mine = std::process::id();
        let thread = std::thread::spawn(|| {
            let link = fs::read_link("/proc/thread-self").unwrap();
            let tid = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
            Processes::default().of_thread(tid)
        });
        assert_eq!(thread.join().unwrap(), mine);
        assert_eq!(processes.of_thread(u32::MAX), u32::MAX, "gone");
        assert!(!processes.name(mine, |_| None).is_empty());
        assert_eq!(processes.name(u32::MAX, |_| Some("a\u{1b}b".to_string())), "a?b");
        assert_eq!(processes.name(0, |_| None), "kernel");
    }
}
