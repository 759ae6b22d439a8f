//! The event device of a program that runs timers in its own event loop: a descriptor that the loop
//! polls, or a callback that wakes the loop (see `bell`). An asynchronous runtime polls the
//! descriptor, too. Or a task waits in a timer of the runtime, and arming threads wake that task.

use super::bell::LoopBell;
#[cfg(linux_platform)]
use super::timerfd::Timerfd;
use crate::platform::runtime::Runtime;
use core::fmt;
use core::sync::atomic::AtomicU64;
#[cfg(linux_platform)]
use core::sync::atomic::Ordering;
use std::sync::Arc;
use tickless_core::time::Ns;

pub type OnRearm = dyn Fn(Ns) + Send + Sync;

#[derive(Debug)]
pub struct LoopDevice {
    bell: LoopBell<AtomicU64>,
    signal: Signal,
    /// The deadline for which the descriptor was last armed. Unlike the deadline in `bell`, it is
    /// not reset when the loop begins to run timers.
    #[cfg(linux_platform)]
    written: AtomicU64,
    /// How many times the descriptor had been armed when its expiry was last read.
    #[cfg(linux_platform)]
    cleared: AtomicU64,
}

enum Signal {
    /// Becomes readable at the deadline.
    #[cfg(linux_platform)]
    Descriptor(Timerfd),
    Callback(Box<OnRearm>),
    /// For a task in an asynchronous runtime. The runtime polls the timerfd edge-triggered, so no
    /// thread has to read its expiries. If the task has waited in a timer of the runtime from the
    /// start, there is no timerfd.
    Runtime {
        #[cfg(linux_platform)]
        timer: Option<Timerfd>,
        runtime: Arc<dyn Runtime>,
    },
}

/// The descriptor can become readable this long before the deadline: the largest difference between
/// `CLOCK_MONOTONIC`, which the descriptor uses, and the timers' clock.
#[cfg(linux_platform)]
const NEAR: Ns = Ns::from_ms(1);

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(linux_platform)]
            Signal::Descriptor(timer) => f.debug_tuple("Descriptor").field(timer).finish(),
            Signal::Callback(_) => f.debug_tuple("Callback").finish_non_exhaustive(),
            Signal::Runtime { runtime, .. } => f.debug_tuple("Runtime").field(runtime).finish(),
        }
    }
}

impl LoopDevice {
    #[cfg(linux_platform)]
    pub fn with_descriptor(timer: Timerfd) -> LoopDevice {
        LoopDevice::new(Signal::Descriptor(timer))
    }

    pub fn with_callback(on_rearm: Box<OnRearm>) -> LoopDevice {
        LoopDevice::new(Signal::Callback(on_rearm))
    }

    /// Makes a runtime's device. The runtime polls `timer`; a task of it waits if that is `None`.
    #[cfg_attr(not(feature = "tokio-time"), expect(dead_code, reason = "tokio's runtimes only"))]
    pub fn in_runtime(
        runtime: Arc<dyn Runtime>,
        #[cfg(linux_platform)] timer: Option<Timerfd>,
    ) -> LoopDevice {
        LoopDevice::new(Signal::Runtime {
            #[cfg(linux_platform)]
            timer,
            runtime,
        })
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

    /// Programs the device. The caller holds the lock of the base. Returns `false` if the caller
    /// must also call [`ring`](LoopDevice::ring) after it has released the lock.
    pub fn set(&self, deadline: Ns) -> bool {
        self.bell.set(deadline);
        #[cfg(linux_platform)]
        if let Some(timer) = self.descriptor() {
            self.written.store(deadline.0, Ordering::SeqCst);
            // Ignore an error: only a new seccomp filter can refuse this call. The event loop must
            // then wait no longer than the time that `timeout` returns.
            let _ = timer.set(deadline);
            return true;
        }
        false
    }

    /// Returns the descriptor that the loop polls now; `None` if it is woken in another way.
    #[cfg(linux_platform)]
    fn descriptor(&self) -> Option<&Timerfd> {
        match &self.signal {
            Signal::Callback(_) => None,
            Signal::Descriptor(timer) => Some(timer),
            Signal::Runtime { timer, runtime } => {
                timer.as_ref().filter(|_| !runtime.waits_in_task())
            }
        }
    }

    /// Wakes the loop if it waits for a later deadline. Returns whether it was woken.
    pub fn ring(&self) -> bool {
        match &self.signal {
            #[cfg(linux_platform)]
            // The kernel wakes the loop: the timerfd has been set to the new deadline.
            Signal::Descriptor(_) => false,
            Signal::Callback(on_rearm) => self.bell.ring(on_rearm),
            Signal::Runtime { runtime, .. } => {
                runtime.waits_in_task() && self.bell.ring(|_| runtime.wake_task())
            }
        }
    }

    /// Returns the deadline until which the loop is allowed to wait. A thread that arms an earlier
    /// deadline after this call wakes the loop. Call this only on the loop's own thread.
    pub fn begin_wait(&self) -> Ns {
        self.bell.begin_wait()
    }

    /// Records that the loop runs timers: until it waits again, no thread needs to wake it. Returns
    /// whether a timer is due at `now`, or so soon that the descriptor is perhaps readable already.
    pub fn begin_run(&self, now: Ns) -> bool {
        self.bell.begin_run();
        let is_due = self.bell.deadline() <= now;
        match &self.signal {
            #[cfg(linux_platform)]
            Signal::Descriptor(timer) => self.has_expired(timer, now) || is_due,
            _ => is_due,
        }
    }

    /// Returns whether the descriptor has expired, or will very soon. Also reads the expiry.
    #[cfg(linux_platform)]
    fn has_expired(&self, timer: &Timerfd, now: Ns) -> bool {
        // Read the number of armings before the descriptor. If another thread arms the descriptor
        // in between, the expiry of that arming does not count as read.
        let calls = timer.calls();
        let is_read = self.cleared.load(Ordering::Relaxed) == calls;
        let written = Ns(self.written.load(Ordering::SeqCst));
        if is_read || written > now.after(NEAR) {
            return false;
        }
        // Read the expiry before the loop checks its base: a timer that becomes due later makes the
        // descriptor readable again.
        if timer.clear() {
            self.cleared.store(calls, Ordering::Relaxed);
        }
        true
    }

    pub fn quiet(&self) {
        self.bell.quiet();
    }

    pub fn calls(&self) -> u64 {
        match &self.signal {
            #[cfg(linux_platform)]
            Signal::Descriptor(timer) | Signal::Runtime { timer: Some(timer), .. } => timer.calls(),
            _ => 0,
        }
    }
}
