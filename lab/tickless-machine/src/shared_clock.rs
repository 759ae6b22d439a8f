//! A clock that all CPUs share, over one slow counter. Either every CPU reads the counter itself,
//! or one CPU reads it for all that wait at the time (*combined* reads).

use crate::device;
use crate::platform::{Sim, SimWord};
use tickless_core::clock::combined::{Combined, ReadPolicy};
use tickless_core::clock::counter::Counter;
use tickless_core::platform::Platform;

pub type SharedClock = Combined<SimWord, Device, fn(u32)>;

pub fn new(policy: ReadPolicy) -> SharedClock {
    let relax: fn(u32) = |round| Sim.relax(round);
    Combined::new(Device, relax).with_policy(policy)
}

#[derive(Debug)]
pub struct Device;

impl Counter for Device {
    fn read(&self) -> u64 {
        device::read_counter().0
    }

    /// The width of the counter in bits. It never matters: the counter counts nanoseconds, so no
    /// conversion can overflow, and no simulated run is long enough for 56 bits to wrap.
    fn bits(&self) -> u32 {
        56
    }
}
