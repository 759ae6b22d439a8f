//! How a thread waits, in a loop and without a futex, for another one that should soon be done.

/// Pauses for one round of a waiting loop; `round` counts up from zero. Rounds below 100 spin,
/// those below 120 yield the CPU, and later ones sleep for 50 µs.
#[inline]
pub fn relax(round: u32) {
    match round {
        0..100 => core::hint::spin_loop(),
        100..120 => std::thread::yield_now(),
        #[expect(clippy::disallowed_methods, reason = "there is no event to park on")]
        _ => std::thread::sleep(std::time::Duration::from_micros(50)),
    }
}
