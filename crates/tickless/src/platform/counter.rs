//! The CPU's counter, where there is one that the kernel trusts: the TSC of x86-64, the virtual
//! counter of aarch64.

use crate::platform::clock_error::Fallback;

#[cfg(all(target_arch = "x86_64", linux_platform, not(miri)))]
mod imp {
    use crate::platform::clock_error::Fallback;
    use crate::platform::trusted::is_kernels;

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
        if !is_invariant() {
            return Err(Fallback::NotInvariant);
        }
        is_kernels("tsc")
    }
}

#[cfg(all(target_arch = "aarch64", linux_platform, not(miri)))]
mod imp {
    use crate::platform::clock_error::Fallback;
    use crate::platform::trusted::is_kernels;
    use core::arch::asm;

    /// Reads the virtual counter, unordered, as on x86-64.
    #[inline]
    pub fn read() -> u64 {
        let count: u64;
        // SAFETY: Linux lets programs read this register, and where it does not the kernel answers
        // in its place.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        count
    }

    /// Reads the counter when all earlier instructions are done and before any later one begins.
    #[inline]
    pub fn read_ordered() -> u64 {
        let count: u64;
        // SAFETY: as above; the barriers only wait. It is not said to leave memory alone, so that
        // the compiler moves no access across it either.
        unsafe { asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) count, options(nostack)) };
        count
    }

    /// Does the kernel itself keep time with this counter? The architecture says that it runs at
    /// one rate; where it is known to err the kernel uses another, and says so here.
    pub fn trust() -> Result<(), Fallback> {
        is_kernels("arch_sys_counter")
    }
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), linux_platform, not(miri))))]
mod imp {
    use crate::platform::clock_error::Fallback;

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

#[cfg(test)]
mod tests {
    /// Goal: aarch64's counter runs, forwards, at the rate that the CPU says.
    #[test]
    #[cfg(all(target_arch = "aarch64", linux_platform, not(miri)))]
    fn counts_at_its_rate() {
        let rate: u64;
        // SAFETY: a register that programs may read, as the counter itself.
        unsafe { core::arch::asm!("mrs {}, cntfrq_el0", out(reg) rate, options(nomem, nostack)) };
        let (from, begun) = (super::read_ordered(), std::time::Instant::now());
        while begun.elapsed().as_millis() < 50 {
            assert!(super::read() >= from);
        }
        let (counts, took) = (super::read_ordered() - from, begun.elapsed());
        let expected = rate as f64 * took.as_secs_f64();
        assert!((counts as f64 / expected - 1.0).abs() < 0.2, "{counts} of {expected}");
    }
}
