//! Choices of which operations program the device.

/// When a removal programs the device (R12).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, PartialOrd, Ord)]
pub enum Policy {
    /// Every removal of the first timer programs the device, also as part of a restart: Linux from
    /// commit 968320b (2010) on, as measured by the report that proposed lazy rearming.
    Eager,
    /// No removal programs the device (lazy rearming). The device may fire early with nothing due.
    #[default]
    Lazy,
    /// A cancel of the first timer programs the device; a restart programs it at most once. Current
    /// Linux.
    RestartAware,
}

impl Policy {
    /// All policies, in the order of the tables.
    pub const ALL: [Policy; 3] = [Policy::Eager, Policy::Lazy, Policy::RestartAware];
}

/// How closely the event device follows a timer, for the timer's lifetime.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Urgency {
    /// The device follows the timer according to the policy.
    #[default]
    Prompt,
    /// The timer is rearmed all the time and nearly always moves later, such as a scheduler's
    /// slice. The device need not follow it, and may fire early with nothing due.
    Lazy,
}

/// Whether the device ignores the removal of lazy timers. With [`Policy::RestartAware`], Linux 7.1
/// does so for the timer of the scheduler's slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum LazyTimers {
    /// All timers are treated alike.
    #[default]
    Ignored,
    /// Removing or pushing out a lazy timer does not program the device.
    Honoured,
}

/// When a handler's end programs the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum HandlerEnd {
    /// At once.
    #[default]
    Programs,
    /// Later, once, by [`Device::settle`](super::Device::settle): the caller of the handler calls
    /// it when the next task has been chosen and its timers are armed. Until then nothing programs
    /// the device. Linux 7.1 does this on architectures that support it.
    Defers,
}
