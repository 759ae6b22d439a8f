//! Counts of a device's writes and events.

/// Counts of a device's writes and events.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct DeviceCounts {
    /// Writes: how often the device was programmed.
    pub writes: u64,
    /// Events that the device delivered.
    pub events: u64,
    /// Events after which no timer was due.
    pub spurious: u64,
    /// Deadlines that were too near or had passed, so that the device was programmed for its
    /// minimum distance ahead instead.
    pub forced: u64,
    /// Handlers that backed off because timers were due faster than they could fire them.
    pub hangs: u64,
    /// Handlers that began after the device's deadline by more than the tolerance, whether the
    /// event or a kick by another CPU started them.
    pub late: u64,
    /// Events that another CPU found overdue.
    pub lost: u64,
    /// Writes that the device refused.
    pub refused: u64,
}

impl DeviceCounts {
    pub(super) const ZERO: DeviceCounts = DeviceCounts {
        writes: 0,
        events: 0,
        spurious: 0,
        forced: 0,
        hangs: 0,
        late: 0,
        lost: 0,
        refused: 0,
    };

    /// The sum over two devices.
    #[must_use]
    pub fn plus(self, other: DeviceCounts) -> DeviceCounts {
        DeviceCounts {
            writes: self.writes + other.writes,
            events: self.events + other.events,
            spurious: self.spurious + other.spurious,
            forced: self.forced + other.forced,
            hangs: self.hangs + other.hangs,
            lost: self.lost + other.lost,
            late: self.late + other.late,
            refused: self.refused + other.refused,
        }
    }

    /// What has been counted since `earlier`, a copy of the same device's counts.
    #[must_use]
    pub fn since(self, earlier: DeviceCounts) -> DeviceCounts {
        DeviceCounts {
            writes: self.writes - earlier.writes,
            events: self.events - earlier.events,
            spurious: self.spurious - earlier.spurious,
            forced: self.forced - earlier.forced,
            hangs: self.hangs - earlier.hangs,
            lost: self.lost - earlier.lost,
            late: self.late - earlier.late,
            refused: self.refused - earlier.refused,
        }
    }
}
