//! The timer slack and the CPU affinity of driver threads.

/// Sets the calling thread's timer slack to 1 ns, so that its sleeps end on time.
pub fn sharpen_sleep() {
    if cfg!(miri) {
        return;
    }
    let one = core::num::NonZeroU64::new(1);
    // A refusal costs precision, not correctness.
    let _ = rustix::thread::set_current_timer_slack(one);
}

/// Keeps the calling thread on one CPU, unless the system refuses that.
pub fn stay_on(cpu: u32) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu as usize);
    let _ = rustix::thread::sched_setaffinity(None, &set);
}
