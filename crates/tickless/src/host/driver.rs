//! A base's event device on the host: a thread that sleeps until the armed deadline.
//!
//! "Programming" the device means ringing a doorbell, and that costs a system call only if the
//! thread sleeps in it (H1). With nothing to do the thread does not wake at all (H2).
//!
//! The sleep is one absolute futex wait with the smallest timer slack that the kernel offers;
//! the default slack would add 50 µs to every expiry.

use super::Host;
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use rustix::thread::futex;
use rustix::time::Timespec;
use tickless_core::time::Ns;

/// Not zero, whatever has been heard.
const ASLEEP: u64 = 1 << 32;

/// Where a driver sleeps and how it is woken.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Doorbell {
    /// Counts up with every new deadline; the driver waits for it to change.
    rings: AtomicU32,
    /// What the device is armed for, in nanoseconds of the host's clock. Written under the
    /// base's lock, so that the last decision stands.
    deadline: AtomicU64,
    /// Which sleep the driver is in, or about to begin: [`ASLEEP`] and the rings it had heard.
    /// Zero while it is awake, and once somebody has called it.
    asleep: AtomicU64,
    /// System calls made to wake the driver.
    wakes: AtomicU64,
    /// Times the driver went to sleep.
    sleeps: AtomicU64,
}

impl Doorbell {
    /// Programs the device. Follow with [`ring`](Doorbell::ring), without the lock.
    pub fn set(&self, deadline: Ns) {
        self.deadline.store(deadline.0, Ordering::Relaxed);
        // SeqCst: pairs with `asleep` in `sleep`. Of a ringer that sets and then looks whether
        // the driver sleeps, and a driver that lies down and then looks whether it rang, at
        // least one sees the other: a ringer that reads the zero of an earlier sleep comes
        // before the next one is announced, and that sleep then hears its ring. Being a
        // release, it publishes the deadline as well.
        self.rings.fetch_add(1, Ordering::SeqCst);
    }

    /// The driver is about to look at its base: whatever was armed counts as never (R5).
    pub fn quiet(&self) {
        self.deadline.store(Ns::NEVER.0, Ordering::Relaxed);
    }

    /// Wakes the driver if it sleeps and nobody has called it: one system call then, none
    /// otherwise.
    pub fn ring(&self) {
        let sleep = self.asleep.load(Ordering::SeqCst);
        if sleep == 0 {
            return;
        }
        self.wakes.fetch_add(1, Ordering::Relaxed);
        // Nobody to wake is not a failure: it has just woken by itself.
        let _ = futex::wake(&self.rings, futex::Flags::PRIVATE, 1);
        // After the call, so that nobody relies on a caller that has lost its CPU before it.
        // From this sleep the driver gets up, even if it has yet to lie down, and then looks
        // at everything; so until its next one nobody needs to call. If that has begun by now
        // it has another number, and this changes nothing.
        let (set, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.asleep.compare_exchange(sleep, 0, set, failed);
    }

    /// System calls made to wake the driver, and times it went to sleep.
    pub fn counts(&self) -> (u64, u64) {
        (self.wakes.load(Ordering::Relaxed), self.sleeps.load(Ordering::Relaxed))
    }

    /// Sleeps until the deadline, or until there is another one, or until told to stop.
    pub fn sleep(&self, host: &Host, stop: &AtomicBool) {
        // First the rings, then the deadline: a deadline that is set in between is either
        // read here or rings once more than was heard.
        let heard = self.rings.load(Ordering::SeqCst);
        let deadline = Ns(self.deadline.load(Ordering::Relaxed));
        let until = host.clock.to_system(deadline);
        let timeout = (deadline != Ns::NEVER).then_some(Timespec {
            tv_sec: (until.0 / 1_000_000_000) as i64,
            tv_nsec: (until.0 % 1_000_000_000) as _,
        });
        self.asleep.store(ASLEEP | u64::from(heard), Ordering::SeqCst);
        if self.rings.load(Ordering::SeqCst) == heard && !stop.load(Ordering::SeqCst) {
            self.sleeps.fetch_add(1, Ordering::Relaxed);
            // Woken, timed out, interrupted, changed in between: each means look again.
            let _ = futex::wait_bitset(
                &self.rings,
                futex::Flags::PRIVATE,
                heard,
                timeout.as_ref(),
                NonZeroU32::MAX,
            );
        }
        self.asleep.store(0, Ordering::Relaxed);
    }
}

/// Makes the calling thread's sleeps as exact as the kernel can.
pub fn sharpen_sleep() {
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
