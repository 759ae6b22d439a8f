//! The event device of a program that has an event loop: a descriptor that it polls, or a
//! callback that wakes it.
//!
//! # The callback
//!
//! It is called when a deadline is armed that is earlier than the one which the loop has heard
//! of: see `bell`.

use super::bell::LoopBell;
#[cfg(linux_platform)]
use super::timerfd::Timerfd;
use crate::platform::clock::HostClock;
use core::fmt;
use core::sync::atomic::AtomicU64;
#[cfg(linux_platform)]
use core::sync::atomic::Ordering;
#[cfg(linux_platform)]
use std::sync::Arc;
use tickless_core::time::Ns;

/// Is handed the new deadline.
pub type OnRearm = dyn Fn(Ns) + Send + Sync;

/// How a loop is woken, and what for.
#[derive(Debug)]
pub struct LoopDevice {
    bell: LoopBell<AtomicU64>,
    signal: Signal,
    /// What the descriptor was armed for last; unlike `deadline` not forgotten by a handler.
    #[cfg(linux_platform)]
    written: AtomicU64,
    /// Up to which call that armed the descriptor its expiry has been taken note of.
    #[cfg(linux_platform)]
    cleared: AtomicU64,
}

enum Signal {
    /// Becomes readable at the deadline.
    #[cfg(linux_platform)]
    Descriptor(Arc<Timerfd>),
    Callback(Box<OnRearm>),
}

/// So much before its deadline the descriptor may be readable: by that much the two clocks may
/// differ at the most.
#[cfg(linux_platform)]
const NEAR: Ns = Ns::from_ms(1);

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(linux_platform)]
            Signal::Descriptor(timer) => f.debug_tuple("Descriptor").field(timer).finish(),
            Signal::Callback(_) => f.debug_tuple("Callback").finish_non_exhaustive(),
        }
    }
}

impl LoopDevice {
    /// A loop that polls a descriptor.
    #[cfg(linux_platform)]
    pub fn with_descriptor(timer: Arc<Timerfd>) -> LoopDevice {
        LoopDevice::new(Signal::Descriptor(timer))
    }

    /// A loop that is told.
    pub fn with_callback(on_rearm: Box<OnRearm>) -> LoopDevice {
        LoopDevice::new(Signal::Callback(on_rearm))
    }

    fn new(signal: Signal) -> LoopDevice {
        LoopDevice {
            bell: LoopBell::new(),
            signal,
            #[cfg(linux_platform)]
            written: AtomicU64::new(Ns::NEVER.0),
            #[cfg(linux_platform)]
            cleared: AtomicU64::new(0),
        }
    }

    /// Programs it. Is that all? Otherwise [`ring`](LoopDevice::ring), without the lock.
    #[cfg_attr(not(linux_platform), expect(unused_variables, reason = "callbacks need no clock"))]
    pub fn set(&self, deadline: Ns, clock: &HostClock) -> bool {
        self.bell.set(deadline);
        match &self.signal {
            Signal::Callback(_) => false,
            #[cfg(linux_platform)]
            Signal::Descriptor(timer) => {
                self.written.store(deadline.0, Ordering::SeqCst);
                // A timerfd that could be armed once can be armed again, unless the program
                // forbids itself that; its loop then comes by what `timeout` says.
                let _ = timer.set(clock.to_system(deadline));
                true
            }
        }
    }

    /// Calls the loop if it waits for something later and nobody has called it. Did it?
    pub fn ring(&self) -> bool {
        #[cfg_attr(not(linux_platform), expect(irrefutable_let_patterns))]
        let Signal::Callback(on_rearm) = &self.signal else { return false };
        self.bell.ring(on_rearm)
    }

    /// What it is armed for. From now on whoever arms something earlier calls. For the loop alone.
    pub fn hear(&self) -> Ns {
        self.bell.hear()
    }

