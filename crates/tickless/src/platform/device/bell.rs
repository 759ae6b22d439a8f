//! Two protocols that wake a waiting driver or event loop when the next event moves earlier.
//!
//! They are generic over a platform's words, so that the model checkers run this file. In both, an
//! arming thread writes the deadline and then checks whether the driver waits; the driver announces
//! that it waits and then checks the deadline again. All four accesses are sequentially consistent,
//! so at least one side sees the other. The deadline is decided and written under the base's lock.

use tickless_core::platform::{Ordering, Word};
use tickless_core::time::Ns;

/// Keeps the word from being zero, for any number of rings.
const ASLEEP: u64 = 1 << 32;

/// A word that a driver sleeps on.
pub trait Rings {
    fn load(&self, order: Ordering) -> u32;
    /// Increments the word.
    fn add_one(&self, order: Ordering);
}

/// Wakes a driver thread when an earlier deadline is armed.
#[derive(Debug, Default)]
pub struct DriverBell<W, R> {
    /// Incremented for every new deadline; the driver waits for it to change.
    rings: R,
    /// The deadline of the device, in nanoseconds of the host's clock. Written under the base's
    /// lock, so that the last decision counts.
    deadline: W,
    /// Identifies the sleep that the driver is in or about to begin: [`ASLEEP`] and the number of
    /// rings that it has seen. Zero while the driver is awake, and after it was woken from that
    /// sleep.
    asleep: W,
}

impl<W: Word, R: Rings + Default> DriverBell<W, R> {
    /// Makes the bell of a base that has no driver yet. For a thread that rings, it looks like that
    /// of a driver that sleeps and has seen no ring: the first ring calls `wake`.
    pub fn without_driver() -> Self {
        let never = W::new(Ns::NEVER.0);
        DriverBell { rings: R::default(), deadline: never, asleep: W::new(ASLEEP) }
    }
}

impl<W: Word, R: Rings> DriverBell<W, R> {
    /// Programs the device. The caller must then call [`ring`](DriverBell::ring) without the lock.
    pub fn set(&self, deadline: Ns) {
        self.deadline.store(deadline.0, Ordering::Relaxed);
        // SeqCst: pairs with `asleep` in `sleep`. The ringing thread writes and then checks whether
        // the driver sleeps; the driver announces its sleep and then checks the rings. At least
        // one sees the other: a ringing thread that reads the zero of an earlier sleep precedes
        // the next announcement, and the driver sees its ring before that sleep. The store is also
        // a release, which publishes the deadline.
        self.rings.add_one(Ordering::SeqCst);
    }

    /// Records that the driver is about to check its base, so that the device counts as unarmed.
    pub fn quiet(&self) {
        self.deadline.store(Ns::NEVER.0, Ordering::Relaxed);
    }

    /// Records that the driver runs. It checks its base next.
    pub fn begin(&self) {
        // Relaxed: as at the end of `sleep`.
        self.asleep.store(0, Ordering::Relaxed);
    }

