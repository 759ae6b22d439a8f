//! What a piece of work uses: real, user and system time, and context switches.

use super::resources;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Instant;

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Usage {
    pub real_s: f64,
    pub user_s: f64,
    pub system_s: f64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

impl Usage {
    pub fn switches(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }

    #[must_use]
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            real_s: self.real_s + other.real_s,
            user_s: self.user_s + other.user_s,
            system_s: self.system_s + other.system_s,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
        }
    }

    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// Does a piece of work. Returns its result, and what the process used for it.
///
/// The kernel counts context switches exactly. Some kernels count CPU time in whole ticks, so a
/// piece of work should take some tens of milliseconds.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Usage) {
    let before = of_process();
    let begun = Instant::now();
    let result = work();
    let real_s = begun.elapsed().as_secs_f64();
    let after = of_process();
    let used = Usage {
        real_s,
        user_s: after.user_s - before.user_s,
        system_s: after.system_s - before.system_s,
        voluntary_switches: after.voluntary_switches - before.voluntary_switches,
        involuntary_switches: after.involuntary_switches - before.involuntary_switches,
    };
    (result, used)
}

/// Returns what the process has used since it started. The real time is left at zero.
fn of_process() -> Usage {
    let usage = resources::used(libc::RUSAGE_SELF);
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Usage {
        real_s: 0.0,
        user_s: seconds(usage.ru_utime),
        system_s: seconds(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ThreadUsage {
    pub cpu_s: f64,
    /// How often the threads gave up their CPU to wait, or lost it to other threads.
    pub switches: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Threads(BTreeMap<OsString, ThreadUsage>);

impl Threads {
    /// The folder of the calling process' threads.
    pub const OF_PROCESS: &str = "/proc/self/task";

    /// Takes a snapshot: what each running thread in a folder of `/proc` has used, if its name
    /// begins with one of `names`. It is empty if the system does not provide the data.
    pub fn named(folder: &str, names: &[&str]) -> Threads {
        let Ok(threads) = fs::read_dir(folder) else {
            return Threads::default();
        };
        // A thread can end while its files are read. Such a thread is left out.
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

/// Reads what a thread has used; `None` if its name has none of the prefixes.
fn of_thread(path: &Path, names: &[&str]) -> Option<ThreadUsage> {
    let read = |file| fs::read_to_string(path.join(file)).ok();
    let name = read("comm")?;
    if !names.iter().any(|prefix| name.starts_with(prefix)) {
        return None;
    }
    // The file has three numbers: ns on a CPU, ns of waiting for a CPU, and a count of time slices.
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

    /// Goal: waiting counts as context switches and real time, and computing as CPU time, in
    /// whichever thread it happens.
    #[test]
    fn waiting_counts_as_switches_and_computing_as_cpu_time() {
        let ((), waiting) = timed(|| {
            let (ask, asked) = mpsc::sync_channel(0);
            let (tell, told) = mpsc::sync_channel(0);
            std::thread::scope(|scope| {
                scope.spawn(move || while asked.recv().is_ok() && tell.send(()).is_ok() {});
                (0..500).for_each(|_| {
                    ask.send(()).unwrap();
                    told.recv().unwrap();
                });
                drop(ask);
            });
        });
        assert!(waiting.voluntary_switches >= 400, "{waiting:?}");
        let ((), computing) = timed(|| {
            let begun = Instant::now();
            while begun.elapsed().as_millis() < 60 {
                std::hint::spin_loop();
            }
        });
        assert!(computing.real_s >= 0.06, "{computing:?}");
        assert!(computing.cpu_s() > 0.0 && computing.cpu_s() < 10.0, "{computing:?}");
    }

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
                before = Threads::named(Threads::OF_PROCESS, &["counted/"]);
            }
            go_on.send(()).unwrap();
            told.recv().unwrap();
        }
        let used =
            Threads::named(Threads::OF_PROCESS, &["nobody/", "counted/"]).used_since(&before);
        assert!(used.switches > 50 && used.cpu_s > 0.0, "{used:?}");
        assert!(Threads::named(Threads::OF_PROCESS, &["nobody/"]).0.is_empty());
        drop(go_on);
        thread.join().unwrap();
    }

    #[test]
    fn both_sorts_of_switches_count() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t5\n";
        assert_eq!((switches(status), switches("")), (12, 0));
    }
}
