//! The machine at hand: what it is, which CPUs we may use, how busy it is.

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use std::fs;

/// The machine in a line: its processor, how many CPUs this process may use, its system.
pub fn machine() -> String {
    let processor = processor();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let count = cpus().len();
    let plural = if count == 1 { "CPU" } else { "CPUs" };
    format!("{processor}, {count} {plural}, Linux {}", release.trim()).trim_end().to_string()
}

/// The processor's name, or at least its architecture.
pub fn processor() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    named(&cpuinfo).map_or_else(|| std::env::consts::ARCH.to_string(), str::to_string)
}

fn named(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

/// The CPUs that this process may use; at least one.
pub fn cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
        return vec![0];
    };
    let allowed = |&cpu: &usize| set.is_set(cpu).unwrap_or(false);
    let cpus: Vec<usize> = (0..CpuSet::count()).filter(allowed).collect();
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// What to say about other work on this machine, if there is so much that it disturbs times.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_what_it_is() {
        assert!(machine().contains("CPU"), "{}", machine());
        assert_eq!(named("processor\t: 0\nmodel name\t: A B\n"), Some("A B"));
        assert_eq!(named("processor\t: 0\n"), None);
    }
}
