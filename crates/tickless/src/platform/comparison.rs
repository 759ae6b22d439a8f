//! The CPU's counter beside the system's clock.

use crate::platform::counter;
use crate::platform::system_clock::system_now;
#[cfg(linux_platform)]
use tickless_core::clock::counter::Hertz;
use tickless_core::clock::discipline::Moment;
use tickless_core::time::Ns;

/// How near to each other two readings of the counter must be for what was read in between to
/// belong to them, in cycles: about a microsecond, which no preemption is as short as.
const CLOSE: u64 = 3000;
/// How often that is tried before the nearest is taken.
const TRIES: u32 = 30;

/// The system's clock, and a counter reading that belongs to it: the closest of a few, and of
/// some more if none was close, since a preemption in between would count as an error.
pub fn compare() -> Moment {
    let mut best = Moment { counter: 0, system: Ns::ZERO, doubt: u64::MAX };
    for tries in 0..TRIES {
        let before = counter::read();
        let system = system_now();
        let took = counter::read().saturating_sub(before);
        if took / 2 < best.doubt {
            best = Moment { counter: before + took / 2, system, doubt: took / 2 };
        }
        if tries >= 2 && best.doubt <= CLOSE / 2 {
            break;
        }
    }
    best
}

/// How fast the counter runs by `CLOCK_MONOTONIC`, from two comparisons so far apart.
#[cfg(linux_platform)]
pub fn measure_tsc(apart: Ns) -> Hertz {
    let from = compare();
    let mut to = compare();
    while to.system.since(from.system) < apart {
        to = compare();
    }
    let counts = u128::from(to.counter.saturating_sub(from.counter));
    let ns = u128::from(to.system.since(from.system).0).max(1);
    Hertz::new((counts * 1_000_000_000 / ns) as u64)
}
