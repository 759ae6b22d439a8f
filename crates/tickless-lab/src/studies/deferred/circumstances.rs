//! The circumstances (tick rate, load, kind of probe) in which the study measures, and what it
//! compares in each of them.

use super::scene::{ExpiryWakes, Load, Probe};

pub struct Circumstances {
    pub id: &'static str,
    pub title: &'static str,
    pub hz: u32,
    pub load: Load,
    pub probe: Probe,
    pub ways: &'static [ExpiryWakes],
}

pub const BOTH: &[ExpiryWakes] = &[ExpiryWakes::Before, ExpiryWakes::After];

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
