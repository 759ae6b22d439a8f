//! Reads the CPU's counter and the system's clock at the same moment, to compare the two.

use crate::platform::counter;
use crate::platform::system_clock::system_now;
use tickless_core::clock::discipline::Moment;
use tickless_core::time::Ns;

/// If the counts before and after a reading of the system's clock are at most this many cycles
/// apart (about a microsecond), the readings count as simultaneous. A preemption takes longer.
const CLOSE: u64 = 3000;
const TRIES: u32 = 10;

/// Reads the system's clock and the counter at about the same moment. Makes 2 to [`TRIES`]
/// attempts, until one is [`CLOSE`]. Returns the attempt whose readings are closest together.
pub fn compare() -> Moment {
    let mut best = Moment { counter: 0, system: Ns::ZERO, doubt: u64::MAX };
    for tries in 0..TRIES {
        let before = counter::read();
        let system = system_now();
        let took = counter::read().saturating_sub(before);
        if took / 2 < best.doubt {
            best = Moment { counter: before + took / 2, system, doubt: took / 2 };
        }
        if tries >= 1 && best.doubt <= CLOSE / 2 {
            break;
        }
    }
    best
}
