//! What a thread does while it waits for another that will be done in a moment.

/// One round of waiting for another thread: a pause, then the CPU, then some time.
#[inline]
pub fn relax(round: u32) {
    match round {
        0..100 => core::hint::spin_loop(),
        100..120 => std::thread::yield_now(),
        #[expect(clippy::disallowed_methods, reason = "there is no event to park on")]
        _ => std::thread::sleep(std::time::Duration::from_micros(50)),
    }
}
