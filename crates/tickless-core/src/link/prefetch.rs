//! Asking the CPU to fetch a cache line that will be wanted soon.

/// Asks for the line where an element begins. A hint: it changes nothing but how long a later
/// access takes, and is nothing at all where there is no instruction for it.
///
/// Without a branch: a number that is no element's asks for what lies behind the last, which costs
/// less than to find out.
#[inline(always)]
pub(crate) fn prefetch<T>(elements: &[T], number: usize) {
    let wanted = elements.as_ptr().wrapping_add(number.min(elements.len()));
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 CPU has SSE; a prefetch reads nothing and faults on no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(wanted.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        use core::arch::asm;
        // SAFETY: as above; the instruction reads a register and writes nothing.
        unsafe { asm!("prfm pldl1keep, [{0}]", in(reg) wanted, options(nostack, preserves_flags)) };
    }
    let _ = wanted;
}
