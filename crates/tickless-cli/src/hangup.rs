//! What a terminal that goes away does to the program.

use nix::sys::signal::{SigSet, Signal};

/// Lets a terminal go away if whoever started the program wants that, as nohup does: handlers for
/// Ctrl-C also take hang-ups, and would end it. To be called before there are other threads.
pub fn respect_nohup() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if ignores_hangup(&status) {
        let mut hangup = SigSet::empty();
        hangup.add(Signal::SIGHUP);
        // What is blocked stays pending, and does nothing.
        let _ = hangup.thread_block();
    }
}

fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The first signal is the lowest bit.
    mask.is_some_and(|mask| mask >> (Signal::SIGHUP as i32 - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hangups_are_the_lowest_bit() {
        assert!(ignores_hangup("Name:\tx\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hangup("SigIgn:\t0000000000001000\n") && !ignores_hangup(""));
    }
}