    /// Is there something to do at `now`, or so soon that the descriptor may say so already? If
    /// so, and until it hears again, nobody needs to call the loop. For the loop alone.
    pub fn begin_run(&self, now: Ns) -> bool {
        self.bell.begin_run();
        let is_due = self.bell.deadline() <= now;
        match &self.signal {
            Signal::Callback(_) => is_due,
            #[cfg(linux_platform)]
            Signal::Descriptor(timer) => self.has_expired(timer, now) || is_due,
        }
    }

    /// Has the descriptor expired, or may it any moment? Takes note of it.
    #[cfg(linux_platform)]
    fn has_expired(&self, timer: &Timerfd, now: Ns) -> bool {
        // The last to be armed may have expired and be readable, wanted still or not. What is
        // armed after this look at the count is not counted as taken note of.
        let calls = timer.calls();
        let is_noted = self.cleared.load(Ordering::Relaxed) == calls;
        let written = Ns(self.written.load(Ordering::SeqCst));
        if is_noted || written > now.after(NEAR) {
            return false;
        }
        // Before the base is looked at: what expires from here on is readable again.
        if timer.clear() {
            self.cleared.store(calls, Ordering::Relaxed);
        }
        true
    }

    /// The loop is about to look at its base: whatever was armed counts as never (R5).
    pub fn quiet(&self) {
        self.bell.quiet();
    }

    /// System calls that programmed it.
    pub fn calls(&self) -> u64 {
        match &self.signal {
            #[cfg(linux_platform)]
            Signal::Descriptor(timer) => timer.calls(),
            Signal::Callback(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::manual_clock::ManualClock;
    #[cfg(not(linux_platform))]
    use std::sync::Arc;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::Thread;
    use std::time::{Duration, Instant};

    /// Goal: no call is lost, however those who arm and the loop's lying down interleave.
    /// Method: two threads that arm something ever earlier than what the loop waits for, and wait
    /// until it has heard of that; a loop that does nothing but hear and wait to be called. The
    /// callback takes its time now and then, which is when others might rely on it.
    #[test]
    fn no_call_is_lost() {
        let rounds = if cfg!(miri) { 20 } else { 30_000 };
        let waker = Arc::new(OnceLock::<Thread>::new());
        let to_wake = Arc::clone(&waker);
        let device = LoopDevice::with_callback(Box::new(move |at| {
            (0..at.0 % 61).for_each(|_| core::hint::spin_loop());
            if let Some(thread) = to_wake.get() {
                thread.unpark();
            }
        }));
        let (clock, stop) =
            (HostClock::manual(Arc::new(ManualClock::at(Ns(1)))), AtomicBool::new(false));
        let (asked, heard) = ([const { AtomicU64::new(0) }; 2], [const { AtomicU64::new(0) }; 2]);
        std::thread::scope(|s| {
            let looping = s.spawn(|| {
                waker.get_or_init(std::thread::current);
                while !stop.load(Ordering::Acquire) {
                    device.begin_run(Ns(1));
                    device.quiet();
                    for (asked, heard) in asked.iter().zip(&heard) {
                        heard.store(asked.load(Ordering::SeqCst), Ordering::SeqCst);
                    }
                    if device.hear() == Ns::NEVER {
                        std::thread::park();
                    }
                }
            });
            let armers = [0usize, 1].map(|me| {
                let (asked, heard, device, clock) = (&asked[me], &heard[me], &device, &clock);
                s.spawn(move || {
                    for round in 1..=rounds {
                        asked.store(round, Ordering::SeqCst);
                        (0..round % 29).for_each(|_| core::hint::spin_loop());
                        device.set(Ns(2 + round % 127 * me as u64), clock);
                        device.ring();
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
            let all = armers.map(|armer| armer.join().is_ok_and(|heard| heard));
            stop.store(true, Ordering::Release);
            looping.thread().unpark();
            assert_eq!(all, [true, true], "a call was lost");
        });
    }
}
