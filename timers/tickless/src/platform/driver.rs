//! Sets the timer slack and the CPU affinity of driver threads, which sleep until timers are due.

/// Sets the calling thread's timer slack to 1 ns, so that its sleeps end on time.
pub fn sharpen_sleep() {
    if cfg!(miri) {
        return;
    }
    let one = core::num::NonZeroU64::new(1);
    // If the system refuses this, sleeps end later by the default slack, but never too early.
    let _ = rustix::thread::set_current_timer_slack(one);
}

/// Restricts the calling thread to one CPU. Changes nothing if the system refuses that.
pub fn stay_on(cpu: u32) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu as usize);
    let _ = rustix::thread::sched_setaffinity(None, &set);
}
