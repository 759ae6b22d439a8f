//! SIGHUP under `nohup`.

use nix::sys::signal::{SigSet, Signal};

/// Blocks SIGHUP if the program was started with SIGHUP ignored, as `nohup` does. Otherwise the
/// handlers for Ctrl-C, which also catch SIGHUP, would end the program. Must be called before other
/// threads are started, because they inherit the blocking.
pub fn respect_nohup() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if ignores_hangup(&status) {
        let mut hangup = SigSet::empty();
        hangup.add(Signal::SIGHUP);
        // A blocked signal stays pending, so the handler never runs.
        let _ = hangup.thread_block();
    }
}

fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit of the mask stands for signal 1.
    mask.is_some_and(|mask| mask >> (Signal::SIGHUP as i32 - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sighup_is_the_lowest_bit_of_the_mask() {
        assert!(ignores_hangup("Name:\tx\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hangup("SigIgn:\t0000000000001000\n") && !ignores_hangup(""));
    }
}
