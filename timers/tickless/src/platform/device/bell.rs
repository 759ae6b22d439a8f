//! Two protocols that wake a waiting driver thread or event loop when a timer is armed for an
//! earlier time than it waits for. They are generic over the atomic words, so that the model
//! checkers run this file.
//!
//! An arming thread writes the deadline, under the lock of the base, and then checks whether the
//! driver waits; the driver announces that it waits and then checks the deadline again. All four
//! accesses are sequentially consistent, so at least one side sees the other.

use tickless_core::platform::{Ordering, ParkingWord, Word};
use tickless_core::time::Ns;

/// Added to the number of rings that is stored in `DriverBell::asleep`, so that the sum is not
/// zero: zero means that the driver is awake.
const ASLEEP: u64 = 1 << 32;

/// Wakes a driver thread when an earlier deadline is armed.
#[derive(Debug, Default)]
pub struct DriverBell<W, R> {
    /// Counts the rings: the signals that the deadline changed. The driver sleeps until it is rung.
    rings: R,
    /// The driver's deadline, in ns of the host's clock. Written under the lock of the base.
    deadline: W,
    /// Identifies the sleep that the driver is in or about to begin: [`ASLEEP`] plus the number of
    /// rings that the driver has seen. Zero while the driver is awake, and once it was woken.
    asleep: W,
}

impl<W: Word, R: ParkingWord> DriverBell<W, R> {
    /// Makes the bell of a base whose driver thread does not exist yet. To a thread that rings, the
    /// driver seems to sleep and to have seen no ring, so the first ring calls `wake`.
    pub fn without_driver() -> Self {
        let never = W::new(Ns::NEVER.0);
        DriverBell { rings: R::zero(), deadline: never, asleep: W::new(ASLEEP) }
    }
}

impl<W: Word, R: ParkingWord> DriverBell<W, R> {
    /// Sets the deadline. Call it while you hold the base's lock; unlock, then call
    /// [`ring`](DriverBell::ring).
    pub fn set(&self, deadline: Ns) {
        self.deadline.store(deadline.0, Ordering::Relaxed);
        // SeqCst: pairs with the store to `asleep` in `sleep`. This thread increments `rings` and
        // then reads `asleep`, in `ring`; the driver writes `asleep` and then reads `rings`. So at
        // least one of them sees the other's write. The increment is also a release, which
        // publishes the deadline.
        self.rings.add_one(Ordering::SeqCst);
    }

    /// Records that the driver is about to check its timers: the bell then has no deadline.
    pub fn quiet(&self) {
        self.deadline.store(Ns::NEVER.0, Ordering::Relaxed);
    }

    pub fn begin(&self) {
        // Relaxed: a thread that still reads the old value wakes the driver, which does no harm.
        self.asleep.store(0, Ordering::Relaxed);
    }

    /// Calls `wake` if the driver sleeps, has not seen the last ring, and was not woken yet.
    pub fn ring(&self, wake: impl FnOnce(&R)) {
        let sleep = self.asleep.load(Ordering::SeqCst);
        let all_seen = ASLEEP | u64::from(self.rings.count(Ordering::SeqCst));
        if sleep == 0 || sleep == all_seen {
            return;
        }
        // If the driver has woken by itself, this call wakes no thread, which is fine.
        wake(&self.rings);
        // The driver, now woken, leaves this sleep, and until its next one no other thread needs to
        // wake it. A sleep that has already been announced after this one has another number, which
        // this exchange does not change. The exchange comes after the wakeup: otherwise other
        // threads would rely on this thread, which can lose its CPU before it wakes the driver.
        let (set, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.asleep.compare_exchange(sleep, 0, set, failed);
    }

    pub fn rings(&self) -> &R {
        &self.rings
    }

    pub fn deadline(&self) -> Ns {
        Ns(self.deadline.load(Ordering::Relaxed))
    }

    /// Announces that the driver sleeps, and then calls `wait` to sleep, unless a ring has come in
    /// between or `is_cancelled` returns `true`. `until` converts the deadline. `wait` gets the
    /// word to sleep on, the value of the word, and the converted deadline.
    pub fn sleep<T>(
        &self,
        until: impl FnOnce(Ns) -> T,
        is_cancelled: impl FnOnce() -> bool,
        wait: impl FnOnce(&R, u32, T),
    ) {
        // Read the number of rings before the deadline. If another thread sets a new deadline in
        // between, its ring changes the number, and the check below prevents the sleep.
        let seen = self.rings.count(Ordering::SeqCst);
        let until = until(self.deadline());
        self.asleep.store(ASLEEP | u64::from(seen), Ordering::SeqCst);
        if self.rings.count(Ordering::SeqCst) == seen && !is_cancelled() {
            // Whatever ended the wait, the driver checks its base next.
            wait(&self.rings, seen, until);
        }
        self.asleep.store(0, Ordering::Relaxed);
    }
}

/// Wakes a program's event loop when a deadline is armed before the one that the loop waits for.
#[derive(Debug)]
pub struct LoopBell<W> {
    /// The deadline of the device, on the host's clock. Written under the base's lock.
    deadline: W,
    /// The deadline that the loop waits for: the result of its last `begin_wait`.
    waits_for: W,
    /// The number of the current wait; zero while the loop runs timers, and after a thread has
    /// woken (*called*) the loop.
    waits: W,
    last_wait: W,
}

impl<W: Word> LoopBell<W> {
    pub fn new() -> LoopBell<W> {
        let never = || W::new(Ns::NEVER.0);
        LoopBell { deadline: never(), waits_for: never(), waits: W::new(0), last_wait: W::new(0) }
    }

    /// Sets the deadline. Hold the base's lock during the call; then call [`ring`](LoopBell::ring).
    pub fn set(&self, deadline: Ns) {
        // SeqCst: pairs with the store to `waits` in `begin_wait`, so that at least one of the two
        // threads sees what the other has written.
        self.deadline.store(deadline.0, Ordering::SeqCst);
    }

    pub fn quiet(&self) {
        self.deadline.store(Ns::NEVER.0, Ordering::SeqCst);
    }

    pub fn deadline(&self) -> Ns {
        Ns(self.deadline.load(Ordering::SeqCst))
    }

    /// Wakes the loop by a call of `call`, if the loop waits for a later deadline and no thread has
    /// woken it yet. Returns whether `call` was called.
    pub fn ring(&self, call: impl FnOnce(Ns)) -> bool {
        let wait = self.waits.load(Ordering::SeqCst);
        let waits_for = self.waits_for.load(Ordering::SeqCst);
        let deadline = self.deadline.load(Ordering::SeqCst);
        if wait == 0 || deadline >= waits_for {
            return false;
        }
        call(Ns(deadline));
        // The loop, which is now woken, asks for the deadline again before its next wait; until
        // then no other thread needs to wake it. A wait that has already begun has another number,
        // which this exchange does not change. The exchange comes after the system call that wakes
        // the loop: otherwise other threads would rely on this thread, which can lose its CPU
        // before that call.
        let (set, failed) = (Ordering::SeqCst, Ordering::Relaxed);
        let _ = self.waits.compare_exchange(wait, 0, set, failed);
        true
    }

    /// Returns the deadline until which the loop is allowed to wait. A thread that arms an earlier
    /// deadline after this call wakes the loop. Call this only on the loop's own thread.
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

    /// Records that the loop runs timers: no thread needs to wake it until it waits again.
    pub fn begin_run(&self) {
        self.waits.store(0, Ordering::SeqCst);
    }
}
