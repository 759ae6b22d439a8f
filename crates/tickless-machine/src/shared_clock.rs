//! A clock that all CPUs share, over one slow counter. Either every CPU reads the counter itself,
//! or one CPU reads it for all that wait at the time (*combined* reads).

use crate::device::{self, CounterId};
use crate::platform::{Sim, SimWord};
use tickless_core::clock::combined::{Combined, ReadPolicy};
use tickless_core::clock::counter::Counter;
use tickless_core::platform::Platform;

pub struct SharedClock {
    clock: Combined<SimWord, Device, fn(u32)>,
    counter: CounterId,
}

impl SharedClock {
    pub fn new(policy: ReadPolicy) -> Option<SharedClock> {
        let counter = device::new_counter()?;
        let relax: fn(u32) = |round| Sim.relax(round);
        let clock = Combined::new(Device(counter), relax).with_policy(policy);
        Some(SharedClock { clock, counter })
    }

    pub fn read(&self) {
        self.clock.read();
    }

    pub fn counter(&self) -> CounterId {
        self.counter
    }
}

struct Device(CounterId);

impl Counter for Device {
    fn read(&self) -> u64 {
        device::read_counter(self.0).0
    }

    /// The width of the counter in bits. It never matters: the counter counts nanoseconds, so no
    /// conversion can overflow, and no simulated run is long enough for 56 bits to wrap.
    fn bits(&self) -> u32 {
        56
    }
}
