//! CPU time and context switches of some of this process's threads, which are chosen by name.
//!
//! Figures of the whole process would be wrong for experiments that also create load in the
//! process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ThreadUsage {
    pub cpu_s: f64,
    /// How often the threads gave up their CPU to wait, or lost it to other threads.
    pub switches: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Threads(BTreeMap<OsString, ThreadUsage>);

impl Threads {
    /// Takes a snapshot of the running threads whose name begins with one of these. It is empty if
    /// the system does not provide the data.
    pub fn named(names: &[&str]) -> Threads {
        let Ok(threads) = fs::read_dir("/proc/self/task") else {
            return Threads::default();
        };
        // A thread may end while its files are read. Then it is left out.
        let look =
            |thread: fs::DirEntry| Some((thread.file_name(), of_thread(&thread.path(), names)?));
        Threads(threads.flatten().filter_map(look).collect())
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn used_since(&self, earlier: &Threads) -> ThreadUsage {
        let both = self.0.iter().filter_map(|(id, now)| Some((now, earlier.0.get(id)?)));
        both.fold(ThreadUsage::default(), |sum, (now, then)| ThreadUsage {
            cpu_s: sum.cpu_s + now.cpu_s - then.cpu_s,
            switches: sum.switches + now.switches.saturating_sub(then.switches),
        })
    }
}

fn of_thread(path: &Path, names: &[&str]) -> Option<ThreadUsage> {
    let read = |file| fs::read_to_string(path.join(file)).ok();
    let name = read("comm")?;
    if !names.iter().any(|prefix| name.starts_with(prefix)) {
        return None;
    }
    // The file has three numbers: nanoseconds on a CPU, nanoseconds of waiting for one, and time
    // slices.
    let ns: f64 = read("schedstat")?.split_whitespace().next()?.parse().ok()?;
    Some(ThreadUsage { cpu_s: ns / 1e9, switches: switches(&read("status")?) })
}

fn switches(status: &str) -> u64 {
    let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
    lines.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    /// Goal: only the threads with a matching name are counted.
    #[test]
    fn threads_are_counted_by_name() {
        let (go_on, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("counted/1".into())
            .spawn(move || {
                while wait.recv().is_ok() {
                    tell.send(()).unwrap();
                }
            })
            .unwrap();
        let mut before = Threads::default();
        for round in 0..300 {
            if round == 1 {
                before = Threads::named(&["counted/"]);
            }
            go_on.send(()).unwrap();
            told.recv().unwrap();
        }
        let used = Threads::named(&["nobody/", "counted/"]).used_since(&before);
        assert!(used.switches > 50 && used.cpu_s > 0.0, "{used:?}");
        assert!(Threads::named(&["nobody/"]).0.is_empty());
        drop(go_on);
        thread.join().unwrap();
    }

    #[test]
    fn both_sorts_of_switches_count() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t5\n";
        assert_eq!((switches(status), switches("")), (12, 0));
    }
}
