//! This machine: its processor, the CPUs that this process can use, and how busy they are.

use super::thread::wait;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::fs;
use std::time::Duration;

pub fn machine() -> String {
    let processor = processor();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let count = cpus().len();
    let plural = if count == 1 { "CPU" } else { "CPUs" };
    format!("{processor}, {count} {plural}, Linux {}", release.trim()).trim_end().to_string()
}

pub fn processor() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    named(&cpuinfo).map_or_else(|| std::env::consts::ARCH.to_string(), str::to_string)
}

fn named(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

/// Returns the CPUs on which this thread is allowed to run.
pub fn cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else {
        return vec![0];
    };
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect();
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Returns a warning if other programs keep more than a quarter of the CPUs busy.
pub fn disturbance() -> Option<String> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = load.split(' ').next()?.parse().ok()?;
    let cpus = cpus().len();
    (load > 0.25 * cpus as f64).then(|| {
        format!(
            "the machine was busy with other work (load average {load:.2} on {cpus} CPUs before \
             the run): times are disturbed, counts are not"
        )
    })
}

/// Returns how many threads run or wait for a CPU now, without the calling one; `None` if the
/// kernel does not tell.
pub fn other_threads() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("procs_running "))?;
    line.trim().parse::<u64>().ok().map(|running| running.saturating_sub(1))
}

/// Measures for `span` which part of all CPUs' time is used, in percent. The calling thread sleeps,
/// so the used time is that of other programs, of interrupts, and of the hypervisor. `None` if the
/// kernel does not count CPU time.
pub fn busy_percent(span: Duration) -> Option<f64> {
    let counted = || busy_of(&fs::read_to_string("/proc/stat").ok()?);
    let before = counted()?;
    wait(span);
    let after = counted()?;
    let [busy, all] = [0, 1].map(|at| after[at].saturating_sub(before[at]) as f64);
    (all > 0.0).then(|| 100.0 * busy / all)
}

/// Returns the used and the total time of all CPUs, in the kernel's units of CPU accounting.
fn busy_of(stat: &str) -> Option<[u64; 2]> {
    let times = cpu_times(stat, "cpu")?;
    let idle: u64 = times.get(IDLE)?.iter().sum();
    let all: u64 = times.iter().sum();
    Some([all - idle, all])
}

/// The columns of `/proc/stat` with a CPU's idle time. The second is time of waits for a disk.
pub const IDLE: std::ops::Range<usize> = 3..5;

/// Returns the numbers of a line of `/proc/stat`, without the last two columns. These have the time
/// of guests, which the first two columns already include.
pub fn cpu_times(stat: &str, name: &str) -> Option<Vec<u64>> {
    let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    Some(line.split_whitespace().map_while(|word| word.parse().ok()).take(8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn guests_are_counted_once() {
        let stat = "cpu  10 2 5 100 20 1 2 3 4 5\ncpu0 1 1 1 1\n";
        assert_eq!(busy_of(stat), Some([23, 143]));
        assert_eq!(busy_of("cpu0 1 1 1 1 1\n"), None);
        assert_eq!(busy_of("cpu  1 2 x 4 5\n"), None);
    }

    #[test]
    fn work_of_others_is_seen() {
        let span = Duration::from_millis(300);
        let spinning = thread::spawn(move || {
            let until = std::time::Instant::now() + 2 * span;
            while std::time::Instant::now() < until {}
        });
        let all = thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
        let seen = busy_percent(span);
        assert!(seen.is_some_and(|seen| seen > 30.0 / all), "{seen:?} of {all} CPUs");
        spinning.join().unwrap();
    }

    #[test]
    fn the_machine_is_described() {
        assert!(machine().contains("CPU"), "{}", machine());
        assert_eq!(named("processor\t: 0\nmodel name\t: A B\n"), Some("A B"));
        assert_eq!(named("processor\t: 0\n"), None);
    }
}
