//! The CPU's time-stamp counter, where there is one that the kernel trusts.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod imp {
    /// Reads the counter, unordered: the read may move among its neighbours by some
    /// nanoseconds, which is far below what a timer can resolve.
    #[inline]
    pub fn read() -> u64 {
        // SAFETY: every x86-64 CPU has the instruction.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    /// Does the kernel itself keep time with the TSC? It has checked that the counter is
    /// invariant and the same on all CPUs, watches it, and says so here.
    pub fn is_trusted() -> bool {
        const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        std::fs::read_to_string(CURRENT).is_ok_and(|name| name.trim() == "tsc")
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod imp {
    /// There is no counter: stands still.
    pub fn read() -> u64 {
        0
    }

    /// There is no counter to trust.
    pub fn is_trusted() -> bool {
        false
    }
}

pub use imp::{is_trusted, read};
