//! What is compared in which circumstances.

use super::scene::{ExpiryWakes, Load, Probe};

/// Circumstances in which the ways are compared.
pub struct Circumstances {
    /// What its cells' names begin with.
    pub id: &'static str,
    /// In words.
    pub title: &'static str,
    /// The tick.
    pub hz: u32,
    /// What else runs.
    pub load: Load,
    /// Where the probe runs.
    pub probe: Probe,
    /// What is compared in them.
    pub ways: &'static [ExpiryWakes],
}

/// The mechanism and what it replaced.
pub const BOTH: &[ExpiryWakes] = &[ExpiryWakes::Before, ExpiryWakes::After];

/// All of them.
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

/// The times after a tick at which the probe wakes.
pub const PHASES_US: [u64; 4] = [0, 250, 500, 750];
