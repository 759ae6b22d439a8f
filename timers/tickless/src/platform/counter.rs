//! The CPU's time counter: the TSC on x86-64, the virtual counter on aarch64, and none elsewhere.

#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), linux_platform, not(miri)))]
use crate::platform::clock_error::Fallback;

#[cfg(all(target_arch = "x86_64", linux_platform, not(miri)))]
mod imp {
    use crate::platform::clock_error::Fallback;
    use crate::platform::counter::check_kernel_uses;

    /// Reads the counter. The CPU can execute the reading earlier or later than the instructions
    /// around it. That is an error of some nanoseconds, far below a timer's resolution.
    #[inline]
    pub fn read() -> u64 {
        // SAFETY: every x86-64 CPU has the instruction.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    /// Returns whether the CPU reports, in bit 8 of `LEAF`, that the counter's rate never changes.
    pub fn is_invariant() -> bool {
        use core::arch::x86_64::__cpuid;
        const LEAF: u32 = 0x8000_0007;
        // In newer compilers the intrinsic is safe, and they would warn of the `unsafe` block.
        #[allow(unused_unsafe)]
        // SAFETY: every CPU of x86-64 has the instruction.
        let cpuid = |leaf| unsafe { __cpuid(leaf) };
        cpuid(0x8000_0000).eax >= LEAF && cpuid(LEAF).edx & 1 << 8 != 0
    }

    /// Returns `Ok` if the counter can keep time, or the reason why not.
    pub fn trust() -> Result<(), Fallback> {
        if !is_invariant() {
            return Err(Fallback::NotInvariant);
        }
        check_kernel_uses("tsc")
    }
}

#[cfg(all(target_arch = "aarch64", linux_platform, not(miri)))]
mod imp {
    use crate::platform::clock_error::Fallback;
    use crate::platform::counter::check_kernel_uses;
    use core::arch::asm;

    /// Reads the counter.
    #[inline]
    pub fn read() -> u64 {
        let count: u64;
        // SAFETY: Linux lets programs read this register, or emulates the reading.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        count
    }

    pub fn trust() -> Result<(), Fallback> {
        check_kernel_uses("arch_sys_counter")
    }
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), linux_platform, not(miri))))]
mod imp {
    use crate::platform::clock_error::Fallback;

    /// Returns zero, for there is no counter that all CPUs share.
    pub fn read() -> u64 {
        0
    }

    pub fn trust() -> Result<(), Fallback> {
        Err(Fallback::NoCounter)
    }
}

pub use imp::{read, trust};

/// Returns `Ok` if the kernel keeps time with the counter of this name. The kernel has tested such
/// a counter, and goes on checking it. Reads a small file.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), linux_platform, not(miri)))]
fn check_kernel_uses(counter: &str) -> Result<(), Fallback> {
    const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match std::fs::read_to_string(CURRENT) {
        Ok(name) if name.trim() == counter => Ok(()),
        Ok(_) => Err(Fallback::NotTrusted),
        Err(_) => Err(Fallback::NotKnown),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(all(target_arch = "aarch64", linux_platform, not(miri)))]
    fn counts_at_its_rate() {
        let rate: u64;
        // SAFETY: Linux lets programs read this register, as it lets them read the counter.
        unsafe { core::arch::asm!("mrs {}, cntfrq_el0", out(reg) rate, options(nomem, nostack)) };
        let (from, begun) = (super::read(), std::time::Instant::now());
        while begun.elapsed().as_millis() < 50 {
            assert!(super::read() >= from);
        }
        let (counts, took) = (super::read() - from, begun.elapsed());
        let expected = rate as f64 * took.as_secs_f64();
        assert!((counts as f64 / expected - 1.0).abs() < 0.2, "{counts} of {expected}");
    }
}
