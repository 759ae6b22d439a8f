//! What a driver thread does for itself: sleeps that are exact, and where it runs.

/// Makes the calling thread's sleeps as exact as the kernel can.
pub fn sharpen_sleep() {
    if cfg!(miri) {
        return;
    }
    let one = core::num::NonZeroU64::new(1);
    // A refusal costs precision, not correctness.
    let _ = rustix::thread::set_current_timer_slack(one);
}

/// Keeps the calling thread on one CPU, if the system agrees.
pub fn stay_on(cpu: u32) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu as usize);
    let _ = rustix::thread::sched_setaffinity(None, &set);
}
