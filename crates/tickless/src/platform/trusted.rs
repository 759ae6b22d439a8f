//! Finds out which counter the kernel keeps time with. A program can rely on that counter: the
//! kernel has tested it, and goes on checking it.

use crate::platform::clock_error::Fallback;

/// Returns `Ok` if the kernel keeps time with the counter of this name. Reads a small file.
#[cfg_attr(miri, expect(dead_code, reason = "there is no counter under Miri"))]
pub fn check_kernel_uses(counter: &str) -> Result<(), Fallback> {
    const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match std::fs::read_to_string(CURRENT) {
        Ok(name) if name.trim() == counter => Ok(()),
        Ok(_) => Err(Fallback::NotTrusted),
        Err(_) => Err(Fallback::NotKnown),
    }
}
