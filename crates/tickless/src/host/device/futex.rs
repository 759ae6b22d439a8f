//! The event device that every system has: a driver that waits on a futex until the deadline.
//!
//! "Programming" the device means ringing a doorbell, and that costs a system call only if the
//! driver sleeps in it (H1). With nothing to do the driver does not wake at all (H2).
//!
//! The sleep is one absolute futex wait with the smallest timer slack that the kernel offers;
//! the default slack would add 50 µs to every expiry.

use crate::host::Host;
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
    /// Zero while it is awake, and once it has been called out of that sleep.
    asleep: AtomicU64,
    /// System calls made to wake the driver.
    wakes: AtomicU64,
    /// Times the driver went to sleep.
    sleeps: AtomicU64,
    /// Ticks that the driver made.
    ticks: AtomicU64,
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

    /// Wakes the driver if it sleeps, has not heard the last ring, and nobody has called it:
    /// one system call then, none otherwise.
    pub fn ring(&self) {
        let sleep = self.asleep.load(Ordering::SeqCst);
        let all_heard = ASLEEP | u64::from(self.rings.load(Ordering::SeqCst));
        if sleep == 0 || sleep == all_heard {
            return;
        }
        self.count_wake();
        // Nobody to wake is not a failure: it has just woken by itself.
        let _ = futex::wake(&self.rings, futex::Flags::PRIVATE, 1);
        // From a sleep that has not heard every ring the driver gets up, even if it has yet to
        // lie down, and then looks at everything; until its next sleep nobody else needs to
        // call. That one has heard more, so it has another number and this leaves it alone.
        // And only now, so that nobody relies on a caller that loses its CPU before the call.
        let (set, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.asleep.compare_exchange(sleep, 0, set, failed);
    }

    /// System calls made to wake the driver, and times it went to sleep.
    pub fn counts(&self) -> (u64, u64) {
        (self.wakes.load(Ordering::Relaxed), self.sleeps.load(Ordering::Relaxed))
    }

    /// The driver goes to sleep, here or elsewhere.
    pub fn count_sleep(&self) {
        self.sleeps.fetch_add(1, Ordering::Relaxed);
    }

    /// Somebody makes a system call to wake the driver.
    pub fn count_wake(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
    }

    /// The driver makes a tick.
    pub fn count_tick(&self) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
    }

    /// Ticks that the driver made.
    pub fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }

    /// Sleeps until the deadline, or until there is another one, or until told to stop; in any
    /// case no longer than until `limit`.
    pub fn sleep(&self, host: &Host, limit: Ns, stop: &AtomicBool) {
        // First the rings, then the deadline: a deadline that is set in between is either
        // read here or rings once more than was heard.
        let heard = self.rings.load(Ordering::SeqCst);
        let deadline = Ns(self.deadline.load(Ordering::Relaxed)).min(limit);
        let until = host.clock.to_system(deadline);
        let timeout = (deadline != Ns::NEVER).then_some(Timespec {
            tv_sec: (until.0 / 1_000_000_000) as i64,
            tv_nsec: (until.0 % 1_000_000_000) as _,
        });
        self.asleep.store(ASLEEP | u64::from(heard), Ordering::SeqCst);
        if self.rings.load(Ordering::SeqCst) == heard && !stop.load(Ordering::SeqCst) {
            self.count_sleep();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::clock::HostClock;
    use crate::host::cpu::CpuMap;
    use std::time::{Duration, Instant};

    /// Goal: no ring is lost, however ringers and the driver's lying down interleave.
    /// Method: two ringers that ask for something at once and wait until the driver has seen
    /// it, and a driver that does nothing but look and sleep, without a deadline of its own.
    #[test]
    fn no_ring_is_lost() {
        let rounds = if cfg!(miri) { 20 } else { 15_000 };
        let host = Host::new(HostClock::system(), CpuMap::of_this_process().with_bases(1));
        let (bell, stop) = (host.devices[0].bell(), AtomicBool::new(false));
        let (asked, heard) = ([const { AtomicU64::new(0) }; 2], [const { AtomicU64::new(0) }; 2]);
        std::thread::scope(|s| {
            s.spawn(|| {
                while !stop.load(Ordering::Acquire) {
                    bell.quiet();
                    for (asked, heard) in asked.iter().zip(&heard) {
                        heard.store(asked.load(Ordering::SeqCst), Ordering::SeqCst);
                    }
                    bell.sleep(&host, Ns::NEVER, &stop);
                }
            });
            let ringers = [0usize, 1].map(|me| {
                let (asked, heard, bell) = (&asked[me], &heard[me], &bell);
                s.spawn(move || {
                    for round in 1..=rounds {
                        asked.store(round, Ordering::SeqCst);
                        bell.set(Ns(1));
                        (0..round % 53 * me as u64).for_each(|_| core::hint::spin_loop());
                        bell.ring();
                        let begun = Instant::now();
                        while heard.load(Ordering::SeqCst) < round {
                            if begun.elapsed() > Duration::from_secs(10) {
                                return false;
                            }
                            core::hint::spin_loop();
                        }
                    }
                    true
                })
            });
            let all = ringers.map(|ringer| ringer.join().is_ok_and(|heard| heard));
            stop.store(true, Ordering::Release);
            bell.set(Ns::ZERO);
            // Louder than `ring`, should that be what fails.
            let _ = futex::wake(&bell.rings, futex::Flags::PRIVATE, 1);
            assert_eq!(all, [true, true], "a ring was lost, {:?}", bell.counts());
        });
        println!("wake calls and sleeps: {:?}", bell.counts());
    }
}
