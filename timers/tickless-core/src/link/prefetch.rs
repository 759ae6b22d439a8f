//! Prefetching of a cache line that will be used soon.

/// Prefetches the line in which element `number` begins. A hint: it changes only how long a later
/// access takes, and does nothing on targets without an instruction for it.
///
/// If `number` is beyond the end, the address behind the last element is prefetched, which costs
/// less than a branch.
#[inline(always)]
pub(crate) fn prefetch<T>(elements: &[T], number: usize) {
    prefetch_at(elements.as_ptr().wrapping_add(number.min(elements.len())));
}

/// Prefetches the cache line that contains the address `wanted`, which can be any address.
#[inline(always)]
pub fn prefetch_at<T>(wanted: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 CPU has SSE; a prefetch reads nothing and faults on no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(wanted.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        use core::arch::asm;
        // SAFETY: a prefetch faults on no address, reads nothing and writes nothing.
        unsafe { asm!("prfm pldl1keep, [{0}]", in(reg) wanted, options(nostack, preserves_flags)) };
    }
    let _ = wanted;
}
