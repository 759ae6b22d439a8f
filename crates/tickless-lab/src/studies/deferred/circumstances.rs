//! The circumstances (tick rate, load, kind of probe) in which the study measures, and what it
//! compares in each of them.

use super::scene::{ExpiryWakes, Load, Probe};

/// Circumstances in which variants of waking the expiry thread are compared.
pub struct Circumstances {
    /// The prefix of the names of the figures that are measured in these circumstances.
    pub id: &'static str,
    /// A description for the user.
    pub title: &'static str,
    /// Ticks in a second.
    pub hz: u32,
    /// The other load on the machine.
    pub load: Load,
    /// Whether the probe (the measuring thread) is pinned.
    pub probe: Probe,
    /// The variants that are compared.
    pub ways: &'static [ExpiryWakes],
}

/// The replaced behaviour and the mechanism.
pub const BOTH: &[ExpiryWakes] = &[ExpiryWakes::Before, ExpiryWakes::After];

/// All circumstances in which the study measures.
pub const CIRCUMSTANCES: [Circumstances; 5] = [
    Circumstances {
        id: "1000hz.idle",
        title: "1000 Hz idle",
        hz: 1_000,
        load: Load::Idle,
        probe: Probe::Unpinned,
        ways: &[ExpiryWakes::Before, ExpiryWakes::After, ExpiryWakes::Tickless],
    },
    Circumstances {
        id: "1000hz.busy",
        title: "1000 Hz busy",
        hz: 1_000,
        load: Load::Busy,
        probe: Probe::Unpinned,
        ways: BOTH,
    },
    Circumstances {
        id: "1000hz.pinned",
        title: "1000 Hz idle -S",
        hz: 1_000,
        load: Load::Idle,
        probe: Probe::Pinned,
        ways: BOTH,
    },
    Circumstances {
        id: "250hz.idle",
        title: "250 Hz idle",
        hz: 250,
        load: Load::Idle,
        probe: Probe::Unpinned,
        ways: BOTH,
    },
    Circumstances {
        id: "250hz.busy",
        title: "250 Hz busy",
        hz: 250,
        load: Load::Busy,
        probe: Probe::Unpinned,
        ways: BOTH,
    },
];

/// How long after a tick the probe (the measuring thread) wakes, in the measurements with a fixed
/// phase.
pub const PHASES_US: [u64; 4] = [0, 250, 500, 750];
