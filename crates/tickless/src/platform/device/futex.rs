//! The event device that every system has: a driver that waits on a futex until the deadline.
//!
//! "Programming" the device means ringing a doorbell, and that costs a system call only if the
//! driver sleeps in it (H1). With nothing to do the driver does not wake at all (H2).
//!
//! The sleep is one absolute futex wait with the smallest timer slack that the kernel offers;
//! the default slack would add 50 µs to every expiry.

use crate::platform::clock::HostClock;
use crate::platform::wait;
use crate::platform::wakeup::Waking;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
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
    /// For how long the driver spun, ns.
    spun: AtomicU64,
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
        wait::wake_one(&self.rings);
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

    /// For how long the driver spun before deadlines.
    pub fn spun(&self) -> Ns {
        Ns(self.spun.load(Ordering::Relaxed))
    }

    /// How often it rang.
    pub fn rings(&self) -> u32 {
        self.rings.load(Ordering::SeqCst)
    }

    /// The driver lay down at some time and is up again: how late was it, if the deadline is what
    /// it got up for? Without a ring since it lay down.
    pub fn note_woken(&self, clock: &HostClock, margin: Ns, lay_down: Ns, waking: &mut Waking) {
        let deadline = Ns(self.deadline.load(Ordering::Relaxed));
        let asked = deadline.since(margin);
        let now = clock.now();
        if deadline != Ns::NEVER && lay_down < asked && asked <= now {
            waking.note_woken(asked, now);
        }
    }

    /// Is it too late to lie down for the deadline?
    pub fn is_near(&self, margin: Ns, now: Ns) -> bool {
        let deadline = Ns(self.deadline.load(Ordering::Relaxed));
        margin != Ns::ZERO && deadline != Ns::NEVER && deadline.since(margin) <= now
    }

    /// Spins until the deadline, if that is no further away than the margin; until there is another
    /// one, or until told to stop.
    pub fn spin(&self, clock: &HostClock, margin: Ns, stop: &AtomicBool, waking: &mut Waking) {
        // First the rings, as in `sleep`. The driver counts as awake, so that whoever rings makes
        // no system call; it looks here all the time.
        let heard = self.rings();
        let deadline = Ns(self.deadline.load(Ordering::Relaxed));
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
        // First the rings, then the deadline: a deadline that is set in between is either
        // read here or rings once more than was heard.
        let heard = self.rings.load(Ordering::SeqCst);
        let deadline = match Ns(self.deadline.load(Ordering::Relaxed)) {
            Ns::NEVER => limit,
            deadline => deadline.since(margin).min(limit),
        };
        let until = clock.to_system(deadline);
        self.asleep.store(ASLEEP | u64::from(heard), Ordering::SeqCst);
        if self.rings.load(Ordering::SeqCst) == heard && !stop.load(Ordering::SeqCst) {
            self.count_sleep();
            // Woken, timed out, interrupted, changed in between: each means look again.
            wait::wait(&self.rings, heard, until);
        }
        self.asleep.store(0, Ordering::Relaxed);
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
            wait::wake_one(&bell.rings);
            assert_eq!(all, [true, true], "a ring was lost, {:?}", bell.counts());
        });
        println!("wake calls and sleeps: {:?}", bell.counts());
    }
}
