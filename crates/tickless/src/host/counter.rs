//! The CPU's time-stamp counter, where there is one that the kernel trusts.

use crate::clock::Fallback;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod imp {
    use crate::clock::Fallback;

    /// Reads the counter, unordered: the read may move among its neighbours by some
    /// nanoseconds, which is far below what a timer can resolve.
    #[inline]
    pub fn read() -> u64 {
        // SAFETY: every x86-64 CPU has the instruction.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    /// Reads the counter when all earlier loads are done and before any later instruction
    /// begins: for readings that are compared between threads. Some 5-15 ns more.
    #[inline]
    pub fn read_ordered() -> u64 {
        // SAFETY: every x86-64 CPU has both instructions.
        unsafe {
            core::arch::x86_64::_mm_lfence();
            let count = core::arch::x86_64::_rdtsc();
            core::arch::x86_64::_mm_lfence();
            count
        }
    }

    /// Does the CPU say that the counter runs at one rate, whatever the CPU does?
    pub fn is_invariant() -> bool {
        use core::arch::x86_64::__cpuid;
        const LEAF: u32 = 0x8000_0007;
        // Newer compilers know that it is safe.
        #[allow(unused_unsafe)]
        // SAFETY: every CPU of x86-64 has the instruction.
        let cpuid = |leaf| unsafe { __cpuid(leaf) };
        cpuid(0x8000_0000).eax >= LEAF && cpuid(LEAF).edx & 1 << 8 != 0
    }

    /// Does the kernel itself keep time with the TSC? It has checked that the counter is
    /// invariant and the same on all CPUs, watches it, and says so here.
    pub fn trust() -> Result<(), Fallback> {
        const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        if !is_invariant() {
            return Err(Fallback::NotInvariant);
        }
        match std::fs::read_to_string(CURRENT) {
            Ok(name) if name.trim() == "tsc" => Ok(()),
            Ok(_) => Err(Fallback::NotTrusted),
            Err(_) => Err(Fallback::NotKnown),
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod imp {
    use crate::clock::Fallback;

    /// There is no counter: stands still.
    pub fn read() -> u64 {
        0
    }

    /// There is no counter: stands still.
    pub fn read_ordered() -> u64 {
        0
    }

    /// There is no counter to trust.
    pub fn trust() -> Result<(), Fallback> {
        Err(Fallback::NoCounter)
    }
}

pub use imp::{read, read_ordered};

/// Can time be kept by the counter, and if not, why not? Reads a small file.
pub fn trust() -> Result<(), Fallback> {
    imp::trust()
}
