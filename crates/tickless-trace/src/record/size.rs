//! How large buffers are if nobody says.

use std::fs;

/// Half a million events for each CPU, but never more than an eighth of the free memory together.
pub(super) fn usual(cpus: usize) -> u64 {
    const USUAL: u64 = 32 << 10;
    const LEAST: u64 = 256;
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = available(&memory).unwrap_or(USUAL * 8);
    (free / 8 / cpus.max(1) as u64).clamp(LEAST, USUAL)
}

fn available(meminfo: &str) -> Option<u64> {
    let value = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_cpus_do_not_take_all_memory() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:   4096 kB\n"), Some(4_096));
        assert!(usual(4_096) <= usual(1));
        assert!(usual(1_000_000) == 256, "as little as there has to be");
    }
}
