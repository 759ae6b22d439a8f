//! The kernel's release and tick rate, for the first line of a trace.

use flate2::read::GzDecoder;
use std::fs::{self, File};
use std::io::Read;

/// The running kernel's release.
pub(super) fn release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_string()
}

/// Its tick rate, if its configuration can be read.
pub fn hz() -> Option<u32> {
    configured_hz(&config()?)
}

/// Whether it was built to stop the tick of idle CPUs, if its configuration can be read.
pub fn stops_idle_ticks() -> Option<bool> {
    Some(config()?.lines().any(|line| line == "CONFIG_NO_HZ_COMMON=y"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tick_rate_is_a_number() {
        assert_eq!(configured_hz("CONFIG_HZ_250=y\nCONFIG_HZ=250\n"), Some(250));
        assert_eq!(configured_hz("# CONFIG_HZ is not set\n"), None);
    }
}