    /// Calls `wake` if the driver sleeps, has not seen the last ring, and was not woken by another
    /// thread.
    pub fn ring(&self, wake: impl FnOnce(&R)) {
        let sleep = self.asleep.load(Ordering::SeqCst);
        let all_seen = ASLEEP | u64::from(self.rings.load(Ordering::SeqCst));
        if sleep == 0 || sleep == all_seen {
            return;
        }
        // The driver may have woken by itself; then this wakes no thread, which is fine.
        wake(&self.rings);
        // The driver leaves a sleep that has missed a ring, even one that it has yet to begin, and
        // then checks its base. Until its next sleep no other thread needs to wake it. That sleep
        // has seen more rings, so it has another number and this exchange does not change it. The
        // exchange follows the wake: otherwise other threads would rely on a thread that may lose
        // its CPU before it wakes the driver.
        let (set, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.asleep.compare_exchange(sleep, 0, set, failed);
    }

    /// Returns the word that the driver sleeps on.
    pub fn rings(&self) -> &R {
        &self.rings
    }

    /// Returns the deadline of the device.
    pub fn deadline(&self) -> Ns {
        Ns(self.deadline.load(Ordering::Relaxed))
    }

    /// Calls `wait` if no ring has come since the driver announced its sleep and the sleep is not
    /// cancelled. `wait` gets the number of rings that the driver has seen, and the result of
    /// `until` for the deadline.
    pub fn sleep<T>(
        &self,
        until: impl FnOnce(Ns) -> T,
        is_cancelled: impl FnOnce() -> bool,
        wait: impl FnOnce(&R, u32, T),
    ) {
        // First the rings, then the deadline: a deadline that is set in between is either read
        // here, or its ring comes after the number that is read.
        let seen = self.rings.load(Ordering::SeqCst);
        let until = until(self.deadline());
        self.asleep.store(ASLEEP | u64::from(seen), Ordering::SeqCst);
        if self.rings.load(Ordering::SeqCst) == seen && !is_cancelled() {
            // Whatever ended the wait, the driver checks its base next.
            wait(&self.rings, seen, until);
        }
        self.asleep.store(0, Ordering::Relaxed);
    }
}

/// Wakes a program's event loop when a deadline is armed that is earlier than the one that the loop
/// waits for. While the loop runs timers, and until it asks for the next event, no call is needed.
#[derive(Debug)]
pub struct LoopBell<W> {
    /// The deadline of the device, on the host's clock. Written under the base's lock.
    deadline: W,
    /// The deadline that the loop got when it last asked.
    waits_for: W,
    /// The number of the wait that the loop is in or about to begin. Zero while it runs timers, and
    /// after it was called out of that wait.
    waits: W,
    /// The number of its last wait.
    last_wait: W,
}

impl<W: Word> LoopBell<W> {
    /// Makes a device that is not armed, for a loop that does not wait.
    pub fn new() -> LoopBell<W> {
        let never = || W::new(Ns::NEVER.0);
        LoopBell { deadline: never(), waits_for: never(), waits: W::new(0), last_wait: W::new(0) }
    }

    /// Programs the device. The caller must then call [`ring`](LoopBell::ring) without the lock.
    pub fn set(&self, deadline: Ns) {
        // SeqCst: pairs with `waits` in `begin_wait`; see the start of this file.
        self.deadline.store(deadline.0, Ordering::SeqCst);
    }

    /// Records that the loop is about to check its base, so that the device counts as unarmed.
    pub fn quiet(&self) {
        self.deadline.store(Ns::NEVER.0, Ordering::SeqCst);
    }

    /// Returns the deadline of the device.
    pub fn deadline(&self) -> Ns {
        Ns(self.deadline.load(Ordering::SeqCst))
    }

    /// Calls the loop if it waits for a later deadline and was not called by another thread.
    /// Returns whether it called.
    pub fn ring(&self, call: impl FnOnce(Ns)) -> bool {
        let wait = self.waits.load(Ordering::SeqCst);
        let waits_for = self.waits_for.load(Ordering::SeqCst);
        let deadline = self.deadline.load(Ordering::SeqCst);
        if wait == 0 || deadline >= waits_for {
            return false;
        }
        call(Ns(deadline));
        // A loop that was called asks again before it waits again, so no other thread needs to call
        // it. Its next wait has another number, which this exchange does not change. The exchange
        // follows the call: otherwise other threads would rely on a thread that may lose its CPU
        // before the call.
        let (set, failed) = (Ordering::SeqCst, Ordering::Relaxed);
        let _ = self.waits.compare_exchange(wait, 0, set, failed);
        true
    }

    /// Returns the deadline until which the loop may wait. From here on, a thread that arms an
    /// earlier deadline calls the loop. Only the loop's own thread calls this.
    pub fn begin_wait(&self) -> Ns {
        let mut deadline = self.deadline.load(Ordering::SeqCst);
        let wait = self.last_wait.load(Ordering::Relaxed) + 1;
        self.last_wait.store(wait, Ordering::Relaxed);
        self.waits_for.store(deadline, Ordering::SeqCst);
        self.waits.store(wait, Ordering::SeqCst);
        loop {
            let again = self.deadline.load(Ordering::SeqCst);
            if again >= deadline {
                return Ns(deadline);
            }
            deadline = again;
            self.waits_for.store(deadline, Ordering::SeqCst);
        }
    }

    /// Records that the loop runs timers: no thread needs to call it until it waits again. Only the
    /// loop's own thread calls this.
    pub fn begin_run(&self) {
        self.waits.store(0, Ordering::SeqCst);
    }
}
