//! Asking the CPU to fetch a cache line that will be wanted soon.

/// Asks for the line where `wanted` begins. A hint: it changes nothing but how long a later access
/// takes, and is nothing at all where there is no instruction for it.
#[inline(always)]
pub(crate) fn prefetch<T>(wanted: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 CPU has SSE; a prefetch faults on no address, and this one is of
        // something that may be read anyway.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(wanted).cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        use core::arch::asm;
        let at = core::ptr::from_ref(wanted);
        // SAFETY: as above; the instruction reads a register and writes nothing.
        unsafe { asm!("prfm pldl1keep, [{0}]", in(reg) at, options(nostack, preserves_flags)) };
    }
    let _ = wanted;
}
