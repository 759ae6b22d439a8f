//! How whoever waits for the next event is told that it has moved earlier: two protocols.
//!
//! Over words of any world, so that the model checkers run these very lines. In both, who arms
//! writes and then looks whether the other waits; the other says that it waits and then looks
//! again. All four are sequentially consistent, so at least one sees the other. What they wait for
//! is decided under the lock of their base, and written there.

use tickless_core::platform::{Ordering, Word};
use tickless_core::time::Ns;

/// Not zero, whatever has been heard.
const ASLEEP: u64 = 1 << 32;

/// A word that a driver sleeps on.
pub trait Rings {
    fn load(&self, order: Ordering) -> u32;
    /// Counts up.
    fn add_one(&self, order: Ordering);
}

/// What a driver thread sleeps by.
#[derive(Debug, Default)]
pub struct DriverBell<W, R> {
    /// Counts up with every new deadline; the driver waits for it to change.
    rings: R,
    /// What the device is armed for, in nanoseconds of the host's clock. Written under the
    /// base's lock, so that the last decision stands.
    deadline: W,
    /// Which sleep the driver is in, or about to begin: [`ASLEEP`] and the rings it had heard.
    /// Zero while it is awake, and once it has been called out of that sleep.
    asleep: W,
}

impl<W: Word, R: Rings> DriverBell<W, R> {
    /// Programs the device. Follow with [`ring`](DriverBell::ring), without the lock.
    pub fn set(&self, deadline: Ns) {
        self.deadline.store(deadline.0, Ordering::Relaxed);
        // SeqCst: pairs with `asleep` in `sleep`. Of a ringer that sets and then looks whether
        // the driver sleeps, and a driver that lies down and then looks whether it rang, at
        // least one sees the other: a ringer that reads the zero of an earlier sleep comes
        // before the next one is announced, and that sleep then hears its ring. Being a
        // release, it publishes the deadline as well.
        self.rings.add_one(Ordering::SeqCst);
    }

    /// The driver is about to look at its base: whatever was armed counts as never (R5).
    pub fn quiet(&self) {
        self.deadline.store(Ns::NEVER.0, Ordering::Relaxed);
    }

    /// Has the driver woken if it sleeps, has not heard the last ring, and nobody has called it.
    pub fn ring(&self, wake: impl FnOnce(&R)) {
        let sleep = self.asleep.load(Ordering::SeqCst);
        let all_heard = ASLEEP | u64::from(self.rings.load(Ordering::SeqCst));
        if sleep == 0 || sleep == all_heard {
            return;
        }
        // Nobody to wake is not a failure: it has just woken by itself.
        wake(&self.rings);
        // From a sleep that has not heard every ring the driver gets up, even if it has yet to
        // lie down, and then looks at everything; until its next sleep nobody else needs to
        // call. That one has heard more, so it has another number and this leaves it alone.
        // And only now, so that nobody relies on a caller that loses its CPU before the call.
        let (set, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.asleep.compare_exchange(sleep, 0, set, failed);
    }

    /// The word that the driver sleeps on.
    pub fn rings(&self) -> &R {
        &self.rings
    }

    /// What it is armed for.
    pub fn deadline(&self) -> Ns {
        Ns(self.deadline.load(Ordering::Relaxed))
    }

    /// Has the driver sleep as long as it has heard every ring, unless it was called off: `wait`
    /// is handed how many it has heard, and until when, which is worked out of the deadline.
    pub fn sleep<T>(
        &self,
        until: impl FnOnce(Ns) -> T,
        is_called_off: impl FnOnce() -> bool,
        wait: impl FnOnce(&R, u32, T),
    ) {
        // First the rings, then the deadline: a deadline that is set in between is either
        // read here or rings once more than was heard.
        let heard = self.rings.load(Ordering::SeqCst);
        let until = until(self.deadline());
        self.asleep.store(ASLEEP | u64::from(heard), Ordering::SeqCst);
        if self.rings.load(Ordering::SeqCst) == heard && !is_called_off() {
            // Woken, timed out, interrupted, changed in between: each means look again.
            wait(&self.rings, heard, until);
        }
        self.asleep.store(0, Ordering::Relaxed);
    }
}

/// What a loop of the program's is called by, when something is armed that is earlier than the
/// deadline which it has heard of. While it runs timers, and until it asks for the next event, it
/// has heard of everything.
#[derive(Debug)]
pub struct LoopBell<W> {
    /// What the device is armed for, on the host's clock. Written under the base's lock.
    deadline: W,
    /// What the loop was told when it asked last.
    heard: W,
    /// Which wait the loop is in, or about to begin: each has another number. Zero while it runs
    /// timers, and once it has been called out of that wait.
    waits: W,
    /// The number of its last wait.
    last_wait: W,
}

impl<W: Word> LoopBell<W> {
    /// Nothing is armed, and nobody waits.
    pub fn new() -> LoopBell<W> {
        let never = || W::new(Ns::NEVER.0);
        LoopBell { deadline: never(), heard: never(), waits: W::new(0), last_wait: W::new(0) }
    }

    /// Programs it. Follow with [`ring`](LoopBell::ring), without the lock.
    pub fn set(&self, deadline: Ns) {
        // SeqCst: pairs with `waits` in `hear`; see the head of this file.
        self.deadline.store(deadline.0, Ordering::SeqCst);
    }

    /// The loop is about to look at its base: whatever was armed counts as never (R5).
    pub fn quiet(&self) {
        self.deadline.store(Ns::NEVER.0, Ordering::SeqCst);
    }

    /// What it is armed for.
    pub fn deadline(&self) -> Ns {
        Ns(self.deadline.load(Ordering::SeqCst))
    }

    /// Calls the loop if it waits for something later and nobody has called it. Did it?
    pub fn ring(&self, call: impl FnOnce(Ns)) -> bool {
        let wait = self.waits.load(Ordering::SeqCst);
        let heard = self.heard.load(Ordering::SeqCst);
        let deadline = self.deadline.load(Ordering::SeqCst);
        if wait == 0 || deadline >= heard {
            return false;
        }
        call(Ns(deadline));
        // Who has been called asks again before it waits again, so nobody else needs to call; its
        // next wait has another number, and this leaves it alone. And only now, so that nobody
        // relies on a caller that loses its CPU before the call.
        let (set, failed) = (Ordering::SeqCst, Ordering::Relaxed);
        let _ = self.waits.compare_exchange(wait, 0, set, failed);
        true
    }

    /// What it is armed for. From now on whoever arms something earlier calls. For the loop alone.
    pub fn hear(&self) -> Ns {
        let mut deadline = self.deadline.load(Ordering::SeqCst);
        let wait = self.last_wait.load(Ordering::Relaxed) + 1;
        self.last_wait.store(wait, Ordering::Relaxed);
        self.heard.store(deadline, Ordering::SeqCst);
        self.waits.store(wait, Ordering::SeqCst);
        loop {
            let again = self.deadline.load(Ordering::SeqCst);
            if again >= deadline {
                return Ns(deadline);
            }
            deadline = again;
            self.heard.store(deadline, Ordering::SeqCst);
        }
    }

    /// The loop runs timers: until it hears again nobody needs to call it. For the loop alone.
    pub fn begin_run(&self) {
        self.waits.store(0, Ordering::SeqCst);
    }
}
