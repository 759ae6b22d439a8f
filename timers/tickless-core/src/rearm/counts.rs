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
}

impl DeviceCounts {
    /// The sum over two devices.
    #[must_use]
    pub fn plus(self, other: DeviceCounts) -> DeviceCounts {
        self.with(other, |one, other| one + other)
    }

    /// What has been counted since `earlier`, a copy of the same device's counts.
    #[must_use]
    pub fn since(self, earlier: DeviceCounts) -> DeviceCounts {
        self.with(earlier, |now, earlier| now - earlier)
    }

    fn with(self, other: DeviceCounts, of: impl Fn(u64, u64) -> u64) -> DeviceCounts {
        DeviceCounts {
            writes: of(self.writes, other.writes),
            events: of(self.events, other.events),
            spurious: of(self.spurious, other.spurious),
            forced: of(self.forced, other.forced),
            hangs: of(self.hangs, other.hangs),
            late: of(self.late, other.late),
            lost: of(self.lost, other.lost),
        }
    }
}
