//! The event device that every system has: a driver that waits on a futex until the deadline.
//!
//! "Programming" the device means ringing a doorbell, and that costs a system call only if the
//! driver sleeps in it (H1). With nothing to do the driver does not wake at all (H2).
//!
//! The sleep is one absolute futex wait with the smallest timer slack that the kernel offers;
//! the default slack would add 50 µs to every expiry.

use super::bell::{DriverBell, Rings};
use crate::platform::clock::HostClock;
use crate::platform::wait;
use crate::platform::wakeup::Waking;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tickless_core::time::Ns;

/// Where a driver sleeps and how it is woken.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Doorbell {
    bell: DriverBell<AtomicU64, AtomicU32>,
    /// System calls made to wake the driver.
    wakes: AtomicU64,
    /// Times the driver went to sleep.
    sleeps: AtomicU64,
    /// Ticks that the driver made.
    ticks: AtomicU64,
    /// For how long the driver spun, ns.
    spun: AtomicU64,
}

impl Doorbell {
    /// Programs the device. Follow with [`ring`](Doorbell::ring), without the lock.
    pub fn set(&self, deadline: Ns) {
        self.bell.set(deadline);
    }

    /// The driver is about to look at its base: whatever was armed counts as never (R5).
    pub fn quiet(&self) {
        self.bell.quiet();
    }

    /// Wakes the driver if it sleeps, has not heard the last ring, and nobody has called it:
    /// one system call then, none otherwise.
    pub fn ring(&self) {
        self.bell.ring(|rings| {
            self.count_wake();
            wait::wake_one(rings);
        });
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

    /// For how long the driver spun before deadlines.
    pub fn spun(&self) -> Ns {
        Ns(self.spun.load(Ordering::Relaxed))
    }

    /// How often it rang.
    pub fn rings(&self) -> u32 {
        self.bell.rings().load(Ordering::SeqCst)
    }

    /// The driver lay down at some time and is up again: how late was it, if the deadline is what
    /// it got up for? Without a ring since it lay down.
    pub fn note_woken(&self, clock: &HostClock, margin: Ns, lay_down: Ns, waking: &mut Waking) {
        let deadline = self.bell.deadline();
        let asked = deadline.since(margin);
        let now = clock.now();
        if deadline != Ns::NEVER && lay_down < asked && asked <= now {
            waking.note_woken(asked, now);
        }
    }

    /// Is it too late to lie down for the deadline?
    pub fn is_near(&self, margin: Ns, now: Ns) -> bool {
        let deadline = self.bell.deadline();
        margin != Ns::ZERO && deadline != Ns::NEVER && deadline.since(margin) <= now
    }

    /// Spins until the deadline, if that is no further away than the margin; until there is another
    /// one, or until told to stop.
    pub fn spin(&self, clock: &HostClock, margin: Ns, stop: &AtomicBool, waking: &mut Waking) {
        // First the rings, as in `sleep`. The driver counts as awake, so that whoever rings makes
        // no system call; it looks here all the time.
        let heard = self.rings();
        let deadline = self.bell.deadline();
        if !self.is_near(margin, clock.now()) {
            return;
        }
        let is_called = || self.rings() != heard || stop.load(Ordering::Relaxed);
        let spun = waking.spin(deadline, || clock.now(), is_called);
        self.spun.fetch_add(spun.0, Ordering::Relaxed);
    }

    /// Sleeps until so long before the deadline, or until there is another one, or until told to
    /// stop; in any case no longer than until `limit`.
    pub fn sleep(&self, clock: &HostClock, margin: Ns, limit: Ns, stop: &AtomicBool) {
        let until = |deadline| {
            clock.to_system(match deadline {
                Ns::NEVER => limit,
                deadline => deadline.since(margin).min(limit),
            })
        };
        let is_called_off = || stop.load(Ordering::SeqCst);
        self.bell.sleep(until, is_called_off, |rings, heard, until| {
            self.count_sleep();
            wait::wait(rings, heard, until);
        });
    }
}

impl Rings for AtomicU32 {
    #[inline]
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }

    #[inline]
    fn add_one(&self, order: Ordering) {
        self.fetch_add(1, order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Goal: no ring is lost, however ringers and the driver's lying down interleave.
    /// Method: two ringers that ask for something at once and wait until the driver has seen
    /// it, and a driver that does nothing but look and sleep, without a deadline of its own.
    #[test]
    fn no_ring_is_lost() {
        let rounds = if cfg!(miri) { 20 } else { 15_000 };
        let (bell, clock) = (&Doorbell::default(), HostClock::system());
        let stop = AtomicBool::new(false);
        let (asked, heard) = ([const { AtomicU64::new(0) }; 2], [const { AtomicU64::new(0) }; 2]);
        std::thread::scope(|s| {
            s.spawn(|| {
                while !stop.load(Ordering::Acquire) {
                    bell.quiet();
                    for (asked, heard) in asked.iter().zip(&heard) {
                        heard.store(asked.load(Ordering::SeqCst), Ordering::SeqCst);
                    }
                    bell.sleep(&clock, Ns::ZERO, Ns::NEVER, &stop);
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
            wait::wake_one(bell.bell.rings());
            assert_eq!(all, [true, true], "a ring was lost, {:?}", bell.counts());
        });
        println!("wake calls and sleeps: {:?}", bell.counts());
    }
}
