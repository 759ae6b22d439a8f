//! A clock that all CPUs share: one slow counter, read by everybody or by one for all.

use crate::device::{self, CounterId};
use crate::platform::{Sim, SimWord};
use std::fmt;
use tickless_core::clock::combined::{Combined, ReadPolicy};
use tickless_core::clock::counter::{Counter, Hertz, Rating, Width};
use tickless_core::platform::Platform;

/// A clock that all CPUs share.
pub struct SharedClock {
    clock: Combined<SimWord, Device, fn(u32)>,
    counter: CounterId,
}

impl SharedClock {
    /// A clock over a new counter of the machine that runs on this thread; `None` without one.
    pub fn new(policy: ReadPolicy) -> Option<SharedClock> {
        let counter = device::new_counter()?;
        let clock = Combined::new(Device(counter), relax as fn(u32)).with_policy(policy);
        Some(SharedClock { clock, counter })
    }

    /// Reads it, at the machine's prices.
    pub fn read(&self) {
        self.clock.read();
    }

    /// The counter that it reads.
    pub fn counter(&self) -> CounterId {
        self.counter
    }
}

impl fmt::Debug for SharedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedClock").field("counter", &self.counter).finish_non_exhaustive()
    }
}

/// The shared device, as the combined counter sees it.
struct Device(CounterId);

impl Counter for Device {
    fn read(&self) -> u64 {
        device::read_counter(self.0).0
    }

    /// It shows nanoseconds here, so that nothing has to be converted; wide enough not to wrap.
    fn width(&self) -> Width {
        Width::bits(56)
    }

    fn frequency(&self) -> Hertz {
        Hertz::NANOSECONDS
    }

    fn rating(&self) -> Rating {
        Rating::SLOW
    }

    fn name(&self) -> &str {
        "simulated device"
    }
}

fn relax(round: u32) {
    Sim.relax(round);
}
