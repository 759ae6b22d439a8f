//! Reads the running kernel's release, configuration and free memory.

use flate2::read::GzDecoder;
use std::fs::{self, File};
use std::io::Read;

pub(super) fn release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_string()
}

pub fn hz() -> Option<u32> {
    configured_hz(&config()?)
}

/// Returns whether the kernel was built to stop the tick of idle CPUs; `None` if that is unknown.
pub fn stops_idle_ticks() -> Option<bool> {
    Some(config()?.lines().any(|line| line == "CONFIG_NO_HZ_COMMON=y"))
}

/// Returns the default size of a CPU's buffer in kilobytes: room for half a million events, but
/// less if all buffers would take more than an eighth of the free memory. At least 256 KB.
pub(super) fn default_buffer_kb(cpus: usize) -> u64 {
    const DEFAULT_KB: u64 = 32 << 10;
    const MIN_KB: u64 = 256;
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = available_kb(&memory).unwrap_or(DEFAULT_KB * 8);
    (free / 8 / cpus.max(1) as u64).clamp(MIN_KB, DEFAULT_KB)
}

fn config() -> Option<String> {
    let mut config = String::new();
    let packed = File::open("/proc/config.gz").ok().map(GzDecoder::new);
    let is_read = packed.is_some_and(|mut packed| packed.read_to_string(&mut config).is_ok());
    if !is_read {
        config = fs::read_to_string(format!("/boot/config-{}", release())).ok()?;
    }
    Some(config)
}

fn configured_hz(config: &str) -> Option<u32> {
    config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse().ok())
}

fn available_kb(meminfo: &str) -> Option<u64> {
    let value = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tick_rate_is_a_number() {
        assert_eq!(configured_hz("CONFIG_HZ_250=y\nCONFIG_HZ=250\n"), Some(250));
        assert_eq!(configured_hz("# CONFIG_HZ is not set\n"), None);
    }

    #[test]
    fn buffers_of_many_cpus_leave_memory_free() {
        assert_eq!(available_kb("MemTotal: 9 kB\nMemAvailable:   4096 kB\n"), Some(4_096));
        assert!(default_buffer_kb(4_096) <= default_buffer_kb(1));
        assert_eq!(default_buffer_kb(1_000_000), 256);
    }
}
